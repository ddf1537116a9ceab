//! A run's row made again from its log, to find rows that were changed behind the store's back.

use crate::RunRow;
use posse_protocol::{Event, Purpose, Record, RunId, SCHEMA_VERSION};

/// What a log alone says about its run: all of a [`RunRow`] but who owns it and since when it waits.
#[derive(Clone, Debug)]
pub struct Projection {
    row: RunRow,
    /// The folder it works in, which rows of earlier versions name even if it is a worktree.
    works_in: String,
    /// The model that it began with, which rows of earlier versions name after it was given another.
    began_with: String,
    /// Turns that rows of earlier versions count twice: a crash cut the call short.
    cut_turns: u64,
}

impl Projection {
    /// Of a log of which nothing has been read yet.
    pub fn new(run: RunId) -> Self {
        Projection {
            row: RunRow::new(run, 0),
            works_in: String::new(),
            began_with: String::new(),
            cut_turns: 0,
        }
    }

    /// Takes the next event of the log.
    pub fn apply(&mut self, record: &Record) {
        if let Event::RunStarted(started) = &record.event {
            self.works_in.clone_from(&started.grant.workspace);
            self.began_with.clone_from(&started.model);
        }
        if let Event::ModelCalled(called) = &record.event {
            let open = self.row.calling.as_ref().map(|call| call.purpose);
            let is_turn = called.purpose == Purpose::Turn;
            self.cut_turns += u64::from(is_turn && open == Some(Purpose::Turn));
        }
        if self.row.created_at == 0 {
            self.row.created_at = record.at;
        }
        self.row.updated_at = record.at;
        self.row.project(&record.event, record.at);
    }

    /// The row as far as the log tells it.
    pub(crate) fn into_row(self) -> RunRow {
        self.row
    }

    /// The first column of `row` that says something else than the log up to `row.last_seq`. Where
    /// the log ends is not compared: every read of it does that.
    pub fn difference(&self, row: &RunRow) -> Option<&'static str> {
        let log = &self.row;
        let at_rest =
            log.outcome.is_none() && !log.archived || row.owner.is_none() && !row.runnable;
        // Whoever owns a run has something to do with it.
        let at_work = row.owner.is_none() || row.runnable;
        let columns = [
            // What a newer version wrote could not have been read.
            ("version", row.version <= SCHEMA_VERSION),
            ("agent", log.agent == row.agent),
            ("model", [&log.model, &self.began_with].contains(&&row.model)),
            ("title", log.title == row.title),
            ("label", log.label == row.label),
            ("workspace", [&log.workspace, &self.works_in].contains(&&row.workspace)),
            ("session", log.session == row.session),
            ("key", log.key == row.key),
            ("created_at", log.created_at == row.created_at),
            ("updated_at", log.updated_at == row.updated_at),
            ("runnable", at_rest && at_work),
            ("outcome", log.outcome == row.outcome),
            ("note", log.note == row.note),
            ("archived", log.archived == row.archived),
            ("parent", log.parent == row.parent),
            ("root", log.root == row.root),
            ("depth", log.depth == row.depth),
            ("stopping", log.stopping == row.stopping),
            ("priority", log.priority == row.priority),
            ("background", log.background == row.background),
            ("expects", log.expects == row.expects),
            ("gathers", log.gathers == row.gathers),
            ("gathered_at", log.gathered_at == row.gathered_at),
            ("paused", (log.paused, log.interrupted) == (row.paused, row.interrupted)),
            ("finished_at", log.finished_at == row.finished_at),
            ("cleanup", log.cleanup == row.cleanup),
            ("abreast", log.abreast == row.abreast),
            ("archive_after", log.archive_after_ms == row.archive_after_ms),
            ("account", log.account == row.account),
            ("budget", log.budget == row.budget),
            ("asks", log.asks == row.asks),
            ("calling", same_call(log, row)),
            ("turns", (log.turns..=log.turns + self.cut_turns).contains(&row.turns)),
            ("tool_calls", log.tool_calls == row.tool_calls),
            ("input_tokens", same(log.spent.input_tokens, row.spent.input_tokens)),
            ("output_tokens", same(log.spent.output_tokens, row.spent.output_tokens)),
            ("cost", same(log.spent.cost.0, row.spent.cost.0)),
            ("uncertain_input", at_most(row.uncertain.input_tokens, log.uncertain.input_tokens)),
            ("uncertain_output", at_most(row.uncertain.output_tokens, log.uncertain.output_tokens)),
            ("uncertain_cost", at_most(row.uncertain.cost.0, log.uncertain.cost.0)),
            ("cut_calls", at_most(row.cut_calls, log.cut_calls)),
            ("reserved_input", same(log.reserved.input_tokens, row.reserved.input_tokens)),
            ("reserved_output", same(log.reserved.output_tokens, row.reserved.output_tokens)),
            ("reserved_cost", same(log.reserved.cost.0, row.reserved.cost.0)),
        ];
        columns.into_iter().find(|(_, same)| !same).map(|(column, _)| column)
    }
}

/// Of a call that was made before its model and purpose were noted, a row has the run's own.
fn same_call(log: &RunRow, row: &RunRow) -> bool {
    match (&log.calling, &row.calling) {
        (Some(log), Some(call)) => {
            (log.model == call.model || row.model == call.model)
                && (log.purpose == call.purpose || call.purpose == Purpose::Turn)
        }
        (log, row) => log.is_none() && row.is_none(),
    }
}

/// What was cut short before there was a ledger is not told apart in a row, only in its log.
fn at_most(row: u64, log: u64) -> bool {
    row.min(MOST) <= log.min(MOST)
}

/// A column holds 63 bits; a provider may claim more.
const MOST: u64 = i64::MAX as u64;

fn same(log: u64, row: u64) -> bool {
    log.min(MOST) == row.min(MOST)
}
