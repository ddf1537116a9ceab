//! Figure 2: the same in rough weather. One of twenty children meets a fault of its provider, one of
//! a hundred a command that hangs, the process is killed three times, and a hundred are cancelled.

use super::Size;
use super::crowd::{Grown, client};
use super::recording::{OF_CHILD, Recording};
use super::serve::Server;
use super::smooth::{exactly_once, memory, spread};
use crate::bench::Result;
use crate::bench::delegation::written;
use crate::bench::line::{Goal, Line, note, seconds};
use crate::bench::load::SETTLED;
use crate::bench::meter::peak_kib;
use crate::bench::runs::LATENCY;
use std::time::{Duration, Instant};

/// When the process is killed: after this share of the requests that are needed, in percent.
const KILLS: [usize; 3] = [15, 40, 65];
/// How often it is looked how far it is.
const LOOK: Duration = Duration::from_millis(5);
/// How long it may take until something is asked again.
const PATIENCE: Duration = Duration::from_secs(300);

pub fn measure(recording: &Recording, size: Size) -> Result<()> {
    let name = |what: &str| format!("rough: {} runs, {what}", written(size.runs()));
    let cancels = size.runs() / 100;
    let mut server = Server::rough(size, LATENCY)?;
    let folder = tempfile::tempdir()?;
    let began = Instant::now();
    let mut peak = 0.0_f64;
    let mut recoveries = Vec::new();
    let start = |url: &str| client(recording, size, url, &folder, cancels);
    let mut posse = start(&server.url)?;
    for share in KILLS {
        posse.hear::<String>()?;
        posse.tell("go")?;
        until(&mut server, size.runs() * OF_CHILD * share / 100)?;
        peak = peak.max(peak_kib(posse.id())?);
        // Dropped, it is killed. What it has sent is read before it is counted.
        drop(posse);
        std::thread::sleep(SETTLED);
        let asked = server.requests()?;
        note(&format!("killed after {asked} requests"));
        let begun = Instant::now();
        posse = start(&server.url)?;
        until(&mut server, asked + 1)?;
        recoveries.push(begun.elapsed().as_secs_f64());
    }
    posse.hear::<String>()?;
    posse.tell("go")?;
    let grown: Grown = posse.hear()?;
    posse.wait()?;
    let wall = began.elapsed().as_secs_f64();
    let seen = server.end()?;
    if seen.refused > 0 {
        return Err(format!("{} requests were refused", seen.refused).into());
    }
    exactly_once(&name("announced"), size, &grown.tally);
    memory(&name("memory"), peak.max(grown.peak_kib));
    Line {
        name: name("all of it"),
        posse: format!("{} for {} requests", seconds(wall), written(seen.requests)),
        raw: format!("{} kills, {} cancelled", KILLS.len(), grown.tally.of("cancelled")),
        ratio: "–".to_owned(),
        goal: Goal::None,
    }
    .print();
    spread(&name("restart to first request"), recoveries);
    Ok(())
}

/// Waits until so many requests have come.
fn until(server: &mut Server, requests: usize) -> Result<()> {
    let began = Instant::now();
    while server.requests()? < requests {
        if began.elapsed() > PATIENCE {
            return Err(format!("{requests} requests did not come").into());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
