//! Errors of an executor of subagents.

use crate::error::Error;
use crate::query::Summary;
use posse_protocol::{AgentName, Limit, Outcome};
use serde_json::Value;
use std::fmt;

/// Why an executor did not do what the caller asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SubagentError {
    /// No subagent has this name.
    #[error("there is no subagent `{0}`; register it first")]
    NotFound(String),
    /// The name is taken; the existing subagent stays as it was.
    #[error("there is a subagent `{0}` already; take another name")]
    AlreadyExists(String),
    /// The run did not start, or ended without an answer.
    #[error("{0}")]
    ExecutionFailed(Box<Failure>),
    /// The input is invalid.
    #[error("{0}")]
    InvalidInput(String),
}

impl SubagentError {
    /// Returns the details of a run that failed.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            SubagentError::ExecutionFailed(failure) => Some(failure),
            _ => None,
        }
    }
}

impl From<Failure> for SubagentError {
    fn from(failure: Failure) -> Self {
        SubagentError::ExecutionFailed(Box::new(failure))
    }
}

impl From<Error> for SubagentError {
    /// Converts the error of a run that could not start.
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidInput(why) => SubagentError::InvalidInput(why),
            Error::AlreadyExists { name } => SubagentError::AlreadyExists(name.to_string()),
            error => {
                let reason = error.to_string();
                Failure { reason, messages: Vec::new(), summary: None }.into()
            }
        }
    }
}

/// A run without an answer, with its messages until that point.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What went wrong, and what to do.
    pub reason: String,
    /// All messages, as in [`SubagentOutput::messages`](super::SubagentOutput::messages).
    pub messages: Vec<Value>,
    /// The run, its outcome, and what it cost, if it began and ended.
    pub summary: Option<Summary>,
}

impl Failure {
    /// The run of `name` ended without an answer.
    pub(super) fn ended(name: &AgentName, summary: Summary, messages: Vec<Value>) -> Self {
        let mut reason = format!("subagent `{name}` {}", summary.outcome);
        if let Outcome::Stopped { limit: Limit::Turns, .. } = &summary.outcome {
            reason.push_str(&format!(
                ", after {} without an answer; raise `max_turns`, or give it less to do",
                summary.turns
            ));
        }
        Failure { reason, messages, summary: Some(summary) }
    }

    /// The runtime failed during the run of `name`.
    pub(super) fn broken(name: &AgentName, error: &Error, messages: Vec<Value>) -> Self {
        let reason = format!("subagent `{name}` was lost: {error}");
        Failure { reason, messages, summary: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
