//! Data of a newer version, and of a development version, is refused and left unchanged.

use crate::sample::*;
use posse_protocol::Seq;
use posse_store::{Logs, Ownership, SqliteStore, Store, StoreError};

#[tokio::test]
async fn a_run_that_a_newer_version_wrote_to_is_left_alone() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 3, Ownership::Queued).await;
    let other = create(&store, 3, Ownership::Queued).await;
    place
        .tamper(&format!(
            "INSERT INTO events VALUES ('{run}', 4, 1, {}, '{{\"type\":\"dreamt\"}}', 'new'); \
             UPDATE runs SET version = version + 1, last_seq = 4, last_hash = 'new' WHERE id = '{run}'",
            posse_protocol::SCHEMA_VERSION + 1
        ))
        .await;
    let newer = |error: &StoreError| matches!(error, StoreError::Newer(text) if text.contains("update posse"));
    assert!(read(&store, run).await.is_err_and(|error| newer(&error)));
    assert!(say(&store, run, "hello").await.is_err_and(|error| newer(&error)));
    assert_eq!(ids(&claim(&store, 9).await), [other]);
    assert_eq!(store.read(run, Seq::ZERO, 3).await.unwrap().len(), 3, "the old part is readable");
    assert!(row(&store, run).await.log.damaged.is_none(), "a newer log is no damage");
    let mut connection = connect(&place.file()).await;
    let (count, last): (i64, String) =
        sqlx::query_as("SELECT count(*), max(hash) FROM events WHERE run = $1")
            .bind(run.to_string())
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!((count, last.as_str()), (4, "new"));
}

async fn refuses_a_newer_one(place: &Place) {
    match refuses_without_touching(place).await {
        StoreError::NewerDatabase { path, found: 99, known: 11 } => {
            assert!(path.ends_with("posse.db"));
        }
        error => panic!("{error}"),
    }
}

async fn refuses_without_touching(place: &Place) -> StoreError {
    let before = place.contents();
    let error = SqliteStore::open(place.options()).await.err().expect("it was opened");
    let names = |contents: &[(std::path::PathBuf, Vec<u8>)]| -> Vec<_> {
        contents.iter().map(|(path, _)| path.clone()).collect()
    };
    let after = place.contents();
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "a file was changed");
    error
}

#[tokio::test]
async fn a_newer_database_is_refused_byte_for_byte_untouched() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, 3, Ownership::Queued).await;
    store.close().await;
    place.tamper("PRAGMA user_version = 99; DELETE FROM workers").await;
    std::fs::remove_file(place.folder().join("posse.db-reserve")).unwrap();
    std::fs::remove_dir(place.folder().join("posse.db-workers")).unwrap();
    assert_eq!(place.contents().len(), 1, "only the database is left");
    refuses_a_newer_one(&place).await;
}

#[tokio::test]
async fn a_newer_database_is_recognised_by_its_write_ahead_log() {
    let live = Place::new();
    let store = live.open().await;
    create(&store, 3, Ownership::Queued).await;
    live.tamper("PRAGMA user_version = 99").await;
    // Like after a killed process, the change is only in the write-ahead log.
    let dead = Place::new();
    for name in ["posse.db", "posse.db-wal"] {
        std::fs::copy(live.folder().join(name), dead.folder().join(name)).unwrap();
    }
    let header = std::fs::read(dead.file()).unwrap();
    assert_ne!(header[60..64], [0, 0, 0, 2], "the change has reached the file");
    refuses_a_newer_one(&dead).await;
}

#[tokio::test]
async fn a_database_of_a_development_version_is_refused_untouched() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, 3, Ownership::Queued).await;
    store.close().await;
    for version in 1..11 {
        place.tamper(&format!("PRAGMA user_version = {version}")).await;
        let error = refuses_without_touching(&place).await;
        let told = error.to_string();
        assert!(
            told.contains(&format!("(schema {version}, the first released one is 11)")),
            "{told}"
        );
        assert!(told.contains("name another database, or move this one away"), "{told}");
        let status = SqliteStore::status(&place.file()).await.unwrap();
        assert_eq!((status.schema, status.oldest, status.runs), (version, 11, 1));
    }
}
