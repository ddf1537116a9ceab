//! The conformance tests on SQLite.

use crate::sample::tamper;
use async_trait::async_trait;
use posse_protocol::{RunId, Seq};
use posse_store::conformance::{MovableClock, Subject, WallJump, Workers};
use posse_store::{Options, SqliteStore, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

struct Files {
    folder: tempfile::TempDir,
    clock: Arc<MovableClock>,
    workers: Workers,
}

impl Files {
    fn new() -> Self {
        let (folder, workers) = (tempfile::tempdir().unwrap(), Workers::default());
        Files { folder, clock: MovableClock::new(), workers }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name).join("posse.db")
    }
}

#[async_trait]
impl Subject for Files {
    async fn open(&self, name: &str) -> Arc<dyn Store> {
        let (lease, clock) = (self.lease(), self.clock.clone());
        let options = Options { lease, clock, ..Options::new(self.file(name)) };
        self.workers.open(SqliteStore::open(options)).await.unwrap()
    }

    async fn kill(&self, worker: Arc<dyn Store>) {
        self.workers.kill(worker).await;
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(1_000)
    }

    fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    fn set_wall(&self, by: WallJump) {
        self.clock.set_wall(by);
    }

    async fn damage(&self, name: &str, run: RunId, seq: Seq) {
        let change = format!(
            "UPDATE events SET body = substr(body, 1, length(body) - 6) || '~' || \
             substr(body, length(body) - 4) WHERE run = '{run}' AND seq = {seq}"
        );
        tamper(&self.file(name), &change).await;
    }
}

posse_store::conformance_tests!(Files::new());
