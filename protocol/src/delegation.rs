//! Relations between runs: parents and children, forks, and the agents that a run may call.

use crate::{
    AgentName, AgentSpec, Announce, CallId, DelegationStrategy, Extra, Limit, Message, RunId,
    SeenFile, Seq, TimeAtWork,
};
use serde::{Deserialize, Serialize};

/// The position of a run in its tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    /// The parent.
    pub run: RunId,
    /// The tool call of the parent that gets the first outcome of this run as its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// How the first outcome is announced if no call waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<Announce>,
    /// The nearest run above it that has a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<RunId>,
    /// The dimensions that the budgets above it limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<Limit>,
    /// How many children of its parent are executed at the same time, if the parent's agent limits that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abreast: Option<u32>,
    /// How long the parent had worked and how much time it had left.
    #[serde(default, skip_serializing_if = "TimeAtWork::is_unknown")]
    pub time: TimeAtWork,
    /// Every run above it, the root first, its parent last. Never empty.
    pub ancestors: Vec<RunId>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Parent {
    /// The root of the tree.
    pub fn root(&self) -> RunId {
        self.ancestors.first().copied().unwrap_or(self.run)
    }
}

/// What a run took over from another run at its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// The other run.
    pub from: RunId,
    /// The position in its log up to which this run took it over.
    pub at: Seq,
    /// The conversation, as this run's model sees it.
    pub messages: Vec<Message>,
    /// The files that the other run had read or written by then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenFile>,
    /// The instructions and tools that the model sees instead of the run's own. With them, its
    /// requests begin like those of the other run and can use its prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guise: Option<Box<BorrowedPrompt>>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The instructions and tools of another run. The grant of the run itself still decides which tools it may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BorrowedPrompt {
    /// The system prompt.
    pub system: String,
    /// The names of the tools that the model sees.
    pub tools: Vec<String>,
    /// The agents that the descriptions of the delegating tools list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Delegation>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The agents that a run may call, and how deep its tree may grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// How the agent is led to delegate.
    #[serde(default)]
    pub strategy: DelegationStrategy,
    /// How many levels of subagents it may have; 0 allows none.
    pub depth: u32,
    /// The agents that it may call, as they were defined when the run started.
    pub agents: Vec<Offer>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An agent that a run may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name.
    pub name: AgentName,
    /// Its purpose.
    pub description: String,
    /// The whole definition, if another process could not find it in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentSpec>>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// This run started a child, or gave an existing run new work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildStarted {
    /// The child.
    pub run: RunId,
    /// The call that waits for its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// How its outcome is announced if no call waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<Announce>,
    /// Its agent.
    pub agent: AgentName,
    /// Its task in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The child is an earlier run that continues.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}
