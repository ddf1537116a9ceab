//! A task for a subagent, and its result.

use crate::query::Summary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A task for a subagent. [`execute_call`](super::SubagentExecutor::execute_call) executes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentCall {
    /// The name of the subagent.
    pub subagent_name: String,
    /// The task.
    pub input: String,
    /// The answer, once there is one. It may be empty.
    #[serde(default)]
    pub output: Option<String>,
}

impl SubagentCall {
    /// Creates a call that was not executed yet.
    pub fn new(subagent_name: impl Into<String>, input: impl Into<String>) -> Self {
        let (subagent_name, input) = (subagent_name.into(), input.into());
        SubagentCall { subagent_name, input, output: None }
    }

    /// True when there is an answer, even an empty one.
    pub fn is_executed(&self) -> bool {
        self.output.is_some()
    }
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubagentOutput {
    /// The name of the subagent.
    pub subagent_name: String,
    /// All messages, in order: each is a [`query::Message`](crate::query::Message) as JSON.
    pub messages: Vec<Value>,
    /// The run, its outcome, and what it cost.
    pub summary: Summary,
}

impl SubagentOutput {
    /// The answer. Empty if the subagent ended without text.
    pub fn text(&self) -> &str {
        self.summary.text()
    }
}
