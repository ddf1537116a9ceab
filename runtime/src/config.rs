//! Settings: defaults, the user's file, the project's file. Later layers win, and every value
//! knows where it came from. Reads files that it is pointed to; never the environment.

mod agents;
mod always;
mod budget;
mod command;
mod file;
mod lanes;
mod lifecycle;
mod limits;
mod origin;
mod patience;
mod permissions;
mod project;
mod skills;
pub(crate) mod subagents;
mod webhooks;
mod words;

pub use agents::AgentTable;
pub use always::allow_always;
pub use budget::{BudgetSettings, DEFAULT_CHILDREN, parse_budget};
pub use command::CommandSettings;
pub use file::AutoResume;
pub use lanes::LaneSettings;
pub use lifecycle::{Lifecycle, LifecycleSettings};
pub use limits::LimitSettings;
pub use origin::{Origin, Setting};
pub use patience::PatienceSettings;
pub use permissions::PermissionSettings;
pub use skills::SkillSettings;
pub use subagents::SubagentSettings;
pub use webhooks::WebhookSettings;

pub use crate::limits::{parse_duration, parse_size};

pub(crate) use file::read_text;
pub(crate) use permissions::project_rules;

use crate::limits::DEEPEST;
use crate::trust::{self, Trustees};
use file::File;
use posse_model::Catalog;
use posse_protocol::{AgentName, DelegationStrategy, Effort};
use posse_store::Durability;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs that one process executes at the same time, unless a setting says otherwise. A run costs
/// little; commands have a cap of their own, and providers say what they take.
pub(crate) const MOST_RUNS: usize = 4096;

/// The effective settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The model of runs and agents that name none, and after it those to go on with when it
    /// cannot be had. Empty when nobody names any.
    pub model: Setting<Vec<String>>,
    /// The model of agents that ask for a `small` one; without it, their caller's.
    pub small_model: Setting<Option<String>>,
    /// The model of agents that ask for one to `plan` with; without it, their caller's.
    pub plan_model: Setting<Option<String>>,
    /// How hard models are to think when neither the run nor its agent says.
    pub effort: Setting<Option<Effort>>,
    /// The agent of runs that name none.
    pub agent: Setting<AgentName>,
    /// Runs executed at the same time.
    pub max_concurrent: Setting<usize>,
    /// How many of these may be of one kind.
    pub lanes: LaneSettings,
    /// Levels of runs that may stand below a run whose agent says nothing else.
    pub max_depth: Setting<u32>,
    /// How agents come to hand work to others.
    pub strategy: Setting<DelegationStrategy>,
    /// Folders of plugins, absolute.
    pub plugins: Setting<Vec<PathBuf>>,
    /// Whether unfinished runs go on by themselves.
    pub recovery: Setting<AutoResume>,
    /// How long a run's tools may show no sign of life before it is taken up anew; zero is for
    /// ever.
    pub stall_after: Setting<Duration>,
    /// What an acknowledged event survives.
    pub durability: Setting<Durability>,
    /// What becomes of runs that have ended.
    pub lifecycle: LifecycleSettings,
    /// How far runs may go that say nothing else.
    pub limits: LimitSettings,
    /// What any one command may use of the machine.
    pub command: CommandSettings,
    /// How much a root and everything below it may spend together when neither it nor its agent
    /// says.
    pub budget: BudgetSettings,
    /// How long runs put up with a provider in trouble.
    pub patience: PatienceSettings,
    /// Rules about calls, and how those are decided that no rule decides.
    pub permissions: PermissionSettings,
    /// Vendors and models: those that come with Posse, and what the user adds.
    pub catalog: Setting<Catalog>,
    /// Agents that the files define or change, the user's first.
    pub agents: Vec<Setting<AgentTable>>,
    /// Which skills runs have.
    pub skills: SkillSettings,
    /// What runs may start, and how.
    pub subagents: SubagentSettings,
    /// Who outside is told of the ends of runs.
    pub webhooks: Vec<Setting<WebhookSettings>>,
    /// Keys that the project's file sets and that have no effect, because nobody trusts it.
    pub held_back: Vec<Setting<&'static str>>,
    /// What has no effect for another reason, in words.
    pub warnings: Vec<Setting<String>>,
}

