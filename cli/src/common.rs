//! The context of every command: global options, environment, settings, agents, and the runtime.

use crate::args::Global;
use crate::contact::Lines;
use crate::database::{Database, Named};
use crate::environment::{Environment, is_address};
use crate::exit::{Code, Failure};
use crate::offline::is_offline;
use crate::print;
use posse::agents::{Given, Level, Sources as AgentSources, built_in_tools};
use posse::config::{Config, DatabaseAddress, Sources};
use posse::guidance::GuidanceSources;
use posse::launch::Launcher;
use posse::mcp::McpServers;
use posse::model::{Cassette, Models, Options};
use posse::rule_files::RuleFiles;
use posse::skills::{LiveSkills, Sources as SkillSources};
use posse::trust::TrustedFolders;
use posse::webhooks::Webhook;
use posse::{Keys, LiveCatalog, NamedBy, Recovery, Runtime, RuntimeConfig, Selection};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The context of every command.
#[derive(Clone)]
pub struct Common {
    pub global: Global,
    pub environment: Environment,
    pub launcher: Launcher,
    /// API keys that replace those of the environment.
    pub keys: Option<Keys>,
    /// The folders that the user trusts.
    pub trust: TrustedFolders,
    /// Says when the server of the database is away.
    pub lines: Lines,
    /// For a command that goes on if the user's settings have a mistake: whether it has said so.
    pub told_mistake: Option<Arc<AtomicBool>>,
}

impl Common {
    pub fn new(global: Global, environment: Environment, launcher: Launcher) -> Self {
        let state = environment.state_folder.as_ref();
        let log = state.map(|state| TrustedFolders::of_log(state.join("trust.jsonl")));
        let (trust, lines) = (log.unwrap_or_default(), Lines::default());
        let (keys, told_mistake) = (None, None);
        Common { global, environment, launcher, keys, trust, lines, told_mistake }
    }

    /// The same for a command that goes on if the user's settings have a mistake.
    pub fn tolerant(self) -> Self {
        Common { told_mistake: Some(Arc::default()), ..self }
    }

    /// Trusts the present content of `folder` for this command only.
    pub fn trust_for_now(&mut self, folder: &Path) -> Result<(), Failure> {
        let trust = std::mem::take(&mut self.trust);
        self.trust = trust.and_for_now(folder).map_err(|why| {
            Failure::usage(format!("{} cannot be trusted: {why}", folder.display()))
        })?;
        Ok(())
    }

    /// The database.
    pub fn database(&self) -> Result<Database, Failure> {
        self.named_database().map(|(database, _)| database)
    }

    /// The database that `--db`, `POSSE_DB` or the user's settings name, in this order, or else the
    /// default one.
    pub fn named_database(&self) -> Result<(Database, Named), Failure> {
        let environment = &self.environment;
        let at = |given: &Path| self.database_at(given);
        if let Some(given) = &self.global.db {
            return Ok((at(given)?, Named::Option));
        }
        if let Some(given) = &environment.database {
            return Ok((at(given)?, Named::Variable));
        }
        if let Some(DatabaseAddress(given)) = self.user_config()?.database.value {
            return Ok((at(Path::new(&given))?, Named::Settings));
        }
        Ok((Database::File(Database::default_file(environment)?), Named::Default))
    }

    /// The path of the database file as it was given, if one was.
    fn given_database(&self) -> Result<Option<PathBuf>, Failure> {
        let settings = || Ok::<_, Failure>(self.user_config()?.database.value);
        let given = match self.global.db.as_ref().or(self.environment.database.as_ref()) {
            Some(given) => Some(given.clone()),
            None => settings()?.map(|DatabaseAddress(given)| PathBuf::from(given)),
        };
        Ok(given.filter(|path| !path.to_str().is_some_and(is_address)))
    }

    /// The database with this path or address.
    pub fn database_at(&self, given: &Path) -> Result<Database, Failure> {
        let contact = self.lines.contact.clone();
        let database =
            Database::at(&self.environment, given, contact, || Ok(self.user_config()?.postgres))?;
        if matches!(database, Database::Server(_)) && !self.global.quiet && !self.global.json {
            self.lines.begin(database.to_string());
        }
        Ok(database)
    }

