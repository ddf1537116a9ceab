//! A main agent that calls many children at once, against a raw client that makes the same requests:
//! time, and memory of a live child.

use super::tree::{Grown, Tree, requests};
use crate::bench::Result;
use crate::bench::harness::Effort;
use crate::bench::line::{Line, written};
use crate::bench::meter::Cost;
use crate::bench::recording::Recording;
use crate::bench::server::{Pace, Play, Server};
use crate::bench::spine::{beyond, per_run};

pub fn measure(recording: &Recording, children: usize, effort: Effort) -> Result<()> {
    let rounds = effort.rounds(|| {
        let raw = raw(recording, children)?;
        let grown: Grown =
            Tree::at_once(recording.workspace.path(), children).grow(Pace::Thinking)?;
        Ok((grown.cost, raw))
    })?;
    let [wall, processor] =
        Line::costs(&format!("fan-out: {} children", written(children)), &rounds);
    wall.at_most(1.2, "raw").print();
    processor.at_most(8.0, "raw").print();
    Ok(())
}

/// What the same requests cost a raw client.
pub fn raw(recording: &Recording, children: usize) -> Result<Cost> {
    let part = |url| recording.raw(url, children, children);
    Server::round(Play::Tree(children), Pace::Thinking, requests(children), part)
}

/// Measures while the server holds the last reply of every child. The memory of the main agent, which
/// waits for them, is divided among them.
pub fn measure_memory(recording: &Recording, children: usize, effort: Effort) -> Result<()> {
    let (play, requests) = (Play::Tree(children), requests(children));
    let rounds = effort.rounds(|| {
        let raw = per_run(play, children, requests, &|url| recording.raw(url, children, children))?;
        let tree = Tree::at_once(recording.workspace.path(), children);
        Ok((per_run(play, children, requests, &|url| tree.part(url))?, raw))
    })?;
    beyond(&format!("memory: child of {}", written(children)), &rounds);
    Ok(())
}
