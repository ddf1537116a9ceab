//! A client of MCP servers: speaks with a server that is a process, over its input and output.
//!
//! The SDK knows the protocol. A server starts like the process of any other tool source, as confined as a command.
//! Posse never believes what a server says: its definitions are data, its messages are counted, and no call is repeated.

mod connection;
mod handler;
mod listing;
mod output;
mod watch;

pub use connection::McpConnection;
pub use listing::{LeftOut, Listing};

use crate::source::{Program, SourceContext, SourceError};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An MCP server that is a program.
#[derive(Clone)]
pub struct McpServer {
    /// The program.
    pub program: Program,
    /// How long a call may take.
    pub call_within: Duration,
    /// Removes secrets from what the server says, before it is kept or returned.
    pub clean: Clean,
}

/// Removes secrets from a text.
pub type Clean = Arc<dyn Fn(String) -> String + Send + Sync>;

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("program", &self.program.program).finish_non_exhaustive()
    }
}

impl McpServer {
    /// Starts the server for the run of `context`, and agrees on a version of the protocol. The caller limits the
    /// time. Dropping the returned value ends the server's process.
    ///
    /// # Errors
    /// If the program cannot be started, or does not speak the protocol.
    pub async fn connect(&self, context: &SourceContext) -> Result<McpConnection, SourceError> {
        let process = context.start(&self.program).await?;
        McpConnection::open(process, context, self).await
    }
}
