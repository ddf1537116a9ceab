//! A run as one row: the projection of its log that lists, claims and guards rest on.

mod project;

use crate::chain;
use posse_protocol::{
    Amount, Budget, Cleanup, ModelCalled, Purpose, RunId, SCHEMA_VERSION, Seq, Status, Usage, Usd,
    WorkerId,
};

/// A run at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// Which run.
    pub id: RunId,
    /// When it was made: milliseconds since 1970.
    pub created_at: u64,
    /// When its log last grew.
    pub updated_at: u64,
    /// What it is about.
    pub about: RunAbout,
    /// Where its log ends.
    pub log: RunLog,
    /// Who works on it.
    pub work: RunWork,
    /// Where it stands in its tree.
    pub family: RunFamily,
    /// How far it has come.
    pub state: RunState,
    /// What it has done and spent.
    pub spending: RunSpending,
    /// What it and everything below it may spend together.
    pub funds: RunFunds,
    /// Where it stands, given which workers are alive. Set by [`crate::Inspection::list`].
    pub status: Status,
}

/// What a run is about. Nothing here changes but the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunAbout {
    /// The agent's name.
    pub agent: String,
    /// The model, as `vendor/name`.
    pub model: String,
    /// The first message, shortened.
    pub title: String,
    /// What it is about, as whoever started it said.
    pub label: String,
    /// The folder it belongs to: where it works, or was asked to before it got a worktree.
    pub workspace: String,
    /// Ends its turns waiting.
    pub session: bool,
    /// Its idempotency key.
    pub key: Option<String>,
}

/// Where a run's log ends, and whether it can be believed.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLog {
    /// Its last event.
    pub last_seq: Seq,
    /// The hash of its last event.
    pub last_hash: String,
    /// The newest stored form in its log.
    pub version: u32,
    /// What is wrong with its log.
    pub damaged: Option<String>,
    /// Its log was removed.
    pub erased: bool,
}

/// Who works on a run, and who may next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunWork {
    /// Counts its claims.
    pub epoch: u64,
    /// Who owns it.
    pub owner: Option<WorkerId>,
    /// Has something to do.
    pub runnable: bool,
    /// Since when.
    pub ready_at: u64,
    /// Who waits for a slot with a higher one goes first.
    pub priority: i32,
    /// How many of those that its parent has started are executed at the same time, if the parent
    /// says so.
    pub abreast: Option<u32>,
    /// How many processes died that executed it, one after the other. See [`RunRow::deaths_in_a_row`].
    pub deaths: u32,
    /// How many tools it had called when the last of them died.
    pub calls_at_death: u64,
}

/// Where a run stands in its tree, and whom it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFamily {
    /// Who started it.
    pub parent: Option<RunId>,
    /// The run at the top of its tree: itself, if it has no parent.
    pub root: RunId,
    /// How many runs stand above it.
    pub depth: u32,
    /// No call waits for its end: it is announced.
    pub background: bool,
    /// Results of calls that must come before it has something to do.
    pub awaits: u32,
    /// Runs below it that have not ended and whose ends it will be told of.
    pub expects: u32,
    /// Those of them whose results are told together.
    pub gathers: u32,
    /// When the last of those came whose results are yet to be told together; 0 if there is none.
    pub gathered_at: u64,
}

/// How far a run has come, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// How it ended, in one word.
    pub outcome: Option<String>,
    /// How it ended, or what it waits for, in one line; empty when it is at work.
    pub note: String,
    /// Calls that a person is to decide about.
    pub asks: u32,
    /// Someone has asked it to stop, and it has not ended.
    pub stopping: bool,
    /// Someone has asked it to pause, or interrupted it.
    pub paused: bool,
    /// It is paused because a person interrupted the process that worked on it.
    pub interrupted: bool,
    /// When it ended; 0 if it has not.
    pub finished_at: u64,
    /// Put away.
    pub archived: bool,
    /// What becomes of its log once its end has been told.
    pub cleanup: Cleanup,
    /// How long after its end it is archived at the latest, if whoever started it says so.
    pub archive_after_ms: Option<u64>,
}

