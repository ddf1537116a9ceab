//! Group commit: failures, cancelled requests, and the cache afterwards.

use crate::sample::*;
use posse_protocol::{Seq, Status};
use posse_store::{Append, Claims, Logs, Ownership, Store, StoreError, Wanted};
use std::sync::Arc;
use tokio::task::JoinSet;

#[tokio::test]
async fn an_append_the_engine_refuses_takes_no_neighbour_with_it() {
    let place = Place::new();
    let store = Arc::new(place.open().await);
    let run = create(&*store, 2, Ownership::Queued).await;
    place
        .tamper(
            "CREATE TRIGGER poison BEFORE INSERT ON events WHEN NEW.body LIKE '%poison%' \
             BEGIN SELECT RAISE(ABORT, 'poisoned'); END",
        )
        .await;
    let mut appends = JoinSet::new();
    for index in 0..200 {
        let (store, bad) = (store.clone(), index % 50 == 7);
        let text = if bad { "poison" } else { "food" };
        appends.spawn(async move { (bad, say(&*store, run, text).await) });
    }
    let mut places = Vec::new();
    while let Some(result) = appends.join_next().await {
        match result.unwrap() {
            (false, Ok(seq)) => places.push(seq.0),
            (true, Err(StoreError::Unusable { reason, .. })) => {
                assert!(reason.contains("poisoned"), "{reason}");
            }
            (bad, result) => panic!("{bad}: {result:?}"),
        }
    }
    places.sort_unstable();
    assert_eq!(places, (3..=198).collect::<Vec<u64>>());
    assert_eq!(read(&*store, run).await.unwrap(), 198);
}

#[tokio::test]
async fn a_claim_the_engine_refuses_takes_no_append_with_it() {
    let place = Place::new();
    let store = Arc::new(place.open().await);
    let cursed = create(&*store, 2, Ownership::Queued).await;
    let run = create(&*store, 2, Ownership::Mine).await;
    place
        .tamper(&format!(
            "CREATE TRIGGER curse BEFORE UPDATE ON runs \
             WHEN NEW.id = '{cursed}' AND NEW.owner IS NOT NULL \
             BEGIN SELECT RAISE(FAIL, 'cursed'); END"
        ))
        .await;
    for _ in 0..20 {
        let mut work = JoinSet::new();
        for index in 0..30 {
            let store = store.clone();
            work.spawn(async move {
                if index == 15 {
                    let wanted = Wanted { limit: 9, ..Wanted::default() };
                    assert!(store.claim(&wanted).await.is_err());
                } else {
                    store.append(vec![step(run, 1, time_passed())]).await.unwrap();
                }
            });
        }
        while let Some(done) = work.join_next().await {
            done.unwrap();
        }
    }
    assert_eq!(read(&*store, run).await.unwrap(), 2 + 20 * 29);
    assert_eq!(row(&*store, cursed).await.status, Status::Queued);
    place.tamper("DROP TRIGGER curse").await;
    assert_eq!(ids(&claim(&*store, 9).await), [cursed]);
}

#[tokio::test]
async fn memory_holds_what_is_stored_after_a_failure() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Mine).await;
    place
        .tamper(
            "CREATE TRIGGER late BEFORE UPDATE ON runs WHEN NEW.last_seq = 4 \
             BEGIN SELECT RAISE(ROLLBACK, 'not yet'); END",
        )
        .await;
    store.append(vec![step(run, 1, time_passed())]).await.unwrap();
    for _ in 0..3 {
        assert!(store.append(vec![step(run, 1, time_passed())]).await.is_err());
    }
    place.tamper("DROP TRIGGER late").await;
    let appended = store.append(vec![step(run, 1, time_passed())]).await.unwrap();
    assert_eq!((appended[0].first, appended[0].epoch), (Seq(4), 1));
    assert_eq!(read(&store, run).await.unwrap(), 4);
    assert_eq!(row(&store, run).await.status, Status::Running);
}

