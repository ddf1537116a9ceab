//! Damage outside of the logs: indexes, the schema, and deliveries.

use crate::sample::*;
use posse_store::{
    Append, Delivery, DeliveryFilter, DeliveryState, Filter, Inspection, Logs, Notice, Outbox,
    Ownership, Revival, Settled, Settlement, SqliteStore, Store,
};
use serde_json::json;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3_600);

async fn reasons(store: &dyn Store) -> Vec<String> {
    store.flaws().await.unwrap().into_iter().map(|flaw| flaw.reason).collect()
}

/// Creates a run that ends, with a notice to the webhook `a`.
async fn ended(store: &dyn Store) {
    let run = create(store, 2, Ownership::Mine).await;
    let outbox = vec![Notice {
        hook: "a".to_owned(),
        kind: "run.cancelled".to_owned(),
        data: "{\"pay\":100}".into(),
    }];
    store.append(vec![Append { outbox, ..step(run, 1, finished()) }]).await.unwrap();
}

async fn deliveries(store: &dyn Store) -> Vec<Delivery> {
    store.deliveries(&DeliveryFilter::default()).await.unwrap()
}

#[tokio::test]
async fn a_sound_store_has_no_flaws() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, 5, Ownership::Queued).await;
    ended(&store).await;
    let taken = store.take_due("a", 1, LONG).await.unwrap();
    store.settle(&taken[0], Settlement::Dead, "410").await.unwrap();
    store.revive(&Revival::All).await.unwrap();
    assert_eq!(reasons(&store).await, Vec::<String>::new());
    let taken = store.take_due("a", 1, LONG).await.unwrap();
    store.settle(&taken[0], Settlement::Delivered, "200").await.unwrap();
    store.close().await;
    assert_eq!(reasons(&place.open().await).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_index_that_leads_astray_is_named() {
    for (index, column) in [
        ("runs_ready", "ready_at"),
        ("runs_by_workspace", "workspace"),
        ("deliveries_by_time", "created_at"),
    ] {
        let place = Place::new();
        let store = place.open().await;
        create(&store, 2, Ownership::Queued).await;
        ended(&store).await;
        store.close().await;
        let table = index.split('_').next().unwrap();
        let set = |value: &str| format!("UPDATE {table} SET {column} = {value}");
        let (there, back) = match column {
            "workspace" => (set("'/x'"), set("'/w'")),
            _ => (set(&format!("{column} + 1")), set(&format!("{column} - 1"))),
        };
        place.blind(index, &there, &back).await;
        let found = reasons(&place.open().await).await;
        assert!(found.iter().any(|it| it.contains(index)), "{index}: {found:?}");
    }
}

#[tokio::test]
async fn an_index_that_leads_astray_leads_nobody_in_circles() {
    let place = Place::new();
    let store = place.open().await;
    let first = create(&store, 2, Ownership::Queued).await;
    for _ in 0..3 {
        create(&store, 2, Ownership::Queued).await;
    }
    store.close().await;
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_runs_1'";
    let mut connection = connect(&place.file()).await;
    let (root,): (i64,) = sqlx::query_as(root).fetch_one(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    // The first id becomes the last one in the index, at its old place.
    let mut bytes = std::fs::read(place.file()).unwrap();
    let page = (root as usize - 1) * 4_096;
    let name = first.to_string();
    let at = bytes[page..].windows(26).position(|part| part == name.as_bytes()).unwrap();
    bytes[page + at] = b'7';
    std::fs::write(place.file(), bytes).unwrap();
    let store = place.open().await;
    let (mut before, mut pages) = (None, 0);
    loop {
        let filter = Filter { before, limit: 2, ..Filter::default() };
        let rows = store.list(&filter).await.unwrap();
        let Some(last) = rows.last() else { break };
        before = Some(last.id);
        pages += 1;
        assert!(pages < 9, "it comes to no end");
    }
    assert!(!reasons(&store).await.is_empty());
}

#[tokio::test]
async fn a_changed_schema_is_named() {
    for (change, what) in [
        ("DROP INDEX runs_ready", "index runs_ready is missing"),
        ("CREATE INDEX mine ON runs (note)", "index mine was added"),
        (
            "CREATE TRIGGER spy AFTER INSERT ON events BEGIN DELETE FROM events; END",
            "trigger spy was added",
        ),
        ("ALTER TABLE workers ADD COLUMN x TEXT", "table workers is another one"),
    ] {
        let place = Place::new();
        let store = place.open().await;
        place.tamper(change).await;
        let found = reasons(&store).await;
        assert_eq!(found, [format!("the schema was changed: {what}")], "{change}");
    }
}

/// Changes a delivery without the store. The store must report it, and never hand it out.
async fn check(change: &str) {
    let place = Place::new();
    let store = place.open().await;
    ended(&store).await;
    ended(&store).await;
    let first = deliveries(&store).await.pop().unwrap();
    place.tamper(&format!("UPDATE deliveries SET {change} WHERE id = '{}'", first.id)).await;
    let found = reasons(&store).await;
    assert!(found.iter().any(|it| it.contains("what is stored of it")), "{change}: {found:?}");
    let mut taken = store.take_due("a", 9, LONG).await.unwrap();
    assert_eq!(taken.len(), 1, "{change}: the other one only");
    let other = taken.pop().unwrap();
    let settled = store.settle(&other, Settlement::Delivered, "200").await.unwrap();
    assert_eq!(settled, Settled::Noted, "{change}");
    assert!(store.take_due("a", 9, LONG).await.unwrap().is_empty(), "{change}");
    let bad = deliveries(&store).await.into_iter().find(|it| it.damaged.is_some()).unwrap();
    // These changes hide the delivery from this webhook.
    if !["hook", "due_at", "state"].iter().any(|column| change.starts_with(column)) {
        assert_eq!(bad.state, DeliveryState::Dead, "{change}");
        assert!(bad.note.starts_with("not sent: what is stored of it"), "{change}: {bad:?}");
    }
    assert!(store.revive(&Revival::All).await.unwrap().is_empty(), "{change}");
    let found = reasons(&store).await;
    assert!(found.iter().any(|it| it.contains("what is stored of it")), "{change}: {found:?}");
}

#[tokio::test]
async fn a_changed_delivery_is_named_and_given_up() {
    for change in [
        "data = replace(data, '100', '900')",
        "kind = 'run.completed'",
        "seq = seq + 1",
        "run = upper(run)",
        "attempts = attempts + 1",
        "attempts = -1",
        "note = 'x'",
        "created_at = created_at + 1",
        "state = 'dud'",
        "hook = 'b'",
        "due_at = due_at + 1000000000",
        "seal = replace(seal, substr(seal, 1, 1), 'g')",
        "seal = ''",
    ] {
        check(change).await;
    }
}

#[tokio::test]
async fn a_delivery_of_a_run_that_is_gone_is_named() {
    let place = Place::new();
    let store = place.open().await;
    ended(&store).await;
    place.tamper("DELETE FROM runs; DELETE FROM events").await;
    let found = reasons(&store).await;
    assert!(found[0].ends_with("the run that it tells of is not there"), "{found:?}");
}

#[tokio::test]
async fn a_budget_s_account_that_was_changed_stops_the_run() {
    let place = Place::new();
    let store = place.open().await;
    let mut budgeted = creation(2, Ownership::Queued);
    let first = event(json!({
        "type": "run_started", "agent": {"name": "tester"}, "model": "test/model",
        "grant": {"tools": [], "workspace": "/w", "budget": {"cost": 5_000}},
    }));
    budgeted.events = [first, message("go")].into();
    let run = budgeted.run;
    store.append(vec![budgeted]).await.unwrap();
    assert_eq!(row(&store, run).await.log.damaged, None);
    let drawn: String = {
        let mut connection = connect(&place.file()).await;
        sqlx::query_scalar("SELECT drawn FROM runs").fetch_one(&mut connection).await.unwrap()
    };
    for (change, why) in [
        ("json_set(drawn, '$.cost', 4)", "what was drawn of its budget was changed"),
        ("json_remove(drawn, '$.check')", "missing field `check`"),
    ] {
        place.tamper(&format!("UPDATE runs SET drawn = {change}")).await;
        let reason = row(&store, run).await.log.damaged.unwrap();
        assert!(reason.contains(why), "{reason}");
        place.tamper(&format!("UPDATE runs SET drawn = '{drawn}'")).await;
    }
    say(&store, run, "hello").await.unwrap();
    assert_eq!(row(&store, run).await.log.damaged, None);
}

#[tokio::test]
async fn opening_a_database_with_a_flaw_is_no_slower_than_without() {
    // Checks that read everything run only on request, not when a store is opened.
    let place = Place::new();
    let store = place.open().await;
    place.tamper("DROP INDEX runs_by_label").await;
    store.close().await;
    let store = SqliteStore::open(place.options()).await.unwrap();
    create(&store, 2, Ownership::Queued).await;
    assert_eq!(reasons(&store).await.len(), 1);
}