/// A settings file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It is not what it should be.
    #[error("{path}{}: {reason}", place(.at))]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// Line and column, where they are known.
        at: Option<(u32, u32)>,
        /// What and where.
        reason: String,
    },
    /// It cannot be changed.
    #[error("cannot write {path}: {reason}")]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A project may not set this.
    #[error(
        "{path}:{line}: a project may not set `{key}`; it belongs into the user's own settings \
         ({user})"
    )]
    NotForProjects {
        /// Which file.
        path: PathBuf,
        /// Where it stands there.
        line: u32,
        /// Which key.
        key: &'static str,
        /// Where it may stand.
        user: String,
    },
}

impl ConfigError {
    /// Which file.
    pub fn path(&self) -> &Path {
        match self {
            ConfigError::Unreadable { path, .. }
            | ConfigError::Invalid { path, .. }
            | ConfigError::Unwritable { path, .. }
            | ConfigError::NotForProjects { path, .. } => path,
        }
    }

    /// At which line, where that is known, and what is wrong, without the name of the file.
    pub fn told(&self) -> (Option<u32>, String) {
        let told = self.to_string();
        let (line, place) = match self {
            ConfigError::NotForProjects { line, .. } => (Some(*line), format!(":{line}")),
            ConfigError::Invalid { at, .. } => (at.map(|(line, _)| line), place(at)),
            _ => (None, String::new()),
        };
        let place = format!("{}{place}: ", self.path().display());
        (line, told.strip_prefix(&place).unwrap_or(&told).to_owned())
    }
}

/// A place in a file, as it stands after the file's name.
fn place(at: &Option<(u32, u32)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}

/// Where settings are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The user's file, whether it exists or not.
    pub user: Option<PathBuf>,
    /// The project's file, whether it exists or not.
    pub project: Option<PathBuf>,
    /// Whom the user trusts. What nobody trusts can only narrow.
    pub trust: Trustees,
}

impl Config {
    /// What the role called `word` stands for; nothing when `word` is no role. A role that nobody fills
    /// leaves the model to others.
    pub fn role(&self, word: &str) -> Option<&Setting<Option<String>>> {
        match word {
            "small" => Some(&self.small_model),
            "plan" => Some(&self.plan_model),
            _ => None,
        }
    }

