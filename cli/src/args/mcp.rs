//! The arguments of `posse mcp`.

use super::network;
use clap::{Args, Subcommand};
use posse::protocol::Network;

#[derive(Subcommand)]
pub enum McpVerb {
    /// Add a server: posse mcp add NAME -- COMMAND ARGUMENTS…
    Add(McpAddOptions),
    /// List the servers for this folder, and which of them runs may use
    List,
    /// Start a server, show its tools, and ask about tools that have changed
    Test {
        /// The name of the server
        name: String,
        /// Accept new and changed tools without asking
        #[arg(long)]
        yes: bool,
    },
    /// Remove a server
    Remove {
        /// The name of the server
        name: String,
        /// Remove it from .mcp.json of this folder, not from your settings
        #[arg(long)]
        project: bool,
    },
}

#[derive(Args, Clone)]
pub struct McpAddOptions {
    /// Its name: letters, digits, `-` and single `_`
    pub name: String,
    /// Add it to .mcp.json of this folder, not to your settings
    #[arg(long, conflicts_with = "network")]
    pub project: bool,
    /// A variable of the server; write '${NAME}' for a variable of your own environment
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Hosts that the server may reach besides those of the run: example.org,*.example.org or open
    #[arg(long, value_name = "HOSTS", value_parser = network)]
    pub network: Option<Network>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
