//! How a runtime is set up, in groups.

use crate::agents::{LiveCatalog, Sources};
use crate::config::{Config, DEFAULT_CHILDREN, Lifecycle};
use crate::lanes::LaneCaps;
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
    Budget, DelegationStrategy, Effect, Effort, Limits, Mode, Network, Permissions, RunId,
    SubagentRules,
};
use posse_store::{Durability, Memory, Scrub, Store, StoreError};
use posse_tools::ToolSource;
use posse_tools::launch::Launcher;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a runtime is set up: [`RuntimeConfig::new`], and then what is to be different. Or step by step,
/// with [`Runtime::builder`](crate::Runtime::builder).
#[derive(Clone)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// Where runs are kept.
    pub storage: Storage,
    /// The models there are, which of them runs use, and how they are called.
    pub models: ModelConfig,
    /// How agents hand work to others.
    pub delegation: DelegationConfig,
    /// What runs may do.
    pub permissions: PermissionConfig,
    /// Which runs are executed, how many, and for how long.
    pub scheduling: Scheduling,
    /// How far runs may go when neither they nor their agent say.
    pub limits: Limits,
    /// How much a root and everything below it may spend together when neither it nor its agent
    /// says.
    pub budget: Budget,
    /// The agents and skills there are.
    pub definitions: Definitions,
    /// Tools of the host, beside the built-in ones. Those with the effect `Write`, `Execute` or
    /// `Network` need somebody who lets them run, unless they change a file that a call names and the
    /// mode is [`Mode::AcceptEdits`]: a rule (`permissions.rules.allow = ["mine"]`), or a
    /// run that is `attended` and [`crate::Runtime::decide`]. Without either their calls are refused.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Sources that offer further tools when a run is prepared. Their names differ.
    pub tool_sources: Vec<Arc<dyn ToolSource>>,
    /// Starts processes. Without it there is no shell.
    pub launcher: Option<Launcher>,
    /// Who outside is told of the ends of runs. Their names differ.
    pub webhooks: Vec<Webhook>,
    /// What becomes of runs that have ended.
    pub lifecycle: Lifecycle,
}

/// Where runs are kept.
#[derive(Clone)]
#[non_exhaustive]
pub struct Storage {
    /// The database file, unless there is a `store`. What runs need besides lies beside it: their
    /// scratch folders and worktrees.
    pub database: PathBuf,
    /// What an acknowledged event survives.
    pub durability: Durability,
    /// Opens the store of the host, in place of one in the database file.
    pub store: Option<Arc<dyn OpenStore>>,
}

/// Opens a store. A [`Runtime`](crate::Runtime) does it once, when it opens.
#[async_trait]
pub trait OpenStore: Send + Sync {
    /// Opens the store. What `scrub` takes out must not be stored: keys, and what the host names.
    ///
    /// # Errors
    /// When the store cannot be used.
    async fn open(&self, scrub: Option<Arc<dyn Scrub>>) -> Result<Arc<dyn Store>, StoreError>;
}

/// A store in memory, for tests: gone with the last runtime that has it open.
#[async_trait]
impl OpenStore for Memory {
    async fn open(&self, scrub: Option<Arc<dyn Scrub>>) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(Memory::open_scrubbing(self, scrub)))
    }
}

/// The models there are, which of them runs use, and how they are called.
#[derive(Clone)]
#[non_exhaustive]
pub struct ModelConfig {
    /// What is needed to reach models.
    pub keys: Keys,
    /// The vendors and models there are.
    pub catalog: Catalog,
    /// Models that the host brings along, beside those of the catalog. From the beginning they are
    /// those of [`built_in_models`](crate::built_in_models): push to add one, and assign to have no
    /// others. `Runtime::open` refuses names that the catalog has.
    pub host: Vec<HostModel>,
    /// The model of runs and agents that name none, as `vendor/name`. Without it, one that can be used
    /// is chosen; see [`crate::Runtime::choice`].
    pub model: Option<String>,
    /// The fallback models, in this order.
    pub fallbacks: Vec<String>,
    /// The model of agents that ask for a small one; without it, their caller's.
    pub small_model: Option<String>,
    /// The model of agents that ask for one that plans; without it, their caller's.
    pub plan_model: Option<String>,
    /// The reasoning effort when neither the run nor its agent says.
    pub effort: Option<Effort>,
    /// How long runs put up with a provider in trouble.
    pub patience: Patience,
    /// How long a reply may make no progress before it is given up.
    pub stall: Duration,
    /// Whether calls wait until their provider takes them.
    pub pacing: Pacing,
    /// Calls are recorded here, or answered from here in place of the network.
    pub cassette: Option<Cassette>,
}

/// How agents hand work to others.
#[derive(Clone)]
#[non_exhaustive]
pub struct DelegationConfig {
    /// Whether agents are urged to hand work to others.
    pub strategy: DelegationStrategy,
    /// Levels of runs below a root whose agent does not say; 0 allows no delegation.
    pub max_depth: u32,
    /// What runs may start, and how. All restrictions apply; for defaults, the first layer that sets
    /// one wins.
    pub subagents: Vec<SubagentRules>,
    /// Debounce interval for `collect` announcements.
    pub quiet: Duration,
}

