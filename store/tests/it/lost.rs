//! A database whose files are removed or replaced while it is open.

use crate::sample::{Place, create, read, say};
use posse_store::{Logs, Ownership, Store, StoreError};

/// Moves the files of a database to another folder.
fn put_away(place: &Place, to: &Place) {
    for name in ["posse.db", "posse.db-wal", "posse.db-shm"] {
        std::fs::rename(place.folder().join(name), to.folder().join(name)).unwrap();
    }
}

#[tokio::test]
async fn nothing_is_stored_in_a_file_that_is_no_longer_at_its_place() {
    let (place, away) = (Place::new(), Place::new());
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Queued).await;
    put_away(&place, &away);
    let refused = say(&store, run, "lost").await;
    let Err(StoreError::Unusable { path, reason }) = refused else { panic!("{refused:?}") };
    assert!(path.ends_with("posse.db") && reason.contains("was removed"), "{path} {reason}");
    let watched = store.watch(run).changed().await;
    assert!(watched.is_err(), "whoever waits for it is told");
    assert!(matches!(read(&store, run).await, Err(StoreError::Unusable { .. })));
    // The files are back.
    put_away(&away, &place);
    say(&store, run, "kept").await.unwrap();
    store.close().await;
    assert_eq!(read(&place.open().await, run).await.unwrap(), 3);
}

#[tokio::test]
async fn whoever_had_the_old_file_open_harms_the_new_one_in_no_way() {
    let (place, away) = (Place::new(), Place::new());
    let old = place.open().await;
    let lost = create(&old, 2, Ownership::Mine).await;
    put_away(&place, &away);
    let new = place.open().await;
    let run = create(&new, 2, Ownership::Queued).await;
    assert!(say(&old, lost, "lost").await.is_err());
    old.close().await;
    assert!(place.folder().join("posse.db-wal").exists(), "it is the other's");
    say(&new, run, "kept").await.unwrap();
    drop(new);
    let again = place.open().await;
    assert_eq!(read(&again, run).await.unwrap(), 3);
    // The moved file contains what was acknowledged before.
    assert_eq!(read(&away.open().await, lost).await.unwrap(), 2);
}

#[tokio::test]
async fn nothing_is_stored_in_a_log_that_was_removed_and_what_was_is_kept() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Queued).await;
    std::fs::remove_file(place.folder().join("posse.db-wal")).unwrap();
    let refused = say(&store, run, "lost").await;
    let Err(StoreError::Unusable { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.starts_with("its write-ahead log (`-wal`) was removed"), "{reason}");
    assert!(store.watch(run).changed().await.is_err(), "whoever waits for it is told");
    assert!(matches!(read(&store, run).await, Err(StoreError::Unusable { .. })));
    // The last connection moves the content of the log into the file.
    store.close().await;
    let again = place.open().await;
    assert_eq!(read(&again, run).await.unwrap(), 2);
    say(&again, run, "kept").await.unwrap();
}