/// What a run has done and spent. It changes with every step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSpending {
    /// Model calls, but for those that only wrote a summary.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// What it has spent, and what calls that were cut short may have spent. Limits count this.
    pub spent: Spent,
    /// What of that is not known to have been spent.
    pub uncertain: Spent,
    /// Calls that were cut short.
    pub cut_calls: u64,
    /// What an unanswered model call may have spent besides.
    pub reserved: Spent,
    /// The model call that was made and has no answer yet.
    pub calling: Option<OpenCall>,
}

/// What a run and everything below it may spend together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFunds {
    /// The nearest run above it that has a budget.
    pub account: Option<RunId>,
    /// How much it and everything below it may spend together.
    pub budget: Option<Budget>,
    /// How much of that is spent or reserved. Follows from the logs of all who draw on it.
    pub drawn: Option<Amount>,
    /// How much of that is reserved and may come back.
    pub held: Amount,
}

/// A model call that was made and has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Which model, as `vendor/name`.
    pub model: String,
    /// What it is for.
    pub purpose: Purpose,
}

impl OpenCall {
    /// The call that `called` makes, for a run that began with `model`.
    pub(crate) fn new(called: &ModelCalled, model: &str) -> Self {
        let named = if called.model.is_empty() { model } else { &called.model };
        OpenCall { model: named.to_owned(), purpose: called.purpose }
    }
}

/// Tokens and money in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens sent, cached or not.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Money.
    pub cost: Usd,
}

impl Spent {
    fn add(&mut self, other: Spent) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost += other.cost;
    }
}

impl From<&Usage> for Spent {
    fn from(usage: &Usage) -> Self {
        Spent {
            // A provider may report any number; a sum must not stop the writer.
            input_tokens: usage
                .input_tokens
                .saturating_add(usage.cache_read_tokens)
                .saturating_add(usage.cache_write_tokens),
            output_tokens: usage.output_tokens,
            cost: usage.cost,
        }
    }
}

/// Which columns of a row that is stored already are to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Columns {
    /// All that can change.
    All,
    /// Those that change with every step. A store may write all of them in place of these.
    Moving,
}

/// How a run has ended that gave its answer.
const COMPLETED: &str = "completed";

impl RunRow {
    /// True when nothing is different from `before` but what changes with every step.
    pub(crate) fn has_only_moved_since(&self, before: &RunRow) -> bool {
        let moved_back = RunRow {
            updated_at: before.updated_at,
            log: RunLog {
                last_seq: before.log.last_seq,
                last_hash: before.log.last_hash.clone(),
                ..self.log.clone()
            },
            spending: before.spending.clone(),
            funds: RunFunds {
                drawn: before.funds.drawn,
                held: before.funds.held,
                ..self.funds.clone()
            },
            status: before.status,
            ..self.clone()
        };
        moved_back == *before
    }
}

impl RunRow {
    /// A root of which nothing is known but that it was made `at` then.
    pub fn new(id: RunId, at: u64) -> Self {
        RunRow {
            id,
            created_at: at,
            updated_at: at,
            about: RunAbout::default(),
            log: RunLog {
                last_seq: Seq::ZERO,
                last_hash: chain::seed(id),
                version: SCHEMA_VERSION,
                damaged: None,
                erased: false,
            },
            work: RunWork { ready_at: at, ..RunWork::default() },
            family: RunFamily {
                parent: None,
                root: id,
                depth: 0,
                background: false,
                awaits: 0,
                expects: 0,
                gathers: 0,
                gathered_at: 0,
            },
            state: RunState::default(),
            spending: RunSpending::default(),
            funds: RunFunds::default(),
            status: Status::Queued,
        }
    }

