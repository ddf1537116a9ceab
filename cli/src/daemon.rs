//! The daemon: a process with a runtime that continues every unfinished run of one database, and a
//! socket to control it. The database holds the work. The socket only wakes the daemon, asks for
//! its status, and stops it.

pub mod address;
pub mod client;
pub mod detach;
pub mod lock;
pub mod process;
pub mod protocol;
mod server;
pub mod unit;

/// The version of this program. The daemon must have the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
