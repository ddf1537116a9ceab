//! The age of ended runs does not depend on jumps of the wall clock.

use crate::sample::*;
use posse_protocol::RunId;
use posse_store::{Clock, Leftover, Leftovers, Options, Ownership, SqliteStore, Store};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: u64 = 1_000;
const DAY: u64 = 24 * 3_600 * SECOND;
const YEAR: u64 = 365 * DAY;

/// A machine whose clocks the test moves.
struct Machine {
    wall: AtomicU64,
    steady: AtomicU64,
    boot: Mutex<&'static str>,
}

impl Machine {
    fn new() -> Arc<Self> {
        let (wall, steady) = (AtomicU64::new(1_800_000_000_000), AtomicU64::new(5_000));
        Arc::new(Machine { wall, steady, boot: Mutex::new("one") })
    }

    /// Moves both clocks forward.
    fn pass(&self, ms: u64) {
        self.wall.fetch_add(ms, Ordering::SeqCst);
        self.steady.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets the wall clock forward.
    fn set_ahead(&self, ms: u64) {
        self.wall.fetch_add(ms, Ordering::SeqCst);
    }

    fn set_back(&self, ms: u64) {
        self.wall.fetch_sub(ms, Ordering::SeqCst);
    }

    /// Simulates that the machine was off for this time, and has booted again.
    fn is_off_for(&self, ms: u64, boot: &'static str) {
        self.wall.fetch_add(ms, Ordering::SeqCst);
        self.steady.store(3_000, Ordering::SeqCst);
        *self.boot.lock().unwrap() = boot;
    }
}

/// The clock of a process, which sees one boot of the machine.
struct ProcessClock {
    machine: Arc<Machine>,
    boot: &'static str,
}

impl Clock for ProcessClock {
    fn wall_ms(&self) -> u64 {
        self.machine.wall.load(Ordering::SeqCst)
    }

    fn steady_ms(&self) -> u64 {
        self.machine.steady.load(Ordering::SeqCst)
    }

    fn boot(&self) -> &str {
        self.boot
    }
}

async fn open(place: &Place, machine: &Arc<Machine>) -> SqliteStore {
    let boot = *machine.boot.lock().unwrap();
    let clock = Arc::new(ProcessClock { machine: machine.clone(), boot });
    SqliteStore::open(Options { clock, ..place.options() }).await.unwrap()
}

async fn ended(store: &dyn Store) -> RunId {
    let run = create(store, 2, Ownership::Mine).await;
    store.append(vec![step(run, 1, finished())]).await.unwrap();
    run
}

/// Returns the runs that ended a week ago.
async fn old(store: &dyn Store) -> Vec<RunId> {
    let ended_for = Duration::from_millis(7 * DAY);
    let wanted = Leftovers { which: Leftover::Ended, ended_for, limit: 10 };
    store.leftovers(wanted).await.unwrap().iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn a_clock_that_is_ahead_for_a_moment_makes_nothing_old() {
    let (place, machine) = (Place::new(), Machine::new());
    let store = open(&place, &machine).await;
    let run = ended(&store).await;
    assert!(old(&store).await.is_empty());
    machine.pass(60 * SECOND);
    machine.set_ahead(YEAR);
    assert!(old(&store).await.is_empty(), "to a process that has looked before");
    // Nor to a new process, even after another append.
    ended(&store).await;
    let other = open(&place, &machine).await;
    assert!(old(&other).await.is_empty(), "to one that starts");
    machine.pass(2 * SECOND);
    machine.set_back(YEAR);
    assert!(old(&store).await.is_empty() && old(&other).await.is_empty());
    // Time passes normally.
    machine.pass(7 * DAY);
    assert_eq!(old(&other).await, [run]);
}

#[tokio::test]
async fn after_a_year_without_power_things_are_put_away_an_hour_later() {
    let (place, machine) = (Place::new(), Machine::new());
    let store = open(&place, &machine).await;
    let run = ended(&store).await;
    assert!(old(&store).await.is_empty());
    store.close().await;
    machine.is_off_for(YEAR, "two");
    let store = open(&place, &machine).await;
    assert!(old(&store).await.is_empty(), "it may be the clock that is wrong");
    machine.pass(1_800 * SECOND);
    assert!(old(&store).await.is_empty());
    store.close().await;
    machine.pass(1_800 * SECOND);
    assert_eq!(old(&open(&place, &machine).await).await, [run], "whoever looks");
}

#[tokio::test]
async fn without_a_note_the_newest_event_says_what_time_it_is_at_least() {
    let (place, machine) = (Place::new(), Machine::new());
    let store = open(&place, &machine).await;
    ended(&store).await;
    machine.set_ahead(YEAR);
    assert!(old(&store).await.is_empty());
    // A note that cannot be read is ignored.
    std::fs::write(place.folder().join("posse.db-clock"), "what?").unwrap();
    assert!(old(&open(&place, &machine).await).await.is_empty());
}
