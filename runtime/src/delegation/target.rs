//! Finds the subagent that a run names: by id, label, number in the list, or a prefix. An ambiguous
//! name finds none.

use crate::delegation::arguments::invalid;
use crate::delegation::subagents::is_at_work;
use crate::error::Error;
use posse_protocol::RunId;
use posse_store::RunRow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long an ended run stays in the list.
const RECENT: Duration = Duration::from_secs(30 * 60);

/// The subagents of a run.
pub(crate) struct Family {
    run: RunId,
    /// The listed runs by number: unfinished ones, then ended ones, the last to end first.
    listed: Vec<RunRow>,
    others: Vec<RunRow>,
}

impl Family {
    pub(crate) fn new(run: RunId, rows: Vec<RunRow>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Family::at(run, rows, now)
    }

    /// The family at the time `now`, counted from 1970.
    fn at(run: RunId, mut rows: Vec<RunRow>, now: Duration) -> Self {
        rows.sort_by_key(|row| match row.state.outcome {
            None => (0, 0, row.id),
            Some(_) => (1, u64::MAX - row.state.finished_at, row.id),
        });
        let since = now.saturating_sub(RECENT).as_millis() as u64;
        let is_listed = |row: &RunRow| is_at_work(row.status) || row.state.finished_at >= since;
        let (listed, others) = rows.into_iter().partition(is_listed);
        Family { run, listed, others }
    }

    /// The listed runs.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &RunRow> {
        self.listed.iter()
    }

    /// The runs that have not ended.
    pub(crate) fn at_work(&self) -> impl Iterator<Item = &RunRow> {
        self.listed.iter().filter(|row| is_at_work(row.status))
    }

    /// The run that `name` names.
    pub(crate) fn find(&self, name: &str) -> Result<&RunRow, Error> {
        let name = name.trim();
        if name.is_empty() {
            return Err(invalid("`target` is empty; `list` shows which there are"));
        }
        let all = || self.listed.iter().chain(&self.others);
        let id = name.to_ascii_lowercase();
        if let Some(row) = all().find(|row| row.id.to_string() == id) {
            return Ok(row);
        }
        if let Ok(number) = name.parse::<usize>()
            && let Some(row) = number.checked_sub(1).and_then(|index| self.listed.get(index))
        {
            return Ok(row);
        }
        let label = |row: &&RunRow| row.about.label.eq_ignore_ascii_case(name);
        let lower = name.to_lowercase();
        let beginning = |row: &&RunRow| {
            row.about.label.to_lowercase().starts_with(&lower)
                || id.len() >= 4 && row.id.to_string().starts_with(&id)
                || id.len() >= 4 && row.id.to_string().ends_with(&id)
        };
        let exact: Vec<&RunRow> = all().filter(label).collect();
        let fitting = if exact.is_empty() { all().filter(beginning).collect() } else { exact };
        match fitting.as_slice() {
            [one] => Ok(one),
            [] if name.parse::<RunId>().is_ok() => Err(invalid(format!(
                "run {name} was not started by you (run {}) or by those below you; `list` shows \
                 who was",
                self.run
            ))),
            [] => Err(invalid(format!(
                "no agent of yours matches `{}`; `list` shows them",
                name.chars().take(80).collect::<String>()
            ))),
            several => {
                let lines: Vec<String> = several.iter().take(10).map(|row| line(row)).collect();
                Err(invalid(format!(
                    "{} fit `{}`; give the id:\n{}",
                    several.len(),
                    name.chars().take(80).collect::<String>(),
                    lines.join("\n")
                )))
            }
        }
    }
}

/// A line about a run.
pub(crate) fn line(row: &RunRow) -> String {
    let about = if row.about.label.is_empty() { &row.about.title } else { &row.about.label };
    let mut text = format!("{} [{}] {about} · {}", row.id, row.about.agent, row.status);
    match (&row.state.outcome, row.family.expects) {
        (Some(_), _) => text.push_str(&format!(", {}", row.state.note)),
        (None, 0) => {
            let waits_for = row.waits_for();
            let comma = if waits_for.is_empty() { "" } else { ", " };
            text.push_str(&format!("{comma}{waits_for}"));
        }
        (None, 1) => text.push_str(", waiting on 1 child"),
        (None, many) => text.push_str(&format!(", waiting on {many} children")),
    }
    let calls = row.spending.tool_calls;
    text.push_str(&format!(" · {} turns, {calls} tool calls, {}", row.spending.turns, row.cost()));
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use posse_protocol::Status;

    const NOW: Duration = Duration::from_secs(1_000_000);

    fn row(id: u128, label: &str, ended: Option<Duration>) -> RunRow {
        let mut row = RunRow::new(RunId::from_u128(id), 0);
        row.about.label = label.to_owned();
        row.status = if ended.is_some() { Status::Finished } else { Status::Running };
        row.state.outcome = ended.map(|_| "completed".to_owned());
        row.state.finished_at = ended.map_or(0, |ago| (NOW - ago).as_millis() as u64);
        row
    }

    fn family(rows: Vec<RunRow>) -> Family {
        Family::at(RunId::from_u128(1), rows, NOW)
    }

    fn found(family: &Family, name: &str) -> Result<u128, String> {
        let row = family.find(name).map_err(|error| error.to_string())?;
        Ok(row.id.as_u128())
    }

    #[test]
    fn i15_numbers_are_of_those_at_work_and_of_those_that_ended_lately() {
        let minute = Duration::from_secs(60);
        let family = family(vec![
            row(10, "old", Some(120 * minute)),
            row(11, "lately", Some(minute)),
            row(12, "at work", None),
        ]);
        assert_eq!(found(&family, "1"), Ok(12));
        assert_eq!(found(&family, "2"), Ok(11));
        assert!(found(&family, "3").unwrap_err().contains("matches `3`"));
        assert_eq!(found(&family, "old"), Ok(10), "by its label all the same");
    }

    #[test]
    fn i15_an_exact_label_goes_before_a_beginning_and_two_are_none() {
        let family = family(vec![
            row(10, "alpha", None),
            row(11, "alpha beta", None),
            row(12, "gamma", None),
            row(13, "Gamma", None),
        ]);
        assert_eq!(found(&family, "ALPHA"), Ok(10));
        assert_eq!(found(&family, "alpha b"), Ok(11));
        for name in ["alph", "gamma"] {
            let why = found(&family, name).unwrap_err();
            assert!(why.contains(&format!("2 fit `{name}`")), "{why}");
        }
    }
}