    /// The settings that `sources` give. A file that does not exist sets nothing.
    ///
    /// # Errors
    /// When a file cannot be read or understood, or sets what it may not.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut config = Config::default();
        if let Some(path) = &sources.user
            && let Some((file, text)) = file::read(path)?
        {
            config.apply(file, &text, path, &Origin::User(path.clone()))?;
        }
        if let Some(path) = &sources.project
            && let Some((mut file, text)) = file::read(path)?
        {
            project::check(&file, &text, path, sources)?;
            if !sources.trust.verdict(&trust::folder_of(path)).of_settings().is_trusted() {
                let held_back = file.hold_back().into_iter();
                let origin = || Origin::Project(path.clone());
                config.held_back =
                    held_back.map(|value| Setting { value, origin: origin() }).collect();
            }
            config.apply(file, &text, path, &Origin::Project(path.clone()))?;
        }
        Ok(config)
    }

    fn apply(
        &mut self,
        mut file: File,
        text: &str,
        path: &Path,
        origin: &Origin,
    ) -> Result<(), ConfigError> {
        let invalid = |reason: String| words::unusable(path, text, reason);
        self.durability.set(file.durability(), origin);
        let additions = file.additions();
        if !additions.is_empty() {
            let catalog = Catalog::with(additions).map_err(|error| invalid(error.to_string()))?;
            self.catalog.set(Some(catalog), origin);
        }
        let models = Some(file.model).filter(|models| !models.is_empty());
        self.model.set(models, origin);
        self.small_model.set_some(file.small_model, origin);
        self.plan_model.set_some(file.plan_model, origin);
        self.effort.set_some(file.effort, origin);
        self.agent.set(file.agent, origin);
        self.max_concurrent.set(file.max_concurrent, origin);
        self.recovery.set(file.recovery, origin);
        let stall_after = file.stall_after.as_deref().map(stall_after).transpose();
        self.stall_after.set(stall_after.map_err(invalid)?, origin);
        if self.max_concurrent.value == 0 {
            return Err(invalid("`max_concurrent` must be at least 1".to_owned()));
        }
        // `[subagents]` has other words for two of the settings.
        let minutes = file.archive_after_minutes.or(file.subagents.archive_after_minutes);
        let days = file.retention_days;
        file.lanes.per_parent =
            file.lanes.per_parent.or(file.subagents.max_concurrent.map(|most| most as usize));
        self.lifecycle.set(minutes, days, origin).map_err(invalid)?;
        self.lanes.set(file.lanes, &self.catalog.value, origin).map_err(invalid)?;
        self.patience.set(file.patience, origin).map_err(invalid)?;
        self.permissions.add(file.permissions, origin).map_err(invalid)?;
        self.limits.narrow(file.limits.check().map_err(invalid)?, origin);
        self.command.narrow(file.command, origin).map_err(invalid)?;
        self.budget.set(file.budget.check().map_err(invalid)?, origin);
        if let Some(depth) = file.max_depth.filter(|depth| *depth > DEEPEST) {
            return Err(invalid(format!("`max_depth` is {depth}: it can be 0 to {DEEPEST}")));
        }
        // Deeper means more runs and more money: a project can only ask for less.
        let is_project = matches!(origin, Origin::Project(_));
        let allowed = |depth: &u32| !is_project || *depth < self.max_depth.value;
        let depth = file.max_depth.filter(allowed);
        self.max_depth.set(depth, origin);
        self.strategy.set(file.strategy, origin);
        let beside = path.parent().unwrap_or(path);
        let plugins =
            file.plugins.map(|all| all.iter().map(|plugin| beside.join(plugin)).collect());
        self.plugins.set(plugins, origin);
        self.skills.narrow(file.skills, beside, origin);
        // Children that may have children: a project cannot ask for that, only for less.
        let nested =
            file.subagents.depth().filter(|depth| !is_project || *depth < self.max_depth.value);
        self.max_depth.set(nested.filter(|_| file.max_depth.is_none()), origin);
        let odd = self.subagents.narrow(file.subagents, origin).map_err(invalid)?;
        let told = |value| Setting { value, origin: origin.clone() };
        self.warnings.extend(odd.into_iter().map(told));
        for webhook in file.webhooks {
            let value = WebhookSettings::read(webhook).map_err(invalid)?;
            let same = |known: &Setting<WebhookSettings>| known.value.name() == value.name();
            if self.webhooks.iter().any(same) {
                let name = value.name();
                return Err(invalid(format!(
                    "there are two webhooks `{name}`; give one of them another name"
                )));
            }
            self.webhooks.push(Setting { value, origin: origin.clone() });
        }
        let first = self.agents.len();
        for (name, agent) in file.agents {
            let same = |known: &Setting<AgentTable>| {
                known.value.name.as_str().eq_ignore_ascii_case(name.as_str())
            };
            if self.agents[first..].iter().any(same) {
                return Err(invalid(format!(
                    "[agents.{name}] stands there twice, in different cases; keep one of them"
                )));
            }
            let value = AgentTable::new(name, agent, text);
            self.agents.push(Setting { value, origin: origin.clone() });
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            model: Setting::default(Vec::new()),
            small_model: Setting::default(None),
            plan_model: Setting::default(None),
            effort: Setting::default(None),
            agent: Setting::default(default_agent()),
            max_concurrent: Setting::default(MOST_RUNS),
            lanes: LaneSettings::open(),
            max_depth: Setting::default(1),
            strategy: Setting::default(DelegationStrategy::Auto),
            plugins: Setting::default(Vec::new()),
            recovery: Setting::default(AutoResume::Continue),
            stall_after: Setting::default(crate::stall::USUAL),
            durability: Setting::default(Durability::Power),
            lifecycle: LifecycleSettings::usual(),
            limits: LimitSettings::usual(),
            command: CommandSettings::usual(),
            budget: BudgetSettings::usual(),
            patience: PatienceSettings::usual(),
            permissions: PermissionSettings::usual(),
            catalog: Setting::default(Catalog::built_in()),
            agents: Vec::new(),
            skills: SkillSettings::all(),
            subagents: SubagentSettings::usual(),
            webhooks: Vec::new(),
            held_back: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// A time, or `off`.
fn stall_after(text: &str) -> Result<Duration, String> {
    match text {
        "off" => Ok(Duration::ZERO),
        time => {
            let time =
                parse_duration(time).map_err(|wrong| format!("`stall_after`: {wrong}, or off"));
            time.map(Duration::from_millis)
        }
    }
}

#[allow(clippy::expect_used)]
fn default_agent() -> AgentName {
    "general-purpose".parse().expect("a literal that is a name; see the tests of AgentName")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
