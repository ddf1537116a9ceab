//! Computes the row of a run again from its log, to find rows that another program changed.

use crate::RunRow;
use posse_protocol::{Record, RunId, SCHEMA_VERSION};

/// The row of a run as its log tells it: all of [`RunRow`] except the owner and the time since
/// which it waits.
#[derive(Clone, Debug)]
pub struct Projection {
    row: RunRow,
}

impl Projection {
    /// A projection before the first event.
    pub fn new(run: RunId) -> Self {
        Projection { row: RunRow::new(run, 0) }
    }

    /// Applies the next event of the log.
    pub fn apply(&mut self, record: &Record) {
        if self.row.created_at == 0 {
            self.row.created_at = record.at;
        }
        self.row.updated_at = record.at;
        self.row.project(&record.event, record.at);
    }

    /// Returns the computed row.
    pub(crate) fn into_row(self) -> RunRow {
        self.row
    }

    /// Returns the first column of `row` that differs from the log up to `row.last_seq`. It does
    /// not compare the end of the log, because every read checks that.
    pub fn difference(&self, row: &RunRow) -> Option<&'static str> {
        let log = &self.row;
        let at_rest = log.state.outcome.is_none() && !log.state.archived
            || row.work.owner.is_none() && !row.work.runnable;
        // A run with an owner has something to do.
        let at_work = row.work.owner.is_none() || row.work.runnable;
        let columns = [
            // Posse could not have read a log of a newer version.
            ("version", row.log.version <= SCHEMA_VERSION),
            ("agent", log.about.agent == row.about.agent),
            ("model", log.about.model == row.about.model),
            ("title", log.about.title == row.about.title),
            ("label", log.about.label == row.about.label),
            ("workspace", log.about.workspace == row.about.workspace),
            ("session", log.about.session == row.about.session),
            ("key", log.about.key == row.about.key),
            ("created_at", log.created_at == row.created_at),
            ("updated_at", log.updated_at == row.updated_at),
            ("runnable", at_rest && at_work),
            ("outcome", log.state.outcome == row.state.outcome),
            ("note", log.state.note == row.state.note),
            ("archived", log.state.archived == row.state.archived),
            ("parent", log.family.parent == row.family.parent),
            ("root", log.family.root == row.family.root),
            ("depth", log.family.depth == row.family.depth),
            ("stopping", log.state.stopping == row.state.stopping),
            ("priority", log.work.priority == row.work.priority),
            ("background", log.family.background == row.family.background),
            ("expects", log.family.expects == row.family.expects),
            ("gathers", log.family.gathers == row.family.gathers),
            ("gathered_at", log.family.gathered_at == row.family.gathered_at),
            (
                "paused",
                (log.state.paused, log.state.interrupted)
                    == (row.state.paused, row.state.interrupted),
            ),
            ("finished_at", log.state.finished_at == row.state.finished_at),
            ("cleanup", log.state.cleanup == row.state.cleanup),
            ("abreast", log.work.abreast == row.work.abreast),
            ("archive_after", log.state.archive_after_ms == row.state.archive_after_ms),
            ("account", log.funds.account == row.funds.account),
            ("budget", log.funds.budget == row.funds.budget),
            ("asks", log.state.asks == row.state.asks),
            ("calling", log.spending.calling == row.spending.calling),
            ("turns", log.spending.turns == row.spending.turns),
            ("tool_calls", log.spending.tool_calls == row.spending.tool_calls),
            (
                "input_tokens",
                same(log.spending.spent.input_tokens, row.spending.spent.input_tokens),
            ),
            (
                "output_tokens",
                same(log.spending.spent.output_tokens, row.spending.spent.output_tokens),
            ),
            ("cost", same(log.spending.spent.cost.0, row.spending.spent.cost.0)),
            (
                "uncertain_input",
                same(log.spending.uncertain.input_tokens, row.spending.uncertain.input_tokens),
            ),
            (
                "uncertain_output",
                same(log.spending.uncertain.output_tokens, row.spending.uncertain.output_tokens),
            ),
            ("uncertain_cost", same(log.spending.uncertain.cost.0, row.spending.uncertain.cost.0)),
            ("cut_calls", log.spending.cut_calls == row.spending.cut_calls),
            (
                "reserved_input",
                same(log.spending.reserved.input_tokens, row.spending.reserved.input_tokens),
            ),
            (
                "reserved_output",
                same(log.spending.reserved.output_tokens, row.spending.reserved.output_tokens),
            ),
            ("reserved_cost", same(log.spending.reserved.cost.0, row.spending.reserved.cost.0)),
        ];
        columns.into_iter().find(|(_, same)| !same).map(|(column, _)| column)
    }
}

/// The largest value of a column, which has 63 bits. A provider may report more.
const MOST: u64 = i64::MAX as u64;

fn same(log: u64, row: u64) -> bool {
    log.min(MOST) == row.min(MOST)
}
