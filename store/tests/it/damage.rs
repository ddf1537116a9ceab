//! The store detects a log that another program changed, and other runs are not affected.

use crate::sample::*;
use posse_protocol::{RunId, Seq, Status};
use posse_store::{Inspection, Logs, Ownership, Projection, Store, StoreError};
use proptest::prelude::*;
use serde_json::json;

/// Applies `change` to one of two runs of six events, and expects `read` to report `bad`. In
/// `change`, `A` and `B` stand for the runs.
async fn check(change: &str, bad: u64, what: &str) {
    let place = Place::new();
    let store = place.open().await;
    let a = create(&store, 6, Ownership::Queued).await;
    let b = create(&store, 6, Ownership::Queued).await;
    let name = |run: RunId| format!("'{run}'");
    place.tamper(&change.replace("{A}", &name(a)).replace("{B}", &name(b))).await;

    match store.read(a, Seq::ZERO, 100).await {
        Err(StoreError::Damaged { run, seq, reason }) => {
            assert_eq!((run, seq), (a, Seq(bad)), "{change}: {reason}");
            assert!(reason.contains(what), "{change}: {reason}");
        }
        other => panic!("{change}: {other:?}"),
    }
    assert_eq!(row(&store, a).await.status, Status::Damaged, "{change}");
    let refused = say(&store, a, "hello").await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{change}: {refused:?}");
    let free = ids(&claim(&store, 9).await);
    assert_eq!(free, [b], "{change}");
    if !change.contains("{B}") {
        assert_eq!(read(&store, b).await.unwrap(), 6, "{change}");
        say(&store, b, "hello").await.unwrap();
    }
    store.close().await;
    let again = place.open().await;
    assert_eq!(row(&again, a).await.status, Status::Damaged, "{change}");
}

#[tokio::test]
async fn a_changed_event_is_named() {
    for column in [
        "body = replace(body, 'event 3', 'event 4')",
        "body = body || ' '",
        "body = ''",
        "body = x'ff00fe'",
        "body = CAST(x'7bff7d' AS TEXT)",
        "at = at + 1",
        "at = 'yesterday'",
        "hash = replace(hash, 'a', 'b') || 'c'",
        "version = 0",
        "version = version + 1",
        "version = -1",
    ] {
        let change = format!("UPDATE events SET {column} WHERE run = {{A}} AND seq = 3");
        check(&change, 3, "event 3 was changed").await;
    }
}

#[tokio::test]
async fn a_missing_event_is_named() {
    check("DELETE FROM events WHERE run = {A} AND seq = 3", 3, "event 3 is missing").await;
    check("DELETE FROM events WHERE run = {A} AND seq = 1", 1, "event 1 is missing").await;
    check("DELETE FROM events WHERE run = {A} AND seq = 6", 6, "event 6 is missing").await;
    check("DELETE FROM events WHERE run = {A} AND seq > 4", 5, "event 5 is missing").await;
    check("DELETE FROM events WHERE run = {A}", 1, "event 1 is missing").await;
    check("UPDATE events SET seq = 30 WHERE run = {A} AND seq = 3", 3, "event 3 is missing").await;
}

#[tokio::test]
async fn an_event_in_the_wrong_place_is_named() {
    let swap_runs = "UPDATE events SET run = 'x' WHERE run = {A} AND seq = 2; \
        UPDATE events SET run = {A} WHERE run = {B} AND seq = 2; \
        UPDATE events SET run = {B} WHERE run = 'x'";
    check(swap_runs, 2, "event 2 was changed").await;
    let swap_logs = "UPDATE events SET run = 'x' WHERE run = {A}; \
        UPDATE events SET run = {A} WHERE run = {B}; UPDATE events SET run = {B} WHERE run = 'x'";
    check(swap_logs, 1, "event 1 was changed").await;
    let swap_places = "UPDATE events SET seq = 99 WHERE run = {A} AND seq = 4; \
        UPDATE events SET seq = 4 WHERE run = {A} AND seq = 5; \
        UPDATE events SET seq = 5 WHERE run = {A} AND seq = 99";
    check(swap_places, 4, "event 4 was changed").await;
    let add = "INSERT INTO events SELECT run, 7, at, version, body, hash FROM events \
        WHERE run = {A} AND seq = 6";
    check(add, 7, "event 7 was added").await;
}

#[tokio::test]
async fn a_row_that_does_not_fit_its_log_is_found_out() {
    let row = |change: &str| format!("UPDATE runs SET {change} WHERE id = {{A}}");
    check(&row("last_hash = 'x'"), 6, "event 6 was changed").await;
    check(&row("last_seq = 5"), 6, "event 6 was added").await;
    check(&row("last_seq = 8"), 7, "event 7 is missing").await;
    check(&row("last_seq = -1"), 1, "its row cannot be read").await;
}

#[tokio::test]
async fn a_row_that_cannot_be_read_hides_no_other() {
    for change in ["owner = 'nobody', runnable = 1", "epoch = -1", "turns = 'x'", "title = x'ff'"] {
        let place = Place::new();
        let store = place.open().await;
        let bad = create(&store, 2, Ownership::Queued).await;
        let good = create(&store, 2, Ownership::Queued).await;
        place.tamper(&format!("UPDATE runs SET {change} WHERE id = '{bad}'")).await;
        assert_eq!(row(&store, bad).await.status, Status::Damaged, "{change}");
        assert_eq!(row(&store, good).await.status, Status::Queued, "{change}");
        let refused = say(&store, bad, "hello").await;
        assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{change}: {refused:?}");
        assert_eq!(ids(&claim(&store, 9).await), [good], "{change}");
    }
}

