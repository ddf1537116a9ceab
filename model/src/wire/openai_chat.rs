//! The OpenAI Chat Completions wire, as OpenAI and the vendors compatible with it speak it.
//!
//! How a message becomes parts, and back:
//! - Reasoning (`reasoning_content`, `reasoning`) becomes one thinking part, `reasoning_details`
//!   stay in its `extra`; `content` and `refusal` become text, `tool_calls` tool calls.
//! - Fields that a vendor wants back go back verbatim, if the dialect says so. Of other fields
//!   Posse keeps only the sources of a text (`annotations`, `citations`) and does not send them:
//!   vendors refuse unknown fields.

mod call;
mod chunk;
mod decode;
mod detail;
mod encode;
mod error;
mod ids;
mod message;
mod speech;
mod turn;
mod usage;

pub use decode::Decoder;
pub use encode::encode;

use super::{Codec, Decode, EncodeError, Target, Wire};
use posse_agent::Request;

/// What this wire is called in stored messages and in
/// [`Part::Opaque`](posse_protocol::Part::Opaque).
const NAME: &str = Wire::OpenaiChat.name();

/// What a thinking part keeps the details of its reasoning under.
const REASONING_DETAILS: &str = "reasoning_details";

/// What a tool call keeps under its own name, as Gemini's thought signature.
const EXTRA_CONTENT: &str = "extra_content";

/// The codec of this wire.
pub(super) struct OpenaiChat;

impl Codec for OpenaiChat {
    fn path(&self, _: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn encode(&self, request: &Request, target: Target<'_>) -> Result<Vec<u8>, EncodeError> {
        encode(request, target)
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::new(Decoder::default())
    }
}
