//! How runs belong together: who started whom, with how much of whose conversation, and who may
//! hand work to whom.

use crate::{
    AgentName, AgentSpec, Announce, CallId, DelegationStrategy, Extra, Limit, Message, RunId,
    SeenFile, Seq, TimeAtWork,
};
use serde::{Deserialize, Serialize};

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
