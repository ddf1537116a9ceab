//! Implementations of [`posse_agent::Model`], which call providers.
//!
//! [`Models`] turns a name such as `anthropic/claude-sonnet-4-5` into a model: one of the catalog,
//! or one of the host ([`HostModel`]). A model of the catalog encodes the transcript with a codec
//! of [`wire`], sends it through the one shared HTTP client and decodes the stream of events
//! ([`sse`]) into deltas and one reply.
//!
//! This crate knows nothing of tools, runs and stores, and does not read the environment.

mod cassette;
pub mod catalog;
mod error;
pub mod fault;
mod forms;
mod governor;
mod http;
mod models;

mod input_kinds;
mod remote;
pub mod sse;
pub mod wire;

pub use cassette::{Against, Cassette, CassetteError, Difference, Places, Recording, Replay};
pub use catalog::Catalog;
pub use error::ResolveError;
pub use forms::{Unescaped, forms_of_secret};
pub use governor::{Pacing, Provider};
pub use models::{
    Abilities, Choice, ChoiceReason, HostModel, Keys, Models, Offer, Options, Trial, try_out,
};
// The types for a model of the host.
pub use posse_agent::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request};
