//! The configuration of a runtime, in groups.

use crate::agents::{LiveCatalog, Sources};
use crate::config::{Config, DEFAULT_CHILDREN, Lifecycle};
use crate::guidance::GuidanceSources;
use crate::lanes::LaneCaps;
use crate::mcp::McpServers;
use crate::redact::Redactor;
use crate::rule_files::RuleFiles;
use crate::skills::LiveSkills;
use crate::surroundings::{ByFolder, Surroundings};
use crate::tool_facts::{ToolFacts, built_in_tools, of_source};
use crate::webhooks::Webhook;
use async_trait::async_trait;
use posse_agent::{Patience, Tool};
use posse_model::{Cassette, Catalog, HostModel, Keys, Pacing};
use posse_protocol::{
    Budget, DelegationStrategy, Effect, Effort, Limits, Mode, Network, Permissions, RunId, Site,
    SubagentRules,
};
use posse_store::{
    Durability, Memory, PostgresOptions, PostgresStore, Scrub, SqliteStore, Store, StoreError,
    WorkerAbout,
};
use posse_tools::ToolSource;
use posse_tools::launch::Launcher;
use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The configuration of a runtime. Start with [`RuntimeConfig::new`] and change fields, or use
/// [`Runtime::builder`](crate::Runtime::builder).
#[derive(Clone)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// Where Posse stores runs.
    pub storage: Storage,
    /// All models, which of them runs use, and how Posse calls them.
    pub models: ModelConfig,
    /// How agents call other agents.
    pub delegation: DelegationConfig,
    /// What runs may do.
    pub permissions: PermissionConfig,
    /// Which runs are executed, how many, and for how long.
    pub scheduling: Scheduling,
    /// The limits of a run, if neither the run nor its agent sets them.
    pub limits: Limits,
    /// The budget of a root and all its subagents, if neither the root nor its agent sets one.
    pub budget: Budget,
    /// All agents and skills.
    pub definitions: Definitions,
    /// Tools of the host, in addition to the built-in ones. A call of a tool with the effect `Write`, `Execute` or
    /// `Network` needs permission: a rule (`permissions.rules.allow = ["mine"]`), or an `attended` run and
    /// [`crate::Runtime::decide`]. Otherwise Posse refuses it. In the mode [`Mode::AcceptEdits`], a call that changes a
    /// file it names needs no permission.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Sources that offer further tools when a run is prepared. Their names must differ.
    pub tool_sources: Vec<Arc<dyn ToolSource>>,
    /// The MCP servers of the user, and how those of projects are found.
    pub mcp: McpServers,
    /// Starts processes. Without it, agents have no shell.
    pub launcher: Option<Launcher>,
    /// The webhooks. Their names must differ.
    pub webhooks: Vec<Webhook>,
    /// What happens to runs that have ended.
    pub lifecycle: Lifecycle,
}

/// Where Posse stores runs.
#[derive(Clone)]
#[non_exhaustive]
pub struct Storage {
    /// The database file. With `store` there is no such file. In both cases, the scratch folders and worktrees of runs
    /// are next to this path.
    pub database: PathBuf,
    /// What a stored event survives.
    pub durability: Durability,
    /// Opens another store in place of the database file: [`PostgresOptions`], [`Memory`], or one of the host.
    pub store: Option<Arc<dyn OpenStore>>,
}

/// Opens a store. A [`Runtime`](crate::Runtime) calls it once, when it opens.
#[async_trait]
pub trait OpenStore: Send + Sync {
    /// Opens the store. It must not store the secrets that `scrub` removes: API keys, and those that the host names.
    ///
    /// # Errors
    /// When the store cannot be used.
    async fn open(&self, scrub: Option<Arc<dyn Scrub>>) -> Result<Arc<dyn Store>, StoreError>;
}

/// A store in memory, for tests. It is gone when the last runtime closes it.
#[async_trait]
impl OpenStore for Memory {
    async fn open(&self, scrub: Option<Arc<dyn Scrub>>) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(Memory::open_scrubbing(self, scrub)))
    }
}

/// A database on a PostgreSQL server, which processes on other machines can use too.
#[async_trait]
impl OpenStore for PostgresOptions {
    async fn open(&self, scrub: Option<Arc<dyn Scrub>>) -> Result<Arc<dyn Store>, StoreError> {
        let options = PostgresOptions { scrub, ..self.clone() };
        Ok(Arc::new(PostgresStore::open(options).await?))
    }
}

