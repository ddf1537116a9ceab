//! Workers: the processes that claim runs, and which runs they take.

use crate::row::RunRow;
use posse_protocol::WorkerId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest name of a machine or a label.
const LONGEST: usize = 64;

/// What other processes know about a worker, and which runs it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerAbout {
    /// The name of its machine. The worker takes runs of this machine, and runs that any machine can
    /// have. Empty for the only machine of a store: the worker takes runs of every machine.
    pub host: String,
    /// The version of its program.
    pub version: String,
    /// How many runs it executes at the same time.
    pub slots: u64,
    /// How many runs it executes now.
    pub busy: u64,
    /// Its labels. A run that needs a label waits for a worker that has it.
    pub labels: Vec<String>,
    /// It takes only runs of these agents, unless empty.
    pub agents: Vec<String>,
    /// The vendors whose models it cannot call, because it has no key for them.
    pub lacks: Vec<String>,
    /// The tools of its host program, and its tool sources, by their names.
    pub tools: Vec<String>,
    /// The repositories that it could not fetch when it last tried, each with the reason.
    pub unreachable: BTreeMap<String, String>,
    /// True for a process that keeps on: a daemon or a worker. Others end with their command.
    pub stays: bool,
}

/// A living worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The id of the worker.
    pub id: WorkerId,
    /// What it said about itself.
    pub about: WorkerAbout,
    /// How many milliseconds ago it renewed its lease.
    pub silent_ms: u64,
}

impl WorkerAbout {
    /// Returns true if the worker takes `row`. To end a cancelled run, it needs neither a label nor a
    /// model.
    pub fn takes(&self, row: &RunRow) -> bool {
        let ends = row.state.stopping;
        let needs = if ends { "" } else { &row.work.needs };
        self.takes_from(&row.work.host, needs, &row.about.agent)
            && (ends || self.can_call(&row.about.model))
    }

    /// Returns true if the worker has what it needs to call `model`, as `vendor/name`.
    pub fn can_call(&self, model: &str) -> bool {
        let vendor = model.split_once('/').map_or(model, |(vendor, _)| vendor);
        !self.lacks.iter().any(|lacking| lacking == vendor)
    }

    /// Returns true if the host program of the worker has this tool or tool source.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool == name)
    }

    /// Returns true if the worker takes a run of `agent` that is bound to `host` and needs a label,
    /// each unless it is empty.
    pub fn takes_from(&self, host: &str, needs: &str, agent: &str) -> bool {
        (self.host.is_empty() || host.is_empty() || host == self.host)
            && (needs.is_empty() || self.labels.iter().any(|label| label == needs))
            && (self.agents.is_empty() || self.agents.iter().any(|name| name == agent))
    }

    /// Returns the same condition for a statement about `runs`, to be added to others.
    pub(crate) fn condition(&self) -> String {
        let list = |first: &[&str], names: &[String]| {
            let names = first.iter().copied().chain(names.iter().map(String::as_str));
            let quoted: Vec<String> = names.map(|name| format!("'{}'", plain(name))).collect();
            quoted.join(", ")
        };
        let mut condition = String::new();
        if !self.host.is_empty() {
            let hosts = list(&[""], std::slice::from_ref(&self.host));
            condition.push_str(&format!(" AND host IN ({hosts})"));
        }
        if !self.agents.is_empty() {
            condition.push_str(&format!(" AND agent IN ({})", list(&[], &self.agents)));
        }
        let mut able = format!("needs IN ({})", list(&[""], &self.labels));
        for vendor in &self.lacks {
            let start = format!("{}/", plain(vendor));
            able.push_str(&format!(" AND substr(model, 1, {}) <> '{start}'", start.len()));
        }
        condition.push_str(&format!(" AND (stopping = 1 OR ({able}))"));
        condition
    }
}

/// Returns true for the name of a machine or of a label: letters, digits, `.`, `_` and `-`.
pub fn is_worker_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_plain)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-' | ':')
}

/// Leaves out what could end a text in a statement. No valid name contains it.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| is_plain(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_takes_what_it_can_have() {
        let gpu = WorkerAbout {
            host: "a".to_owned(),
            labels: vec!["gpu".to_owned()],
            ..WorkerAbout::default()
        };
        let table = [
            ("", "", true),
            ("a", "", true),
            ("b", "", false),
            ("", "gpu", true),
            ("", "tpu", false),
            ("a", "gpu", true),
            ("b", "gpu", false),
        ];
        for (host, needs, takes) in table {
            assert_eq!(gpu.takes_from(host, needs, "x"), takes, "{host} {needs}");
            assert_eq!(WorkerAbout::default().takes_from(host, needs, "x"), needs.is_empty());
        }
        let one = WorkerAbout { agents: vec!["x".to_owned()], ..WorkerAbout::default() };
        assert!(one.takes_from("", "", "x") && !one.takes_from("", "", "y"));
    }

    #[test]
    fn no_name_ends_a_text_in_a_statement() {
        let about = WorkerAbout { host: "a') OR ('' = '".to_owned(), ..WorkerAbout::default() };
        let condition = " AND host IN ('', 'aOR') AND (stopping = 1 OR (needs IN ('')))";
        assert_eq!(about.condition(), condition);
        assert!(is_worker_name("gpu-1.eu") && !is_worker_name("a b") && !is_worker_name(""));
    }
}
