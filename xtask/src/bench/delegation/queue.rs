//! What waiting for a slot costs: many children through few slots, against the same children all at
//! once.

use super::recording::requests;
use super::tree::{self, Grown, Size, Watcher};
use super::written;
use crate::bench::Result;
use crate::bench::meter::Cost;
use crate::bench::requests::fill;
use crate::bench::runs::compare;
use crate::bench::serve::Server;
use crate::bench::spine::Effort;
use std::path::Path;
use std::time::Duration;

/// How many children.
const CHILDREN: usize = 2_000;
/// The same through few slots.
const FEW: Size = Size { children: CHILDREN, slots: 128 };

pub fn measure(effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("work");
    fill(&workspace)?;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        rounds.push((cost(&workspace, Size::at_once(CHILDREN))?, cost(&workspace, FEW)?));
    }
    let name =
        |what: &str| format!("queue: {} through {} slots, {what}", written(CHILDREN), FEW.slots);
    compare(&name("wall"), &rounds, |cost| cost.wall, None);
    compare(&name("processor"), &rounds, |cost| cost.cpu, None);
    Ok(())
}

/// Requests take no time, so that what is left is the runtime's own.
fn cost(workspace: &Path, size: Size) -> Result<Cost> {
    let server = Server::of_tree(CHILDREN, Duration::ZERO)?;
    let folder = tempfile::tempdir()?;
    let mut client = tree::client(workspace, size, &server.url, &folder, Watcher::Nobody)?;
    client.tell("go")?;
    let grown: Grown = client.hear()?;
    client.wait()?;
    server.end(requests(CHILDREN))?;
    Ok(grown.cost)
}
