//! The agent loop of Posse, and the three traits it works through.
//!
//! [`run`] executes a run from its log: it computes a [`Transcript`] from the events, asks the pure
//! function [`next_step`] what to do, does it, and stores the result as events. It uses a [`Model`],
//! [`Tool`]s and a [`Journal`]. It does not know about stores, servers or other runs.
//!
//! Everything the loop knows is in the log. So to resume a run after a crash, or to answer the next
//! line of a chat, call [`run`] again.

mod allowance;
mod awaited;
mod calls;
mod compact;
mod dispatch;
mod fork;
mod guard;
mod journal;
mod log_buffer;
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
pub use guard::{AddedRules, Guard, Ruling, Unguarded, digest};
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
