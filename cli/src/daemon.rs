//! The daemon: a runtime in a process of its own that goes on with every unfinished run of one
//! database, and a socket to speak to it. What there is to do stands in the database; the socket
//! only says that it is time to look, asks how it goes, and ends it.

pub mod address;
pub mod client;
pub mod detach;
pub mod lock;
pub mod process;
pub mod protocol;
mod server;
pub mod unit;

/// The version of this program, which the daemon is to have too.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