/// All models, which of them runs use, and how Posse calls them.
#[derive(Clone)]
#[non_exhaustive]
pub struct ModelConfig {
    /// The API keys and addresses to reach models.
    pub keys: Keys,
    /// All vendors and models.
    pub catalog: Catalog,
    /// Models of the host, in addition to those of the catalog. By default these are
    /// [`built_in_models`](crate::built_in_models): push to add one, assign to replace them. `Runtime::open` refuses
    /// names that the catalog has.
    pub host: Vec<HostModel>,
    /// The model of runs and agents that name none, as `vendor/name`. Without it, the runtime chooses an available one;
    /// see [`crate::Runtime::choice`].
    pub model: Option<String>,
    /// The fallback models, in this order.
    pub fallbacks: Vec<String>,
    /// The model of agents that ask for a small one; by default the model of their caller.
    pub small_model: Option<String>,
    /// The model of agents that ask for one to plan; by default the model of their caller.
    pub plan_model: Option<String>,
    /// The reasoning effort, if neither the run nor its agent sets it.
    pub effort: Option<Effort>,
    /// How often and how long Posse retries a model call.
    pub patience: Patience,
    /// How long a reply may make no progress before Posse gives it up.
    pub stall: Duration,
    /// Whether calls wait until their vendor accepts them.
    pub pacing: Pacing,
    /// Records model calls here, or answers them from here in place of the network.
    pub cassette: Option<Cassette>,
}

/// How agents call other agents.
#[derive(Clone)]
#[non_exhaustive]
pub struct DelegationConfig {
    /// Whether agents are encouraged to call other agents.
    pub strategy: DelegationStrategy,
    /// The greatest depth below a root whose agent sets none; 0 allows no delegation.
    pub max_depth: u32,
    /// What runs may start, and how. All restrictions apply; for defaults, the first layer that sets one wins.
    pub subagents: Vec<SubagentRules>,
    /// Debounce interval for `collect` announcements.
    pub quiet: Duration,
}

/// What runs may do.
#[derive(Clone)]
#[non_exhaustive]
pub struct PermissionConfig {
    /// How calls that match no rule are decided, unless the run sets another mode.
    pub mode: Mode,
    /// Rules for calls of all runs. Denials and rules that ask also apply to runs that began before.
    pub rules: Permissions,
    /// Finds further rules by the workspace of a run. They can deny or ask, but never allow. Without it, Posse reads no
    /// rule files.
    pub rule_files: Option<RuleFiles>,
    /// The hosts that processes of runs may connect to, unless the run sets others.
    pub network: Network,
    /// The user's home folder, for rules with `~/`.
    pub home: Option<PathBuf>,
    /// Secrets that Posse must not store or show to an agent, in addition to the API keys.
    pub redactor: Redactor,
}

/// Which runs this runtime executes, how many, and for how long.
#[derive(Clone)]
#[non_exhaustive]
pub struct Scheduling {
    /// How many runs are executed at the same time; the others wait in the queue. 0 counts as 1.
    pub max_concurrent: usize,
    /// How many of them may belong to one lane.
    pub lanes: LaneCaps,
    /// What happens to unfinished runs that this runtime finds.
    pub recovery: Recovery,
    /// How long the tools of a run may show no sign of life before the run restarts from its log; zero means for ever.
    pub stall_after: Duration,
    /// How long a shutdown waits for steps in progress.
    pub shutdown_after: Duration,
    /// What other processes know about this one, and which runs it takes. Its `host` also names the machine in whose
    /// folders new runs work.
    pub worker: WorkerAbout,
    /// Folders that are the same on every machine: any worker can execute runs in them.
    pub shared: Vec<PathBuf>,
}

/// All agents, skills and guidance files.
#[derive(Clone)]
#[non_exhaustive]
pub struct Definitions {
    /// The agents.
    pub agents: LiveCatalog,
    /// The skills.
    pub skills: LiveSkills,
    /// Where the guidance files are. By default nowhere.
    pub guidance: GuidanceSources,
    /// All of these by workspace, in place of those above: for a runtime that executes runs that other processes
    /// stored, in any folder.
    pub by_folder: Option<ByFolder>,
}

