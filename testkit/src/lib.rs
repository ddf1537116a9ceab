//! The fake model server: it speaks a provider's wire format over real HTTP and answers from a
//! script, so that an agent can be tested, shown and measured without a key.
//!
//! It must never be a dependency of a shipped library, read the environment, or reach out to the
//! network: it only listens.

#![warn(missing_docs)]

mod ask;
mod connection;
pub mod crash;
mod fake_model;
mod gate;
mod http;
mod json;
mod ledger;
mod script;
mod signal;
mod spoken;
mod wire;

pub use fake_model::{FakeModel, StartError};
pub use gate::Gate;
pub use ledger::Captured;
pub use script::{Conversation, Reply, Rule, Script, ScriptError, Usage, When};
pub use signal::{DEADLINE, TimedOut};
