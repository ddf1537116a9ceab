//! Delegation: who waits for a child, how much of the conversation it gets, how it is announced, and
//! what happens to its log.

use crate::{CallId, Extra, RunId};
use serde::{Deserialize, Serialize};

/// How the outcome of a background child is announced to its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announce {
    /// Before the parent's next step.
    Steer,
    /// When the parent's present turn ends. An idle parent wakes up.
    #[default]
    Followup,
    /// Together with other results, when the last child has ended or none has ended for a while.
    Collect,
    /// It is recorded, and the parent does not see it.
    Silent,
}

impl Announce {
    /// All values.
    pub const ALL: [Announce; 4] =
        [Announce::Steer, Announce::Followup, Announce::Collect, Announce::Silent];

    /// The name, as it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Announce::Steer => "steer",
            Announce::Followup => "followup",
            Announce::Collect => "collect",
            Announce::Silent => "silent",
        }
    }
}

/// The run that waits for another run, and the tool call that waits, if any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Caller {
    /// The run.
    pub run: RunId,
    /// The call that gets the outcome as its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// How the outcome is announced if no call waits for it. Without both, nothing is announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<Announce>,
    /// How long that run had worked and how much time it had left.
    #[serde(default, skip_serializing_if = "TimeAtWork::is_unknown")]
    pub time: TimeAtWork,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How much of its parent's conversation a run begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// Nothing: its own instructions and one message.
    #[default]
    Fresh,
    /// The whole conversation.
    Fork,
    /// The last turns of the conversation.
    ForkTurns(u32),
}

impl Context {
    /// True when the run takes over nothing.
    pub fn is_fresh(&self) -> bool {
        *self == Context::Fresh
    }
}

/// How an agent is led to delegate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegationStrategy {
    /// The model sees the tools, and the system prompt lists the agents and says when to use them.
    #[default]
    Auto,
    /// The model sees the tools. The system prompt does not mention them.
    ToolCall,
    /// Only host code delegates.
    Manual,
}

/// What happens to a run's log after its outcome was announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    /// It stays until the run is archived.
    #[default]
    Keep,
    /// It is removed. The row of the run and its cost stay.
    Delete,
}

impl Cleanup {
    /// True when the log stays.
    pub fn is_keep(&self) -> bool {
        *self == Cleanup::Keep
    }
}

impl Caller {
    /// The run `run`, without a call that waits.
    pub fn of_run(run: RunId) -> Self {
        let (time, extra) = (TimeAtWork::default(), Extra::default());
        Caller { run, call: None, announce: None, time, extra }
    }

    /// The run `run`, which continues meanwhile and gets an announcement.
    pub fn told(run: RunId, announce: Announce) -> Self {
        Caller { announce: Some(announce), ..Caller::of_run(run) }
    }
}

/// How long a run has worked, and how much time it has left. A run that it starts gets no more time
/// than that, and the time of the started run counts as the time of the run that waits for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeAtWork {
    /// How long it has worked, in milliseconds.
    pub worked_ms: u64,
    /// How long it may continue, in milliseconds, if its time is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl TimeAtWork {
    /// A run that has worked for `worked_ms` and may continue for `left_ms`.
    pub fn new(worked_ms: u64, left_ms: Option<u64>) -> Self {
        TimeAtWork { worked_ms, left_ms, extra: Extra::default() }
    }

    /// True when nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == TimeAtWork::default()
    }
}