impl RuntimeConfig {
    /// Returns a configuration with this database, these keys, and defaults for everything else.
    pub fn new(database: impl Into<PathBuf>, keys: Keys) -> Self {
        RuntimeConfig {
            storage: Storage {
                database: database.into(),
                durability: Durability::Power,
                store: None,
            },
            models: ModelConfig {
                keys,
                catalog: Catalog::built_in(),
                host: crate::built_in::built_in_models(),
                model: None,
                fallbacks: Vec::new(),
                small_model: None,
                plan_model: None,
                effort: None,
                patience: Patience::default(),
                stall: posse_model::Options::default().stall,
                pacing: Pacing::default(),
                cassette: None,
            },
            delegation: DelegationConfig {
                strategy: DelegationStrategy::Auto,
                max_depth: 1,
                subagents: Vec::new(),
                quiet: crate::config::subagents::QUIET,
            },
            permissions: PermissionConfig {
                mode: Mode::default(),
                rules: Permissions::default(),
                rule_files: None,
                network: Network::Off,
                home: None,
                redactor: Redactor::default(),
            },
            scheduling: Scheduling {
                max_concurrent: crate::config::MOST_RUNS,
                lanes: LaneCaps::default(),
                recovery: Recovery::Continue,
                stall_after: crate::stall::USUAL,
                shutdown_after: Duration::from_secs(5),
                worker: WorkerAbout::default(),
                shared: Vec::new(),
            },
            limits: Limits::default(),
            budget: Budget { children: Some(DEFAULT_CHILDREN), ..Budget::default() },
            definitions: Definitions {
                // The built-in agents; read on first use, unless the caller replaces them.
                agents: LiveCatalog::unread(Sources::default()),
                skills: LiveSkills::default(),
                guidance: GuidanceSources::default(),
                by_folder: None,
            },
            tools: Vec::new(),
            tool_sources: Vec::new(),
            mcp: McpServers::default(),
            launcher: None,
            webhooks: Vec::new(),
            lifecycle: Lifecycle::default(),
        }
    }

    /// Applies settings files: models, limits, rules, delegation, scheduling, clean-up. The caller must resolve what
    /// settings only name: keys, folders, and webhooks with their secrets.
    pub fn apply(&mut self, settings: &Config) {
        self.storage.durability = settings.durability.value;
        self.scheduling.shared = settings.shared_folders.value.iter().map(PathBuf::from).collect();
        let mut models = settings.model.value.iter().cloned();
        self.models.catalog = settings.catalog().clone();
        self.models.model = models.next();
        self.models.fallbacks = models.collect();
        self.models.small_model = settings.small_model.value.clone();
        self.models.plan_model = settings.plan_model.value.clone();
        self.models.effort = settings.effort.value;
        self.models.patience = settings.patience.patience();
        self.models.stall = settings.patience.stall();
        self.delegation.strategy = settings.strategy.value;
        self.delegation.max_depth = settings.max_depth.value;
        self.delegation.subagents = settings.subagents.rules();
        self.delegation.quiet = settings.subagents.quiet();
        self.permissions.mode = settings.permissions.mode.value;
        self.permissions.rules = settings.permissions.permissions();
        self.limits = settings.limits.limits();
        self.budget = settings.budget.budget();
        self.lifecycle = settings.lifecycle();
        self.scheduling.max_concurrent = settings.max_concurrent.value;
        self.scheduling.lanes = settings.lanes.caps();
        self.scheduling.stall_after = settings.stall_after.value.0;
        self.mcp.own = settings.mcp_servers.clone();
    }
}

/// Prints only what distinguishes it from others: many fields are secret, or long.
impl fmt::Debug for RuntimeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeConfig")
            .field("database", &self.storage.database)
            .field("model", &self.models.model)
            .field("max_concurrent", &self.scheduling.max_concurrent)
            .field("recovery", &self.scheduling.recovery)
            .finish_non_exhaustive()
    }
}

/// The copies of a database that were made before migrations.
fn copies_of(database: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else {
        return Vec::new();
    };
    let mut start = name.to_owned();
    start.push("-before-");
    let is_copy =
        |found: &std::fs::DirEntry| found.file_name().as_bytes().starts_with(start.as_bytes());
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    found.filter(is_copy).map(|found| found.path()).collect()
}

