//! Figure 1: thousands of runs in the background through few slots, against a raw client of the same
//! width that makes the requests of the children.

use super::crowd::{Grown, client};
use super::crowd_raw::raw_client;
use super::recording::{OF_CHILD, Recording};
use super::serve::Server;
use super::told::Tally;
use super::{SLOTS, Size};
use crate::bench::Result;
use crate::bench::delegation::written;
use crate::bench::line::{Goal, Line, Verdict, percentile, seconds};
use crate::bench::meter::Cost;
use crate::bench::runs::{LATENCY, compare};

/// The most memory that may be resident, in KiB.
const MEMORY: f64 = 2.0 * 1024.0 * 1024.0;

pub fn measure(recording: &Recording, size: Size) -> Result<()> {
    let name = |what: &str| format!("background: {} runs, {what}", written(size.runs()));
    let theirs = raw(recording, size)?;
    let ours = posse(recording, size)?;
    exactly_once(&name("announced"), size, &ours.tally);
    let rounds = [(theirs, ours.cost)];
    compare(&name("wall"), &rounds, |cost| cost.wall, None);
    compare(&name("processor"), &rounds, |cost| cost.cpu, None);
    memory(&name(&format!("{SLOTS} slots, memory")), ours.peak_kib);
    let starts = ours.tally.starts_ms.iter().map(|ms| *ms as f64 / 1e3).collect();
    spread(&name("start, p50 and p99"), starts);
    spread(&name("list of 100, p50 and p99"), ours.lists);
    Ok(())
}

/// Prints whether all have ended and each was told of once.
pub fn exactly_once(name: &str, size: Size, tally: &Tally) {
    let all = size.runs();
    let good = (tally.ended(), tally.open, tally.announcements, tally.once) == (all, 0, all, all);
    let outcomes: Vec<String> =
        tally.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    Line {
        name: name.to_owned(),
        posse: format!("{} told of once; {}", tally.once, outcomes.join(", ")),
        raw: format!("{all}"),
        ratio: format!("{} announcements", tally.announcements),
        goal: Goal::Stated(
            "none lost, none twice".to_owned(),
            if good { Verdict::Met } else { Verdict::NotMet },
        ),
    }
    .print();
}

/// Prints the most memory that was resident.
pub fn memory(name: &str, kib: f64) {
    Line {
        name: name.to_owned(),
        posse: format!("{:.0} MiB", kib / 1024.0),
        raw: "–".to_owned(),
        ratio: "–".to_owned(),
        goal: Goal::at_most("≤ 2 GiB", kib, MEMORY),
    }
    .print();
}

/// Prints the middle and nearly the most of many times.
pub fn spread(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let [middle, most] = [50, 99].map(|share| seconds(percentile(&times, share)));
    Line {
        name: name.to_owned(),
        posse: format!("{middle}, {most}"),
        raw: "–".to_owned(),
        ratio: format!("of {}", times.len()),
        goal: Goal::None,
    }
    .print();
}

fn raw(recording: &Recording, size: Size) -> Result<Cost> {
    let server = Server::smooth(size, LATENCY)?;
    let mut client = raw_client(recording, &server.url, size.runs())?;
    client.tell("go")?;
    let cost = client.hear()?;
    client.wait()?;
    let seen = server.end()?;
    let needed = size.runs() * OF_CHILD;
    if (seen.requests, seen.refused) != (needed, 0) {
        return Err(format!("{} requests instead of {needed}", seen.requests).into());
    }
    Ok(cost)
}

fn posse(recording: &Recording, size: Size) -> Result<Grown> {
    let server = Server::smooth(size, LATENCY)?;
    let folder = tempfile::tempdir()?;
    let mut client = client(recording, size, &server.url, &folder, 0)?;
    client.hear::<String>()?;
    client.tell("go")?;
    let grown = client.hear()?;
    client.wait()?;
    let seen = server.end()?;
    match seen.refused {
        0 => Ok(grown),
        refused => Err(format!("{refused} requests were refused").into()),
    }
}
