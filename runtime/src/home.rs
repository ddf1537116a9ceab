//! The home of the runs of a facade: a runtime, and a temporary folder for its runs if the caller
//! names no database.
//!
//! Nothing outlives its users. Dropping a handle of an unfinished run spawns a task that cancels
//! the run. Dropping the last share of a shared_home spawns a task that shuts its runtime down.

use crate::agents::AgentCatalog;
use crate::error::Error;
use crate::handle::RunHandle;
use crate::runtime::Runtime;
use crate::runtime_config::{Recovery, RuntimeConfig};
use posse_model::Keys;
use posse_protocol::{AgentSpec, CancelScope};
use posse_store::{Durability, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Handle;

/// Where the runs of [`mod@crate::query`] and [`crate::subagents`] are stored, and the
/// configuration that executes them.
///
/// Keys come from the host. This module does not look for them in the environment:
///
/// ```no_run
/// use posse::{Catalog, Home, Keys};
///
/// // One by one, or all that the environment has.
/// let home: Home = Keys::default().with("ANTHROPIC_API_KEY", "sk-…").into();
/// let home: Home = Keys::collect(&Catalog::built_in(), |name| std::env::var(name).ok()).into();
/// ```
#[derive(Clone)]
pub enum Home {
    /// A temporary folder, which is removed when the last run has ended and no user is left. Models
    /// are called with these keys. Without keys, a local server or the offline model is used.
    Temporary(Keys),
    /// This configuration, which may have tools, agents and a launcher of its own. The runs stay in
    /// its database. Other runs in the database are left alone.
    Kept(Box<RuntimeConfig>),
}

impl Default for Home {
    fn default() -> Self {
        Home::Temporary(Keys::default())
    }
}

impl From<Keys> for Home {
    fn from(keys: Keys) -> Self {
        Home::Temporary(keys)
    }
}

impl From<RuntimeConfig> for Home {
    fn from(config: RuntimeConfig) -> Self {
        Home::Kept(Box::new(config))
    }
}

impl Home {
    /// The configuration of the runtime. A temporary home has no database yet.
    pub(crate) fn config(&self) -> RuntimeConfig {
        match self {
            Home::Kept(config) => RuntimeConfig::clone(config),
            Home::Temporary(keys) => {
                let mut config = RuntimeConfig::new("", keys.clone());
                // Runs that are removed with the process need not survive a loss of power.
                config.storage.durability = Durability::Process;
                config.scheduling.shutdown_after = Duration::ZERO;
                config
            }
        }
    }

    /// Opens a runtime that knows only `agents`. Of several agents with one name, the last wins.
    pub(crate) async fn open(&self, agents: Vec<AgentSpec>) -> Result<Arc<SharedHome>, Error> {
        // A runtime that knows only some agents cannot continue runs that may call others.
        let mut config = self.config();
        config.scheduling.recovery = Recovery::Wait;
        let folder = match self {
            Home::Kept(_) => None,
            Home::Temporary(_) => Some(temporary_folder()?),
        };
        if let Some(folder) = &folder {
            config.storage.database = folder.path().join("runs.db");
        }
        let mut catalog = AgentCatalog::of(Vec::new(), Vec::new());
        agents.into_iter().for_each(|agent| catalog.set(agent));
        config.definitions.agents = catalog.into();
        let runtime = Runtime::open(config).await?;
        Ok(Arc::new(SharedHome { runtime, folder, tasks: Handle::current(), own: true }))
    }
}

fn temporary_folder() -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix("posse-").tempdir().map_err(|error| {
        Error::Store(StoreError::Unusable {
            path: "a temporary folder".to_owned(),
            reason: format!("{error}; or name a database with `Home::Kept`"),
        })
    })
}

/// A home in use, shared by all its runs.
pub(crate) struct SharedHome {
    pub(crate) runtime: Runtime,
    folder: Option<TempDir>,
    /// Runs the cleanup after a drop, which cannot wait.
    tasks: Handle,
    /// True when the runtime is shut down with the shared_home.
    own: bool,
}

impl SharedHome {
    /// A shared_home in the host's own runtime, which continues without it.
    pub(crate) fn of(runtime: Runtime) -> Arc<Self> {
        Arc::new(SharedHome { runtime, folder: None, tasks: Handle::current(), own: false })
    }

    /// Gives up a share. The last one waits for the shutdown and removes the folder.
    pub(crate) async fn leave(self: Arc<Self>) {
        if let Some(mut last) = Arc::into_inner(self)
            && last.own
        {
            last.runtime.shutdown().await;
            drop(last.folder.take());
            last.own = false;
        }
    }
}

impl Drop for SharedHome {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        let (runtime, folder) = (self.runtime.clone(), self.folder.take());
        // If this task cannot run, the tasks of the runtime are gone, too. Then a drop is enough.
        self.tasks.spawn(async move {
            runtime.shutdown().await;
            drop(folder);
        });
    }
}

/// Who cancels an abandoned run, in words.
const NOBODY_WAITS: &str = "the host program, which does not wait for it any more";
/// How long to wait for a run to stop.
const STOPPING: Duration = Duration::from_secs(10);
/// How often to check whether a run that is being stored is there.
const BEING_STORED: Duration = Duration::from_millis(5);

/// A handle that cancels its run when it is dropped.
pub(crate) struct Hold {
    shared_home: Option<Arc<SharedHome>>,
    run: RunHandle,
}

impl Hold {
    /// Holds `run`, which may not have started yet.
    pub(crate) fn new(shared_home: Arc<SharedHome>, run: RunHandle) -> Self {
        Hold { shared_home: Some(shared_home), run }
    }

    /// The run.
    pub(crate) fn run(&self) -> &RunHandle {
        &self.run
    }

    /// Releases a run that has ended or never started, and the share of the shared_home.
    pub(crate) async fn release(mut self) {
        if let Some(shared_home) = self.shared_home.take() {
            shared_home.leave().await;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(shared_home) = self.shared_home.take() else { return };
        let run = self.run.clone();
        let tasks = shared_home.tasks.clone();
        tasks.spawn(async move {
            // The run may have ended already; then there is nothing to do.
            let _ = tokio::time::timeout(STOPPING, stop(&shared_home.runtime, &run)).await;
            shared_home.leave().await;
        });
    }
}

/// Cancels `run` and waits until it and all its subagents have ended.
async fn stop(runtime: &Runtime, run: &RunHandle) -> Result<(), Error> {
    let cancel = || runtime.cancel(run.id(), NOBODY_WAITS, CancelScope::Run);
    let is_unborn = |error: &Error| matches!(error, Error::Store(StoreError::NotFound(_)));
    // The caller may have dropped the run while its first events were being stored.
    while let Err(error) = cancel().await {
        if !is_unborn(&error) || run.executed_here().is_none() {
            return Err(error);
        }
        tokio::time::sleep(BEING_STORED).await;
    }
    for row in run.tree().await? {
        runtime.handle(row.id).outcome().await?;
    }
    Ok(())
}
