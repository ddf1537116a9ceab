//! Migrations to the schema of a later release.

use crate::sql::{SCHEMA, Schema, later};
use crate::sqlite::{Options, SqliteStore, connect_options};
use crate::{Inspection, Store, StoreError};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

fn place() -> (TempDir, Options) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(folder.path().canonicalize().unwrap().join("posse.db"));
    (folder, options)
}

/// Opens the database with this schema.
async fn open(options: &Options, schema: &Schema) -> Result<SqliteConnection, StoreError> {
    let path = options.path.display().to_string();
    super::open(&connect_options(options), &path, schema).await.map(|it| it.connection)
}

/// Returns the version of the schema, and its objects without white space.
async fn schema_of(connection: &mut SqliteConnection) -> (i64, Vec<String>) {
    let all = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
    let rows = sqlx::query(all).fetch_all(&mut *connection).await.unwrap();
    let made = rows.iter().map(|row| row.get::<String, _>(0).replace([' ', '\n'], "")).collect();
    (super::schema_version(connection).await.unwrap(), made)
}

async fn text(connection: &mut SqliteConnection, query: &str) -> String {
    sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(connection).await.unwrap()
}

fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = files
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_database_gets_the_migrations_that_it_lacks() {
    let (folder, options) = place();
    let store = SqliteStore::open(options.clone()).await.unwrap();
    let run = later::work(&store).await;
    store.close().await;
    let next = later::schema();
    let mut connection = open(&options, &next).await.unwrap();
    let (_new, new) = place();
    std::fs::write(&new.path, b"").unwrap();
    let expected = schema_of(&mut open(&new, &next).await.unwrap()).await;
    assert_eq!(expected.0, SCHEMA.version() + 2);
    assert_eq!(schema_of(&mut connection).await, expected, "an old database is like a new one");
    let mood = format!("SELECT mood FROM runs WHERE id = '{run}'");
    assert_eq!(text(&mut connection, &mood).await, "glad");
    connection.close().await.unwrap();
    let before = contents(folder.path());
    open(&options, &next).await.unwrap().close().await.unwrap();
    assert_eq!(contents(folder.path()), before, "no migration runs twice");
    // The program before refuses it now.
    match SqliteStore::open(options).await {
        Err(StoreError::NewerDatabase { found, known, .. }) => {
            assert_eq!((found, known), (next.version(), SCHEMA.version()));
        }
        other => panic!("{:?}", other.err()),
    }
    assert!(contents(folder.path()) == before, "a file was changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_the_version_before_go_on() {
    let (_folder, options) = place();
    let store = SqliteStore::open(options.clone()).await.unwrap();
    let mut runs = vec![later::work(&store).await];
    let is_done = AtomicBool::new(false);
    let migrating = async {
        let mut connection = open(&options, &later::schema()).await.unwrap();
        is_done.store(true, Ordering::SeqCst);
        schema_of(&mut connection).await.0
    };
    let working = async {
        while !is_done.load(Ordering::SeqCst) {
            runs.push(later::work(&store).await);
        }
        runs.push(later::work(&store).await);
    };
    assert_eq!(tokio::join!(migrating, working).0, SCHEMA.version() + 2);
    assert_eq!(store.list(&crate::Filter::default()).await.unwrap().len(), runs.len());
    store.close().await;
    let mut connection = open(&options, &later::schema()).await.unwrap();
    let query = format!("SELECT mood FROM runs WHERE id = '{}'", runs[runs.len() - 1]);
    assert_eq!(text(&mut connection, &query).await, "calm", "an old worker wrote the default");
}

#[tokio::test]
async fn a_migration_that_fails_changes_nothing() {
    let (_folder, options) = place();
    let store = SqliteStore::open(options.clone()).await.unwrap();
    let before = schema_of(&mut open(&options, &SCHEMA).await.unwrap()).await;
    let error = open(&options, &later::broken()).await.err().unwrap();
    assert!(error.to_string().contains("no such table"), "{error}");
    assert_eq!(schema_of(&mut open(&options, &SCHEMA).await.unwrap()).await, before);
    later::work(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_migrate_at_once_do_it_once() {
    let (_folder, options) = place();
    SqliteStore::open(options.clone()).await.unwrap().close().await;
    let mut openings = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let options = options.clone();
        openings.spawn(async move {
            let mut connection = open(&options, &later::schema()).await.unwrap();
            schema_of(&mut connection).await.0
        });
    }
    while let Some(version) = openings.join_next().await {
        assert_eq!(version.unwrap(), SCHEMA.version() + 2);
    }
}

/// A crash after each migration leaves the database as it was; the next process migrates it.
#[cfg(feature = "failpoints")]
#[tokio::test]
async fn a_migration_that_is_interrupted_is_done_by_the_next_process() {
    use futures_util::FutureExt;
    use std::panic::AssertUnwindSafe;
    let (_folder, options) = place();
    let store = SqliteStore::open(options.clone()).await.unwrap();
    later::work(&store).await;
    store.close().await;
    let next = later::schema();
    let this = std::thread::current().id();
    for steps in 1..=2 {
        let left = std::sync::atomic::AtomicUsize::new(steps);
        // Other tests may pass the same point.
        let crash = move || {
            let here = std::thread::current().id() == this;
            assert!(!here || left.fetch_sub(1, Ordering::SeqCst) != 1, "crashed");
        };
        fail::cfg_callback("store.migrate.step", crash).unwrap();
        let crashed = AssertUnwindSafe(open(&options, &next)).catch_unwind().await;
        fail::remove("store.migrate.step");
        assert!(crashed.is_err(), "it passed {steps} steps");
        let store = SqliteStore::open(options.clone()).await.unwrap();
        later::work(&store).await;
        store.close().await;
    }
    let mut connection = open(&options, &next).await.unwrap();
    assert_eq!(schema_of(&mut connection).await.0, next.version());
}
