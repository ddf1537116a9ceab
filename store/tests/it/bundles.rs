//! What bundles leave in a database, and what storing them costs others.

use crate::sample::*;
use posse_protocol::{RunId, Seq};
use posse_store::{
    Append, Bundle, BundleAbout, Guard, Leftover, Leftovers, Logs, Ownership, Piece,
    PostgresOptions, PostgresStore, Reserve, Store,
};
use posse_testkit::postgres::{Database, Server};
use posse_testkit::{Proxy, Traffic};
use sqlx::{AssertSqlSafe, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// Stores a bundle, and fails unless steps of another run and renewals of the lease are acknowledged
/// meanwhile. If the data were stored with the step of the bundle, all of them would wait for it, except
/// those that came first.
async fn assert_goes_on(store: &dyn Store, run: RunId, large: &Arc<Bundle>, other: RunId) {
    let is_stored = AtomicBool::new(false);
    let storing = async {
        store.append(vec![with(run, large)]).await.unwrap();
        is_stored.store(true, Ordering::SeqCst);
    };
    let going_on = async {
        let mut meanwhile = 0;
        loop {
            store.append(vec![step(other, 1, message("on"))]).await.unwrap();
            store.renew().await.unwrap();
            if is_stored.load(Ordering::SeqCst) {
                return meanwhile;
            }
            meanwhile += 1;
        }
    };
    let ((), meanwhile) = tokio::join!(storing, going_on);
    assert!(meanwhile >= 4, "{meanwhile} steps of the other run while the bundle was stored");
}

#[tokio::test]
async fn a_large_bundle_in_a_file_holds_up_nobody() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Mine).await;
    let other = create(&store, 2, Ownership::Mine).await;
    let large = bundle(16 * MIB, 1);
    assert_goes_on(&store, run, &large, other).await;
    assert_eq!(store.bundle(run).await.unwrap().as_ref(), Some(&*large));
    store.close().await;
}

/// The address of a database behind a proxy.
fn through(proxy: &Proxy, database: &Database) -> String {
    format!("postgres://posse@{}/{}?sslmode=disable", proxy.address(), database.name())
}

#[tokio::test]
async fn a_large_bundle_on_a_slow_line_holds_up_nobody() {
    let database = Server::shared().database();
    let Some(socket) = socket(&database) else { panic!("the server has no socket") };
    let proxy = Proxy::start(&socket).await.unwrap();
    let store = open(through(&proxy, &database)).await;
    let run = create(&*store, 2, Ownership::Mine).await;
    let other = create(&*store, 2, Ownership::Mine).await;
    proxy.set(Traffic::Slow(Duration::from_millis(20)));
    let large = bundle(8 * MIB, 1);
    assert_goes_on(&*store, run, &large, other).await;
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
