//! How a runtime is set up.

use crate::agents::{LiveCatalog, Sources};
use crate::config::{DEFAULT_CHILDREN, Lifecycle};
use crate::lanes::LaneCaps;
use crate::redact::Redactor;
use crate::rule_files::RuleFiles;
use crate::skills::LiveSkills;
use crate::surroundings::{ByFolder, Surroundings};
use crate::tool_facts::ToolFacts;
use crate::webhooks::Webhook;
use posse_agent::{Patience, Tool};
use posse_model::{Cassette, Catalog, HostModel, Keys, Pacing};
use posse_protocol::{
    Budget, DelegationStrategy, Effect, Effort, Limits, Mode, Network, Permissions, RunId,
    SubagentRules,
};
use posse_store::Durability;
use posse_tools::launch::Launcher;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a runtime is set up.
#[derive(Clone)]
pub struct RuntimeConfig {
    /// The database file.
    pub database: PathBuf,
    /// What an acknowledged event survives.
    pub durability: Durability,
    /// What is needed to reach models.
    pub keys: Keys,
    /// The vendors and models there are.
    pub catalog: Catalog,
    /// The model of runs and agents that name none, as `vendor/name`. Without it, what can be had
    /// here is taken; see [`crate::Runtime::choice`].
    pub model: Option<String>,
    /// The models to go on with when that one cannot be had.
    pub fallbacks: Vec<String>,
    /// The model of agents that ask for a small one; without it, their caller's.
    pub small_model: Option<String>,
    /// The model of agents that ask for one that plans; without it, their caller's.
    pub plan_model: Option<String>,
    /// How agents come to hand work to others.
    pub strategy: DelegationStrategy,
    /// Levels of runs below a root whose agent does not say; 0 allows no delegation.
    pub max_depth: u32,
    /// What runs may start, and how; each of these holds, the first that fills something in counts.
    pub subagents: Vec<SubagentRules>,
    /// How long no result must have come before those there are, are told together.
    pub quiet: Duration,
    /// How hard models are to think when neither the run nor its agent says.
    pub effort: Option<Effort>,
    /// How long runs put up with a provider in trouble.
    pub patience: Patience,
    /// How long a reply may make no progress before it is given up.
    pub stall: Duration,
    /// Whether calls wait until their provider takes them.
    pub pacing: Pacing,
    /// Models that the host brings along, beside those of the catalog. From the beginning they are
    /// those of [`built_in_models`](crate::built_in_models): push to add one, and assign to have no
    /// others. `Runtime::open` refuses names that the catalog has.
    pub models: Vec<HostModel>,
    /// What is said to models is recorded here, or taken from here in place of the network.
    pub cassette: Option<Cassette>,
    /// How far runs may go when neither they nor their agent say.
    pub limits: Limits,
    /// How much a root and everything below it may spend together when neither it nor its agent
    /// says.
    pub budget: Budget,
    /// How calls are decided that no rule decides, unless a run says otherwise.
    pub mode: Mode,
    /// Rules about calls of all runs. What they deny or ask about holds for runs that began before.
    pub permissions: Permissions,
    /// Where further rules are looked for, by the folder that a run works in. They deny or ask, and
    /// never allow. Without it no file is looked at.
    pub rule_files: Option<RuleFiles>,
    /// Whom the processes of runs may talk to, unless a run says otherwise.
    pub network: Network,
    /// The user's home folder, for rules with `~/`.
    pub home: Option<PathBuf>,
    /// The agents there are.
    pub agents: LiveCatalog,
    /// The skills there are.
    pub skills: LiveSkills,
    /// Agents and skills of the folder that a run works in, in place of the two above: for a
    /// runtime that executes what others have stored, wherever that is.
    pub by_folder: Option<ByFolder>,
    /// Tools of the host, beside the built-in ones. Those with the effect `Write`, `Execute` or
    /// `Network` need somebody who lets them run: a rule (`permissions.allow = ["mine"]`), or a run
    /// that is `attended` and [`crate::Runtime::decide`]. Without either their calls are refused.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Starts processes. Without it there is no shell.
    pub launcher: Option<Launcher>,
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
    /// Who outside is told of the ends of runs. Their names differ.
    pub webhooks: Vec<Webhook>,
    /// What becomes of runs that have ended.
    pub lifecycle: Lifecycle,
    /// What is to be stored nowhere and told to no agent, beside the keys themselves.
    pub redactor: Redactor,
}

impl RuntimeConfig {
    /// The database at `database`, models reached with `keys`, everything else as it should be.
    pub fn new(database: impl Into<PathBuf>, keys: Keys) -> Self {
        RuntimeConfig {
            database: database.into(),
            durability: Durability::Power,
            keys,
            catalog: Catalog::built_in(),
            model: None,
            fallbacks: Vec::new(),
            small_model: None,
            plan_model: None,
            strategy: DelegationStrategy::Auto,
            max_depth: 1,
            subagents: Vec::new(),
            quiet: crate::config::subagents::QUIET,
            effort: None,
            patience: Patience::default(),
            stall: posse_model::Options::default().stall,
            pacing: Pacing::default(),
            models: crate::built_in::built_in_models(),
            cassette: None,
            limits: Limits::default(),
            budget: Budget { children: Some(DEFAULT_CHILDREN), ..Budget::default() },
            mode: Mode::default(),
            permissions: Permissions::default(),
            rule_files: None,
            network: Network::Off,
            home: None,
            // Those that are built in; read when they are needed, if no others are put here.
            agents: LiveCatalog::unread(Sources::default()),
            skills: LiveSkills::default(),
            by_folder: None,
            tools: Vec::new(),
            launcher: None,
            max_concurrent: crate::config::MOST_RUNS,
            lanes: LaneCaps::default(),
            recovery: Recovery::Continue,
            stall_after: crate::stall::USUAL,
            shutdown_after: Duration::from_secs(5),
            webhooks: Vec::new(),
            lifecycle: Lifecycle::default(),
            redactor: Redactor::default(),
        }
    }
}

/// Says no more than what tells it from others: much of it is secret, or long.
impl fmt::Debug for RuntimeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeConfig")
            .field("database", &self.database)
            .field("model", &self.model)
            .field("max_concurrent", &self.max_concurrent)
            .field("recovery", &self.recovery)
            .finish_non_exhaustive()
    }
}

impl RuntimeConfig {
    /// The tools that runs of this runtime can have.
    pub(crate) fn tool_facts(&self) -> Vec<ToolFacts> {
        let mut facts = ToolFacts::built_in();
        facts.retain(|tool| self.launcher.is_some() || tool.effect != Effect::Execute);
        facts.extend(self.tools.iter().map(|tool| ToolFacts::of(tool.as_ref())));
        facts
    }

    /// The launcher, which hides from commands what is the runtime's own.
    pub(crate) fn confining_launcher(&self) -> Option<Launcher> {
        let database = std::path::absolute(&self.database).unwrap_or(self.database.clone());
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
        let database = std::path::absolute(&self.database);
        let mut path = database.unwrap_or_else(|_| self.database.clone()).into_os_string();
        path.push(ending);
        path.into()
    }
}

impl RuntimeConfig {
    /// What stands around runs in `folder`.
    pub(crate) fn around(&self, folder: &Path) -> Surroundings {
        let settle = |found: &Surroundings| {
            found.agents.settle_in(self.tool_facts(), &self.limits, &self.budget);
        };
        match &self.by_folder {
            Some(folders) => folders.at(folder, settle),
            None => Surroundings { agents: self.agents.clone(), skills: self.skills.clone() },
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
