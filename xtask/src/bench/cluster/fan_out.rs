//! A main agent that calls 1,000 children at once: on the server, on SQLite, and the same requests by a
//! raw client, in the same round.

use super::Cluster;
use crate::bench::Result;
use crate::bench::delegation::{Tree, raw};
use crate::bench::harness::Effort;
use crate::bench::line::{Line, written};
use crate::bench::recording::Recording;
use crate::bench::server::{Pace, Play};

pub async fn measure(cluster: &Cluster, effort: Effort) -> Result<()> {
    let children = effort.pick(100, 1_000);
    let recording = Recording::of(Play::Tree(children)).await?;
    let tree = Tree::at_once(recording.workspace.path(), children);
    let rounds = effort.rounds(|| {
        let raw = raw(&recording, children)?;
        let sqlite = tree.grow(Pace::Thinking)?.cost;
        let place = Some(cluster.place());
        let server = Tree { place, ..tree.clone() }.grow(Pace::Thinking)?.cost;
        Ok((server, sqlite, raw))
    })?;
    let name = format!("fan-out: {} children", written(children));
    let pairs: Vec<_> = rounds.iter().map(|(server, _, raw)| (*server, *raw)).collect();
    let [wall, processor] = Line::costs(&format!("{name}, PostgreSQL"), &pairs);
    wall.at_most(1.5, "raw").print();
    processor.print();
    let pairs: Vec<_> = rounds.iter().map(|(_, sqlite, raw)| (*sqlite, *raw)).collect();
    Line::costs(&format!("{name}, SQLite"), &pairs).into_iter().for_each(Line::print);
    Ok(())
}
