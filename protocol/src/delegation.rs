//! How runs belong together: who started whom, with how much of whose conversation, and who may
//! hand work to whom.

use crate::{AgentName, AgentSpec, CallId, Extra, Limit, Message, RunId, SeenFile, Seq};
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

/// Where a run stands in its tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    /// Who started it.
    pub run: RunId,
    /// The call whose result its first end is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// How its first end is told if no call waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<Announce>,
    /// The nearest run above it that has a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<RunId>,
    /// What the budgets above it limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<Limit>,
    /// How many of those that its parent has started are executed at the same time, if the parent's
    /// agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abreast: Option<u32>,
    /// How it stood with the time of its parent.
    #[serde(default, skip_serializing_if = "TimeAtWork::is_unknown")]
    pub time: TimeAtWork,
    /// Every run above it, the root first, its parent last. Never empty.
    pub ancestors: Vec<RunId>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Parent {
    /// The run at the top of the tree.
    pub fn root(&self) -> RunId {
        self.ancestors.first().copied().unwrap_or(self.run)
    }
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

/// What a run took over from another when it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// From which run.
    pub from: RunId,
    /// Up to which event of it.
    pub at: Seq,
    /// The conversation, as the run's model sees it.
    pub messages: Vec<Message>,
    /// The files that the other run had read or written by then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenFile>,
    /// What the model is shown in place of the run's own instructions and tools, so that its
    /// requests begin like those of the other run and read its prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guise: Option<Box<Guise>>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What another run shows its model. What may be called of it is still the run's own grant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guise {
    /// The system prompt.
    pub system: String,
    /// The tools that are offered, by name.
    pub tools: Vec<String>,
    /// What the delegating tools say of whom there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Delegation>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
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

/// To whom a run may hand work, and how deep below it that may go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// How the agent comes to do so.
    #[serde(default)]
    pub strategy: DelegationStrategy,
    /// Levels of runs that may stand below it; 0 allows none.
    pub depth: u32,
    /// Whom it may call, as they were when the run started.
    pub agents: Vec<Offer>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An agent on offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// What it is called by.
    pub name: AgentName,
    /// What it is for.
    pub description: String,
    /// The agent itself, where no file holds it that another process would find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentSpec>>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A run was started, or set to work again, on behalf of this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildStarted {
    /// Which run.
    pub run: RunId,
    /// The call that waits for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// How its end is told if no call waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<Announce>,
    /// Its agent.
    pub agent: AgentName,
    /// What it is about, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// It existed before, and goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}
