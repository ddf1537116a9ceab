//! Migrations to the schema of a later release, on a real server.

use crate::postgres::contact::Contact;
use crate::postgres::link::{DatabaseName, Link};
use crate::postgres::{PostgresOptions, PostgresStore};
use crate::sql::{SCHEMA, Schema, later};
use crate::{Inspection, Store, StoreError};
use posse_testkit::postgres::{Database, Server};
use std::sync::atomic::{AtomicBool, Ordering};

fn options(database: &Database) -> PostgresOptions {
    PostgresOptions::new(database.url())
}

async fn open(database: &Database) -> PostgresStore {
    PostgresStore::open(options(database)).await.unwrap()
}

/// Gives the database this schema.
async fn prepare(options: PostgresOptions, schema: Schema) -> Result<(), StoreError> {
    let connect = options.connect("posse migrates").unwrap();
    let mut link =
        Link::new(connect, DatabaseName::new("test".to_owned(), String::new()), Contact::default());
    let prepared = super::prepare(&mut link, &options.schema, &schema).await;
    link.close().await;
    prepared
}

fn version(database: &Database) -> i64 {
    let query = "SELECT number::text FROM posse.marks WHERE name = 'schema'";
    database.text(query).parse().unwrap()
}

/// Returns all columns and indexes.
fn objects(database: &Database) -> String {
    database.text(
        "SELECT string_agg(made, ' ' ORDER BY made) FROM (
            SELECT table_name || '.' || column_name || ' ' || data_type || ' '
                || coalesce(collation_name, '') || coalesce(column_default, '') AS made
            FROM information_schema.columns WHERE table_schema = 'posse'
            UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'posse') AS all_of_them",
    )
}

#[tokio::test]
async fn a_database_gets_the_migrations_that_it_lacks() {
    let (old, new) = (Server::shared().database(), Server::shared().database());
    let store = open(&old).await;
    let run = later::work(&store).await;
    store.close().await;
    prepare(options(&old), later::schema()).await.unwrap();
    prepare(options(&new), later::schema()).await.unwrap();
    assert_eq!((version(&old), version(&new)), (SCHEMA.version() + 2, SCHEMA.version() + 2));
    assert_eq!(objects(&old), objects(&new), "an old database is like a new one");
    assert_eq!(old.text(&format!("SELECT mood FROM posse.runs WHERE id = '{run}'")), "glad");
    prepare(options(&old), later::schema()).await.unwrap();
    // The program before refuses it now.
    match PostgresStore::open(options(&old)).await {
        Err(StoreError::NewerDatabase { found, known, .. }) => {
            assert_eq!((found, known), (SCHEMA.version() + 2, SCHEMA.version()));
        }
        other => panic!("{:?}", other.err()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_the_version_before_go_on() {
    let database = Server::shared().database();
    let store = open(&database).await;
    let mut runs = vec![later::work(&store).await];
    let is_done = AtomicBool::new(false);
    let migrating = async {
        prepare(options(&database), later::schema()).await.unwrap();
        is_done.store(true, Ordering::SeqCst);
    };
    let working = async {
        while !is_done.load(Ordering::SeqCst) {
            runs.push(later::work(&store).await);
        }
        runs.push(later::work(&store).await);
    };
    tokio::join!(migrating, working);
    assert_eq!(version(&database), SCHEMA.version() + 2);
    assert_eq!(store.list(&crate::Filter::default()).await.unwrap().len(), runs.len());
    store.close().await;
    let query = format!("SELECT mood FROM posse.runs WHERE id = '{}'", runs[runs.len() - 1]);
    assert_eq!(database.text(&query), "calm", "an old worker wrote the default");
}

#[tokio::test]
async fn a_migration_that_fails_changes_nothing() {
    let database = Server::shared().database();
    let store = open(&database).await;
    let before = objects(&database);
    let error = prepare(options(&database), later::broken()).await.err().unwrap();
    assert!(error.to_string().contains("does not exist"), "{error}");
    assert_eq!((version(&database), objects(&database)), (SCHEMA.version(), before));
    later::work(&store).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_migrate_at_once_do_it_once() {
    let database = Server::shared().database();
    open(&database).await.close().await;
    let mut preparing = tokio::task::JoinSet::new();
    for _ in 0..6 {
        preparing.spawn(prepare(options(&database), later::schema()));
    }
    while let Some(prepared) = preparing.join_next().await {
        prepared.unwrap().unwrap();
    }
    assert_eq!(version(&database), SCHEMA.version() + 2);
}