    /// Fails for a database in a folder that does not exist: its path was probably mistyped.
    fn check_place(&self) -> Result<(), Failure> {
        let (database, named) = self.named_database()?;
        let path = match database {
            Database::File(path) => path,
            Database::Server(server) => return server.check_files(),
        };
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        // The folder of the default database is created when needed.
        let own = self.environment.data_folder.as_deref();
        match folder.filter(|folder| own != Some(*folder) && !folder.exists()) {
            None => Ok(()),
            Some(folder) => {
                let message = format!("the folder {} of {named} does not exist", folder.display());
                Err(Failure::usage(message).hint("correct the path, or create the folder"))
            }
        }
    }

    /// True when there is a database. For commands that create none. A database on a server counts as
    /// existing.
    ///
    /// # Errors
    /// If a database that the user named does not exist, or if that cannot be checked: there may be
    /// runs that the command cannot see.
    pub fn has_database(&self) -> Result<bool, Failure> {
        let (Database::File(path), named) = self.named_database()? else { return Ok(true) };
        let has = path.try_exists().map_err(|error| {
            no_database(format!("the database {} cannot be reached: {error}", path.display()))
        })?;
        if has || named == Named::Default {
            return Ok(has);
        }
        Err(no_database(format!("the database {} does not exist", path.display())))
    }

    /// The settings files for work in `folder`.
    pub fn sources(&self, folder: &Path) -> Sources {
        let (user, project) = (self.user_settings(), Some(folder.join("posse.toml")));
        Sources { user, project, trust: self.trust.clone() }
    }

    /// The path of the user's settings, whether the file exists or not.
    pub fn user_settings(&self) -> Option<PathBuf> {
        self.environment.config_folder.as_ref().map(|user| user.join("config.toml"))
    }

    /// The files with rules that apply in every folder of the user.
    pub fn rule_files(&self) -> RuleFiles {
        let folder = self.environment.claude_folder.as_ref();
        RuleFiles { user: folder.map(|folder| folder.join("settings.json")) }
    }

    /// The settings for work in `folder`.
    pub fn config(&self, folder: &Path) -> Result<Config, Failure> {
        Ok(Config::load(&self.sources(folder))?)
    }

