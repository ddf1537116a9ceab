//! Figure 2: memory of a live child, with a raw request in flight beside it.
//!
//! Every child has made its three reads and waits for its last reply, which the server holds until
//! all of them have asked for it. What the main agent needs that waits for them is shared out among
//! them.

use super::recording::Recording;
use super::tree::{self, Size, Watcher};
use super::tree_raw::raw_client;
use super::written;
use crate::bench::Result;
use crate::bench::memory::{beyond, per_run};
use crate::bench::serve::Server;
use crate::bench::spine::Effort;

/// Of one main agent.
pub const CHILDREN: usize = 1_000;

pub fn measure(recording: &Recording, effort: Effort) -> Result<()> {
    let (children, requests) = (recording.children, recording.requests());
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        let server = Server::of_tree_holding(children)?;
        let raw = per_run(server, children, requests, |url| raw_client(recording, url))?;
        let folder = tempfile::tempdir()?;
        let server = Server::of_tree_holding(children)?;
        let posse = per_run(server, children, requests, |url| {
            tree::client(
                &recording.workspace(),
                Size::at_once(children),
                url,
                &folder,
                Watcher::Nobody,
            )
        })?;
        rounds.push((posse, raw));
    }
    beyond(&format!("memory: child of {}", written(children)), &rounds);
    Ok(())
}
