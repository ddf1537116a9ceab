//! Many runs at once, against a raw client that makes the same calls.

use crate::bench::harness::Effort;
use crate::bench::line::Line;
use crate::bench::load::{Load, Loaded};
use crate::bench::meter::Cost;
use crate::bench::recording::Recording;
use crate::bench::server::{FILES, Pace, Play, Server};
use crate::bench::{Part, Result};

pub fn measure(recording: &Recording, effort: Effort) -> Result<()> {
    let rounds = effort.rounds(|| {
        let raw = raw(recording, 1_000)?;
        Ok((posse(recording, 1_000)?.cost, raw))
    })?;
    let [wall, processor] = Line::costs("runs: 1,000", &rounds);
    wall.at_most(1.15, "raw").print();
    processor.at_most(8.0, "raw").print();

    let count = 10_000;
    let raw = raw(recording, count)?;
    let Loaded { cost, completed, stored } = posse(recording, count)?;
    Line::new("runs: 10,000, completed", format!("{completed} told, {stored} stored"))
        .raw(count.to_string())
        .goal("none lost", (completed, stored) == (count, count))
        .print();
    Line::costs("runs: 10,000", &[(cost, raw)]).into_iter().for_each(Line::print);
    Ok(())
}

/// Requests of so many runs.
pub fn requests(runs: usize) -> usize {
    runs * (FILES.len() + 1)
}

fn raw(recording: &Recording, runs: usize) -> Result<Cost> {
    let part = |url| recording.raw(url, runs, runs);
    Server::round(Play::Reads, Pace::Thinking, requests(runs), part)
}

fn posse(recording: &Recording, runs: usize) -> Result<Loaded> {
    let part = |url| load(recording, url, runs);
    Server::round(Play::Reads, Pace::Thinking, requests(runs), part)
}

/// The same by runs.
pub fn load(recording: &Recording, url: String, runs: usize) -> Part {
    Part::Load(Load { url, workspace: recording.workspace.path().to_owned(), runs })
}
