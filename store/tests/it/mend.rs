//! Rebuilds a database from its logs, and restores a backup.

use crate::sample::*;
use posse_protocol::{Event, Status};
use posse_store::{Inspection, Logs, Ownership, RunRow, Store, StoreError, rebuild, restore};
use serde_json::json;

async fn flaws(store: &dyn Store) -> Vec<String> {
    store.flaws().await.unwrap().into_iter().map(|flaw| flaw.reason).collect()
}

fn called() -> Event {
    event(json!({
        "type": "model_called", "reserved": {"input_tokens": 5, "output_tokens": 6, "cost": 7},
    }))
}

/// Returns the row without its owner.
fn at_rest(mut row: RunRow) -> RunRow {
    row.work.owner = None;
    row
}

#[tokio::test]
async fn rows_indices_and_the_ledger_follow_from_the_logs() {
    let place = Place::new();
    let store = place.open().await;
    let queued = create(&store, 4, Ownership::Queued).await;
    let worked = create(&store, 2, Ownership::Mine).await;
    for event in [called(), called(), finished()] {
        store.append(vec![step(worked, 1, event)]).await.unwrap();
    }
    let bad = create(&store, 3, Ownership::Queued).await;
    let before = [row(&store, queued).await, row(&store, worked).await];
    let ledger = store.ledger(worked).await.unwrap();
    store.close().await;
    place
        .tamper(&format!(
            "UPDATE events SET body = '{{}}' WHERE run = '{bad}' AND seq = 2; \
             UPDATE runs SET outcome = 'completed', turns = 9 WHERE id = '{worked}'; \
             UPDATE model_calls SET cost = cost + 1; DELETE FROM runs WHERE id = '{queued}'; \
             DROP INDEX runs_by_label; CREATE INDEX mine ON runs (note)"
        ))
        .await;
    let set = |sign: &str| format!("UPDATE runs SET ready_at = ready_at {sign} 1");
    place.blind("runs_ready", &set("+"), &set("-")).await;
    let old = std::fs::read(place.file()).unwrap();

    let mended = rebuild(&place.options()).await.unwrap();
    assert_eq!((mended.runs, mended.damaged, mended.lost), (2, 1, 0));
    assert!(!mended.forgets);
    assert!(std::fs::read(mended.kept.unwrap()).unwrap() == old, "the old one is kept");
    let store = place.open().await;
    assert_eq!(flaws(&store).await, Vec::<String>::new());
    let after = row(&store, queued).await;
    let mut expected = before[0].clone();
    (expected.work.ready_at, expected.work.epoch) = (after.work.ready_at, after.work.epoch);
    assert_eq!(at_rest(after), at_rest(expected));
    assert_eq!(row(&store, worked).await, before[1]);
    assert_eq!(store.ledger(worked).await.unwrap(), ledger);
    assert_eq!(read(&store, worked).await.unwrap(), 5);
    assert!(matches!(read(&store, bad).await, Err(StoreError::Damaged { .. })));
    assert_eq!(ids(&claim(&store, 9).await), [queued]);
}

#[tokio::test]
async fn pages_that_cannot_be_read_take_only_their_own_rows() {
    let place = Place::new();
    let store = place.open().await;
    let mut runs = Vec::new();
    for _ in 0..40 {
        runs.push(create(&store, 10, Ownership::Queued).await);
    }
    store.close().await;
    let mut bytes = std::fs::read(place.file()).unwrap();
    // Damage a page of events: the one that contains the last such text.
    let text = b"event 5 of this run";
    let at = bytes.windows(text.len()).rposition(|part| part == text).unwrap();
    let page = at / 4_096 * 4_096;
    bytes[page] = 0xff;
    std::fs::write(place.file(), bytes).unwrap();
    let store = place.open().await;
    assert!(!flaws(&store).await.is_empty());
    let mut whole = 0;
    for run in &runs {
        whole += usize::from(read(&store, *run).await.is_ok());
    }
    assert!((1..40).contains(&whole), "one page says nothing about the others: {whole}");
    store.close().await;
    let mended = rebuild(&place.options()).await.unwrap();
    assert!(mended.lost > 0 && mended.damaged > 0, "{mended:?}");
    let store = place.open().await;
    assert_eq!(flaws(&store).await, Vec::<String>::new());
    let mut again = 0;
    for run in &runs {
        again += usize::from(read(&store, *run).await.is_ok());
    }
    assert_eq!(again, whole);
}

