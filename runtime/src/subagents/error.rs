//! Why a subagent did not answer.

use crate::error::Error;
use crate::query::Summary;
use posse_protocol::{AgentName, Limit, Outcome};
use serde_json::Value;
use std::fmt;

/// Why something that was asked of an executor did not happen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SubagentError {
    /// No subagent has this name.
    #[error("there is no subagent `{0}`; register it first")]
    NotFound(String),
    /// There is a subagent of this name; it stays as it was.
    #[error("there is a subagent `{0}` already; take another name")]
    AlreadyExists(String),
    /// The run did not start, or did not come to an answer.
    #[error("{0}")]
    ExecutionFailed(Box<Failure>),
    /// What was asked for cannot be done.
    #[error("{0}")]
    InvalidInput(String),
}

impl SubagentError {
    /// What there is of a run that failed.
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
    /// What could not start.
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

/// A run that did not come to an answer, with what it said until there.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What went wrong, and what to do about it.
    pub reason: String,
    /// All that was said, as in [`SubagentOutput::messages`](super::SubagentOutput::messages).
    pub messages: Vec<Value>,
    /// The run, its outcome, and what it took, if it began and ended.
    pub summary: Option<Summary>,
}

impl Failure {
    /// The run of `name` ended, and not with an answer.
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

    /// The runtime could do no more for the run of `name`.
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
