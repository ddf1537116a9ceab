//! Events about calls of the model and of tools.

use crate::{CallId, Extra, Message, Seq, ToolOutput, Usage};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The purpose of a model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's next turn.
    #[default]
    Turn,
    /// A summary that will replace the beginning of the transcript.
    Compaction,
}

/// Posse is about to call the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCalled {
    /// The most that the call may spend. This is charged if no reply is ever recorded.
    pub reserved: Usage,
    /// Its purpose.
    #[serde(default)]
    pub purpose: Purpose,
    /// The model, as `vendor/name`. Empty in old logs: then it is the model that the run began
    /// with, or its last fallback.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The number of bytes to which each new result is shortened in the request, because together
    /// they do not fit into the context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u64>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why a reply ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model was done.
    End,
    /// The model calls tools.
    ToolUse,
    /// The reply reached the most tokens it may have.
    MaxTokens,
    /// The model refused to answer.
    Refusal,
    /// Posse cancelled the call. The reply has the text so far.
    Cancelled,
    /// Another reason, as the vendor names it.
    Other(String),
}

/// The model replied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReplied {
    /// The last event that the model had seen. Later events fold after the reply.
    pub seen: Seq,
    /// The message.
    pub message: Message,
    /// Why the reply ended.
    pub stop: Stop,
    /// The known cost.
    pub usage: Usage,
    /// What it may have cost in addition, if it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<Usage>,
    /// The vendor's id of the request, for support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The service tier, as the vendor names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// What the vendor says is left of its rate limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<RateLimits>,
    /// Time at work so far, in milliseconds.
    pub worked_ms: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What is left of a vendor's rate limits after a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateLimits {
    /// Requests that may still be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_left: Option<u64>,
    /// Tokens that may still be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_left: Option<u64>,
    /// Milliseconds until the scarcer of the two is full again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_in_ms: Option<u64>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a run does after a failed model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// Retry the call.
    Retry {
        /// How long to wait, in milliseconds.
        after_ms: u64,
        /// The number of this retry, counted from 1; 0 in old logs.
        #[serde(default, skip_serializing_if = "is_zero")]
        attempt: u32,
        /// The most retries; 0 in old logs.
        #[serde(default, skip_serializing_if = "is_zero")]
        of: u32,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Make the same call to a fallback, which the run then keeps.
    Fallback {
        /// The model, as `vendor/name`.
        model: String,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
}

/// The beginnings of the texts about remedies.
const AGAIN: &str = "tries again";
const ELSEWHERE: &str = "goes on with";

impl Remedy {
    /// A retry after `after_ms` milliseconds.
    pub fn retry(after_ms: u64) -> Self {
        Remedy::retry_of(after_ms, 0, 0)
    }

    /// The same, as retry number `attempt` of at most `of`.
    pub fn retry_of(after_ms: u64, attempt: u32, of: u32) -> Self {
        Remedy::Retry { after_ms, attempt, of, extra: Extra::default() }
    }

    /// True when `note` begins like the text about a remedy.
    pub fn begins(note: &str) -> bool {
        note.starts_with(AGAIN) || note.starts_with(ELSEWHERE)
    }

    /// The reason in `note`, if the note is about a retry.
    pub fn reason_to_retry(note: &str) -> Option<&str> {
        note.strip_prefix(AGAIN)?.split_once(": ").map(|(_, reason)| reason)
    }

    /// A fallback to `model`, which the run then keeps.
    pub fn fallback(model: impl Into<String>) -> Self {
        Remedy::Fallback { model: model.into(), extra: Extra::default() }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Rows store this text. Lists show it, and a check compares it with the log.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::Retry { after_ms, .. } if *after_ms < 1_000 => {
                write!(f, "{AGAIN} at once")
            }
            Remedy::Retry { after_ms, .. } => {
                write!(f, "{AGAIN} in {} s", after_ms.div_ceil(1_000))
            }
            Remedy::Fallback { model, .. } => write!(f, "{ELSEWHERE} {model}"),
        }
    }
}

/// The kind of failure of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The transcript does not fit into the model's context window. Compacting may help.
    ContextOverflow,
    /// Posse cancelled the call before any text arrived.
    Cancelled,
    /// Any other failure.
    Other,
}

/// A model call ended without a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelFailed {
    /// The kind of failure.
    pub kind: FailureKind,
    /// What went wrong, and how to fix it.
    pub reason: String,
    /// The most that the call may have cost. Limits count this.
    #[serde(default)]
    pub usage: Usage,
    /// The part of `usage` that is uncertain. Old logs do not record it: then all of it is uncertain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<Usage>,
    /// What the run does about it; `None` if it gives up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// Time at work so far, in milliseconds.
    pub worked_ms: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool is about to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// The call.
    pub call: CallId,
    /// The tool, with the name that the model sees.
    pub tool: String,
    /// The call may run again if the process dies before the result is recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// The source of the permission: a rule, an approval, the mode.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool call is pending: another process or run will append its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolPending {
    /// The call.
    pub call: CallId,
    /// What it waits for, for people to read.
    pub waits_for: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The tool ran and returned.
    #[default]
    Returned,
    /// It did not run: it was denied, outside the grant, or not a valid call.
    Refused,
    /// It did not run: the limit of tool calls was reached.
    OverLimit,
    /// It was stopped before it returned.
    Stopped,
    /// The process died while the call ran. Whether it had its effect is unknown.
    Interrupted,
}

/// A tool call has its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolFinished {
    /// The call.
    pub call: CallId,
    /// The result for the model.
    pub output: ToolOutput,
    /// How the call ended.
    #[serde(default)]
    pub ending: Ending,
    /// What denied it, if it was denied: a rule, a person, the mode, the grant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// How long the tool ran, in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
    /// Time at work of the run so far, in milliseconds.
    #[serde(default)]
    pub worked_ms: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}
