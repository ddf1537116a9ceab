//! The Anthropic Messages wire.

mod decode;
pub mod encode;
mod properties;
mod replay;
pub mod transcripts;
