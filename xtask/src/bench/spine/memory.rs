//! Memory of a live run, with a raw request in flight beside it.
//!
//! Every run has made its three reads and waits for the last reply. The server holds this reply until
//! all runs have asked for it, so that all are in flight when memory is measured.

use super::runs::{load, requests};
use crate::bench::harness::Effort;
use crate::bench::line::{Line, Samples, written};
use crate::bench::meter::resident_kib;
use crate::bench::part::Process;
use crate::bench::recording::Recording;
use crate::bench::server::{Pace, Play, Server};
use crate::bench::{Part, Result};
use serde_json::Value;

/// KiB that a run may need beyond what a raw request needs.
const MOST: f64 = 100.0;

pub fn measure(recording: &Recording, effort: Effort) -> Result<()> {
    for runs in [1_000, 10_000] {
        let per_run =
            |part: &dyn Fn(String) -> Part| per_run(Play::Reads, runs, requests(runs), part);
        let rounds = effort.rounds(|| {
            let raw = per_run(&|url| recording.raw(url, runs, runs))?;
            Ok((per_run(&|url| load(recording, url, runs))?, raw))
        })?;
        beyond(&format!("memory: run of {}", written(runs)), &rounds);
    }
    Ok(())
}

/// Prints what a run of Posse and a raw request needed in each round, in this order.
pub fn beyond(name: &str, rounds: &[(f64, f64)]) {
    let kib = |amount: f64| format!("{amount:.1} KiB");
    let beyond = Samples::new(rounds.iter().map(|(posse, raw)| posse - raw)).median();
    let goal = format!("{} of ≤ {MOST} KiB beyond", kib(beyond));
    Line::compared(name, rounds, kib).goal(goal, beyond <= MOST).print();
}

/// KiB that each of `runs` adds to a process that has none, while all wait for their last reply. They
/// make `requests` in all.
pub fn per_run(
    play: Play,
    runs: usize,
    requests: usize,
    part: &dyn Fn(String) -> Part,
) -> Result<f64> {
    let mut server = Server::start(play, Pace::Held)?;
    let mut client = Process::ready(&part(server.url.clone()))?;
    let idle = resident_kib(client.id())?;
    client.tell("go")?;
    server.wait_for_held(runs)?;
    let live = resident_kib(client.id())?;
    server.open()?;
    client.end::<Value>()?;
    server.end_after(requests)?;
    Ok((live - idle) / runs as f64)
}
