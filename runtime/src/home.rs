//! Where a facade's runs live: a runtime of its own, and the temporary folder that it keeps its
//! runs in if nobody names a database.
//!
//! Nothing outlives its users. Whoever drops a run that is under way leaves a task behind that
//! stops it; whoever drops the last share of a household, one that shuts its runtime down.

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

/// Where the runs of [`mod@crate::query`] and [`crate::subagents`] are kept, and what they are
/// executed with.
///
/// Keys come from the host program; nothing here looks for them in the environment:
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
    /// In a temporary folder that goes when the last run has ended and nobody asks for another.
    /// Models are reached with these keys; without any, a local server or the offline model is
    /// taken.
    Temporary(Keys),
    /// As this configuration says, which may bring tools, agents and a launcher of its own. The
    /// runs stay in its database; those of others there are left alone.
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
    /// What a runtime is set up with here. A temporary one has no database yet.
    pub(crate) fn config(&self) -> RuntimeConfig {
        match self {
            Home::Kept(config) => RuntimeConfig::clone(config),
            Home::Temporary(keys) => {
                let mut config = RuntimeConfig::new("", keys.clone());
                // What goes with the process need not survive more than it does.
                config.storage.durability = Durability::Process;
                config.scheduling.shutdown_after = Duration::ZERO;
                config
            }
        }
    }

    /// A runtime that knows `agents` and no others. Of several of one name the last counts.
    pub(crate) async fn open(&self, agents: Vec<AgentSpec>) -> Result<Arc<Household>, Error> {
        // Who knows only some agents cannot go on with runs that may call others.
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
        Ok(Arc::new(Household { runtime, folder, tasks: Handle::current(), own: true }))
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

/// A home in use, shared by all that happens in it.
pub(crate) struct Household {
    pub(crate) runtime: Runtime,
    folder: Option<TempDir>,
    /// Runs what is left to do when there is nobody to wait for it.
    tasks: Handle,
    /// The runtime is to be shut down with it.
    own: bool,
}

impl Household {
    /// A household in the host's own runtime, which goes on without it.
    pub(crate) fn of(runtime: Runtime) -> Arc<Self> {
        Arc::new(Household { runtime, folder: None, tasks: Handle::current(), own: false })
    }

    /// Gives up a share. The last one takes down what is to go, and returns when that is done.
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

impl Drop for Household {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        let (runtime, folder) = (self.runtime.clone(), self.folder.take());
        // If this cannot run any more, the runtime's own tasks are gone too: dropping is enough.
        self.tasks.spawn(async move {
            runtime.shutdown().await;
            drop(folder);
        });
    }
}

/// Who stops a run that nobody waits for.
const NOBODY_WAITS: &str = "the host program, which does not wait for it any more";
/// How long a run may take to stop before it is left alone.
const STOPPING: Duration = Duration::from_secs(10);
/// How soon it is looked again whether a run is there that is just being stored.
const BEING_STORED: Duration = Duration::from_millis(5);

/// A run that stops when this is dropped.
pub(crate) struct Hold {
    household: Option<Arc<Household>>,
    run: RunHandle,
}

impl Hold {
    /// Takes hold of `run`, which may not have begun yet.
    pub(crate) fn new(household: Arc<Household>, run: RunHandle) -> Self {
        Hold { household: Some(household), run }
    }

    /// The run.
    pub(crate) fn run(&self) -> &RunHandle {
        &self.run
    }

    /// Lets go of a run that has ended or never began, and of the share in the household.
    pub(crate) async fn release(mut self) {
        if let Some(household) = self.household.take() {
            household.leave().await;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(household) = self.household.take() else { return };
        let run = self.run.clone();
        let tasks = household.tasks.clone();
        tasks.spawn(async move {
            // Either may be too late, and then there is nothing to do.
            let _ = tokio::time::timeout(STOPPING, stop(&household.runtime, &run)).await;
            household.leave().await;
        });
    }
}

/// Cancels `run` and waits for its end, and for that of all below it.
async fn stop(runtime: &Runtime, run: &RunHandle) -> Result<(), Error> {
    let cancel = || runtime.cancel(run.id(), NOBODY_WAITS, CancelScope::Run);
    let is_unborn = |error: &Error| matches!(error, Error::Store(StoreError::NotFound(_)));
    // Whoever asked for it may have gone while its first events were on their way.
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
