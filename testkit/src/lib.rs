//! The fake model server: it speaks the wire formats of providers over real HTTP and answers from
//! a script, so that an agent can be tested, shown and measured without a key.
//!
//! It must never be a dependency of a shipped library or reach out to the network: it only listens.
//! Only [`skipped`] reads the environment.

#![warn(missing_docs)]

mod ask;
mod cache;
mod captured;
mod connection;
mod counts;
mod fake_model;
mod gate;
mod hash;
mod http;
mod issued;
mod json;
mod ledger;
mod memory;
mod performance;
#[cfg(feature = "postgres")]
pub mod postgres;
mod prompt;
mod proxy;
mod receiver;
mod script;
mod seal;
mod signal;
mod skipped;
mod spoken;
mod turnstile;
mod wire;

pub use ask::Wire;
pub use captured::Captured;
pub use counts::Counts;
pub use fake_model::{FakeModel, StartError};
pub use gate::Gate;
pub use proxy::{Proxy, Traffic};
pub use receiver::{Answer, Received, Receiver};
pub use script::fault::{Expectation, Failure, Fault, Needs, UnknownFault};
pub use script::{Conversation, Reply, Rule, Script, ScriptError, Usage, When};
pub use signal::{DEADLINE, TimedOut};
pub use skipped::skipped;
