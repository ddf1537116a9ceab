//! What every test needs: a folder, a database, a fake model, a runtime.

use posse::protocol::{Event, Record, Seq};
use posse::store::{Options, PostgresOptions, SqliteStore, Store};
use posse::{Keys, RunHandle, RunId, RunSpec, Runtime, RuntimeConfig, Update};
use posse_testkit::postgres::{self, Database};
use posse_testkit::{FakeModel, Script};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub struct Bench {
    pub fake: FakeModel,
    pub runtime: Runtime,
    pub folder: TempDir,
    pub config: RuntimeConfig,
    /// The databases on a server, if the tests use one.
    servers: Vec<Database>,
}

impl Bench {
    pub async fn new(script: Script) -> Self {
        Bench::with(script, |config| config).await
    }

    pub async fn with(script: Script, adjust: impl FnOnce(RuntimeConfig) -> RuntimeConfig) -> Self {
        let fake = FakeModel::start(script).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let keys = Keys::default()
            .with("ANTHROPIC_API_KEY", "test")
            .with("ANTHROPIC_BASE_URL", fake.url());
        let base = RuntimeConfig::new(folder.path().join("runs.db"), keys);
        let server = postgres::wanted();
        let mut config = adjust({
            let mut config: RuntimeConfig = base;
            if let Some(server) = &server {
                config.storage.store = Some(Arc::new(PostgresOptions::new(server.url())));
            }
            config.models.model = Some("anthropic/claude-sonnet-4-5".into());
            config.scheduling.shutdown_after = Duration::from_millis(300);
            config
        });
        // The tools that tests bring along are the host's own: nobody is asked about them.
        let own = config.tools.iter().map(|tool| tool.spec().name.clone());
        config.permissions.rules.allow.extend(own.collect::<Vec<_>>());
        let runtime = Runtime::open(config.clone()).await.unwrap();
        let servers = server.into_iter().collect();
        Bench { fake, runtime, folder, config, servers }
    }

    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.work().join(name), text).unwrap();
    }

    pub fn spec(&self, prompt: &str) -> RunSpec {
        RunSpec::new("general-purpose".parse().unwrap(), prompt, self.work())
    }

    pub async fn start(&self, prompt: &str) -> RunHandle {
        self.runtime.start(self.spec(prompt)).await.unwrap()
    }

    /// Opens the store as another process does.
    pub async fn open_store(&self) -> Arc<dyn Store> {
        match &self.config.storage.store {
            Some(store) => store.open(None).await.unwrap(),
            None => {
                let options = Options::new(self.config.storage.database.clone());
                Arc::new(SqliteStore::open(options).await.unwrap())
            }
        }
    }

    /// Lets the runtime use a new database from the next `reopen` on.
    pub fn use_another_database(&mut self) {
        self.config.storage.database = self.folder.path().join("after.db");
        if let Some(server) = postgres::wanted() {
            self.config.storage.store = Some(Arc::new(PostgresOptions::new(server.url())));
            self.servers.push(server);
        }
    }

    /// Another runtime on the same database, as a process that starts anew.
    pub async fn reopen(&mut self) {
        self.runtime = Runtime::open(self.config.clone()).await.unwrap();
    }

    pub async fn log(&self, run: RunId) -> Vec<Record> {
        self.runtime.read(run, Seq::ZERO, usize::MAX).await.unwrap()
    }

    pub async fn kinds(&self, run: RunId) -> Vec<&'static str> {
        self.log(run).await.iter().map(|record| record.event.kind()).collect()
    }

    /// Waits until the log of `run` holds an event that `wanted` accepts.
    pub async fn until(&self, run: &RunHandle, wanted: impl Fn(&Event) -> bool) -> Record {
        let mut events = run.events(Seq::ZERO);
        within(async {
            while let Some(update) = events.next().await {
                if let Update::Event(record) = update.unwrap()
                    && wanted(&record.event)
                {
                    return *record;
                }
            }
            panic!("the run ended without it");
        })
        .await
    }
}

/// Nothing in a test takes longer than this, unless it hangs.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(posse_testkit::DEADLINE, work).await.expect("it hangs")
}

/// Polls until `done`, with a deadline.
pub async fn eventually(mut done: impl AsyncFnMut() -> bool) {
    within(async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
