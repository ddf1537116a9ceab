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
mod decode;
mod encode;

pub use decode::Decoder;
pub use encode::encode;

/// What this wire is called in [`Part::Opaque`](posse_protocol::Part::Opaque).
pub const NAME: &str = "anthropic";

/// The version of the wire, sent as `anthropic-version`.
pub const VERSION: &str = "2023-06-01";

/// The path of the endpoint below the base URL.
pub const PATH: &str = "/v1/messages";
