//! The facts about calls: of the model, and of tools.

use crate::{CallId, Extra, Message, Seq, ToolOutput, Usage};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a model call is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's next turn.
    #[default]
    Turn,
    /// A summary that will replace the beginning of the transcript.
    Compaction,
}

/// A request to the model is about to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCalled {
    /// What it may spend at most. Charged as it is if no reply was ever recorded.
    pub reserved: Usage,
    /// What it is for.
    #[serde(default)]
    pub purpose: Purpose,
    /// Which model, as `vendor/name`. Empty in logs of before it was told: the one that the run
    /// began with, or its last fallback.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Results that the model has not read yet are shown to it shortened to so many bytes each,
    /// since together they are too long for its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u64>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It had said what it wanted to say.
    End,
    /// It wants tools to be called.
    ToolUse,
    /// It reached the output cap of the call.
    MaxTokens,
    /// It would not answer.
    Refusal,
    /// We stopped it; the reply holds the text so far.
    Cancelled,
    /// Something else, in the provider's words.
    Other(String),
}

/// The model answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReplied {
    /// The last event the model had seen: what came later folds after the reply.
    pub seen: Seq,
    /// What it said.
    pub message: Message,
    /// Why it stopped.
    pub stop: Stop,
    /// What it cost, as far as that is known.
    pub usage: Usage,
    /// What it may have cost besides, if it was stopped before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<Usage>,
    /// The provider's name for the request, for support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The tier the provider served it from, in its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// What the provider says is left of its rate limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<RateLimits>,
    /// Time at work so far, in milliseconds.
    pub worked_ms: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What is left of a provider's rate limits after a call.
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

/// What a run does about a model call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// The same call again, after so many milliseconds.
    Retry {
        /// How long to wait.
        after_ms: u64,
        /// Which retry this is, counted from 1; 0 when that was not stored.
        #[serde(default, skip_serializing_if = "is_zero")]
        attempt: u32,
        /// How many there are at the most; 0 when that was not stored.
        #[serde(default, skip_serializing_if = "is_zero")]
        of: u32,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
    /// The same call to another model, which the run then keeps to.
    Fallback {
        /// Which, as `vendor/name`.
        model: String,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
}

/// What the words for remedies begin with.
const AGAIN: &str = "tries again";
const ELSEWHERE: &str = "goes on with";

impl Remedy {
    /// The same call again, after so many milliseconds.
    pub fn retry(after_ms: u64) -> Self {
        Remedy::retry_of(after_ms, 0, 0)
    }

    /// The same, for this retry `of` so many.
    pub fn retry_of(after_ms: u64, attempt: u32, of: u32) -> Self {
        Remedy::Retry { after_ms, attempt, of, extra: Extra::default() }
    }

    /// True when `note` begins with the words for a remedy.
    pub fn begins(note: &str) -> bool {
        note.starts_with(AGAIN) || note.starts_with(ELSEWHERE)
    }

    /// The same call to `model`, which the run then keeps to.
    pub fn fallback(model: impl Into<String>) -> Self {
        Remedy::Fallback { model: model.into(), extra: Extra::default() }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// These words are stored with runs: lists show them, and a check compares them with the log.
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

/// What kind of failure a model call ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The transcript does not fit the model's window: compacting may help.
    ContextOverflow,
    /// We stopped it before it said anything.
    Cancelled,
    /// Anything else that trying again will not mend.
    Other,
}

/// The call to the model ended without an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelFailed {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What went wrong and what to do about it.
    pub reason: String,
    /// What it may have cost all the same, at most. Limits count this.
    #[serde(default)]
    pub usage: Usage,
    /// What of that is not known to have been spent. Logs from before this was recorded do not say
    /// it: then all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<Usage>,
    /// What is done about it; nothing when the failure stands.
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
    /// Which call.
    pub call: CallId,
    /// The tool, by the name it is offered under.
    pub tool: String,
    /// It may run again if the process dies before the result is recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// What let it run: a rule, an approval, the mode.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool answered that its result will be appended later, by someone else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolPending {
    /// Which call.
    pub call: CallId,
    /// What it waits for, in words for people.
    pub waits_for: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Where a result came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The tool ran and returned.
    #[default]
    Returned,
    /// It was not run: outside the grant, or not a call that can be understood.
    Refused,
    /// It was not run: the limit of tool calls was reached.
    OverLimit,
    /// It was stopped before it returned.
    Stopped,
    /// The process died while it ran: whether it had its effect is not known.
    Interrupted,
}

/// A call has its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolFinished {
    /// Which call.
    pub call: CallId,
    /// What the model is told.
    pub output: ToolOutput,
    /// Where the result came from.
    #[serde(default)]
    pub ending: Ending,
    /// What refused it, if that is so: a rule, a person, the mode, the grant.
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