/// What runs may do.
#[derive(Clone)]
#[non_exhaustive]
pub struct PermissionConfig {
    /// How calls are decided that no rule decides, unless a run says otherwise.
    pub mode: Mode,
    /// Rules about calls of all runs. What they deny or ask about holds for runs that began before.
    pub rules: Permissions,
    /// Where further rules are looked for, by the folder that a run works in. They deny or ask, and
    /// never allow. Without it no file is looked at.
    pub rule_files: Option<RuleFiles>,
    /// Whom the processes of runs may talk to, unless a run says otherwise.
    pub network: Network,
    /// The user's home folder, for rules with `~/`.
    pub home: Option<PathBuf>,
    /// What is to be stored nowhere and told to no agent, beside the keys themselves.
    pub redactor: Redactor,
}

/// Which runs are executed, how many, and for how long.
#[derive(Clone)]
#[non_exhaustive]
pub struct Scheduling {
    /// Runs executed at the same time; more wait for their turn. 0 counts as 1.
    pub max_concurrent: usize,
    /// How many of these may be of one kind.
    pub lanes: LaneCaps,
    /// What becomes of unfinished runs that this runtime finds.
    pub recovery: Recovery,
    /// How long a run's tools may show no sign of life before it is taken up anew from its log;
    /// zero is for ever.
    pub stall_after: Duration,
    /// How long a shutdown waits for what is under way.
    pub shutdown_after: Duration,
}

/// The agents and skills there are.
#[derive(Clone)]
#[non_exhaustive]
pub struct Definitions {
    /// The agents there are.
    pub agents: LiveCatalog,
    /// The skills there are.
    pub skills: LiveSkills,
    /// Agents and skills of the folder that a run works in, in place of the two above: for a
    /// runtime that executes what others have stored, wherever that is.
    pub by_folder: Option<ByFolder>,
}

impl RuntimeConfig {
    /// The database at `database`, models reached with `keys`, everything else as it should be.
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
            },
            limits: Limits::default(),
            budget: Budget { children: Some(DEFAULT_CHILDREN), ..Budget::default() },
            definitions: Definitions {
                // Those that are built in; read when they are needed, if no others are put here.
                agents: LiveCatalog::unread(Sources::default()),
                skills: LiveSkills::default(),
                by_folder: None,
            },
            tools: Vec::new(),
            tool_sources: Vec::new(),
            launcher: None,
            webhooks: Vec::new(),
            lifecycle: Lifecycle::default(),
        }
    }

    /// Takes over what settings files say: models, limits, rules, delegation, scheduling, clean-up. What
    /// settings only name (keys, folders, webhooks with their secrets) is the caller's to find.
    pub fn apply(&mut self, settings: &Config) {
        self.storage.durability = settings.durability.value;
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
    }
}

/// Says no more than what tells it from others: much of it is secret, or long.
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

impl RuntimeConfig {
    /// The tools that runs of this runtime can have.
    pub(crate) fn tool_facts(&self) -> Vec<ToolFacts> {
        let mut facts = built_in_tools();
        facts.retain(|tool| self.launcher.is_some() || tool.effect != Effect::Execute);
        facts.extend(self.tools.iter().map(|tool| tool.spec().facts.clone()));
        facts.extend(self.tool_sources.iter().map(|source| of_source(source.name())));
        facts
    }

    /// The launcher, which hides from commands what is the runtime's own.
    pub(crate) fn confining_launcher(&self) -> Option<Launcher> {
        let database =
            std::path::absolute(&self.storage.database).unwrap_or(self.storage.database.clone());
        let beside = |ending: &str| {
            let mut path = database.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        let own = ["", "-wal", "-shm", "-journal"].map(beside).into_iter().chain([self.scratch()]);
        self.launcher.clone().map(|launcher| launcher.hiding(own))
    }

    /// Where the folders stand that are the runs' own.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.beside_the_database("-scratch")
    }

    /// Where the worktrees of runs stand.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.beside_the_database("-worktrees")
    }

    /// The folder that is `run`'s own, if its path has a name.
    pub(crate) fn scratch_of(&self, run: RunId) -> Option<String> {
        let path = self.scratch().join(run.to_string()).into_os_string();
        path.into_string().ok()
    }

    fn beside_the_database(&self, ending: &str) -> PathBuf {
        let database = std::path::absolute(&self.storage.database);
        let mut path = database.unwrap_or_else(|_| self.storage.database.clone()).into_os_string();
        path.push(ending);
        path.into()
    }
}

impl RuntimeConfig {
    /// What stands around runs in `folder`.
    pub(crate) fn around(&self, folder: &Path) -> Surroundings {
        let settle = |found: &Surroundings| {
            found.agents.configure(self.tool_facts(), &self.limits, &self.budget);
        };
        match &self.definitions.by_folder {
            Some(folders) => folders.at(folder, settle),
            None => Surroundings {
                agents: self.definitions.agents.clone(),
                skills: self.definitions.skills.clone(),
            },
        }
    }
}

/// What becomes of unfinished runs that a runtime finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// They go on by themselves.
    Continue,
    /// Those that work in this folder go on by themselves.
    ContinueIn(PathBuf),
    /// They wait for [`crate::Runtime::resume`].
    Wait,
}
