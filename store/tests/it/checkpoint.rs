//! The size of the write-ahead log while the store is open.

use crate::sample::*;
use posse_store::{Ownership, Store};
use std::path::Path;

/// The size of a page, and of its frame in the log.
const PAGE: u64 = 4_096;
const FRAME: u64 = PAGE + 24;

/// Appends events of about a page each. Each takes at least four pages of the log.
async fn append(store: &dyn Store, count: usize) {
    let run = create(store, 2, Ownership::Queued).await;
    let text = "a word ".repeat(500);
    for _ in 0..count {
        say(store, run, &text).await.unwrap();
    }
}

fn length(path: impl AsRef<Path>) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[tokio::test]
async fn what_is_in_the_log_comes_into_the_file_before_the_writer_has_to_see_to_it() {
    let place = Place::new();
    let store = place.open().await;
    append(&store, 500).await;
    let log = place.folder().join("posse.db-wal");
    assert!(length(&log) < 4_000 * FRAME, "the writer has done it by itself: {}", length(&log));
    until("half of it is in the file", async || length(place.file()) > 250 * PAGE).await;
    store.close().await;
    assert!(!log.exists());
}

#[tokio::test]
async fn the_log_stays_short_however_much_is_stored() {
    let place = Place::new();
    let store = place.open().await;
    append(&store, 2_000).await;
    let log = length(place.folder().join("posse.db-wal"));
    assert!(log < 6_000 * FRAME, "{log}");
    store.close().await;
}