#[tokio::test]
async fn a_worker_is_registered_even_if_its_first_write_failed() {
    let place = Place::new();
    place.open().await.close().await;
    place
        .tamper(
            "CREATE TRIGGER poison BEFORE INSERT ON events WHEN NEW.body LIKE '%poison%' \
             BEGIN SELECT RAISE(ROLLBACK, 'poisoned'); END",
        )
        .await;
    let store = place.open().await;
    let mut poisoned = creation(2, Ownership::Mine);
    poisoned.events = poisoned.events.iter().cloned().chain([message("poison")]).collect();
    assert!(store.append(vec![poisoned]).await.is_err());
    let run = create(&store, 2, Ownership::Mine).await;
    let other = place.open().await;
    assert_eq!(row(&other, run).await.status, Status::Running);
    assert!(claim(&other, 1).await.is_empty());
}

#[tokio::test]
async fn damage_found_beside_an_append_leaves_the_log_whole() {
    let place = Place::new();
    let store = Arc::new(place.open().await);
    let bystander = create(&*store, 2, Ownership::Mine).await;
    let run = create(&*store, 3, Ownership::Mine).await;
    place.tamper(&format!("UPDATE events SET at = 1 WHERE run = '{run}' AND seq = 2")).await;
    let mut work = JoinSet::new();
    for index in 0..20 {
        let store = store.clone();
        work.spawn(async move {
            if index == 10 {
                assert!(read(&*store, run).await.is_err(), "the damage was not found");
                return;
            }
            // Appends until the run is marked, so that the mark meets appends in its transaction.
            loop {
                match store.append(vec![step(run, 1, time_passed())]).await {
                    Ok(_) => {}
                    Err(StoreError::Damaged { .. }) => return,
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    store.append(vec![step(bystander, 1, time_passed())]).await.unwrap();
    let mut other = connect(&place.file()).await;
    let (rows, last): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM events WHERE run = id), last_seq FROM runs WHERE id = $1",
    )
    .bind(run.to_string())
    .fetch_one(&mut other)
    .await
    .unwrap();
    assert_eq!(rows, last, "the row and the log have parted");
    assert_eq!(row(&*store, run).await.status, Status::Damaged);
}

#[tokio::test]
async fn a_claim_nobody_waits_for_is_given_back() {
    let place = Place::new();
    let store = Arc::new(place.open().await);
    let run = create(&*store, 2, Ownership::Queued).await;
    for patience in 0..60 {
        let claimer = store.clone();
        let claiming = tokio::spawn(async move { claim(&*claimer, 1).await.len() });
        for _ in 0..patience {
            tokio::task::yield_now().await;
        }
        claiming.abort();
        match claiming.await {
            Ok(count) => {
                assert_eq!(count, 1);
                let epoch = row(&*store, run).await.work.epoch;
                let guard =
                    posse_store::Guard::Owner { epoch, last: None, then: Ownership::Queued };
                let back = Append { guard, events: [].into(), ..Append::by_anyone(run, cancel()) };
                store.append(vec![back]).await.unwrap();
            }
            Err(aborted) => assert!(aborted.is_cancelled()),
        }
        until("the run is free", async || row(&*store, run).await.status == Status::Queued).await;
    }
}

#[tokio::test]
async fn closing_answers_everyone() {
    let place = Place::new();
    let store = Arc::new(place.open().await);
    let run = create(&*store, 2, Ownership::Queued).await;
    let mut work = JoinSet::new();
    for index in 0..3_000 {
        let store = store.clone();
        work.spawn(async move {
            if index == 1_500 {
                store.close().await;
                return 0;
            }
            match say(&*store, run, "hello").await {
                Ok(_) => 1,
                Err(StoreError::Closed) => 0,
                Err(error) => panic!("{error}"),
            }
        });
    }
    let mut stored = 0;
    while let Some(done) = work.join_next().await {
        stored += done.unwrap();
    }
    assert!(stored >= 1_500, "{stored} of those asked before closing");
    let again = place.open().await;
    assert_eq!(read(&again, run).await.unwrap(), 2 + stored);
}
