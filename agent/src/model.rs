//! The trait through which the loop calls a model.

use async_trait::async_trait;
use posse_protocol::{Delta, Effort, Message, Price, RateLimits, Stop, ToolSpec, Usage};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Receives deltas during a call. It must not block.
pub type DeltaSink<'a> = &'a (dyn Fn(Delta) + Send + Sync);

/// What Posse knows about a model before it calls it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// `vendor/name`.
    pub id: String,
    /// Tokens that fit into one call, output included.
    pub context_window: u64,
    /// Tokens one reply may have.
    pub max_output: u64,
    /// The price of tokens; zero when not known.
    pub price: Price,
}

/// A request to a model. The same transcript makes the same request, byte for byte.
#[derive(Clone, Debug)]
pub struct Request {
    /// The agent's instructions.
    pub system: Arc<str>,
    /// The transcript.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the model sees.
    pub tools: Arc<[ToolSpec]>,
    /// The most tokens the reply may have.
    pub max_tokens: u64,
    /// The reasoning effort, if one is set.
    pub effort: Option<Effort>,
    /// The JSON Schema that the final answer must follow.
    pub output_schema: Option<Arc<Value>>,
}

/// The reply of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The message, with its parts in the vendor's order. It never contains a truncated tool call.
    pub message: Message,
    /// Why the reply ended.
    pub stop: Stop,
    /// The tokens and the cost of the call.
    pub usage: Usage,
    /// The vendor's id of the request.
    pub request_id: Option<String>,
    /// The service tier, as the vendor names it.
    pub service_tier: Option<String>,
    /// What the vendor says is left of its rate limits.
    pub rate_limits: Option<RateLimits>,
}

/// A model. It gets one request, sends deltas while it answers, and returns one reply or one error.
///
/// The future of `call` is the whole exchange with the vendor. It must return soon after `cancel`
/// fires: with [`ModelError::Cancelled`], or with [`ModelError::NotSent`] if the request did not reach
/// the vendor.
#[async_trait]
pub trait Model: Send + Sync {
    /// What Posse knows about the model.
    fn info(&self) -> &ModelInfo;

    /// Prepares what every call needs, such as a client, if it does not exist yet. The loop calls this
    /// while it stores the event that announces the call. It must send nothing.
    fn get_ready(&self) {}

    /// Sends `request` and returns the reply.
    async fn call(
        &self,
        request: Request,
        deltas: DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<Reply, ModelError>;
}

/// Why a model call failed. The variant says whether a retry can help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The vendor asks for fewer requests.
    #[error("{model} limits the rate of requests: {reason}")]
    RetryAfter {
        /// The model.
        model: String,
        /// When to try again, if the vendor said so.
        after: Option<Duration>,
        /// The vendor's message.
        reason: String,
    },
    /// The vendor is overloaded or has an internal error.
    #[error("{model} is overloaded or in trouble: {reason}")]
    Overloaded {
        /// The model.
        model: String,
        /// When to try again, if the vendor said so.
        after: Option<Duration>,
        /// The vendor's message.
        reason: String,
    },
    /// The vendor rejects this request, and would reject it again.
    #[error("{model} rejected the request: {reason}")]
    Rejected {
        /// The model.
        model: String,
        /// The vendor's message.
        reason: String,
    },
    /// The API key is missing, wrong, or not allowed to do this.
    #[error("{model} does not accept the key: {reason}")]
    Unauthorised {
        /// The model.
        model: String,
        /// How to fix it.
        reason: String,
    },
    /// The transcript does not fit into the context window.
    #[error("the transcript does not fit the window of {model}: {reason}")]
    ContextOverflow {
        /// The model.
        model: String,
        /// The vendor's message.
        reason: String,
    },
    /// The vendor cannot be reached.
    #[error("cannot reach {model}: {reason}")]
    Unreachable {
        /// The model.
        model: String,
        /// The network error.
        reason: String,
        /// The request may have reached the vendor: the connection broke before an answer began.
        sent: bool,
    },
    /// The user's local server is not running. A retry cannot help until the user starts it.
    #[error("cannot reach {model}: {reason}")]
    NotRunning {
        /// The model.
        model: String,
        /// The address that was tried, and how to start the server.
        reason: String,
    },
    /// The vendor sent nothing for too long.
    #[error("{model} stalled: no event for {} s", after.as_secs_f64())]
    Stalled {
        /// The model.
        model: String,
        /// How long Posse waited.
        after: Duration,
    },
    /// The reply ended before it was complete.
    #[error("the reply of {model} was cut off: {reason}")]
    Cut {
        /// The model.
        model: String,
        /// Where it ended.
        reason: String,
    },
    /// The reply does not follow the wire format.
    #[error("the reply of {model} is malformed: {reason}")]
    Malformed {
        /// The model.
        model: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Posse cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// Posse cancelled the call before it sent anything.
    #[error("the call was cancelled before it was sent")]
    NotSent,
}
