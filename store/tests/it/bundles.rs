//! What bundles leave in a database, and what storing them costs others.

use crate::sample::*;
use posse_protocol::{RunId, Seq};
use posse_store::{
    Append, Bundle, BundleAbout, Claims, Guard, Leftover, Leftovers, Logs, Ownership, Piece,
    PostgresOptions, PostgresStore, Reserve, Store,
};
use posse_testkit::postgres::{Database, Server};
use posse_testkit::{Proxy, Traffic};
use sqlx::{AssertSqlSafe, Row};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

fn bundle(bytes: usize, seed: usize) -> Arc<Bundle> {
    let data: Vec<u8> = (0..bytes).map(|at| (at * 37 % 241 + seed) as u8).collect();
    let about = BundleAbout { tip: seed.to_string(), ..BundleAbout::default() };
    Arc::new(Bundle { about, data: data.into() })
}

/// Returns an append of a message and a bundle by the owner of `run`.
fn with(run: RunId, bundle: &Arc<Bundle>) -> Append {
    Append { bundle: Some(bundle.clone()), ..step(run, 1, message("a step")) }
}

/// Archived runs whose logs can be removed. Removes what has expired, too.
async fn look_for_leftovers(store: &dyn Store) {
    let (which, ended_for) = (Leftover::Archived, Duration::ZERO);
    store.leftovers(Leftovers { which, ended_for, limit: 9 }).await.unwrap();
}

/// Replaces bundles, erases a run, and returns how many rows `count` finds of it at each point.
async fn lives_and_is_erased<F: Future<Output = String>>(
    store: &dyn Store,
    count: impl Fn(RunId) -> F,
) -> Vec<String> {
    let run = create(store, 2, Ownership::Mine).await;
    let mut counts = Vec::new();
    for (bytes, seed) in [(3 * MIB, 1), (MIB, 2), (MIB / 2, 3)] {
        let next = bundle(bytes, seed);
        store.append(vec![with(run, &next)]).await.unwrap();
        look_for_leftovers(store).await;
        assert_eq!(store.bundle(run).await.unwrap().as_ref(), Some(&*next));
        counts.push(count(run).await);
    }
    // A step that was prepared and never stored.
    store.stage(run, Piece::Bundle(bundle(MIB, 4))).await.unwrap();
    counts.push(count(run).await);
    // A log that is removed in several transactions.
    let events: Vec<_> = (0..2_500).map(|number| message(&format!("{number}"))).collect();
    let (guard, events) =
        (Guard::Owner { epoch: 1, last: None, then: Ownership::Mine }, events.into());
    let (reserve, outbox) = (Reserve::Leave, Vec::new());
    store.append(vec![Append { run, events, guard, reserve, outbox, bundle: None }]).await.unwrap();
    let last = store.append(vec![step(run, 1, finished())]).await.unwrap()[0].last;
    store.erase(run, last).await.unwrap();
    assert!(store.stored(run, Seq::ZERO, 9).await.unwrap().is_empty(), "its log is shown");
    assert!(store.bundle(run).await.unwrap().is_none());
    assert!(store.flaws().await.unwrap().is_empty());
    assert!(store.orphans().await.unwrap().is_empty());
    until("what was erased is removed", async || {
        look_for_leftovers(store).await;
        count(run).await.starts_with("0 events")
    })
    .await;
    counts.push(count(run).await);
    counts
}

fn counting(run: RunId, schema: &str) -> String {
    let of = |table: &str| format!("(SELECT COUNT(*) FROM {schema}{table} WHERE run = '{run}')");
    let (events, bundles) = (of("events"), of("bundles"));
    let (parts, hidden) = (of("bundle_parts"), of("hidden_logs"));
    format!(
        "SELECT {events} || ' events ' || {bundles} || ' bundles ' || {parts} || ' parts ' || {hidden}"
    )
}

/// The bundle that was only staged stays for an hour.
const EXPECTED: [&str; 5] = [
    "3 events 1 bundles 4 parts 0",
    "4 events 1 bundles 2 parts 0",
    "5 events 1 bundles 1 parts 0",
    "5 events 2 bundles 3 parts 0",
    "0 events 1 bundles 2 parts 0",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_and_erased_bundles_leave_a_file() {
    let place = Place::new();
    let store = place.open().await;
    let file = place.file();
    let count = |run| {
        let file = file.clone();
        async move {
            let mut connection = connect(&file).await;
            let counting = AssertSqlSafe(counting(run, ""));
            sqlx::query(counting).fetch_one(&mut connection).await.unwrap().get::<String, _>(0)
        }
    };
    assert_eq!(lives_and_is_erased(&store, count).await, EXPECTED);
    store.close().await;
}

async fn open(url: String) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(PostgresOptions::new(url)).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_and_erased_bundles_leave_a_server() {
    let database = Server::shared().database();
    let store = open(database.url()).await;
    let count = |run| std::future::ready(database.text(&counting(run, "posse.")));
    assert_eq!(lives_and_is_erased(&*store, count).await, EXPECTED);
    store.close().await;
}

/// The address of a database behind a proxy.
fn through(proxy: &Proxy, database: &Database) -> String {
    format!("postgres://posse@{}/{}?sslmode=disable", proxy.address(), database.name())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_bundle_on_a_slow_line_holds_up_nobody() {
    let database = Server::shared().database();
    let Some(socket) = socket(&database) else { panic!("the server has no socket") };
    let proxy = Proxy::start(&socket).await.unwrap();
    let lease = Duration::from_secs(3);
    let options = PostgresOptions { lease, ..PostgresOptions::new(through(&proxy, &database)) };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let (run, other) =
        (create(&*store, 2, Ownership::Mine).await, create(&*store, 2, Ownership::Mine).await);
    proxy.set(Traffic::Slow(Duration::from_millis(20)));
    let large = bundle(12 * MIB, 1);
    let begun = Instant::now();
    let storing = tokio::spawn({
        let (store, large) = (store.clone(), large.clone());
        async move { store.append(vec![with(run, &large)]).await }
    });
    let held = store.lease().unwrap();
    let mut longest = Duration::ZERO;
    while !storing.is_finished() {
        let asked = Instant::now();
        store.append(vec![step(other, 1, message("on"))]).await.unwrap();
        store.renew().await.unwrap();
        longest = longest.max(asked.elapsed());
    }
    storing.await.unwrap().unwrap();
    let took = begun.elapsed();
    println!("the bundle took {took:?}, a step of the other run at most {longest:?}");
    assert!(took > lease, "the line was not slow: {took:?}");
    assert!(longest < took / 3, "{longest:?} of {took:?}");
    assert_eq!(store.lease(), Some(held), "the lease ran out");
    proxy.set(Traffic::Free);
    assert_eq!(store.bundle(run).await.unwrap().as_ref(), Some(&*large));
    store.close().await;
}

/// The socket of the server of a database.
fn socket(database: &Database) -> Option<std::path::PathBuf> {
    let found = std::fs::read_dir(database.folder()).ok()?.flatten().map(|entry| entry.path());
    let is_socket = |path: &std::path::PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(".s.PGSQL.") && !name.ends_with(".lock")
    };
    found.into_iter().find(is_socket)
}
