//! A write-ahead log that was changed or removed: the store reports the lost commits.

use crate::sample::*;
use posse_protocol::RunId;
use posse_store::{
    Durability, Inspection, Logs, Options, Ownership, SqliteStore, Store, StoreError,
};

const HEADER: usize = 32;
const FRAME: usize = 24 + 4_096;

/// Returns a database as a killed process leaves it: with commits that are only in the log.
async fn killed() -> (Place, RunId) {
    let place = Place::new();
    // The file contains the tables.
    place.open().await.close().await;
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Queued).await;
    for number in 0..5 {
        say(&store, run, &format!("message {number}")).await.unwrap();
    }
    (place.killed(), run)
}

fn log(place: &Place) -> Vec<u8> {
    std::fs::read(place.folder().join("posse.db-wal")).unwrap()
}

async fn flaws(store: &dyn Store) -> Vec<String> {
    store.flaws().await.unwrap().into_iter().map(|flaw| flaw.reason).collect()
}

/// Expects that the loss is reported, that the rest can be read, and that nothing can be stored,
/// now and after the next opening.
async fn check_lost(place: &Place, what: &str) {
    let before = log(place);
    for _ in 0..2 {
        let store = place.open().await;
        let found = flaws(&store).await;
        assert!(found[0].contains(what), "{what}: {found:?}");
        store.list(&posse_store::Filter::default()).await.unwrap();
        let refused = store.append(vec![creation(2, Ownership::Queued)]).await;
        let Err(StoreError::CommitsLost { reason, .. }) = refused else { panic!("{refused:?}") };
        assert!(reason.contains(what), "{reason}");
        assert!(store.watch(RunId::new()).changed().await.is_err(), "nobody waits for it");
        store.close().await;
        assert!(log(place) == before, "the log is left as it was");
    }
    let workers = std::fs::read_dir(place.folder().join("posse.db-workers")).unwrap().count();
    assert_eq!(workers, 1, "only what the killed one left");
}

#[tokio::test]
async fn a_log_that_is_whole_is_believed() {
    let (place, run) = killed().await;
    let store = place.open().await;
    assert_eq!(flaws(&store).await, Vec::<String>::new());
    assert_eq!(read(&store, run).await.unwrap(), 7);
    say(&store, run, "more").await.unwrap();
}

#[tokio::test]
async fn any_bit_that_flips_in_the_log_is_told() {
    let (place, _) = killed().await;
    let length = log(&place).len();
    assert!((length - HEADER).is_multiple_of(FRAME) && length > HEADER + 10 * FRAME, "{length}");
    let frames = (length - HEADER) / FRAME;
    // The header; page number, commit mark, salt, checksum and content of frames; the last byte.
    let places = [1, 9, 13, 17, 25, 31]
        .into_iter()
        .chain([3, 7, 9, 14, 18, 22, 30, 4_000].map(|at| HEADER + at))
        .chain([2, 6, 10, 17, 23, 1_000].map(|at| HEADER + frames / 2 * FRAME + at))
        .chain([3, 5, 12, 19, 100].map(|at| HEADER + (frames - 1) * FRAME + at))
        .chain([length - 1]);
    for at in places {
        let place = place.killed();
        place.flip("posse.db-wal", at);
        check_lost(&place, "of its write-ahead log was changed").await;
    }
}

#[tokio::test]
async fn without_the_shared_index_commits_behind_a_changed_frame_are_told() {
    let (place, _) = killed().await;
    std::fs::remove_file(place.folder().join("posse.db-shm")).unwrap();
    place.flip("posse.db-wal", HEADER + FRAME + 500);
    check_lost(&place, "frame ").await;
}

#[tokio::test]
async fn a_last_commit_that_a_loss_of_power_cut_is_dropped() {
    let (place, run) = killed().await;
    // The shared index is lost with the power.
    std::fs::remove_file(place.folder().join("posse.db-shm")).unwrap();
    place.flip("posse.db-wal", log(&place).len() - 1);
    let store = place.open().await;
    assert_eq!(flaws(&store).await, Vec::<String>::new());
    assert_eq!(read(&store, run).await.unwrap(), 6);
    say(&store, run, "again").await.unwrap();
}

#[tokio::test]
async fn what_was_not_meant_to_survive_a_loss_of_power_is_not_missed_after_one() {
    let (place, run) = killed().await;
    let length = log(&place).len() as u64;
    let cut = std::fs::OpenOptions::new().write(true).open(place.folder().join("posse.db-wal"));
    cut.unwrap().set_len(length - 2 * FRAME as u64).unwrap();
    let options = || Options { durability: Durability::Process, ..place.options() };
    let refused = SqliteStore::open(options()).await.unwrap();
    assert!(say(&refused, run, "x").await.is_err(), "the machine has run on since");
    refused.close().await;
    std::fs::remove_file(place.folder().join("posse.db-damage")).unwrap();
    std::fs::remove_dir_all(place.folder().join("posse.db-workers")).unwrap();
    let store = SqliteStore::open(options()).await.unwrap();
    say(&store, run, "x").await.unwrap();
}

#[tokio::test]
async fn a_log_that_is_gone_or_cut_is_told() {
    let (whole, _) = killed().await;
    for length in [0, 10, HEADER, HEADER + FRAME, HEADER + 3 * FRAME + 5] {
        let place = whole.killed();
        let file =
            std::fs::OpenOptions::new().write(true).open(place.folder().join("posse.db-wal"));
        file.unwrap().set_len(length as u64).unwrap();
        check_lost(&place, "write-ahead log").await;
    }
    std::fs::remove_file(whole.folder().join("posse.db-wal")).unwrap();
    let store = whole.open().await;
    let refused = store.append(vec![creation(2, Ownership::Queued)]).await;
    let Err(StoreError::CommitsLost { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("is gone"), "{reason}");
}

#[tokio::test]
async fn a_database_of_which_not_even_the_tables_are_left_is_refused() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, 2, Ownership::Queued).await;
    let place = place.killed();
    place.flip("posse.db-wal", HEADER + 100);
    for _ in 0..2 {
        let error = SqliteStore::open(place.options()).await.err().unwrap();
        assert!(matches!(error, StoreError::CommitsLost { .. }), "{error}");
    }
}

#[tokio::test]
async fn whoever_comes_while_others_have_it_open_does_not_look() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Queued).await;
    say(&store, run, "hello").await.unwrap();
    let other = place.open().await;
    say(&other, run, "hello").await.unwrap();
    assert_eq!(flaws(&other).await, Vec::<String>::new());
    // An explicit check finds it anyway.
    place.flip("posse.db-wal", HEADER + 2 * FRAME + 700);
    let found = flaws(&other).await;
    assert!(found[0].contains("write-ahead log was changed"), "{found:?}");
}
