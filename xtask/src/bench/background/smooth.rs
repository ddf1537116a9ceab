//! Thousands of runs in the background through few slots, against a raw client of the same width that
//! makes the requests of the children.

use super::crowd::{Grown, part};
use super::tally::Tally;
use super::{OF_CHILD, SLOTS, Size};
use crate::bench::Result;
use crate::bench::line::{Line, Samples, written};
use crate::bench::part::Process;
use crate::bench::recording::Recording;
use crate::bench::server::{Pace, Play, Server};

/// The most memory that may be resident, in KiB.
const MEMORY: f64 = 2.0 * 1024.0 * 1024.0;

pub fn measure(recording: &Recording, size: Size) -> Result<()> {
    let name = format!("background: {} runs", written(size.runs()));
    let raw = Server::round(Play::Crowd(size), Pace::Thinking, size.runs() * OF_CHILD, |url| {
        recording.raw(url, size.runs(), SLOTS)
    })?;
    let server = Server::start(Play::Crowd(size), Pace::Thinking)?;
    let folder = tempfile::tempdir()?;
    let grown: Grown = Process::report(&part(recording, &server, &folder, size, 0))?;
    server.end()?;
    exactly_once(&name, size, &grown.tally);
    Line::costs(&name, &[(grown.cost, raw)]).into_iter().for_each(Line::print);
    memory(&format!("{name}, {SLOTS} slots"), grown.peak_kib);
    let starts = grown.tally.starts_ms.iter().map(|ms| *ms as f64 / 1e3).collect();
    spread(&format!("{name}, start"), starts);
    spread(&format!("{name}, list of 100"), grown.lists);
    Ok(())
}

/// Prints whether all children have ended and each was announced once.
pub fn exactly_once(name: &str, size: Size, tally: &Tally) {
    let all = size.runs();
    let good = (tally.ended(), tally.open, tally.announcements, tally.once) == (all, 0, all, all);
    let outcomes: Vec<String> =
        tally.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    let posse = format!("{} announced once; {}", tally.once, outcomes.join(", "));
    Line::new(format!("{name}, announced"), posse)
        .raw(all.to_string())
        .ratio(format!("{} announcements", tally.announcements))
        .goal("none lost, none twice", good)
        .print();
}

/// Prints the most memory that was resident.
pub fn memory(name: &str, kib: f64) {
    let line = Line::new(format!("{name}, memory"), format!("{:.0} MiB", kib / 1024.0));
    line.goal("≤ 2 GiB", kib <= MEMORY).print();
}

/// Prints the median and the 99th percentile of many times.
pub fn spread(name: &str, times: Vec<f64>) {
    let count = times.len();
    Line::new(name, Samples::new(times).spread()).ratio(format!("of {count}")).print();
}
