//! The OpenAI Responses wire.

mod decode;
mod encode;
mod error;
mod pairing;
mod properties;
mod replay;
mod stopped;
mod transcripts;
mod untidy;
