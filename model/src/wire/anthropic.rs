//! The Anthropic Messages wire.
//!
//! How blocks become parts, and back:
//! - `text`, `thinking` and `tool_use` become their parts; fields Posse does not know stay in
//!   `extra` and are sent back.
//! - Every other block, `redacted_thinking` among them, becomes [`Part::Opaque`] of the wire
//!   `anthropic` and is sent back verbatim, in its place.
//!
//! [`Part::Opaque`]: posse_protocol::Part::Opaque

mod block;
mod content;
mod decode;
mod encode;
mod schema;

pub use decode::Decoder;
pub use encode::encode;

use super::{Codec, Decode, Dialect, EncodeError, Target, Wire};
use posse_agent::Request;

/// What this wire is called in [`Part::Opaque`](posse_protocol::Part::Opaque).
const NAME: &str = Wire::Anthropic.name();

/// The codec of this wire.
pub(super) struct Anthropic;

impl Codec for Anthropic {
    fn path(&self, _: &str) -> String {
        "/v1/messages".to_owned()
    }

    fn key_header(&self) -> &'static str {
        "x-api-key"
    }

    fn version(&self) -> Option<(&'static str, &'static str)> {
        Some(("anthropic-version", "2023-06-01"))
    }

    fn headers(&self, dialect: &Dialect) -> &'static [(&'static str, &'static str)] {
        match dialect.bound_thinking {
            true => &[("anthropic-beta", "thinking-binding-controls-2026-08-01")],
            false => &[],
        }
    }

    fn encode(&self, request: &Request, target: Target<'_>) -> Result<Vec<u8>, EncodeError> {
        encode(request, target)
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::new(Decoder::default())
    }
}
