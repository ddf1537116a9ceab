//! The row of a run: a projection of its log, which lists, claims and guards read.

mod project;

use crate::chain;
use posse_protocol::{
    Amount, Budget, Cleanup, ModelCalled, Purpose, Remedy, RunId, SCHEMA_VERSION, Seq, Status,
    Usage, Usd, WorkerId,
};

/// The row of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// The id of the run.
    pub id: RunId,
    /// When the run was created: milliseconds since 1970.
    pub created_at: u64,
    /// When the store last appended to its log.
    pub updated_at: u64,
    /// The agent, the model and the task.
    pub about: RunAbout,
    /// The end of its log.
    pub log: RunLog,
    /// Its owner and its place in the queue.
    pub work: RunWork,
    /// Its place in its tree.
    pub family: RunFamily,
    /// Its progress and its outcome.
    pub state: RunState,
    /// Its model calls, tool calls and costs.
    pub spending: RunSpending,
    /// The budgets that apply to it.
    pub funds: RunFunds,
    /// Its status, which depends on which workers are alive. [`crate::Inspection::list`] sets it.
    pub status: Status,
}

/// The agent, the model and the task of a run. Only the model can change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunAbout {
    /// The name of the agent.
    pub agent: String,
    /// The model, as `vendor/name`.
    pub model: String,
    /// The first message, shortened.
    pub title: String,
    /// The label that the run got at its start.
    pub label: String,
    /// The folder that the run belongs to. If the run works in a worktree, this is the folder that
    /// the worktree was made for.
    pub workspace: String,
    /// True if the run waits for a message at the end of a turn, instead of ending.
    pub session: bool,
    /// Its idempotency key.
    pub key: Option<String>,
}

/// The end of the log of a run, and whether the log is intact.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLog {
    /// The position of its last event.
    pub last_seq: Seq,
    /// The hash of its last event.
    pub last_hash: String,
    /// The newest schema version of its events.
    pub version: u32,
    /// What is wrong with the log, if it is damaged.
    pub damaged: Option<String>,
    /// True if the log was removed.
    pub erased: bool,
}

/// The owner of a run and its place in the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunWork {
    /// The number of its claims.
    pub epoch: u64,
    /// The worker that owns it.
    pub owner: Option<WorkerId>,
    /// True if the run has something to do.
    pub runnable: bool,
    /// Since when it has something to do.
    pub ready_at: u64,
    /// Of the runs that wait for a slot, those with a higher priority go first.
    pub priority: i32,
    /// How many subagents of its parent may execute at the same time, if the parent sets a limit.
    pub abreast: Option<u32>,
    /// The machine whose workers can have its workspace; empty if any machine can.
    pub host: String,
    /// The label that its worker must have; empty if it needs none.
    pub needs: String,
    /// How many processes in a row died while they executed it. See [`RunRow::deaths_in_a_row`].
    pub deaths: u32,
    /// How many tool calls it had made at the last of these deaths.
    pub calls_at_death: u64,
}

/// The place of a run in its tree, and the runs that it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFamily {
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The run at the top of its tree: itself, if it has no parent.
    pub root: RunId,
    /// The number of its ancestors.
    pub depth: u32,
    /// True if no call waits for its end. Its end is announced instead.
    pub background: bool,
    /// How many tool results must arrive before the run has something to do.
    pub awaits: u32,
    /// How many runs below it have yet to announce their end to it.
    pub expects: u32,
    /// How many of these announce their results together (`collect`).
    pub gathers: u32,
    /// When the last result arrived that waits for others to be announced with; 0 if there is none.
    pub gathered_at: u64,
}

/// The progress and the outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// The kind of its outcome, in one word.
    pub outcome: Option<String>,
    /// Its outcome, or what it waits for, in one line. Empty while it executes.
    pub note: String,
    /// How many calls wait for the decision of a person.
    pub asks: u32,
    /// True if it was asked to stop and has not ended.
    pub stopping: bool,
    /// True if it was asked to pause, or was interrupted.
    pub paused: bool,
    /// True if it is paused because a person interrupted the process that executed it.
    pub interrupted: bool,
    /// When it ended; 0 if it has not ended.
    pub finished_at: u64,
    /// True if it is archived.
    pub archived: bool,
    /// What to do with its log after its end was announced.
    pub cleanup: Cleanup,
    /// How long after its end it is archived at the latest, if that was set at the start.
    pub archive_after_ms: Option<u64>,
}

/// The model calls, tool calls and costs of a run. They change with every step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSpending {
    /// Model calls, without those that only wrote a summary.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// What it has spent, including what interrupted calls may have spent. Limits use this sum.
    pub spent: Spent,
    /// The part of `spent` that interrupted calls may have spent.
    pub uncertain: Spent,
    /// The number of interrupted calls.
    pub cut_calls: u64,
    /// What the open model call may spend in addition.
    pub reserved: Spent,
    /// The model call that has no answer yet.
    pub calling: Option<OpenCall>,
}

/// The budgets that apply to a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFunds {
    /// The nearest run above it that has a budget.
    pub account: Option<RunId>,
    /// How much it and all runs below it may spend together.
    pub budget: Option<Budget>,
    /// How much of the budget is spent or reserved, by all runs that draw on it.
    pub drawn: Option<Amount>,
    /// How much of the budget is reserved and may be released.
    pub held: Amount,
}

/// A model call that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The model, as `vendor/name`.
    pub model: String,
    /// The purpose of the call.
    pub purpose: Purpose,
}

