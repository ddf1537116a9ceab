//! Implementations of [`posse_agent::Model`]: what is said to a provider, and how.
//!
//! [`Models`] turns a name such as `anthropic/claude-sonnet-4-5` into a model. A model encodes
//! the transcript with a codec of [`wire`], sends it through the one shared HTTP client and
//! decodes the stream of events ([`sse`]) into deltas and one reply.
//!
//! This crate knows nothing of tools' code, runs or stores, and reads no environment.

pub mod catalog;
pub mod fault;
mod http;
mod models;
mod remote;
pub mod sse;
pub mod wire;

pub use models::{Keys, Models, Options, ResolveError};
