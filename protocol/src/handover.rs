//! How work is handed on: who waits, what of a conversation goes along, how the end is told, and what
//! stays of it.

use crate::{CallId, Extra, RunId};
use serde::{Deserialize, Serialize};

/// How the end of a run that nobody waits for is told to its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announce {
    /// Before the parent's next step.
    Steer,
    /// When the parent's present turn ends; a parent that does nothing wakes.
    #[default]
    Followup,
    /// Together with others, when the last of them has ended or for a while none has.
    Collect,
    /// It is recorded, and not told.
    Silent,
}

impl Announce {
    /// All of them.
    pub const ALL: [Announce; 4] =
        [Announce::Steer, Announce::Followup, Announce::Collect, Announce::Silent];

    /// In one word, as it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Announce::Steer => "steer",
            Announce::Followup => "followup",
            Announce::Collect => "collect",
            Announce::Silent => "silent",
        }
    }
}

/// Who waits for a run: another run and, if it is a tool call that waits, which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Caller {
    /// The run.
    pub run: RunId,
    /// The call whose result the run's end is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// How the run's end is told if no call waits for it. Without either nothing is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<Announce>,
    /// How it stood with the time of that run.
    #[serde(default, skip_serializing_if = "TimeAtWork::is_unknown")]
    pub time: TimeAtWork,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How much of another run's conversation a run begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// Nothing: its own instructions and one message.
    #[default]
    Fresh,
    /// All of its parent's.
    Fork,
    /// The last so many turns of its parent's.
    ForkTurns(u32),
}

impl Context {
    /// True when nothing is taken over.
    pub fn is_fresh(&self) -> bool {
        *self == Context::Fresh
    }
}

/// How an agent comes to hand work to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegationStrategy {
    /// The tools are offered, and the system prompt says who is there and when to use them.
    #[default]
    Auto,
    /// The tools are offered; nothing urges their use.
    ToolCall,
    /// Only host code delegates.
    Manual,
}

/// What becomes of a run's log once its end has been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    /// It stays until it is archived.
    #[default]
    Keep,
    /// It is removed; what is known of the run and what it cost stays.
    Delete,
}

impl Cleanup {
    /// True when the log stays.
    pub fn is_keep(&self) -> bool {
        *self == Cleanup::Keep
    }
}

impl Caller {
    /// The run `run`, none of whose calls waits.
    pub fn of_run(run: RunId) -> Self {
        let (time, extra) = (TimeAtWork::default(), Extra::default());
        Caller { run, call: None, announce: None, time, extra }
    }

    /// The call `call` of `run`.
    pub fn of_call(run: RunId, call: CallId) -> Self {
        Caller { call: Some(call), ..Caller::of_run(run) }
    }

    /// The run `run`, which goes on meanwhile and is told of the end.
    pub fn told(run: RunId, announce: Announce) -> Self {
        Caller { announce: Some(announce), ..Caller::of_run(run) }
    }
}

/// How it stands with the time of a run that sets another to work. What is set to work has no more
/// time than is left to it, and the time that it takes counts as that of whoever waits for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeAtWork {
    /// How long it has been at work, in milliseconds.
    pub worked_ms: u64,
    /// How long it may go on, if its time is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl TimeAtWork {
    /// A run that has been at work so long, and may go on so long.
    pub fn new(worked_ms: u64, left_ms: Option<u64>) -> Self {
        TimeAtWork { worked_ms, left_ms, extra: Extra::default() }
    }

    /// True when nothing is said.
    pub fn is_unknown(&self) -> bool {
        *self == TimeAtWork::default()
    }
}