impl OpenCall {
    /// Returns the call that `called` records, of a run that started with `model`.
    pub(crate) fn new(called: &ModelCalled, model: &str) -> Self {
        let named = if called.model.is_empty() { model } else { &called.model };
        OpenCall { model: named.to_owned(), purpose: called.purpose }
    }
}

/// Tokens and costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Input tokens, cached or not.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost.
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
            // A provider may report any number. The sum must not overflow in the writer.
            input_tokens: usage
                .input_tokens
                .saturating_add(usage.cache_read_tokens)
                .saturating_add(usage.cache_write_tokens),
            output_tokens: usage.output_tokens,
            cost: usage.cost,
        }
    }
}

/// The columns to write when a stored row changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Columns {
    /// All columns that can change.
    All,
    /// The columns that change with every step. A store may write all columns instead.
    Moving,
}

/// The outcome of a run that returned an answer.
const COMPLETED: &str = "completed";

impl RunRow {
    /// Returns true if only columns that change with every step differ from `before`.
    pub(crate) fn has_only_moved_since(&self, before: &RunRow) -> bool {
        // Every field is named or compared as a part, so that a new one is not forgotten.
        let RunRow {
            id,
            created_at,
            updated_at: _,
            about,
            log,
            work,
            family,
            state,
            spending,
            funds,
            status: _,
        } = self;
        let RunLog { last_seq: _, last_hash: _, version, damaged, erased } = log;
        let RunSpending {
            turns: _,
            tool_calls: _,
            spent: _,
            uncertain,
            cut_calls,
            reserved: _,
            calling: _,
        } = spending;
        let RunFunds { account, budget, drawn: _, held: _ } = funds;
        *id == before.id
            && *created_at == before.created_at
            && *about == before.about
            && *version == before.log.version
            && *damaged == before.log.damaged
            && *erased == before.log.erased
            && *work == before.work
            && *family == before.family
            && *state == before.state
            && *uncertain == before.spending.uncertain
            && *cut_calls == before.spending.cut_calls
            && *account == before.funds.account
            && *budget == before.funds.budget
    }
}

impl RunRow {
    /// Returns the row of a root that was created at `at`, before its first event.
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

    /// Returns a row for a run whose stored row cannot be read. It is damaged, so no worker
    /// executes the run.
    pub fn unreadable(id: RunId, reason: &str) -> Self {
        let damaged = Some(format!("its row cannot be read: {reason}"));
        let mut row = RunRow::new(id, 0);
        row.log.damaged = damaged;
        row
    }

    /// Returns true for a row from [`RunRow::unreadable`]. Any other row has at least one event.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.log.last_seq == Seq::ZERO
    }

    /// Returns the most that the run may have cost, including a reservation.
    pub fn most_cost(&self) -> Usd {
        self.spending.spent.cost + self.spending.reserved.cost
    }

    /// Returns the cost that is certain.
    pub fn cost(&self) -> Usd {
        self.known().cost
    }

    /// Returns the tokens and the cost that are certain.
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

    /// Returns what interrupted calls may have spent, and the number of these calls. It includes
    /// the open call if no living worker executes the run.
    pub fn unsure(&self) -> (Spent, u64) {
        let mut uncertain = self.spending.uncertain;
        if self.spending.calling.is_none() || self.status == Status::Running {
            return (uncertain, self.spending.cut_calls);
        }
        uncertain.add(self.spending.reserved);
        (uncertain, self.spending.cut_calls + 1)
    }

    /// Returns how many processes in a row died while they executed the run and made no progress.
    pub fn deaths_in_a_row(&self) -> u32 {
        deaths_in_a_row(self.work.deaths, self.spending.tool_calls, self.work.calls_at_death)
    }

    /// Counts a death of the process that owned the run. The count starts again if the run has made
    /// more than [`NO_PROGRESS`] tool calls since the last death.
    pub fn count_death(&mut self) {
        let progress =
            self.spending.tool_calls.saturating_sub(self.work.calls_at_death) > NO_PROGRESS;
        self.work.deaths = if progress { 1 } else { self.work.deaths.saturating_add(1) };
        self.work.calls_at_death = self.spending.tool_calls;
    }

    /// Returns true if the run only needs a worker: it has something to do, has not ended, is not
    /// paused, and is not damaged. A worker can claim it if it has no living owner.
    pub fn can_go_on(&self) -> bool {
        self.work.runnable
            && !self.state.paused
            && self.state.outcome.is_none()
            && self.log.damaged.is_none()
    }

    /// Returns what an open run waits for, in words for people; empty if there is nothing to say.
    pub fn waits_for(&self) -> String {
        let again = match &self.spending.calling {
            Some(_) => Some("the call was cut short"),
            None => Remedy::reason_to_retry(&self.state.note),
        };
        match again {
            Some(reason) if self.status != Status::Running => {
                let when = if self.state.paused { "you resume it" } else { "it continues" };
                format!("calls the model again when {when}: {reason}")
            }
            _ => self.state.note.clone(),
        }
    }

    /// Returns true if the run ended with an answer.
    pub fn has_completed(&self) -> bool {
        self.state.outcome.as_deref() == Some(COMPLETED)
    }

    /// Returns the status of the run, given whether its owner is alive.
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

/// The most tool calls that do not count as progress: a run that kills its process may make a few
/// calls before it does.
pub const NO_PROGRESS: u64 = 5;

/// Returns how many of `deaths` count, given the number of tool calls now and at the last death.
pub fn deaths_in_a_row(deaths: u32, calls: u64, calls_at_death: u64) -> u32 {
    if calls.saturating_sub(calls_at_death) > NO_PROGRESS { 0 } else { deaths }
}
