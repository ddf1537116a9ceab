//! What the loop needs of a model.

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
    /// What it asks for them; zero when not known.
    pub price: Price,
}

/// A request to a model. The same transcript makes the same request, byte for byte.
#[derive(Clone, Debug)]
pub struct Request {
    /// The agent's instructions.
    pub system: Arc<str>,
    /// The transcript.
    pub messages: Vec<Arc<Message>>,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
    /// Tokens the reply may have.
    pub max_tokens: u64,
    /// How hard to think, if someone said so.
    pub effort: Option<Effort>,
    /// The JSON Schema that the final answer is to follow.
    pub output_schema: Option<Arc<Value>>,
}

/// The reply of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The message, its parts in the provider's order. Holds no truncated tool call.
    pub message: Message,
    /// Why it stopped.
    pub stop: Stop,
    /// What it cost.
    pub usage: Usage,
    /// The provider's name for the request.
    pub request_id: Option<String>,
    /// The tier the provider served it from, in its words.
    pub service_tier: Option<String>,
    /// What the provider says is left of its rate limits.
    pub rate_limits: Option<RateLimits>,
}

/// A model. It gets one request, sends deltas while it answers, and returns one reply or one error.
///
/// The future of `call` is the whole exchange with the vendor. It must return soon after `cancel`
/// fires: with [`ModelError::Cancelled`], or with [`ModelError::NotSent`] if the request did not reach
/// the vendor.
#[async_trait]
pub trait Model: Send + Sync {
    /// What is known of it.
    fn info(&self) -> &ModelInfo;

    /// Makes what calls need whatever they say, if it is not there yet. Happens while the intent to
    /// call is being stored; sends nothing.
    fn get_ready(&self) {}

    /// Calls it.
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
    /// The provider wants fewer requests.
    #[error("{model} limits the rate of requests: {reason}")]
    RetryAfter {
        /// Which model.
        model: String,
        /// When to try again, if it said so.
        after: Option<Duration>,
        /// The provider's words.
        reason: String,
    },
    /// The provider is in trouble.
    #[error("{model} is overloaded or in trouble: {reason}")]
    Overloaded {
        /// Which model.
        model: String,
        /// When to try again, if it said so.
        after: Option<Duration>,
        /// The provider's words.
        reason: String,
    },
    /// The provider refuses this request, and will refuse it again.
    #[error("{model} rejected the request: {reason}")]
    Rejected {
        /// Which model.
        model: String,
        /// The provider's words.
        reason: String,
    },
    /// The key is missing, wrong, or not allowed to do this.
    #[error("{model} does not accept the key: {reason}")]
    Unauthorised {
        /// Which model.
        model: String,
        /// What to do about it.
        reason: String,
    },
    /// The transcript does not fit the window.
    #[error("the transcript does not fit the window of {model}: {reason}")]
    ContextOverflow {
        /// Which model.
        model: String,
        /// The provider's words.
        reason: String,
    },
    /// The provider cannot be reached.
    #[error("cannot reach {model}: {reason}")]
    Unreachable {
        /// Which model.
        model: String,
        /// What the network said.
        reason: String,
        /// The request may have reached it: the connection broke before an answer began.
        sent: bool,
    },
    /// The user's own server is not running: to try again is no use until somebody starts it.
    #[error("cannot reach {model}: {reason}")]
    NotRunning {
        /// Which model.
        model: String,
        /// Where it was looked for, and how to start it.
        reason: String,
    },
    /// Nothing came for too long.
    #[error("{model} stalled: no event for {} s", after.as_secs_f64())]
    Stalled {
        /// Which model.
        model: String,
        /// How long we waited.
        after: Duration,
    },
    /// The reply ended before it was complete.
    #[error("the reply of {model} was cut off: {reason}")]
    Cut {
        /// Which model.
        model: String,
        /// Where.
        reason: String,
    },
    /// The reply is not what the wire format says.
    #[error("the reply of {model} is malformed: {reason}")]
    Malformed {
        /// Which model.
        model: String,
        /// What is wrong with it.
        reason: String,
    },
    /// We stopped it.
    #[error("the call was cancelled")]
    Cancelled,
    /// We stopped it before anything was sent.
    #[error("the call was cancelled before it was sent")]
    NotSent,
}
