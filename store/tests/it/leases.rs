//! Which workers are alive: leases on a steady clock, and locks that the kernel releases.

use crate::sample::*;
use posse_protocol::{Seq, Status};
use posse_store::{Append, Claims, Clock, Logs, Options, Ownership, SqliteStore, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock that the test moves.
struct FakeClock {
    wall: AtomicU64,
    steady: AtomicU64,
    boot: &'static str,
}

impl FakeClock {
    fn new(boot: &'static str) -> Arc<Self> {
        let (wall, steady) = (AtomicU64::new(1_800_000_000_000), AtomicU64::new(5_000));
        Arc::new(FakeClock { wall, steady, boot })
    }

    fn pass(&self, time: Duration) {
        self.steady.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn wall_ms(&self) -> u64 {
        self.wall.load(Ordering::SeqCst)
    }

    fn steady_ms(&self) -> u64 {
        self.steady.load(Ordering::SeqCst)
    }

    fn boot(&self) -> &str {
        self.boot
    }
}

const LEASE: Duration = Duration::from_secs(10);

async fn open(place: &Place, clock: &Arc<FakeClock>) -> SqliteStore {
    let options = Options { clock: clock.clone(), lease: LEASE, ..place.options() };
    SqliteStore::open(options).await.unwrap()
}

#[tokio::test]
async fn a_silent_worker_loses_its_runs_after_its_lease() {
    let (place, clock) = (Place::new(), FakeClock::new("boot"));
    let silent = open(&place, &clock).await;
    let run = create(&silent, 2, Ownership::Mine).await;
    let other = open(&place, &clock).await;
    clock.pass(LEASE);
    assert!(claim(&other, 1).await.is_empty(), "the lease still holds");
    assert_eq!(row(&other, run).await.status, Status::Running);
    clock.pass(Duration::from_millis(1));
    assert_eq!(row(&other, run).await.status, Status::Crashed);
    let mut ready = silent.ready();
    let taken = claim(&other, 1).await;
    assert_eq!((ids(&taken), taken[0].epoch), (vec![run], 2));

    let stale = silent.append(vec![step(run, 1, time_passed())]).await;
    assert!(matches!(stale, Err(StoreError::NotOwner(_))), "{stale:?}");
    other.append(vec![step(run, 2, time_passed())]).await.unwrap();
    assert_eq!(read(&other, run).await.unwrap(), 3);

    // After a renewal it can claim again, and keeps its runs until its lease ends.
    silent.renew().await.unwrap();
    let next = create(&other, 2, Ownership::Queued).await;
    tokio::time::timeout(Duration::from_secs(10), ready.changed()).await.unwrap().unwrap();
    assert_eq!(ids(&claim(&silent, 9).await), [next]);
    clock.pass(LEASE);
    other.renew().await.unwrap();
    assert!(claim(&other, 9).await.is_empty());
    assert_eq!(row(&other, next).await.status, Status::Running);
}

#[tokio::test]
async fn a_renewed_lease_holds() {
    let (place, clock) = (Place::new(), FakeClock::new("boot"));
    let owner = open(&place, &clock).await;
    let run = create(&owner, 2, Ownership::Mine).await;
    let other = open(&place, &clock).await;
    for _ in 0..5 {
        clock.pass(LEASE);
        owner.renew().await.unwrap();
        assert!(claim(&other, 1).await.is_empty());
    }
    owner.append(vec![step(run, 1, time_passed())]).await.unwrap();
}

#[tokio::test]
async fn a_late_owner_whom_nobody_replaced_goes_on() {
    let (place, clock) = (Place::new(), FakeClock::new("boot"));
    let owner = open(&place, &clock).await;
    let run = create(&owner, 2, Ownership::Mine).await;
    clock.pass(LEASE * 100);
    owner.append(vec![step(run, 1, time_passed())]).await.unwrap();
    assert_eq!(row(&owner, run).await.status, Status::Running);
}

#[tokio::test]
async fn setting_the_wall_clock_changes_nothing() {
    const YEAR: u64 = 365 * 24 * 3_600 * 1_000;
    let (place, clock) = (Place::new(), FakeClock::new("boot"));
    let owner = open(&place, &clock).await;
    let run = create(&owner, 2, Ownership::Mine).await;
    let other = open(&place, &clock).await;
    let now = clock.wall_ms();
    for wall in [now + YEAR, now - YEAR, 0, now + 1] {
        clock.wall.store(wall, Ordering::SeqCst);
        assert!(claim(&other, 1).await.is_empty(), "a jump took the run away");
        assert_eq!(row(&other, run).await.status, Status::Running);
        owner.append(vec![step(run, 1, time_passed())]).await.unwrap();
        other.append(vec![Append::by_anyone(run, message("hello"))]).await.unwrap();
        owner.renew().await.unwrap();
    }
    let records = owner.read(run, Seq::ZERO, 99).await.unwrap();
    assert_eq!(records.len(), 10);
    clock.pass(LEASE + Duration::from_millis(1));
    assert_eq!(claim(&other, 1).await.len(), 1, "the lease ends by the steady clock");
}

#[tokio::test]
async fn another_boot_of_the_machine_frees_at_once() {
    let place = Place::new();
    let before = open(&place, &FakeClock::new("first boot")).await;
    let run = create(&before, 2, Ownership::Mine).await;
    let after = open(&place, &FakeClock::new("second boot")).await;
    assert_eq!(row(&after, run).await.status, Status::Crashed);
    assert_eq!(ids(&claim(&after, 1).await), [run]);
}

#[tokio::test]
async fn a_dropped_store_frees_its_runs() {
    let (place, clock) = (Place::new(), FakeClock::new("boot"));
    let owner = open(&place, &clock).await;
    let run = create(&owner, 2, Ownership::Mine).await;
    let other = open(&place, &clock).await;
    let mut ready = other.ready();
    assert!(claim(&other, 1).await.is_empty());
    drop(owner);
    tokio::time::timeout(Duration::from_secs(10), ready.changed()).await.unwrap().unwrap();
    until("the runs are free", async || ids(&claim(&other, 1).await) == [run]).await;
}

#[test]
fn a_store_whose_executor_vanished_frees_its_runs() {
    let (place, clock) = (Place::new(), FakeClock::new("boot"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (owner, run) = runtime.block_on(async {
        let owner = open(&place, &clock).await;
        let run = create(&owner, 2, Ownership::Mine).await;
        (owner, run)
    });
    drop(runtime);
    drop(owner);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let other = open(&place, &clock).await;
        assert_eq!(row(&other, run).await.status, Status::Crashed);
        assert_eq!(ids(&claim(&other, 1).await), [run]);
        let left = std::fs::read_dir(place.folder().join("posse.db-workers")).unwrap().count();
        assert_eq!(left, 1, "only the lock of the living is left");
    });
}

#[tokio::test]
async fn a_worker_knows_whether_its_lease_has_held_all_the_time() {
    let (place, clock) = (Place::new(), FakeClock::new("boot"));
    let store = open(&place, &clock).await;
    assert_eq!(store.lease(), None, "nobody knows it yet");
    let run = create(&store, 2, Ownership::Mine).await;
    let lease = store.lease();
    assert!(lease.is_some());
    clock.pass(LEASE);
    store.renew().await.unwrap();
    clock.pass(LEASE);
    assert_eq!(store.lease(), lease, "it was renewed in time");
    clock.pass(Duration::from_millis(1));
    assert_eq!(store.lease(), None);
    // The run was free for a moment, so the number must change.
    store.renew().await.unwrap();
    assert!(store.lease().is_some_and(|now| Some(now) != lease));
    store.append(vec![step(run, 1, time_passed())]).await.unwrap();
}
