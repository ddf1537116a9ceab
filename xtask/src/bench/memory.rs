//! Figure 2: memory of a live run, with a raw request in flight beside it.
//!
//! Every run has made its three reads and waits for the last reply, which the server holds until
//! all of them have asked for it: so all are surely in flight when memory is looked at.

use super::Result;
use super::line::{Goal, Line, Samples, kib, times};
use super::meter::resident_kib;
use super::process::Process;
use super::requests::Requests;
use super::runs::{posse_client, raw_client};
use super::serve::{FILES, Server};
use super::spine::Effort;
use serde_json::Value;

/// KiB that a run may need beyond what a raw request needs.
const MOST: f64 = 100.0;

pub fn measure(requests: &Requests, effort: Effort) -> Result<()> {
    for (name, runs) in [("memory: run of 1,000", 1_000), ("memory: run of 10,000", 10_000)] {
        let all = runs * (FILES.len() + 1);
        let mut rounds = Vec::new();
        for _ in 0..effort.rounds() {
            let server = Server::holding("reads")?;
            let raw = per_run(server, runs, all, |url| raw_client(requests, url, runs))?;
            let folder = tempfile::tempdir()?;
            let server = Server::holding("reads")?;
            let posse =
                per_run(server, runs, all, |url| posse_client(requests, url, runs, &folder))?;
            rounds.push((posse, raw));
        }
        beyond(name, &rounds);
    }
    Ok(())
}

/// Prints what a run of Posse and a raw request have needed in each round, in this order.
pub fn beyond(name: &str, rounds: &[(f64, f64)]) {
    let beyond = Samples::new(rounds.iter().map(|(posse, raw)| posse - raw).collect());
    Line {
        name: name.to_owned(),
        posse: Samples::new(rounds.iter().map(|round| round.0).collect()).shown(kib),
        raw: Samples::new(rounds.iter().map(|round| round.1).collect()).shown(kib),
        ratio: Samples::ratios(rounds).shown(times),
        goal: Goal::at_most(
            &format!("{} of ≤ 100 KiB beyond", kib(beyond.median())),
            beyond.median(),
            MOST,
        ),
    }
    .print();
}

/// KiB that each of `runs`, all held by `server`, adds to a process that has none. They make `all`
/// requests.
pub fn per_run(
    mut server: Server,
    runs: usize,
    all: usize,
    start: impl FnOnce(&str) -> Result<Process>,
) -> Result<f64> {
    let mut client = start(&server.url)?;
    let idle = resident_kib(client.id())?;
    client.tell("go")?;
    server.wait_for_held(runs)?;
    let live = resident_kib(client.id())?;
    server.open()?;
    client.hear::<Value>()?;
    client.wait()?;
    server.end(all)?;
    Ok((live - idle) / runs as f64)
}
