//! The loop.
mod journal;
mod model;
mod tool;
pub use journal::{Expect, Journal, JournalError};
pub use model::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request};
pub use posse_protocol as protocol;
pub use tool::{Answer, Tool, ToolContext, Toolbox};
