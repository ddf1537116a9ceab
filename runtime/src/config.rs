//! Settings: defaults, the user's file, the project's file. Later layers win, and every value
//! knows where it came from. Reads files that it is pointed to; never the environment.

mod agents;
mod always;
pub(crate) mod budget;
mod command;
mod file;
mod lanes;
mod lifecycle;
pub(crate) mod limits;
mod origin;
mod patience;
mod permissions;
mod project;
mod skills;
pub(crate) mod subagents;
mod webhooks;

pub use agents::AgentTable;
pub use always::allow_always;
pub use budget::{BudgetSettings, DEFAULT_CHILDREN, parse_budget};
pub use command::CommandSettings;
pub use file::AutoResume;
pub use lanes::LaneSettings;
pub use lifecycle::LifecycleSettings;
pub use limits::{LimitSettings, parse_duration, parse_size};
pub use origin::{Origin, Setting};
pub use patience::PatienceSettings;
pub use permissions::PermissionSettings;
pub use skills::SkillSettings;
pub use subagents::SubagentSettings;
pub use webhooks::WebhookSettings;

use crate::delegation::DEEPEST;
use crate::trust::{self, Trustees};
use file::File;
use posse_model::Catalog;
use posse_protocol::{AgentName, DelegationStrategy, Effort};
use posse_store::Durability;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    #[error("{path}: {reason}")]
    Invalid {
        /// Which file.
        path: PathBuf,
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
    pub(crate) fn told(&self) -> (Option<u32>, String) {
        let line = match self {
            ConfigError::NotForProjects { line, .. } => Some(*line),
            _ => None,
        };
        let told = self.to_string();
        let place = match line {
            Some(line) => format!("{}:{line}: ", self.path().display()),
            None => format!("{}: ", self.path().display()),
        };
        (line, told.strip_prefix(&place).unwrap_or(&told).to_owned())
    }
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
            if !sources.trust.standing(&trust::folder_of(path)).is_trusted() {
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
        let invalid = |reason: String| ConfigError::Invalid { path: path.to_owned(), reason };
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
        // Children that may have children: a project cannot ask for that.
        if file.subagents.allow_nested == Some(true) && file.max_depth.is_none() && !is_project {
            self.max_depth.set(Some(2), origin);
        }
        self.subagents.narrow(file.subagents, origin);
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
            max_concurrent: Setting::default(16),
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
mod tests {
    use super::*;
    use posse_protocol::{Budget, Usd};

    /// Loads a user's and a trusted project's file with these texts.
    fn load(user: &str, project: &str) -> Result<Config, ConfigError> {
        load_trusting(user, project, |folder| Trustees::default().and_for_now(folder).unwrap())
    }

    fn load_trusting(
        user: &str,
        project: &str,
        trust: impl Fn(&Path) -> Trustees,
    ) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let (user, project) = (write("config.toml", user), write("posse.toml", project));
        let trust = trust(folder.path());
        Config::load(&Sources { user, project, trust })
    }

    #[test]
    fn a_project_that_nobody_trusts_can_only_narrow() {
        let project = "model = \"opus\"\nagent = \"mine\"\neffort = \"max\"\nstrategy = \"auto\"\n\
                       [limits]\nturns = 3\n[skills]\ndeny = [\"x\"]\n\
                       [subagents]\ndefault_model = \"opus\"\nenabled = false\n";
        let trusted = load("model = \"haiku\"", project).unwrap();
        assert_eq!(trusted.model.value, ["opus"]);
        assert!(trusted.held_back.is_empty());
        let strange = load_trusting("model = \"haiku\"", project, |_| Trustees::default()).unwrap();
        assert_eq!(strange.model.value, ["haiku"]);
        assert_eq!(strange.agent.value, default_agent());
        assert_eq!((strange.effort.value, strange.subagents.default_model.value), (None, None));
        assert_eq!(strange.limits.turns.value, Some(3));
        assert_eq!(strange.skills.deny.len(), 1);
        assert!(!strange.subagents.enabled.value);
        let keys: Vec<&str> = strange.held_back.iter().map(|key| key.value).collect();
        assert_eq!(keys, ["model", "effort", "agent", "strategy", "subagents.default_model"]);
    }

    #[test]
    fn later_files_win_and_values_know_where_they_came_from() {
        let user = "model = [\"sonnet\", \"gpt\"]\nmax_concurrent = 4\neffort = \"high\"";
        let config = load(user, "model = \"haiku\"").unwrap();
        assert_eq!(config.model.value, ["haiku"]);
        assert!(matches!(config.model.origin, Origin::Project(_)));
        assert!(matches!(config.max_concurrent.origin, Origin::User(_)));
        assert_eq!(config.effort.value, Some(Effort::High));
        assert_eq!(config.agent.origin, Origin::Default);
        assert_eq!(load(user, "").unwrap().model.value, ["sonnet", "gpt"]);
        assert!(
            load("model = []", "").unwrap_err().to_string().contains("list of models is empty")
        );
    }

    #[test]
    fn an_agent_has_its_models_its_effort_and_the_form_of_its_answer() {
        let agent = "[agents.judge]\ndescription = \"d\"\ninstructions = \"i\"\n\
                     model = [\"opus\", \"gpt\", \"gemini\"]\neffort = \"max\"\n\
                     output_schema = { type = \"object\", required = [\"verdict\"] }";
        let config = load(agent, "").unwrap();
        assert!(!config.agents[0].value.is_change());
        let judge = &config.agents[0].value.definition;
        assert_eq!(judge.model, ["opus", "gpt", "gemini"]);
        assert_eq!(judge.effort, Some(Effort::Max));
        assert_eq!(judge.output_schema.as_ref().unwrap()["required"][0], "verdict");
    }

    #[test]
    fn patience_is_the_user_s_and_within_bounds() {
        let config = load("[patience]\nretries = 2\nfirst_wait_ms = 20\nstall_ms = 5000", "");
        let patience = config.unwrap().patience;
        assert_eq!(patience.patience().retries, 2);
        assert_eq!(patience.patience().first_wait, Duration::from_millis(20));
        assert_eq!(patience.stall(), Duration::from_secs(5));
        assert_eq!(patience.total_wait_s.origin, Origin::Default);
        for wrong in ["first_wait_ms = 0", "stall_ms = 1", "total_wait_s = 99999999"] {
            let error = load(&format!("[patience]\n{wrong}"), "").unwrap_err().to_string();
            let key = wrong.split(' ').next().unwrap();
            assert!(error.contains(&format!("in [patience]: `{key}`")), "{error}");
        }
    }

    #[test]
    fn what_becomes_of_ended_runs_is_a_setting_with_bounds() {
        let usual = load("", "").unwrap().lifecycle.lifecycle();
        assert_eq!(usual, crate::Lifecycle::default());
        let config = load("archiveAfterMinutes = 90\nretention_days = 30", "").unwrap();
        let lifecycle = config.lifecycle.lifecycle();
        assert_eq!(lifecycle.archive_after, Some(Duration::from_secs(5_400)));
        assert_eq!(lifecycle.retention, Some(Duration::from_secs(30 * 86_400)));
        let never = load("archive_after_minutes = 0", "").unwrap().lifecycle.lifecycle();
        assert_eq!((never.archive_after, never.retention), (None, None));
        for wrong in ["archive_after_minutes = 99999999", "retention_days = 0"] {
            let error = load(wrong, "").unwrap_err().to_string();
            let key = wrong.split(' ').next().unwrap();
            assert!(error.contains(&format!("`{key}` is")), "{error}");
        }
    }

    #[test]
    fn lanes_are_capped_by_parent_agent_and_model() {
        let user = "[lanes]\nper_parent = 5\nper_agent = { explore = 4, \"*\" = 8 }\n\
                    per_model = { sonnet = 2, \"ollama/llama\" = 1 }";
        let lanes = load(user, "").unwrap().lanes;
        assert!(matches!(lanes.per_agent["explore"].origin, Origin::User(_)));
        let caps = lanes.caps();
        assert_eq!((caps.per_parent, caps.per_agent.of("Explore")), (Some(5), Some(4)));
        assert_eq!(caps.per_agent.of("coder"), Some(8));
        let sonnet = Catalog::built_in().find("sonnet").unwrap().id();
        assert_eq!(caps.per_model.of(&sonnet), Some(2), "{caps:?}");
        assert_eq!(caps.per_model.of("ollama/llama"), Some(1));
        assert_eq!(caps.per_model.of("openai/gpt"), None);
        for (wrong, says) in [
            ("per_parent = 0", "`per_parent` is 0"),
            ("per_agent = { explore = 0 }", "`per_agent.explore` is 0"),
            ("per_agent = { \"a b\" = 1 }", "`per_agent`: "),
            ("per_model = { nonsense = 1 }", "`per_model`: "),
        ] {
            let error = load(&format!("[lanes]\n{wrong}"), "").unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn how_long_tools_may_be_silent_is_a_time_or_off() {
        let silent = |text: &str| load(text, "").map(|config| config.stall_after.value);
        assert_eq!(silent("").unwrap(), Duration::from_secs(15 * 60));
        assert_eq!(silent("stall_after = \"90s\"").unwrap(), Duration::from_secs(90));
        assert_eq!(silent("stall_after = \"off\"").unwrap(), Duration::ZERO);
        let error = silent("stall_after = \"soon\"").unwrap_err().to_string();
        assert!(error.contains("`stall_after`: `soon` is not a duration"), "{error}");
    }

    #[test]
    fn a_user_adds_vendors_models_and_short_names() {
        let user = "[vendors.work]\nbase_url = \"https://models.example.com/v1\"\n\
                    key_variable = \"WORK_KEY\"\n\
                    [models.\"work/large\"]\nwindow = 1000\nmax_output = 100\n\
                    [aliases]\nboss = \"work/large\"";
        let config = load(user, "").unwrap();
        assert!(matches!(config.catalog.origin, Origin::User(_)));
        let found = config.catalog.value.find("boss").unwrap();
        assert_eq!((found.id().as_str(), found.properties.window), ("work/large", 1000));
        let caps = load("[vendors.anthropic]\nmax_concurrent = 4\ntokens_per_minute = 9000", "");
        let caps = caps.unwrap().catalog.value.vendor("anthropic").unwrap().caps;
        assert_eq!((caps.max_concurrent, caps.requests_per_minute), (Some(4), None));
        assert_eq!(caps.tokens_per_minute, Some(9000));
        let error = load("[vendors.anthropic]\nrequests_per_minute = 0", "").unwrap_err();
        assert!(error.to_string().contains("`requests_per_minute` is 0"), "{error}");
        let error = load("[vendors.work]\nwire = \"openai-chat\"", "").unwrap_err().to_string();
        assert!(error.contains("config.toml: [vendors.work]: it has no `base_url`"), "{error}");
    }

    #[test]
    fn a_project_can_only_make_limits_stricter() {
        let config = load(
            "[limits]\nturns = 10\ncost = 1.0",
            "[limits]\nturns = 50\ncost = 0.5\ntime = \"5m\"",
        );
        let limits = config.unwrap().limits.limits();
        assert_eq!(limits.turns, Some(10));
        assert_eq!(limits.cost, Some(Usd::from_dollars(0.5)));
        assert_eq!(limits.wall_ms, Some(300_000));
        let written = |user: &str, project: &str| load(user, project).unwrap().limits.written_bytes;
        assert_eq!(written("", "").value, Some(20 << 30));
        assert_eq!(written("limits.written = \"90GiB\"", "").value, Some(90 << 30));
        assert_eq!(written("", "limits.written = \"90GiB\"").value, Some(20 << 30));
        assert_eq!(written("", "limits.written = \"1MiB\"").value, Some(1 << 20));
    }

    #[test]
    fn commands_have_limits_that_a_project_can_only_make_stricter() {
        let command = |user: &str, project: &str| load(user, project).map(|it| it.command.limits());
        let usual = command("", "").unwrap();
        assert_eq!(usual, posse_tools::confine::CommandLimits::usual());
        let user = "[command]\nmemory = \"64GiB\"\nprocesses = 9";
        let project = "[command]\nmemory = \"1GiB\"\nprocesses = 900\nwritten = \"90TiB\"";
        let limits = command(user, project).unwrap();
        assert_eq!((limits.memory_bytes, limits.processes), (1 << 30, 9));
        assert_eq!(limits.disk_bytes, usual.disk_bytes);
        for wrong in ["memory = \"much\"", "processes = 0", "written = \"0\""] {
            let error = command(&format!("[command]\n{wrong}"), "").unwrap_err().to_string();
            let key = wrong.split(' ').next().unwrap();
            assert!(error.contains(&format!("`command.{key}`")), "{error}");
        }
    }

    #[test]
    fn a_budget_is_the_user_s_and_a_project_can_only_make_it_smaller() {
        let usual = load("", "").unwrap().budget;
        assert_eq!(usual.budget(), Budget { children: Some(10_000), ..Budget::default() });
        let user = "[budget]\nusd = 5\nturns = 100\nchildren = 50000";
        let config = load(user, "[budget]\ncost = 9\nturns = 10\ntokens = 7").unwrap();
        assert_eq!(config.budget.cost.value, Some(Usd::from_dollars(5.0)));
        assert!(matches!(config.budget.cost.origin, Origin::User(_)));
        assert!(matches!(config.budget.turns.origin, Origin::Project(_)));
        let budget = config.budget.budget();
        assert_eq!((budget.turns, budget.children), (Some(10), Some(50_000)));
        assert_eq!((budget.input_tokens, budget.output_tokens), (Some(7), Some(7)));
        let error = load("[budget]\ncost = 0", "").unwrap_err().to_string();
        assert!(error.contains("in [budget]: `cost` is 0"), "{error}");
        assert!(load("[budget]\ntime = 1", "").unwrap_err().to_string().contains("unknown field"));
    }

    #[test]
    fn agents_know_their_lines_and_are_whole_or_changes() {
        let text = "model = \"x\"\n\n[agents.scout]\ndescription = \"d\"\ninstructions = \"i\"\n\
                    [agents.explore]\nmodel = \"haiku\"\nlimits = { turns = 3, tool_calls = 9 }";
        let config = load(text, "").unwrap();
        let found: Vec<(&str, u32, bool)> = config
            .agents
            .iter()
            .map(|agent| (agent.value.name.as_str(), agent.value.line, agent.value.is_change()))
            .collect();
        assert_eq!(found, [("explore", 6, true), ("scout", 3, false)]);
        let limits = config.agents[0].value.definition.limits();
        assert_eq!((limits.turns, limits.tool_calls), (Some(3), Some(9)));
        for (wrong, says) in [
            ("description = \"d\"", "`instructions` is missing"),
            ("instructions = \"d\"", "`description` is missing"),
            ("modle = \"x\"", "`modle` is no field of an agent"),
            ("limits = { turn = 3 }", "`limits` has `turn`"),
            ("tools = 5", "`tools` is `5`"),
        ] {
            let error = load(&format!("[agents.scout]\n{wrong}"), "").unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("line "), "{error}");
        }
        let twice = "[agents.a]\nmodel = \"x\"\n[agents.A]\nmodel = \"y\"";
        assert!(load(twice, "").unwrap_err().to_string().contains("stands there twice"));
    }

    #[test]
    fn models_by_role_depth_and_strategy_are_settings_too() {
        let user = "small_model = \"haiku\"\nmax_depth = 3\nplugins = [\"p\", \"/q\"]";
        let project = "plan_model = \"opus\"\nmax_depth = 2\nstrategy = \"tool_call\"";
        let config = load(user, project).unwrap();
        assert_eq!(config.small_model.value.as_deref(), Some("haiku"));
        assert_eq!(config.plan_model.value.as_deref(), Some("opus"));
        assert_eq!(config.max_depth.value, 2);
        assert_eq!(config.strategy.value, DelegationStrategy::ToolCall);
        let Origin::User(file) = &config.plugins.origin else { panic!("{:?}", config.plugins) };
        let beside = file.parent().unwrap().join("p");
        assert_eq!(config.plugins.value, [beside, PathBuf::from("/q")]);
        let none = load("", "").unwrap();
        assert_eq!((none.max_depth.value, none.strategy.value), (1, DelegationStrategy::Auto));
        assert_eq!(load("", "max_depth = 8").unwrap().max_depth.value, 1, "only less");
        let error = load("max_depth = 9", "").unwrap_err().to_string();
        assert!(error.contains("`max_depth` is 9: it can be 0 to 8"), "{error}");
    }

    #[test]
    fn skills_are_taken_away_by_each_file_and_added_by_the_user_s_alone() {
        let user = "[skills]\nallow = [\"a\", \"b\"]\ninherit = false\nextra_dirs = [\"s\"]";
        let config = load(user, "[skills]\nallow = [\"b\"]\ndeny = [\"x\"]").unwrap();
        let skills = config.skills;
        assert_eq!((skills.inherit.value, skills.allow.len(), skills.rules().len()), (false, 2, 3));
        let Origin::User(file) = &skills.extra_dirs.origin else { panic!("{skills:?}") };
        assert_eq!(skills.extra_dirs.value, [file.parent().unwrap().join("s")]);
        assert!(load("", "").unwrap().skills.inherit.value);
    }

    #[test]
    fn rules_of_all_files_hold_and_a_project_s_only_refuse_and_ask() {
        let user = "[permissions]\nmode = \"ask\"\nallow = [\"Bash(git diff:*)\"]\ndeny = [\"Read(.env)\"]";
        let config = load(user, "[permissions]\nask = [\"Edit(ci/**)\"]\ndeny = [\"Bash(rm:*)\"]");
        let permissions = config.unwrap().permissions;
        assert_eq!(permissions.mode.value, posse_protocol::Mode::Ask);
        let rules = permissions.permissions();
        assert_eq!(rules.allow, ["Bash(git diff:*)"]);
        assert_eq!(rules.ask, ["Edit(ci/**)"]);
        assert_eq!(rules.deny, ["Read(.env)", "Bash(rm:*)"]);
        assert!(matches!(permissions.deny[1].origin, Origin::Project(_)));
        for (user, project, says) in [
            ("", "[permissions]\nallow = [\"Bash\"]", "may not set `permissions.allow`"),
            ("", "[permissions]\nmode = \"ask\"", "may not set `permissions.mode`"),
            ("", "[permissions]\nmode = \"bypass\"", "may not set `permissions.mode`"),
            ("[permissions]\nmode = \"bypass\"", "", "cannot be `bypass` in a file"),
            ("[permissions]\ndeny = [\"Raed\"]", "", "`permissions.deny`: the rule `Raed`"),
            ("[permissions]\nallow = [\"Bash(a && b)\"]", "", "one simple command"),
            ("[permissions]\nalow = []", "", "unknown field"),
        ] {
            let error = load(user, project).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_project_cannot_reach_beyond_itself_nor_say_where_keys_are_sent() {
        for (project, expected) in [
            ("recovery = \"wait\"", "may not set `recovery`"),
            ("stall_after = \"1s\"", "may not set `stall_after`"),
            ("[lanes]\nper_parent = 1", "may not set `lanes`"),
            (
                "[vendors.anthropic]\nbase_url = \"http://evil.example.com\"",
                "may not set `vendors`",
            ),
            ("[models.\"openai/x\"]\nwindow = 1", "may not set `models`"),
            ("[aliases]\nsonnet = \"x/y\"", "may not set `aliases`"),
            ("[patience]\nretries = 1", "may not set `patience`"),
            ("archive_after_minutes = 1", "may not set `archive_after_minutes`"),
            ("retention_days = 1", "may not set `retention_days`"),
            ("plugins = [\"evil\"]", "may not set `plugins`"),
            ("[skills]\nextra_dirs = [\"/etc\"]", "may not set `skills.extra_dirs`"),
            ("[skills]\ninherit = true", "may not set `skills.inherit`"),
            ("base_url = \"http://x\"", "unknown field"),
        ] {
            let error = load("", project).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("posse.toml"), "{error}");
        }
    }
}
