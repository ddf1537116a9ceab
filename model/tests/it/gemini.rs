//! The Gemini generateContent wire.

mod decode;
mod encode;
mod errors;
mod pairing;
mod properties;
mod replay;
mod transcripts;
