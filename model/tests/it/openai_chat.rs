//! The OpenAI Chat Completions wire.

mod calls;
mod decode;
mod dialects;
mod encode;
mod errors;
mod properties;
mod replay;
mod transcripts;
mod usage;
