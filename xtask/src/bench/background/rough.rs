//! The same with trouble: one of twenty children meets a fault of its provider, one of a hundred a
//! command that hangs, the process is killed three times, and one of a hundred children is cancelled.

use super::crowd::{Grown, part};
use super::smooth::{exactly_once, memory, spread};
use super::{OF_CHILD, Size};
use crate::bench::Result;
use crate::bench::line::{Line, note, seconds, written};
use crate::bench::load::SETTLED;
use crate::bench::meter::peak_kib;
use crate::bench::part::Process;
use crate::bench::recording::Recording;
use crate::bench::server::{Pace, Play, Server};
use std::time::{Duration, Instant};

/// When the process is killed: after this share of the requests that are needed, in percent.
const KILLS: [usize; 3] = [15, 40, 65];
/// How often the number of requests is read.
const LOOK: Duration = Duration::from_millis(5);
/// How long it may take until the next requests come.
const PATIENCE: Duration = Duration::from_secs(300);

pub fn measure(recording: &Recording, size: Size) -> Result<()> {
    let name = format!("rough: {} runs", written(size.runs()));
    let mut server = Server::start(Play::RoughCrowd(size), Pace::Thinking)?;
    let folder = tempfile::tempdir()?;
    let part = part(recording, &server, &folder, size, size.runs() / 100);
    let began = Instant::now();
    let mut peak = 0.0_f64;
    let mut recoveries = Vec::new();
    let mut posse = Process::start(&part)?;
    for share in KILLS {
        posse.hear::<String>()?;
        posse.tell("go")?;
        until(&mut server, size.runs() * OF_CHILD * share / 100)?;
        peak = peak.max(peak_kib(posse.id())?);
        // This kills the process. The server needs a moment to read what it has sent.
        drop(posse);
        std::thread::sleep(SETTLED);
        let asked = server.requests()?;
        note(&format!("killed after {asked} requests"));
        let begun = Instant::now();
        posse = Process::start(&part)?;
        until(&mut server, asked + 1)?;
        recoveries.push(begun.elapsed().as_secs_f64());
    }
    posse.hear::<String>()?;
    let grown: Grown = posse.go()?;
    let wall = began.elapsed().as_secs_f64();
    let requests = server.end()?.requests;
    exactly_once(&name, size, &grown.tally);
    memory(&name, peak.max(grown.peak_kib));
    let cancelled = grown.tally.outcomes.get("cancelled").copied().unwrap_or_default();
    let all = format!("{} for {} requests", seconds(wall), written(requests));
    let line = Line::new(format!("{name}, all of it"), all);
    line.raw(format!("{} kills, {cancelled} cancelled", KILLS.len())).print();
    spread(&format!("{name}, restart to first request"), recoveries);
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
