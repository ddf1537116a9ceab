//! The Anthropic Messages wire.
//!
//! How blocks become parts, and back:
//! - `text`, `thinking` and `tool_use` become their parts; fields Posse does not know stay in
//!   `extra` and are sent back.
//! - Every other block, `redacted_thinking` among them, becomes [`Part::Opaque`] of the wire
//!   [`NAME`] and is sent back verbatim, in its place.
//!
//! [`Part::Opaque`]: posse_protocol::Part::Opaque

mod block;
mod content;
mod decode;
mod encode;
mod schema;

pub use decode::Decoder;
pub use encode::encode;

use crate::wire::Dialect;

/// What this wire is called in [`Part::Opaque`](posse_protocol::Part::Opaque).
pub const NAME: &str = "anthropic";

/// The version of the wire, sent as `anthropic-version`.
pub const VERSION: &str = "2023-06-01";

/// The path of the endpoint below the base URL.
pub const PATH: &str = "/v1/messages";

/// The headers that a request in this dialect needs besides the key and the version.
pub fn headers(dialect: &Dialect) -> &'static [(&'static str, &'static str)] {
    match dialect.bound_thinking {
        true => &[("anthropic-beta", "thinking-binding-controls-2026-08-01")],
        false => &[],
    }
}
