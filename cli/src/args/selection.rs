//! Options that select runs.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use posse::Status;
use std::path::PathBuf;

/// Which runs, by what they are.
#[derive(Args, Default)]
#[command(next_help_heading = "Which runs")]
pub struct Filters {
    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only runs with this label; `nightly*` matches all labels that start with `nightly`
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Only runs of this model: vendor/name or a short name
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Only runs with this status; several: comma-separated
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = statuses())]
    pub status: Vec<Status>,
    /// Only runs with this outcome
    #[arg(long, value_name = "OUTCOME", value_parser = OUTCOMES)]
    pub outcome: Option<String>,
    /// Only subagents that work in the background of their parent (not runs of `run --background`)
    #[arg(long)]
    pub background: bool,
    /// Only runs started since this time: 7d, 12h, 2026-11-01 or 2026-11-01T08:00, local time
    #[arg(long, value_name = "WHEN", value_parser = posse::moment::moment)]
    pub since: Option<u64>,
    /// Only runs started before this time
    #[arg(long, value_name = "WHEN", value_parser = posse::moment::moment)]
    pub until: Option<u64>,
    /// Only runs of the same tree as this run
    #[arg(long, value_name = "RUN", conflicts_with = "children_of")]
    pub tree: Option<String>,
    /// Only direct subagents of this run
    #[arg(long, value_name = "RUN")]
    pub children_of: Option<String>,
    /// Only runs that have not ended
    #[arg(long)]
    pub unfinished: bool,
    /// Only runs in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

impl Filters {
    /// True when no filter is set.
    pub fn is_empty(&self) -> bool {
        let Filters { since, until, tree, children_of, unfinished, cwd, .. } = self;
        let times = [since, until].into_iter().all(Option::is_none);
        let texts = [tree, children_of].into_iter().all(Option::is_none);
        !self.is_about_each() && times && texts && !unfinished && cwd.is_none()
    }

    /// True when a filter is about single runs, wherever they are in a tree.
    pub fn is_about_each(&self) -> bool {
        let texts = [&self.agent, &self.label, &self.model, &self.outcome];
        texts.iter().any(|it| it.is_some()) || !self.status.is_empty() || self.background
    }
}

/// Every run that the filters select.
#[derive(Args)]
pub struct Choice {
    /// Select all unfinished runs, without subagents; the options below select some of them
    #[arg(long)]
    pub all: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
    #[command(flatten)]
    pub filters: Filters,
}

/// Runs by their names, or all that the filters select.
#[derive(Args)]
pub struct Targets {
    /// The runs, each by id, 4 or more characters of it, or label
    #[arg(value_name = "RUN", required_unless_present = "all", conflicts_with = "all")]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub choice: Choice,
}

const OUTCOMES: [&str; 7] =
    ["completed", "failed", "quarantined", "cancelled", "timed-out", "stopped", "out-of-budget"];

/// The statuses and their names.
const STATUSES: [(&str, Status); 9] = [
    ("queued", Status::Queued),
    ("running", Status::Running),
    ("waiting", Status::Waiting),
    ("paused", Status::Paused),
    ("interrupted", Status::Interrupted),
    ("crashed", Status::Crashed),
    ("finished", Status::Finished),
    ("archived", Status::Archived),
    ("damaged", Status::Damaged),
];

fn statuses() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(STATUSES.map(|(word, _)| word)).map(|word| {
        let known = STATUSES.iter().find(|(known, _)| *known == word);
        known.map_or(Status::Damaged, |(_, status)| *status)
    })
}
