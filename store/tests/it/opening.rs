//! Opening: foreign files are left unchanged, and new files are private.

use crate::sample::*;
use posse_store::{Options, Ownership, SqliteStore, Store, StoreError};
use std::os::unix::fs::PermissionsExt;

/// Expects that a file with these `bytes` is refused with `what` in the reason, and left unchanged.
async fn check_refused(bytes: &[u8], what: &str) {
    let place = Place::new();
    std::fs::write(place.file(), bytes).unwrap();
    let error = match SqliteStore::open(place.options()).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened what should be refused: {what}"),
    };
    assert!(error.contains(what), "{error}");
    assert!(error.contains(&place.file().display().to_string()), "{error}");
    assert_eq!(place.contents(), [(place.file(), bytes.to_vec())], "{what}");
}

#[tokio::test]
async fn what_is_no_database_is_refused_untouched() {
    check_refused(b"hello", "it is not a Posse database").await;
    check_refused(&b"# not a database\n".repeat(1_000), "it is not a Posse database").await;
    check_refused(&[0; 8_192], "it is not a Posse database").await;
}

#[tokio::test]
async fn a_truncated_database_is_refused_untouched() {
    let place = Place::new();
    let store = place.open().await;
    for _ in 0..20 {
        create(&store, 20, Ownership::Queued).await;
    }
    store.close().await;
    let whole = std::fs::read(place.file()).unwrap();
    assert!(whole.len() > 100_000);
    for length in [16, 60, 100, 4_096, 4_097, whole.len() / 2, whole.len() - 4_096, whole.len() - 1]
    {
        let what = if length < 108 { "it ends after" } else { "of its" };
        check_refused(&whole[..length], what).await;
    }
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_untouched() {
    for statements in [
        "CREATE TABLE bookmarks (url TEXT)",
        "CREATE TABLE bookmarks (url TEXT); PRAGMA user_version = 1",
        "PRAGMA application_id = 5; VACUUM",
    ] {
        let place = Place::new();
        std::fs::write(place.file(), b"").unwrap();
        place.tamper(statements).await;
        let bytes = std::fs::read(place.file()).unwrap();
        check_refused(&bytes, "belongs to another program").await;
    }
}

/// The engine would replace every page by what such a journal has.
#[tokio::test]
async fn a_journal_that_somebody_put_beside_a_database_is_refused() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, 2, Ownership::Queued).await;
    store.close().await;
    let mut journal = place.file().into_os_string();
    journal.push("-journal");
    let before = std::fs::read(place.file()).unwrap();
    std::fs::write(&journal, [7; 600]).unwrap();
    let error = match SqliteStore::open(place.options()).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened beside a foreign journal"),
    };
    assert!(error.contains("-journal lies beside it"), "{error}");
    assert!(std::fs::read(place.file()).unwrap() == before, "it was changed");
    std::fs::write(&journal, "").unwrap();
    place.open().await.close().await;
}

#[tokio::test]
async fn a_place_that_cannot_be_used_is_named() {
    let place = Place::new();
    std::fs::create_dir(place.file()).unwrap();
    let error = SqliteStore::open(place.options()).await.err().unwrap();
    assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
    assert!(error.to_string().contains("posse.db"), "{error}");
    let below_a_file = Options::new("/dev/null/posse.db");
    let error = SqliteStore::open(below_a_file).await.err().unwrap();
    assert!(error.to_string().contains("/dev/null/posse.db"), "{error}");
}

#[tokio::test]
async fn a_pipe_is_refused_at_once() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo").arg(place.file()).status().unwrap();
    assert!(made.success());
    let opening = SqliteStore::open(place.options());
    let opened = tokio::time::timeout(std::time::Duration::from_secs(20), opening).await;
    let error = opened.expect("it does not wait for the other end").err().unwrap().to_string();
    assert!(error.contains("it is not a regular file"), "{error}");
}

#[tokio::test]
async fn what_is_left_of_a_database_is_not_taken_for_a_new_one() {
    for beside in ["-scratch", "-workers", "-worktrees", "-reserve"] {
        let place = Place::new();
        std::fs::write(place.file(), b"").unwrap();
        place.open().await.close().await;
        std::fs::remove_file(place.folder().join("posse.db-reserve")).unwrap();
        std::fs::remove_dir(place.folder().join("posse.db-workers")).unwrap();
        std::fs::write(place.file(), b"").unwrap();
        std::fs::create_dir(place.folder().join(format!("posse.db{beside}"))).unwrap();
        let error = SqliteStore::open(place.options()).await.err().unwrap();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains(&format!("it is empty, and `{beside}`")), "{error}");
        assert_eq!(std::fs::read(place.file()).unwrap(), b"", "it is left alone");
    }
}

#[tokio::test]
async fn a_log_without_its_database_is_not_removed() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, 2, Ownership::Queued).await;
    let place = place.killed();
    std::fs::remove_file(place.file()).unwrap();
    let error = SqliteStore::open(place.options()).await.err().unwrap().to_string();
    assert!(error.contains("it is not there, and its write-ahead log"), "{error}");
    assert!(place.folder().join("posse.db-wal").metadata().unwrap().len() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_open_a_new_database_at_once() {
    for _ in 0..10 {
        let place = Place::new();
        let mut openings = tokio::task::JoinSet::new();
        for _ in 0..6 {
            openings.spawn(SqliteStore::open(place.options()));
        }
        let mut stores = Vec::new();
        while let Some(opened) = openings.join_next().await {
            stores.push(opened.unwrap().unwrap());
        }
        for store in &stores {
            create(store, 2, Ownership::Queued).await;
        }
        assert_eq!(claim(&stores[0], 99).await.len(), 6);
        for store in stores {
            store.close().await;
        }
    }
}

#[tokio::test]
async fn opening_again_finds_everything_and_changes_nothing() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 5, Ownership::Queued).await;
    store.close().await;
    let before = std::fs::read(place.file()).unwrap();
    let names: Vec<_> = place.contents().into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, [place.file(), place.folder().join("posse.db-reserve")]);
    let again = place.open().await;
    assert_eq!(read(&again, run).await.unwrap(), 5);
    again.close().await;
    assert_eq!(std::fs::read(place.file()).unwrap(), before);
}

#[tokio::test]
async fn files_are_for_their_owner_only() {
    let place = Place::new();
    let folder = place.folder().join("deep/down");
    let store = SqliteStore::open(Options::new(folder.join("posse.db"))).await.unwrap();
    create(&store, 2, Ownership::Mine).await;
    let mode = |name: &str| {
        let path = folder.join(name);
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777
    };
    for name in ["", "../", "posse.db-workers"] {
        assert_eq!(mode(name), 0o700, "{name}");
    }
    for name in ["posse.db", "posse.db-wal", "posse.db-shm", "posse.db-reserve"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    let lock = std::fs::read_dir(folder.join("posse.db-workers")).unwrap().next().unwrap();
    assert_eq!(lock.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn two_names_of_a_database_are_one() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Mine).await;
    let link = place.folder().join("link.db");
    std::os::unix::fs::symlink(place.file(), &link).unwrap();
    let other = SqliteStore::open(Options { path: link, ..place.options() }).await.unwrap();
    assert_eq!(row(&other, run).await.status, posse_protocol::Status::Running);
    drop(store);
    until("the lock is seen to fall", async || !claim(&other, 1).await.is_empty()).await;
}
