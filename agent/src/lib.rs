//! The agent loop of Posse, and the three seams it works through.
//!
//! [`run`] drives a run from its log: it folds the events into a [`Transcript`], asks the pure
//! function [`next_step`] what to do, does it, and records it. It knows a [`Model`], [`Tool`]s
//! and a [`Journal`]; that stores, servers or other runs exist, it never learns.
//!
//! Because everything the loop knows is in the log, resuming after a crash is calling [`run`]
//! again, and so is answering the next line of a chat.

mod allowance;
mod awaited;
mod calls;
mod compact;
mod desk;
mod dispatch;
mod fork;
mod guard;
mod journal;
mod model;
mod patience;
mod run;
mod schema;
mod seen;
mod shorten;
mod step;
mod tool;
mod transcript;

pub use allowance::Allowance;
pub use compact::{HEADING as SUMMARY_HEADING, REQUEST as SUMMARY_REQUEST};
pub use dispatch::panic_text;
pub use fork::{Fork, Form, SEPARATOR_HEADING, fork, separator};
pub use guard::{Guard, Ruling, Standing, Unguarded, digest};
pub use journal::{Claim, Expect, Journal, JournalError};
pub use model::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request};
pub use patience::{Patience, Waits};
pub use posse_protocol as protocol;
pub use run::{Agent, Ended, run};
pub use schema::check_schema;
pub use seen::SeenFiles;
pub use shorten::capped;
pub use step::{Bounds, LIMIT_NEAR, Step, closing_answers, next_step};
pub use tool::{Answer, Tool, ToolContext, Toolbox};
pub use transcript::Transcript;
