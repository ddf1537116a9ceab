//! Computes the row of a run again from its log, to find rows that another program changed.

use crate::RunRow;
use posse_protocol::{Event, Purpose, Record, RunId, SCHEMA_VERSION};

/// The row of a run as its log tells it: all of [`RunRow`] except the owner and the time since
/// which it waits.
#[derive(Clone, Debug)]
pub struct Projection {
    row: RunRow,
    /// The folder that it works in. Rows of earlier versions contain it even if it is a worktree.
    works_in: String,
    /// The model that it started with, which rows of earlier versions keep after a change.
    began_with: String,
    /// Turns that rows of earlier versions count twice because a crash interrupted the call.
    cut_turns: u64,
}

impl Projection {
    /// A projection before the first event.
    pub fn new(run: RunId) -> Self {
        Projection {
            row: RunRow::new(run, 0),
            works_in: String::new(),
            began_with: String::new(),
            cut_turns: 0,
        }
    }

    /// Applies the next event of the log.
    pub fn apply(&mut self, record: &Record) {
        if let Event::RunStarted(started) = &record.event {
            self.works_in.clone_from(&started.grant.workspace);
            self.began_with.clone_from(&started.model);
        }
        if let Event::ModelCalled(called) = &record.event {
            let open = self.row.spending.calling.as_ref().map(|call| call.purpose);
            let is_turn = called.purpose == Purpose::Turn;
            self.cut_turns += u64::from(is_turn && open == Some(Purpose::Turn));
        }
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
            ("model", [&log.about.model, &self.began_with].contains(&&row.about.model)),
            ("title", log.about.title == row.about.title),
            ("label", log.about.label == row.about.label),
            ("workspace", [&log.about.workspace, &self.works_in].contains(&&row.about.workspace)),
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
            ("calling", same_call(log, row)),
            (
                "turns",
                (log.spending.turns..=log.spending.turns + self.cut_turns)
                    .contains(&row.spending.turns),
            ),
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
                at_most(row.spending.uncertain.input_tokens, log.spending.uncertain.input_tokens),
            ),
            (
                "uncertain_output",
                at_most(row.spending.uncertain.output_tokens, log.spending.uncertain.output_tokens),
            ),
            (
                "uncertain_cost",
                at_most(row.spending.uncertain.cost.0, log.spending.uncertain.cost.0),
            ),
            ("cut_calls", at_most(row.spending.cut_calls, log.spending.cut_calls)),
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

/// Compares open calls. Rows of earlier versions have the model of the run and the purpose `Turn`.
fn same_call(log: &RunRow, row: &RunRow) -> bool {
    match (&log.spending.calling, &row.spending.calling) {
        (Some(log), Some(call)) => {
            (log.model == call.model || row.about.model == call.model)
                && (log.purpose == call.purpose || call.purpose == Purpose::Turn)
        }
        (log, row) => log.is_none() && row.is_none(),
    }
}

/// Compares amounts of interrupted calls, which rows from before the ledger do not count.
fn at_most(row: u64, log: u64) -> bool {
    row.min(MOST) <= log.min(MOST)
}

/// The largest value of a column, which has 63 bits. A provider may report more.
const MOST: u64 = i64::MAX as u64;

fn same(log: u64, row: u64) -> bool {
    log.min(MOST) == row.min(MOST)
}
