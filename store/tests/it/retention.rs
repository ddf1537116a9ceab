//! The removal of logs on a server, beside work that goes on.

use crate::sample::*;
use posse_protocol::{RunId, Seq};
use posse_store::{
    Append, Brought, Inspection, Leftover, Leftovers, Logs, MemoryStore, Ownership,
    PostgresOptions, PostgresStore, RunCopy, Store, StoreError,
};
use posse_testkit::postgres::{Database, Server};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::sync::Arc;
use std::time::Duration;

/// Longer than two transactions of a removal.
const EVENTS: usize = 2_500;

async fn open(database: &Database) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap())
}

/// Creates a run with a budget, and two events.
async fn budget(store: &PostgresStore) -> RunId {
    let start = event(json!({
        "type": "run_started", "agent": {"name": "tester"}, "model": "test/model",
        "grant": {"tools": [], "workspace": "/w", "budget": {"cost": 1_000, "children": 10}},
    }));
    let append = creation(1, Ownership::Mine);
    let run = append.run;
    let events = [start, message("go")].into();
    store.append(vec![Append { events, ..append }]).await.unwrap();
    run
}

/// Creates a run that draws on `root`, with a long log and an end. Returns its last position.
async fn long_run(store: &PostgresStore, root: RunId) -> (RunId, Seq) {
    let run = RunId::new();
    let parent = json!({"run": root, "account": root, "ancestors": [root]});
    let first = event(json!({
        "type": "run_started", "agent": {"name": "tester"}, "model": "test/model",
        "parent": parent, "grant": {"tools": [], "workspace": "/w"},
    }));
    let rest = (2..EVENTS).map(|index| message(&format!("event {index}")));
    let events: Vec<_> = std::iter::once(first).chain(rest).collect();
    let append = Append { run, events: events.into(), ..creation(1, Ownership::Mine) };
    store.append(vec![append]).await.unwrap();
    let ended = store.append(vec![step(run, 1, finished())]).await.unwrap();
    (run, ended[0].last)
}

fn left(database: &Database, run: RunId) -> usize {
    let count = format!("SELECT count(*)::text FROM posse.events WHERE run = '{run}'");
    database.text(&count).parse().unwrap()
}

/// How long the hidden log is that is left.
const HIDDEN: &str = "SELECT COALESCE(MAX(seq), -1)::text FROM posse.hidden_logs";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_go_on_while_a_long_log_is_removed() {
    let database = Server::shared().database();
    let (near, far) = (open(&database).await, open(&database).await);
    let root = budget(&near).await;
    let (run, last) = long_run(&near, root).await;
    // Somebody holds one of the events, so that the removal cannot go on past it.
    let mut somebody = PgConnection::connect(&database.url()).await.unwrap();
    let hold = format!("SELECT * FROM posse.events WHERE run = '{run}' AND seq = 1500 FOR UPDATE");
    let mut held = somebody.begin().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(hold)).execute(&mut *held).await.unwrap();
    near.erase(run, last).await.unwrap();
    until("a part of the log is removed", async || database.text(HIDDEN) == "1500").await;
    assert_eq!(left(&database, run), EVENTS - 1_000);
    // The process that removes, another one, the account of the run, and the renewal of a lease.
    for store in [&near, &far] {
        say(&**store, root, "are you there?").await.unwrap();
        create(&**store, 2, Ownership::Queued).await;
        posse_store::Claims::renew(&**store).await.unwrap();
        assert!(matches!(read(&**store, run).await, Err(StoreError::Erased(gone)) if gone == run));
        assert!(store.stored(run, Seq::ZERO, 9).await.unwrap().is_empty());
    }
    let copy = RunCopy::stage(&*near, &MemoryStore::new(), run).await.unwrap();
    assert_eq!((copy.row().id, copy.events()), (run, 0));
    assert_eq!(left(&database, run), EVENTS - 1_000, "it waits for the held event");
    held.rollback().await.unwrap();
    until("the whole log is removed", async || database.text(HIDDEN) == "-1").await;
    assert_eq!(left(&database, run), 0);
    assert_eq!(read(&*far, root).await.unwrap(), 4);
    for store in [near, far] {
        store.close().await;
    }
}

/// Whoever takes over a log that somebody else has begun to bring removes only that log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_taken_over_while_another_log_is_not_removed_yet() {
    let database = Server::shared().database();
    let (near, far) = (open(&database).await, open(&database).await);
    let other = long_run(&near, budget(&near).await).await.0;
    database.execute(&format!(
        "UPDATE posse.runs SET archived = 1, erased = 1 WHERE id = '{other}';
         INSERT INTO posse.hidden_logs VALUES ('{other}', '', 0, {EVENTS}, '')"
    ));
    let mut somebody = PgConnection::connect(&database.url()).await.unwrap();
    let hold = format!("SELECT * FROM posse.events WHERE run = '{other}' FOR UPDATE");
    let mut held = somebody.begin().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(hold)).execute(&mut *held).await.unwrap();
    let from = MemoryStore::new();
    let run = create(&from, 2_500, Ownership::Queued).await;
    RunCopy::stage(&from, &*near, run).await.unwrap();
    let copy = RunCopy::stage(&from, &*far, run);
    let copy = tokio::time::timeout(Duration::from_secs(10), copy).await;
    let copy = copy.expect("it waits for the other log").unwrap();
    assert_eq!(far.bring(vec![copy]).await.unwrap(), [Brought::Stored]);
    assert_eq!(read(&*far, run).await.unwrap(), 2_500);
    assert_eq!(left(&database, other), EVENTS);
    held.rollback().await.unwrap();
    for store in [near, far] {
        store.close().await;
    }
}

#[tokio::test]
async fn another_process_ends_the_removal_that_a_dead_one_began() {
    let database = Server::shared().database();
    let store = open(&database).await;
    let root = budget(&store).await;
    let runs = [long_run(&store, root).await.0, long_run(&store, root).await.0];
    for run in runs {
        database.execute(&format!(
            "UPDATE posse.runs SET archived = 1, erased = 1 WHERE id = '{run}';
             INSERT INTO posse.hidden_logs VALUES ('{run}', '', 0, 1500, '');
             DELETE FROM posse.events WHERE run = '{run}' AND seq > 1500"
        ));
    }
    let ended_for = Duration::ZERO;
    let wanted = Leftovers { which: Leftover::Archived, ended_for, limit: 10 };
    assert!(store.leftovers(wanted).await.unwrap().is_empty(), "their logs are erased");
    assert_eq!(runs.map(|run| left(&database, run)), [0, 0]);
    assert_eq!((database.text(HIDDEN).as_str(), left(&database, root)), ("-1", 2));
    store.close().await;
}