    /// The settings of the user, without those of any project.
    pub fn user_config(&self) -> Result<Config, Failure> {
        let user = self.user_settings();
        let error = match Config::load(&Sources { user: user.clone(), ..Sources::default() }) {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        let (Some(told), Some(path)) = (&self.told_mistake, user) else { return Err(error.into()) };
        let names_file = |path: &PathBuf| !path.to_str().is_some_and(is_address);
        let named = self.global.db.as_ref().or(self.environment.database.as_ref());
        let config = match Config::load_valid(&path) {
            Some(config) => config,
            // Without the settings, only a file can be opened, and only if it is known which one.
            None if named.is_some_and(names_file) => Config::default(),
            None => return Err(error.into()),
        };
        if !told.swap(true, Ordering::Relaxed) && !self.global.quiet {
            let mistake = Failure::from(error).message;
            print::note(format!("warning: {mistake}; this command goes on without that setting"));
        }
        Ok(config)
    }

    /// The API keys for the vendors of `config`.
    pub fn keys(&self, config: &Config) -> Keys {
        match &self.keys {
            Some(keys) => keys.clone(),
            None => {
                let keys = self.environment.keys(config.catalog());
                let unread = self.environment.unread();
                if !self.global.json {
                    unread.into_iter().for_each(print::note);
                }
                keys
            }
        }
    }

    /// Refuses the offline model if the user meant a key to be used that cannot be read: a script would take its words
    /// for an answer.
    pub fn require_key(&self, selection: &Selection) -> Result<(), Failure> {
        let is_chosen = matches!(selection.named_by, NamedBy::Choice(_));
        match self.environment.failed().filter(|_| is_chosen && is_offline(&selection.model)) {
            None => Ok(()),
            Some(why) => Err(Failure::usage(format!("no key can be used: {why}")).hint(
                "mend the file or unset the variable; `--model offline/planner` needs no key",
            )),
        }
    }

    /// The models, without a runtime.
    pub fn models(&self, config: &Config) -> Result<Models, Failure> {
        let options = Options { stall: config.patience.stall(), ..Options::default() };
        let models = Models::new(config.catalog().clone(), self.keys(config), options);
        Ok(posse::built_in_models().into_iter().try_fold(models, Models::with)?)
    }

    /// The sources of agents for work in `folder`.
    pub fn agent_sources(&self, folder: &Path, given: &[String]) -> AgentSources {
        let below = |root: &Option<PathBuf>, path: &str| root.as_ref().map(|it| it.join(path));
        let Environment { config_folder, home_folder, .. } = &self.environment;
        let user = [below(config_folder, "agents"), below(home_folder, ".claude/agents")];
        AgentSources {
            command_line: given.iter().map(|text| Given::of(text)).collect(),
            working_folder: Some(folder.to_owned()),
            user_folders: user.into_iter().flatten().collect(),
            plugin_folders: below(config_folder, "plugins").into_iter().collect(),
            settings: self.sources(folder),
            tools: built_in_tools(),
        }
    }

    /// The agents for work in `folder`. Those `given` on the command line come first.
    pub fn agents(&self, folder: &Path, given: &[String]) -> Result<LiveCatalog, Failure> {
        let agents = LiveCatalog::unread(self.agent_sources(folder, given));
        // Agents on the command line are meant to be used, so fail if one is unusable.
        if !given.is_empty() {
            refuse_unusable(&agents, given)?;
        }
        Ok(agents)
    }

    /// The webhooks of the settings, with their secrets. None for a replay, which notifies no one.
    pub fn webhooks(
        &self,
        config: &Config,
        cassette: Option<&Cassette>,
    ) -> Result<Vec<Webhook>, Failure> {
        let is_play = self.keys.is_some() || cassette.is_some_and(|it| it.replay().is_some());
        if is_play {
            return Ok(Vec::new());
        }
        let mut webhooks = Vec::with_capacity(config.webhooks.len());
        for settings in &config.webhooks {
            let webhook = settings.value.webhook(|name| self.environment.value(name))?;
            if webhook.secrets() == 0 && !self.global.quiet && !self.global.json {
                let (name, unset) = (webhook.name(), webhook.unset().join(", "));
                print::note(format!(
                    "{unset} is not set: Posse keeps deliveries for webhook `{name}` until it is"
                ));
            }
            webhooks.push(webhook);
        }
        Ok(webhooks)
    }

    /// The MCP servers of the user, and those of projects that the user trusts.
    pub fn mcp_servers(&self, config: &Config) -> McpServers {
        let environment = self.environment.clone();
        let state = self.environment.state_folder.as_ref();
        let vendors = config.catalog().vendors().iter();
        McpServers {
            own: config.mcp_servers.clone(),
            trust: self.trust.clone(),
            lookup: Some(Arc::new(move |name: &str| environment.value(name))),
            refused: vendors.flat_map(|vendor| vendor.key_variables.clone()).collect(),
            accepted: state.map(|state| state.join("mcp.jsonl")),
        }
    }

    /// The skills and commands for work in `folder`.
    pub fn skills(&self, folder: Option<PathBuf>) -> LiveSkills {
        let below = |root: &Option<PathBuf>, path: &str| root.as_ref().map(|it| it.join(path));
        let Environment { config_folder, home_folder, .. } = &self.environment;
        let user = [below(config_folder, "skills"), below(home_folder, ".claude/skills")];
        let commands = [below(config_folder, "commands"), below(home_folder, ".claude/commands")];
        LiveSkills::load(SkillSources {
            user_commands: commands.into_iter().flatten().collect(),
            user_folders: user.into_iter().flatten().collect(),
            plugin_folders: below(config_folder, "plugins").into_iter().collect(),
            extra_folders: Vec::new(),
            settings: folder.as_ref().map(|folder| self.sources(folder)).unwrap_or_default(),
            working_folder: folder,
        })
    }

    /// Where the guidance files for work in `folder` are.
    pub fn guidance(&self, folder: Option<&Path>) -> GuidanceSources {
        let Environment { config_folder, claude_folder, home_folder, .. } = &self.environment;
        let file = |folder: &Option<PathBuf>, name: &str| Some(folder.as_ref()?.join(name));
        let user = [file(config_folder, "AGENTS.md"), file(claude_folder, "CLAUDE.md")];
        GuidanceSources {
            user_files: user.into_iter().flatten().collect(),
            home: home_folder.clone(),
            projects: true,
            settings: folder.map(|folder| self.sources(folder)).unwrap_or_default(),
        }
    }

    /// Opens the runtime. It continues no run by itself: the command selects the runs.
    pub async fn runtime(&self, config: &Config, agents: LiveCatalog) -> Result<Runtime, Failure> {
        self.runtime_with(config, agents, None).await
    }

    /// The same, with a cassette.
    pub async fn runtime_with(
        &self,
        config: &Config,
        agents: LiveCatalog,
        cassette: Option<Cassette>,
    ) -> Result<Runtime, Failure> {
        Ok(Runtime::open(self.runtime_config(config, agents, cassette)?).await?)
    }

    /// The configuration of a runtime that continues no run by itself.
    pub fn runtime_config(
        &self,
        config: &Config,
        agents: LiveCatalog,
        cassette: Option<Cassette>,
    ) -> Result<RuntimeConfig, Failure> {
        self.check_place()?;
        let environment = Environment::for_processes(&config.command.variables.value);
        let Environment { config_folder, data_folder, state_folder, .. } = &self.environment;
        let own = [config_folder, data_folder, state_folder].into_iter().flatten();
        let own = own.chain(&self.environment.key_files).cloned();
        let database = self.database()?;
        // By the path that the user gave, too: no command may change a link on the way.
        let given = self.given_database()?.and_then(|given| std::path::absolute(given).ok());
        // A command may name a file with `--db`, and the password of the server stays secret.
        let password_file = config.postgres.password_file.value.as_ref().map(PathBuf::from);
        let pgpass = self.environment.value("PGPASSFILE").map(PathBuf::from);
        let passwords = password_file.into_iter().chain(pgpass);
        let own = own.chain(database.secret_files()).chain(given).chain(passwords);
        let command = &config.command;
        let launcher = self.launcher.clone().with_limits(command.limits());
        let launcher = launcher.with_commands_at_once(command.most_at_once());
        let home = self.environment.home_folder.as_deref();
        let placed = |path: &String| {
            let in_home = path.strip_prefix("~/").map(|name| home.map(|home| home.join(name)));
            in_home.unwrap_or_else(|| Some(PathBuf::from(path)))
        };
        let readable = command.readable.value.iter().filter_map(placed);
        let launcher = launcher.with_environment(environment).hiding(own);
        let launcher = launcher.with_environment_for_fetching(Environment::for_fetching());
        let mut launcher = launcher.showing(readable.collect::<Vec<_>>());
        if let Some(state) = state_folder {
            launcher = launcher.remembering(state.join("sandbox.json"));
        }
        let mut runtime = RuntimeConfig::new(database.path(), self.keys(config));
        if let Database::Server(server) = &database {
            runtime.storage.store = Some(Arc::new(server.options.clone()));
            runtime.scheduling.worker.host = self.environment.host(config);
        }
        env!("CARGO_PKG_VERSION").clone_into(&mut runtime.scheduling.worker.version);
        runtime.apply(config);
        runtime.scheduling.shared = config.shared_folders.value.iter().filter_map(placed).collect();
        runtime.permissions.rule_files = Some(self.rule_files());
        runtime.permissions.home = self.environment.home_folder.clone();
        runtime.mcp = self.mcp_servers(config);
        runtime.definitions.skills = self.skills(agents.working_folder());
        runtime.definitions.guidance = self.guidance(agents.working_folder().as_deref());
        runtime.definitions.agents = agents;
        runtime.launcher = Some(launcher);
        runtime.scheduling.recovery = Recovery::Wait;
        runtime.webhooks = self.webhooks(config, cassette.as_ref())?;
        runtime.models.cassette = cassette;
        // Keys and webhooks have requested their secrets by now, so collect these last.
        let mut secrets = self.environment.secrets();
        secrets.extend(database.secrets());
        runtime.permissions.redactor =
            posse::redact::Redactor::new(secrets.iter().map(String::as_str));
        Ok(runtime)
    }
}

/// The error for a missing database.
fn no_database(message: String) -> Failure {
    Failure { code: Code::Store, message, hint: None }
        .hint("--db names another database; `posse config` shows which one is used")
}

/// Fails if an agent on the command line is unusable.
fn refuse_unusable(agents: &LiveCatalog, given: &[String]) -> Result<(), Failure> {
    let files: Vec<PathBuf> = given
        .iter()
        .filter_map(|text| match Given::of(text) {
            Given::File(path) => Some(path),
            Given::Inline(_) => None,
        })
        .collect();
    let catalog = agents.current();
    let wrong = catalog.problems().iter().filter(|problem| problem.level == Level::Error);
    let wrong = wrong.filter(|problem| match &problem.path {
        Some(path) => files.contains(path),
        None => true,
    });
    // For an agent in the argument itself, name only the line.
    let told = |problem: String| match problem.strip_prefix("agents:") {
        Some(rest) => rest.replacen(" error: ", " ", 1),
        None => format!(" {problem}"),
    };
    let wrong: Vec<String> = wrong.map(|problem| told(problem.to_string())).collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage(format!("--agents:{}", wrong.join(";")))),
    }
}
