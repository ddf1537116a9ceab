//! Figure 1: a main agent that calls many others at once, against a raw client that makes the same
//! requests.

use super::recording::Recording;
use super::tree::{self, Grown, Size, Watcher};
use super::tree_raw::raw_client;
use super::written;
use crate::bench::Result;
use crate::bench::meter::Cost;
use crate::bench::runs::{LATENCY, compare};
use crate::bench::serve::Server;
use crate::bench::spine::Effort;

pub fn measure(recording: &Recording, effort: Effort) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        rounds.push((raw(recording)?, posse(recording)?));
    }
    let name = |what: &str| format!("fan-out: {} children, {what}", written(recording.children));
    compare(&name("wall"), &rounds, |cost| cost.wall, Some(("≤ 1.2 × raw", 1.2)));
    compare(&name("processor"), &rounds, |cost| cost.cpu, Some(("≤ 8 × raw", 8.0)));
    Ok(())
}

pub fn raw(recording: &Recording) -> Result<Cost> {
    let server = Server::of_tree(recording.children, LATENCY)?;
    let mut client = raw_client(recording, &server.url)?;
    client.tell("go")?;
    let cost = client.hear()?;
    client.wait()?;
    server.end(recording.requests())?;
    Ok(cost)
}

fn posse(recording: &Recording) -> Result<Cost> {
    let server = Server::of_tree(recording.children, LATENCY)?;
    let folder = tempfile::tempdir()?;
    let (workspace, children) = (recording.workspace(), recording.children);
    let mut client =
        tree::client(&workspace, Size::at_once(children), &server.url, &folder, Watcher::Nobody)?;
    client.tell("go")?;
    let grown: Grown = client.hear()?;
    client.wait()?;
    server.end(recording.requests())?;
    Ok(grown.cost)
}
