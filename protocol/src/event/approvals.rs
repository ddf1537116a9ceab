//! The facts about asking a person.

use crate::{CallId, Extra};
use serde::{Deserialize, Serialize};

/// A person is to decide about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    /// Which call.
    pub call: CallId,
    /// The tool, by the name it is offered under.
    pub tool: String,
    /// What an answer is bound to: a hash over the tool's name and the arguments as they will be
    /// passed.
    pub digest: String,
    /// What will run or change, whole: a command, a difference, arguments.
    pub shown: String,
    /// Why it is asked: a rule, or the mode.
    pub by: String,
    /// The rule that would allow it, and what is like it, from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a person said about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It may run, this once.
    Once,
    /// It may run, and what this rule means too for the rest of the run.
    Run {
        /// The rule.
        rule: String,
    },
    /// It may run, and what this rule means too from now on: it was written to the settings.
    Always {
        /// The rule.
        rule: String,
    },
    /// It may not run.
    Denied {
        /// Why, for the agent to read. May be empty.
        reason: String,
    },
}

/// A person decided about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalGiven {
    /// Which call.
    pub call: CallId,
    /// The digest of the question that was answered. An answer to any other has no effect.
    pub digest: String,
    /// What was said.
    pub answer: Approval,
    /// Who said it.
    pub by: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}
