//! The conformance tests on PostgreSQL, with a private server.

use async_trait::async_trait;
use posse_protocol::{RunId, Seq};
use posse_store::conformance::{MovableClock, Subject, WallJump, Workers};
use posse_store::{PostgresOptions, PostgresStore, Store};
use posse_testkit::postgres::{Database, Server};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A separate database, with a schema for each name.
pub struct Servers {
    database: Database,
    clock: Arc<MovableClock>,
    /// A file with the offset of the clock of the server in milliseconds. The server reads it each
    /// time it is asked for the time.
    ahead: PathBuf,
    passed: Mutex<u128>,
    schemas: Mutex<HashMap<String, String>>,
    workers: Workers,
}

impl Servers {
    pub async fn new() -> Self {
        let database = Server::shared().database();
        let ahead = database.folder().join(format!("{}.clock", database.name()));
        std::fs::write(&ahead, "0").unwrap();
        let (schemas, workers) = (Mutex::default(), Workers::default());
        let (clock, passed) = (MovableClock::new(), Mutex::new(0));
        Servers { database, clock, ahead, passed, schemas, workers }
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    fn schema(&self, name: &str) -> String {
        let mut schemas = self.schemas.lock().unwrap();
        let next = format!("s{}", schemas.len());
        schemas.entry(name.to_owned()).or_insert(next).clone()
    }

    fn options(&self, schema: &str) -> PostgresOptions {
        PostgresOptions {
            schema: schema.to_owned(),
            lease: self.lease(),
            clock: self.clock.clone(),
            ..PostgresOptions::new(self.database.url())
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.ahead);
    }
}

#[async_trait]
impl Subject for Servers {
    async fn open(&self, name: &str) -> Arc<dyn Store> {
        let schema = self.schema(name);
        let store = self.workers.open(PostgresStore::open(self.options(&schema))).await.unwrap();
        let file = self.ahead.display();
        let change = format!(
            "CREATE OR REPLACE FUNCTION {schema}.posse_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS \
             $$ SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT) \
             + CAST(pg_read_file('{file}') AS BIGINT) $$"
        );
        self.database.execute(&change);
        store
    }

    async fn kill(&self, worker: Arc<dyn Store>) {
        self.workers.kill(worker).await;
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(1_000)
    }

    fn pass(&self, time: Duration) {
        let mut passed = self.passed.lock().unwrap();
        *passed += time.as_millis();
        // Rename, so that the server never reads a half-written file.
        let next = self.ahead.with_extension("next");
        std::fs::write(&next, passed.to_string()).unwrap();
        std::fs::rename(&next, &self.ahead).unwrap();
        self.clock.pass(time);
    }

    fn set_wall(&self, by: WallJump) {
        self.clock.set_wall(by);
    }

    async fn damage(&self, name: &str, run: RunId, seq: Seq) {
        let schema = self.schema(name);
        let change = format!(
            "UPDATE {schema}.events SET body = substr(body, 1, length(body) - 6) || '~' || \
             substr(body, length(body) - 4) WHERE run = '{run}' AND seq = {seq}"
        );
        self.database.execute(&change);
    }
}

posse_store::conformance_tests!(Servers::new().await);
