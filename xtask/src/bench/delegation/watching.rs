//! Figure 3: what someone gets to see who watches a main agent and all that it calls. It must grow
//! with their number, and no faster.

use super::recording::requests;
use super::tree::{self, Grown, Size, Watcher};
use super::{SIZES, written};
use crate::bench::Result;
use crate::bench::line::{Goal, Line, Samples, seconds, times};
use crate::bench::requests::fill;
use crate::bench::runs::LATENCY;
use crate::bench::serve::Server;
use crate::bench::spine::Effort;
use std::path::Path;

/// How many more updates there may be for each child of many than for each of few.
const MOST: f64 = 1.05;

pub fn measure(effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("work");
    fill(&workspace)?;
    let mut few = None;
    for children in SIZES {
        let mut watched = Vec::new();
        let mut unwatched = Vec::new();
        for _ in 0..effort.rounds() {
            unwatched.push(grow(&workspace, children, Watcher::Nobody)?.cost.cpu);
            watched.push(grow(&workspace, children, Watcher::Someone)?);
        }
        let share = |grown: &Grown| grown.updates as f64 / children as f64;
        let shares = Samples::new(watched.iter().map(share).collect());
        let growth = shares.median() / *few.get_or_insert(shares.median());
        Line {
            name: format!("watching: {} children, updates", written(children)),
            posse: format!("{} for a child", shares.shown(times)),
            raw: "–".to_owned(),
            ratio: format!("{growth:.2} of 10"),
            goal: Goal::at_most("linear (≤ 1.05)", growth, MOST),
        }
        .print();
        let pairs: Vec<(f64, f64)> =
            watched.iter().zip(&unwatched).map(|(one, other)| (one.cost.cpu, *other)).collect();
        Line {
            name: format!("watching: {} children, processor", written(children)),
            posse: Samples::new(pairs.iter().map(|pair| pair.0).collect()).shown(seconds),
            raw: format!("{} unwatched", Samples::new(unwatched).shown(seconds)),
            ratio: Samples::ratios(&pairs).shown(times),
            goal: match children == SIZES[SIZES.len() - 1] {
                true => Goal::at_most("≤ 1.2 × unwatched", Samples::ratios(&pairs).median(), 1.2),
                false => Goal::None,
            },
        }
        .print();
    }
    Ok(())
}

fn grow(workspace: &Path, children: usize, watcher: Watcher) -> Result<Grown> {
    let server = Server::of_tree(children, LATENCY)?;
    let folder = tempfile::tempdir()?;
    let mut client =
        tree::client(workspace, Size::at_once(children), &server.url, &folder, watcher)?;
    client.tell("go")?;
    let grown = client.hear()?;
    client.wait()?;
    server.end(requests(children))?;
    Ok(grown)
}
