//! A worker is killed (`kill -9`) while its runs wait for replies: how long it takes until another one
//! makes the next requests of these runs. The lease is the usual one.

use super::{Cluster, Work};
use crate::bench::harness::Effort;
use crate::bench::line::{Line, Samples, seconds};
use crate::bench::part::Process;
use crate::bench::recording::workspace;
use crate::bench::server::{FILES, Pace, Play, Server};
use crate::bench::{Part, Result};
use std::time::{Duration, Instant};

/// Runs of the worker that is killed.
const RUNS: usize = 20;
/// How long a takeover may take: the lease and two seconds.
const MOST: f64 = 12.0;
const LOOK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);

pub fn measure(cluster: &Cluster, effort: Effort) -> Result<()> {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for _ in 0..effort.pick(1, 5) {
        let took = take_over(cluster)?;
        first.push(took.0);
        last.push(took.1);
    }
    for (name, times) in [("the first of 20 runs", first), ("the last of 20 runs", last)] {
        let times = Samples::new(times);
        let is_met = times.most() <= MOST;
        let line = Line::new(format!("takeover: {name}"), times.shown(seconds));
        line.goal("≤ lease + 2 s = 12 s", is_met).print();
    }
    Ok(())
}

/// Seconds from the kill to the first and to the last of the requests that are made again.
fn take_over(cluster: &Cluster) -> Result<(f64, f64)> {
    let (folder, workspace, place) = (tempfile::tempdir()?, workspace()?, cluster.place());
    // The last reply of each run is held, so that all are in the middle of a call.
    let mut server = Server::start(Play::Reads, Pace::Held)?;
    let work = |own| Work {
        url: server.url.clone(),
        place: place.clone(),
        folder: folder.path().to_owned(),
        slots: RUNS,
        own,
    };
    let own = Some((RUNS, workspace.path().to_owned()));
    let (mut doomed, mut other) =
        (Process::ready(&Part::Work(work(own)))?, Process::ready(&Part::Work(work(None)))?);
    other.tell("go")?;
    doomed.tell("go")?;
    server.wait_for_held(RUNS)?;
    let before = server.requests()?;
    if before != RUNS * (FILES.len() + 1) {
        return Err(format!("{before} requests before the kill").into());
    }
    // A process that is dropped is killed.
    let began = Instant::now();
    drop(doomed);
    let mut first = None;
    let last = loop {
        let again = server.requests()? - before;
        if again > 0 {
            first.get_or_insert_with(|| began.elapsed().as_secs_f64());
        }
        if again >= RUNS {
            break began.elapsed().as_secs_f64();
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("only {again} of {RUNS} runs were taken over").into());
        }
        std::thread::sleep(LOOK);
    };
    server.open()?;
    other.tell("end")?;
    other.end::<()>()?;
    server.end()?;
    Ok((first.unwrap_or(last), last))
}
