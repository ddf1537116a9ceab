//! The suite that every store must pass, on SQLite.

use async_trait::async_trait;
use posse_store::conformance::{Subject, check};
use posse_store::{Options, SqliteStore, Store};
use std::sync::Arc;

struct Files(tempfile::TempDir);

#[async_trait]
impl Subject for Files {
    async fn open(&self, name: &str) -> Arc<dyn Store> {
        let options = Options::new(self.0.path().join(name).join("posse.db"));
        Arc::new(SqliteStore::open(options).await.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_passes_the_conformance_suite() {
    let subject = Files(tempfile::tempdir().unwrap());
    let passed = check(&subject).await.unwrap();
    assert!(passed.len() > 25, "{passed:?}");
}
