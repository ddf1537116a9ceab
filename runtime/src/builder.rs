//! Builds a runtime step by step.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::runtime_config::{OpenStore, RuntimeConfig};
use posse_agent::{Model, Tool};
use posse_model::{HostModel, Keys};
use posse_tools::ToolSource;
use posse_tools::launch::Launcher;
use std::path::PathBuf;
use std::sync::Arc;

/// Builds a runtime. Everything that you do not set has the default of [`RuntimeConfig::new`].
///
/// ```no_run
/// use posse::{Keys, Runtime};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let keys = Keys::default().with("ANTHROPIC_API_KEY", "sk-…");
/// let runtime = Runtime::builder("runs.db").keys(keys).default_model("sonnet").open().await?;
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open` is called"]
pub struct Builder {
    config: RuntimeConfig,
}

impl Runtime {
    /// Starts to build a runtime that keeps its runs in the file `database`.
    pub fn builder(database: impl Into<PathBuf>) -> Builder {
        Builder { config: RuntimeConfig::new(database, Keys::default()) }
    }
}

impl From<RuntimeConfig> for Builder {
    fn from(config: RuntimeConfig) -> Self {
        Builder { config }
    }
}

impl Builder {
    /// Keeps runs in another store: a database on a server
    /// ([`PostgresOptions`](posse_store::PostgresOptions)), [`Memory`](posse_store::Memory) for tests,
    /// or your own. Other files of runs, such as scratch folders, are next to the path of the database
    /// file.
    pub fn store(mut self, store: impl OpenStore + 'static) -> Self {
        self.config.storage.store = Some(Arc::new(store));
        self
    }

    /// Sets the API keys.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.config.models.keys = keys;
        self
    }

    /// Sets the model of runs and agents that name none, as `vendor/name`.
    pub fn default_model(mut self, name: impl Into<String>) -> Self {
        self.config.models.model = Some(name.into());
        self
    }

    /// Adds a model of the host. Its `info` gives its name, as `vendor/name`.
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.config.models.host.push(HostModel::new(Arc::new(model)));
        self
    }

    /// Adds a tool of the host; see [`RuntimeConfig::tools`].
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.config.tools.push(Arc::new(tool));
        self
    }

    /// Adds a source of tools, which is asked when a run is prepared; see
    /// [`RuntimeConfig::tool_sources`].
    pub fn tool_source(mut self, source: impl ToolSource + 'static) -> Self {
        self.config.tool_sources.push(Arc::new(source));
        self
    }

    /// Lets agents run commands.
    pub fn launcher(mut self, launcher: Launcher) -> Self {
        self.config.launcher = Some(launcher);
        self
    }

    /// Changes any other part of the configuration.
    pub fn with(mut self, change: impl FnOnce(&mut RuntimeConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Opens the runtime, as [`Runtime::open`] does.
    ///
    /// # Errors
    /// As [`Runtime::open`].
    pub async fn open(self) -> Result<Runtime, Error> {
        Runtime::open(self.config).await
    }
}