    /// A run whose row cannot be read: damaged, so that nothing executes it.
    pub fn unreadable(id: RunId, reason: &str) -> Self {
        let damaged = Some(format!("its row cannot be read: {reason}"));
        let mut row = RunRow::new(id, 0);
        row.log.damaged = damaged;
        row
    }

    /// True for what [`RunRow::unreadable`] gives: a run begins with an event.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.log.last_seq == Seq::ZERO
    }

    /// What it may have cost at most, a model call that has no answer as it was reserved.
    pub fn most_cost(&self) -> Usd {
        self.spending.spent.cost + self.spending.reserved.cost
    }

    /// What it is known to have cost.
    pub fn cost(&self) -> Usd {
        self.known().cost
    }

    /// What it is known to have spent.
    pub fn known(&self) -> Spent {
        Spent {
            input_tokens: self
                .spending
                .spent
                .input_tokens
                .saturating_sub(self.spending.uncertain.input_tokens),
            output_tokens: self
                .spending
                .spent
                .output_tokens
                .saturating_sub(self.spending.uncertain.output_tokens),
            cost: self.spending.spent.cost.saturating_sub(self.spending.uncertain.cost),
        }
    }

    /// What it may have spent besides, and how many calls were cut short: with the last one, if its
    /// process is gone. A call that is under way does not count.
    pub fn unsure(&self) -> (Spent, u64) {
        let mut uncertain = self.spending.uncertain;
        if self.spending.calling.is_none() || self.status == Status::Running {
            return (uncertain, self.spending.cut_calls);
        }
        uncertain.add(self.spending.reserved);
        (uncertain, self.spending.cut_calls + 1)
    }

    /// How many processes in a row died that executed it, without progress in between.
    pub fn deaths_in_a_row(&self) -> u32 {
        deaths_in_a_row(self.work.deaths, self.spending.tool_calls, self.work.calls_at_death)
    }

    /// Notes that its owner has died, and not only fallen silent. If it had called a good number of tools
    /// since the last time, it has made progress.
    pub fn count_death(&mut self) {
        let progress =
            self.spending.tool_calls.saturating_sub(self.work.calls_at_death) > NO_PROGRESS;
        self.work.deaths = if progress { 1 } else { self.work.deaths.saturating_add(1) };
        self.work.calls_at_death = self.spending.tool_calls;
    }

    /// True when somebody only has to execute it: it has something to do, has not ended, and nobody
    /// has asked it to pause. What a store lets be claimed, once its owner is dead or there is none.
    pub fn can_go_on(&self) -> bool {
        self.work.runnable
            && !self.state.paused
            && self.state.outcome.is_none()
            && self.log.damaged.is_none()
    }

    /// True when it came to its end by itself.
    pub fn has_completed(&self) -> bool {
        self.state.outcome.as_deref() == Some(COMPLETED)
    }

    /// Where it stands, given whether its owner is alive.
    pub fn status_given(&self, owner_alive: bool) -> Status {
        match self {
            row if row.log.damaged.is_some() => Status::Damaged,
            row if row.state.archived => Status::Archived,
            row if row.state.outcome.is_some() => Status::Finished,
            row if row.work.owner.is_some() && owner_alive => Status::Running,
            row if row.state.interrupted => Status::Interrupted,
            row if row.state.paused => Status::Paused,
            row if row.work.owner.is_some() => Status::Crashed,
            row if row.work.runnable => Status::Queued,
            _ => Status::Waiting,
        }
    }
}

/// Tool calls that are no progress: whoever takes its process along may look at a thing or two first.
pub const NO_PROGRESS: u64 = 5;

/// How many of `deaths` count, when `calls` tools were called, and so many at the last death.
pub fn deaths_in_a_row(deaths: u32, calls: u64, calls_at_death: u64) -> u32 {
    if calls.saturating_sub(calls_at_death) > NO_PROGRESS { 0 } else { deaths }
}
