//! The Anthropic Messages wire.

mod decode;
mod document;
pub mod encode;
mod foreign;
mod options;
mod properties;
mod replay;
pub mod transcripts;
