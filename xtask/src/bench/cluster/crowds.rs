//! Thousands of runs in the background with several worker processes, which share the slots; and what
//! that takes of the server.

use super::{Cluster, Work};
use crate::bench::background::{Grown, OF_CHILD, SLOTS, Size, exactly_once, part_on};
use crate::bench::harness::Effort;
use crate::bench::line::{Line, seconds, written};
use crate::bench::meter::Cost;
use crate::bench::part::Process;
use crate::bench::recording::Recording;
use crate::bench::server::{Pace, Play, Server};
use crate::bench::{Part, Result};
use posse_testkit::postgres::Database;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How often sessions are counted.
const LOOK: Duration = Duration::from_millis(500);

pub async fn measure(cluster: &Cluster, effort: Effort) -> Result<()> {
    let size = Size::of(effort);
    let recording = Recording::of(Play::Crowd(Size { sessions: 1, children: 1 })).await?;
    for workers in [1, 2, 4] {
        let raw: Cost =
            Server::round(Play::Crowd(size), Pace::Thinking, size.runs() * OF_CHILD, |url| {
                recording.raw(url, size.runs(), SLOTS)
            })?;
        let (grown, most) = grow(cluster, &recording, size, workers)?;
        let plural = if workers == 1 { "" } else { "s" };
        let name = format!("background: {} runs, {workers} worker{plural}", written(size.runs()));
        exactly_once(&name, size, &grown.tally);
        let rounds = [(grown.cost.wall, raw.wall)];
        Line::compared(format!("{name}, wall"), &rounds, seconds).print();
        let most = format!("{most}, {} each", most / workers);
        Line::new(format!("{name}, connections"), most).print();
        if workers == 1 {
            let runs = size.runs() + size.sessions;
            let bytes = bytes(&cluster.database, cluster.next.get() - 1)? / runs as f64;
            let line = Line::new("background: bytes for a run", format!("{bytes:.0}"));
            line.ratio(format!("of {}", written(runs))).print();
        }
    }
    Ok(())
}

/// Returns what the crowd came to, and the most sessions that there were at a time.
fn grow(
    cluster: &Cluster,
    recording: &Recording,
    size: Size,
    workers: usize,
) -> Result<(Grown, usize)> {
    let (folder, place) = (tempfile::tempdir()?, cluster.place());
    let server = Server::start(Play::Crowd(size), Pace::Thinking)?;
    let slots = SLOTS / workers;
    let crowd = part_on(recording, &server, &folder, size, slots, place.clone());
    let crowd = Process::ready(&crowd)?;
    let mut others = Vec::new();
    for _ in 1..workers {
        let (url, folder) = (server.url.clone(), folder.path().to_owned());
        let work = Work { url, place: place.clone(), folder, slots, own: None };
        let mut other = Process::ready(&Part::Work(work))?;
        other.tell("go")?;
        others.push(other);
    }
    let database = &cluster.database;
    let (most, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let grown = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                most.fetch_max(sessions(database), Ordering::SeqCst);
                std::thread::sleep(LOOK);
            }
        });
        let grown = crowd.go::<Grown>();
        is_over.store(true, Ordering::SeqCst);
        grown
    })?;
    for mut other in others {
        other.tell("end")?;
        other.end::<()>()?;
    }
    server.end()?;
    Ok((grown, most.into_inner()))
}

/// Sessions of workers on the server.
fn sessions(database: &Database) -> usize {
    let count = "SELECT count(*)::text FROM pg_stat_activity \
        WHERE datname = current_database() AND application_name LIKE 'posse%'";
    database.text(count).parse().unwrap_or_default()
}

/// What a namespace takes on the disk, with its indexes.
fn bytes(database: &Database, number: usize) -> Result<f64> {
    let sum = "SELECT sum(pg_total_relation_size(c.oid))::text FROM pg_class c \
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r'";
    Ok(database.text(&format!("{sum} AND n.nspname = 's{number}'")).parse()?)
}
