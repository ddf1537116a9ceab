//! A task for a subagent, and what comes of it.

use crate::query::Summary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A task for a subagent. [`execute_call`](super::SubagentExecutor::execute_call) executes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentCall {
    /// Who is to do it.
    pub subagent_name: String,
    /// What is to be done.
    pub input: String,
    /// The answer, once there is one. It may be empty.
    #[serde(default)]
    pub output: Option<String>,
}

impl SubagentCall {
    /// A call that was not executed yet.
    pub fn new(subagent_name: impl Into<String>, input: impl Into<String>) -> Self {
        let (subagent_name, input) = (subagent_name.into(), input.into());
        SubagentCall { subagent_name, input, output: None }
    }

    /// True when there is an answer, even an empty one.
    pub fn is_executed(&self) -> bool {
        self.output.is_some()
    }
}

/// What a subagent made of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubagentOutput {
    /// Who did it.
    pub subagent_name: String,
    /// All that was said, in order: each a [`query::Message`](crate::query::Message) as JSON.
    pub messages: Vec<Value>,
    /// The run, its outcome, and what it took.
    pub summary: Summary,
}

impl SubagentOutput {
    /// The answer. Empty when the subagent ended without a word.
    pub fn text(&self) -> &str {
        self.summary.text()
    }
}