/// A row is compared with its log, so any other value in a column is detected.
#[tokio::test]
async fn a_row_that_says_something_else_than_its_log_is_found_out() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 3, Ownership::Mine).await;
    let called = json!({
        "type": "model_called", "reserved": {"input_tokens": 5, "output_tokens": 6, "cost": 7},
    });
    for event in [event(called), cancel(), finished()] {
        store.append(vec![step(run, 1, event)]).await.unwrap();
    }
    say(&store, run, "again").await.unwrap();
    let log = store.read(run, Seq::ZERO, usize::MAX).await.unwrap();
    let difference = |row: &posse_store::RunRow| {
        let mut projection = Projection::new(run);
        log.iter().for_each(|record| projection.apply(record));
        projection.difference(row)
    };
    assert_eq!(difference(&row(&store, run).await), None);
    for (column, value) in [
        ("agent", "'x'"),
        ("model", "'x'"),
        ("title", "'x'"),
        ("workspace", "'/x'"),
        ("session", "1"),
        ("key", "'x'"),
        ("created_at", "created_at - 1"),
        ("updated_at", "updated_at + 1"),
        ("outcome", "'completed'"),
        ("note", "'x'"),
        ("archived", "1"),
        ("turns", "turns + 1"),
        ("tool_calls", "99"),
        ("input_tokens", "0"),
        ("output_tokens", "0"),
        ("cost", "0"),
        ("reserved_input", "1"),
        ("reserved_output", "1"),
        ("reserved_cost", "1"),
    ] {
        let was: (String,) = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT quote({column}) FROM runs WHERE id = '{run}'"
        )))
        .fetch_one(&mut connect(&place.file()).await)
        .await
        .unwrap();
        place.tamper(&format!("UPDATE runs SET {column} = {value} WHERE id = '{run}'")).await;
        assert_eq!(difference(&row(&store, run).await), Some(column));
        place.tamper(&format!("UPDATE runs SET {column} = {} WHERE id = '{run}'", was.0)).await;
        assert_eq!(difference(&row(&store, run).await), None, "{column}");
    }
}

#[tokio::test]
async fn a_run_that_has_ended_is_nobodys_and_has_nothing_to_do() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Mine).await;
    store.append(vec![step(run, 1, finished())]).await.unwrap();
    let log = store.read(run, Seq::ZERO, usize::MAX).await.unwrap();
    let mut projection = Projection::new(run);
    log.iter().for_each(|record| projection.apply(record));
    assert_eq!(projection.difference(&row(&store, run).await), None);
    place.tamper(&format!("UPDATE runs SET runnable = 1 WHERE id = '{run}'")).await;
    assert_eq!(projection.difference(&row(&store, run).await), Some("runnable"));
}

#[tokio::test]
async fn events_without_a_row_are_found() {
    let place = Place::new();
    let store = place.open().await;
    let (gone, kept) =
        (create(&store, 4, Ownership::Queued).await, create(&store, 4, Ownership::Queued).await);
    assert_eq!(store.orphans().await.unwrap(), Vec::<String>::new());
    place.tamper(&format!("DELETE FROM runs WHERE id = '{gone}'")).await;
    assert_eq!(store.orphans().await.unwrap(), [gone.to_string()]);
    assert_eq!(read(&store, kept).await.unwrap(), 4);
}

#[tokio::test]
async fn no_page_hides_damage_in_it() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 9, Ownership::Queued).await;
    place.tamper(&format!("UPDATE events SET body = '{{}}' WHERE run = '{run}' AND seq = 5")).await;
    for after in 0..5 {
        for limit in 0..9 {
            let page = store.read(run, Seq(after), limit).await;
            if after + limit as u64 >= 5 {
                let named = matches!(page, Err(StoreError::Damaged { seq: Seq(5), .. }));
                assert!(named, "after {after}, {limit}: {page:?}");
            }
        }
    }
}

#[test]
fn any_flipped_byte_of_a_body_is_found() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let place = Place::new();
    let store = runtime.block_on(place.open());
    let case = (1u64..=5, any::<prop::sample::Index>(), 1u8..=255);
    proptest!(ProptestConfig::with_cases(48), |((seq, index, flip) in case)| {
        runtime.block_on(async {
            let run = create(&store, 5, Ownership::Queued).await;
            let mut connection = connect(&place.file()).await;
            let (body,): (String,) =
                sqlx::query_as("SELECT body FROM events WHERE run = $1 AND seq = $2")
                    .bind(run.to_string())
                    .bind(seq as i64)
                    .fetch_one(&mut connection)
                    .await
                    .unwrap();
            let mut body = body.into_bytes();
            let place_in_body = index.index(body.len());
            body[place_in_body] ^= flip;
            sqlx::query("UPDATE events SET body = CAST($3 AS TEXT) WHERE run = $1 AND seq = $2")
                .bind(run.to_string())
                .bind(seq as i64)
                .bind(body)
                .execute(&mut connection)
                .await
                .unwrap();
            let result = store.read(run, Seq::ZERO, 100).await;
            let named = matches!(result, Err(StoreError::Damaged { seq: at, .. }) if at.0 == seq);
            prop_assert!(named, "{:?}", result);
            prop_assert_eq!(row(&store, run).await.status, Status::Damaged);
            Ok(())
        })?;
    });
}
