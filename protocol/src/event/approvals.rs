//! Events about questions to a person.

use crate::{CallId, Extra};
use serde::{Deserialize, Serialize};

/// A person has to decide about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    /// The call.
    pub call: CallId,
    /// The tool, with the name that the model sees.
    pub tool: String,
    /// The hash that an answer must carry. It covers the tool's name and the arguments as they will be passed.
    pub digest: String,
    /// The full command, diff or arguments of the call.
    pub shown: String,
    /// The source of the question: a rule, or the mode.
    pub by: String,
    /// The rule that would allow this call and similar ones from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The answer of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// The call may run this time.
    Once,
    /// The call may run, and so may all calls that match this rule, for the rest of the run.
    Run {
        /// The rule.
        rule: String,
    },
    /// The call may run, and so may all calls that match this rule, from now on. The settings have the rule.
    Always {
        /// The rule.
        rule: String,
    },
    /// The call may not run.
    Denied {
        /// The reason, for the agent. May be empty.
        reason: String,
    },
}

/// A person decided about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalGiven {
    /// The call.
    pub call: CallId,
    /// The digest of the question. An answer with another digest has no effect.
    pub digest: String,
    /// The answer.
    pub answer: Approval,
    /// The person who answered.
    pub by: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}