impl RuntimeConfig {
    /// Returns the tools that runs of this runtime can have.
    pub(crate) fn tool_facts(&self) -> Vec<ToolFacts> {
        let mut facts = built_in_tools();
        facts.retain(|tool| self.launcher.is_some() || tool.effect != Effect::Execute);
        facts.extend(self.tools.iter().map(|tool| tool.spec().facts.clone()));
        facts.extend(self.tool_sources.iter().map(|source| of_source(source.name())));
        facts
    }

    /// Returns the names of the host's tools and tool sources.
    pub(crate) fn tools_of_host(&self) -> Vec<String> {
        let tools = self.tools.iter().map(|tool| tool.spec().facts.name.clone());
        tools.chain(self.tool_sources.iter().map(|source| source.name().to_owned())).collect()
    }

    /// Returns where `workspace`, a folder of this machine, is for other machines.
    pub(crate) fn site_of(&self, workspace: &str) -> Site {
        let name = &self.scheduling.worker.host;
        // The path of a workspace has no links.
        let is_within = |folder: &PathBuf| match folder.canonicalize() {
            Ok(real) => Path::new(workspace).starts_with(real),
            Err(_) => false,
        };
        let is_shared = self.scheduling.shared.iter().any(is_within);
        match name.is_empty() {
            true => Site::Here,
            false if is_shared => Site::Shared,
            false => Site::Host { name: name.clone() },
        }
    }

    /// Returns the launcher, which hides the files of the runtime from commands.
    pub(crate) fn confining_launcher(&self) -> Option<Launcher> {
        let given = &self.storage.database;
        let database = std::path::absolute(given).unwrap_or_else(|_| given.clone());
        // The engine keeps its files beside the file that a link names.
        let real = database.canonicalize().unwrap_or_else(|_| database.clone());
        let own = [&database, &real].into_iter().flat_map(|database| {
            SqliteStore::places(database).into_iter().chain(copies_of(database))
        });
        let own: BTreeSet<PathBuf> = own.collect();
        self.launcher.clone().map(|launcher| launcher.hiding(own))
    }

    /// Makes the folders beside a database in `workspace`, if they are missing: otherwise a command there could put
    /// links or folders of its own in their place. If Posse cannot make one now, the run that needs it fails and says why.
    pub(crate) fn hold_places_in(&self, workspace: &str) {
        let places = [self.worktrees(), self.repositories(), self.nowhere()];
        for place in places.iter().filter(|it| it.starts_with(workspace)) {
            let _ = std::fs::DirBuilder::new().mode(0o700).create(place);
        }
    }

    /// Returns the folder with the scratch folders of all runs.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.beside_the_database("-scratch")
    }

    /// Returns the folder with the worktrees of all runs.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.beside_the_database("-worktrees")
    }

    /// Returns the scratch folder of `run`, if its path is valid text.
    pub(crate) fn scratch_of(&self, run: RunId) -> Option<String> {
        let path = self.scratch().join(run.to_string()).into_os_string();
        path.into_string().ok()
    }

    /// Returns the folder with the copies of repositories.
    pub(crate) fn repositories(&self) -> PathBuf {
        self.beside_the_database("-repositories")
    }

    /// Returns the empty folder in which runs without files are.
    pub(crate) fn nowhere(&self) -> PathBuf {
        self.beside_the_database("-nowhere")
    }

    fn beside_the_database(&self, ending: &str) -> PathBuf {
        let database = std::path::absolute(&self.storage.database);
        let mut path = database.unwrap_or_else(|_| self.storage.database.clone()).into_os_string();
        path.push(ending);
        path.into()
    }
}

impl RuntimeConfig {
    /// Returns the agents, skills and guidance files for runs in `folder`.
    pub(crate) fn around(&self, folder: &Path) -> Surroundings {
        let settle = |found: &Surroundings| {
            found.agents.configure(self.tool_facts(), &self.limits, &self.budget);
        };
        match &self.definitions.by_folder {
            Some(folders) => folders.at(folder, settle),
            None => Surroundings {
                agents: self.definitions.agents.clone(),
                skills: self.definitions.skills.clone(),
                guidance: self.definitions.guidance.clone(),
            },
        }
    }
}

/// What happens to unfinished runs that a runtime finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// They continue by themselves.
    Continue,
    /// Those that work in this folder continue by themselves.
    ContinueIn(PathBuf),
    /// They wait for [`crate::Runtime::resume`].
    Wait,
}