#[tokio::test]
async fn nobody_mends_what_somebody_has_open() {
    let (place, backup) = (Place::new(), Place::new());
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Queued).await;
    backup.open().await.close().await;
    for refused in
        [rebuild(&place.options()).await, restore(&place.options(), &backup.file()).await]
    {
        let Err(StoreError::Unusable { reason, .. }) = refused else { panic!("{refused:?}") };
        assert!(reason.contains("a process has it open"), "{reason}");
    }
    say(&store, run, "hello").await.unwrap();
    store.close().await;
    assert!(!place.folder().join("posse.db-before-1").exists());
}

#[tokio::test]
async fn what_was_lost_of_the_log_is_settled_by_making_it_anew() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Queued).await;
    say(&store, run, "one").await.unwrap();
    say(&store, run, "two").await.unwrap();
    let place = place.killed();
    let log = std::fs::read(place.folder().join("posse.db-wal")).unwrap();
    place.flip("posse.db-wal", log.len() - 1);
    let mended = rebuild(&place.options()).await.unwrap();
    assert!(mended.forgets, "{mended:?}");
    let kept = mended.kept.unwrap().display().to_string() + "-wal";
    assert_eq!(std::fs::read(kept).unwrap().len(), log.len());
    let store = place.open().await;
    assert_eq!(read(&store, run).await.unwrap(), 3);
    say(&store, run, "two, again").await.unwrap();
    assert_eq!(flaws(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_backup_takes_the_place_of_whatever_is_left() {
    let (place, backup) = (Place::new(), Place::new());
    let store = backup.open().await;
    let run = create(&store, 5, Ownership::Queued).await;
    store.close().await;
    for left in [&b"hello"[..], b"", &[7; 100_000]] {
        std::fs::write(place.file(), left).unwrap();
        std::fs::write(place.folder().join("posse.db-wal"), left).unwrap();
        let mended = restore(&place.options(), &backup.file()).await.unwrap();
        assert_eq!(std::fs::read(mended.kept.unwrap()).unwrap(), left);
        assert!(mended.forgets);
        let store = place.open().await;
        assert_eq!(row(&store, run).await.status, Status::Queued);
        assert_eq!(flaws(&store).await, Vec::<String>::new());
        store.close().await;
    }
    std::fs::remove_file(place.file()).unwrap();
    let mended = restore(&place.options(), &backup.file()).await.unwrap();
    assert_eq!(mended.kept, None, "there was none");
    let mut bytes = std::fs::read(backup.file()).unwrap();
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[middle] ^= 0xff;
    std::fs::write(backup.file(), bytes).unwrap();
    let refused = restore(&place.options(), &backup.file()).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    assert_eq!(read(&place.open().await, run).await.unwrap(), 5, "what is there stays");
}

#[tokio::test]
async fn a_log_beside_a_backup_that_someone_else_put_there_is_refused() {
    let (place, backup) = (Place::new(), Place::new());
    let store = backup.open().await;
    create(&store, 5, Ownership::Queued).await;
    store.close().await;
    let (log, other) = (backup.folder().join("posse.db-wal"), backup.folder().join("other"));
    let _ = std::fs::remove_file(&log);
    std::fs::write(&other, "").unwrap();
    std::os::unix::fs::symlink(&other, &log).unwrap();
    let refused = restore(&place.options(), &backup.file()).await.unwrap_err().to_string();
    assert!(refused.contains("is not a file of the user who made the backup"), "{refused}");
    assert!(!place.file().exists());
    std::fs::remove_file(&log).unwrap();
    // Only root can give a file away.
    if std::os::unix::fs::chown(&other, Some(54_321), None).is_ok() {
        std::fs::rename(&other, &log).unwrap();
        let refused = restore(&place.options(), &backup.file()).await.unwrap_err().to_string();
        assert!(refused.contains("is not a file of the user who made the backup"), "{refused}");
        std::fs::remove_file(&log).unwrap();
    }
    // A second name of another file of this user.
    std::fs::write(&other, "").unwrap();
    std::fs::hard_link(&other, &log).unwrap();
    let refused = restore(&place.options(), &backup.file()).await.unwrap_err().to_string();
    assert!(refused.contains("is not a file of the user who made the backup"), "{refused}");
    std::fs::remove_file(&log).unwrap();
    restore(&place.options(), &backup.file()).await.unwrap();
}
