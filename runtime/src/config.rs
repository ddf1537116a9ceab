//! Settings: defaults, the user's file, the project's file. Later layers win, and every value knows where it came from.
//! Reads only the files that it is given, never the environment.

mod agents;
mod always;
mod budget;
mod catalog;
mod command;
mod file;
mod lanes;
mod lifecycle;
mod limits;
mod mcp;
mod mcp_file;
mod origin;
mod patience;
mod permissions;
mod postgres;
mod project;
mod skills;
pub(crate) mod subagents;
pub(crate) mod table;
mod value;
mod webhooks;
mod words;

pub use agents::AgentTable;
pub use always::allow_always;
pub use budget::{BudgetSettings, DEFAULT_CHILDREN, parse_budget};
pub use command::CommandSettings;
pub use lanes::LaneSettings;
pub use lifecycle::Lifecycle;
pub use limits::LimitSettings;
pub use mcp_file::{add_server, remove_server};
pub use origin::{Origin, Setting};
pub use patience::PatienceSettings;
pub use permissions::PermissionSettings;
pub use postgres::PostgresSettings;
pub use skills::SkillSettings;
pub use subagents::{ChildSkills, SubagentSettings};
pub use table::{Effective, Merge, Row, Who};
pub use value::{AutoResume, Bytes, DatabaseAddress, Elsewhere, Guidance, ModelList, OrOff};
pub use webhooks::WebhookSettings;

pub use crate::limits::{parse_duration, parse_size, show_duration};

pub(crate) use file::read_text;
pub(crate) use permissions::project_rules;

use crate::limits::DEEPEST;
use crate::mcp_settings::ServerSettings;
use crate::trust::{self, TrustedFolders};
use catalog::FileCatalog;
use posse_model::Catalog;
use posse_protocol::{AgentName, DelegationStrategy, Effort};
use posse_store::Durability;
use std::path::{Path, PathBuf};
use table::{Layer, Layered, settings};
use value::{at_least_one, between, each};

/// How many runs one process executes at a time by default. A run costs little: commands have their own cap, and
/// providers limit their requests.
pub(crate) const MOST_RUNS: usize = 4096;

settings! {
    /// The settings in force, and where each came from.
    pub struct Config, "", from struct File {
        /// The model of runs and agents that name none: a short name, or `vendor/name`. In a list, each
        /// later model is the fallback for those before it.
        model: Setting<ModelList> = ModelList::default()
            => "[a model you can use](../guides/models.md#which-one-is-taken)", Later, Trusted;
        /// The model of agents with `model: small`.
        small_model: Setting<Option<String>> = None => "their caller's", Later, Trusted;
        /// The model of agents with `model: plan`.
        plan_model: Setting<Option<String>> = None => "their caller's", Later, Trusted;
        /// The reasoning effort when neither the run nor its agent sets it: `"low"`, `"medium"`,
        /// `"high"`, `"max"`.
        effort: Setting<Option<Effort>> = None => "the vendor's", Later, Trusted;
        /// The agent of runs that name none.
        agent: Setting<AgentName> = default_agent(), Later, Trusted;
        /// How many runs one process executes at the same time, at least 1. Each run has a connection
        /// while it talks to its model, and the system limits how many connections can be open
        /// (`ulimit -Hn`).
        max_concurrent: Setting<usize> = MOST_RUNS, Later, User, check at_least_one;
        /// How many of these runs may have the same parent, agent or model.
        lanes: LaneSettings => "no caps", Section, User;
        /// How many levels of runs may be below a run whose agent does not set it, 0 to 8.
        max_depth: Setting<u32> = 1, Lower, Anyone, check between(0, DEEPEST);
        /// When agents delegate: `"auto"`, `"tool_call"`, `"manual"`.
        strategy: Setting<DelegationStrategy> = DelegationStrategy::Auto, Later, Trusted;
        /// Folders of plugins, whose agents have the name `plugin:name`. A relative path counts from
        /// the file's folder.
        plugins: Setting<Vec<PathBuf>> = Vec::new(), Later, User;
        /// Which [guidance files](guidance.md) runs get: `"all"`, `"user"` (only yours, none of a project),
        /// `"off"`.
        guidance: Setting<Guidance> = Guidance::All, Lower, Anyone;
        /// Which skills runs may have.
        skills: SkillSettings => "all", Section, Anyone;
        /// What runs may start, and how.
        subagents: SubagentSettings => "see below", Section, Anyone;
        /// Rules about calls, and the mode.
        permissions: PermissionSettings => "`accept-edits`, no rules", Section, Anyone;
        /// `"continue"`: `posse run` continues unfinished runs of its folder while its own run is at work
        /// (not with `--json`, `--stream-json` or `--quiet`). `"wait"`: it does not.
        recovery: Setting<AutoResume> = AutoResume::Continue, Later, User;
        /// How long a run's tools may print and store nothing before Posse restarts the run from its
        /// log: a time, or `"off"`.
        stall_after: Setting<OrOff> = OrOff(crate::stall::USUAL) => "`\"15m\"`", Later, User;
        /// The database: the absolute path of a file, or the address of a database on a
        /// [PostgreSQL server](../guides/many-machines.md), such as `"postgres://posse@db.example/posse"`.
        /// `--db` and `POSSE_DB` go before it.
        database: Setting<Option<DatabaseAddress>> = None
            => "`~/.local/share/posse/posse.db`", Later, User;
        /// The name of this machine. Give each machine that shares a database on a server its own name: only
        /// workers with this name execute runs in the folders of this machine.
        host: Setting<Option<String>> = None => "the name of the system", Later, User, check is_host;
        /// Folders that are the same on all these machines: `["/srv/projects", "~/shared"]`. Workers of
        /// every machine execute runs there.
        shared_folders: Setting<Vec<String>> = Vec::new(), Later, User, check are_whole;
        /// How to reach a PostgreSQL server.
        postgres: PostgresSettings => "see below", Section, User;
        /// For a database file. `"power"`: stored events survive a loss of power. `"process"`: they
        /// survive the death of the process.
        durability: Setting<Durability> = Durability::Power, Later, User;
        /// How many minutes after its end Posse archives a run; 0 is never.
        archive_after_minutes | "archiveAfterMinutes": Setting<u64> = lifecycle::usual_minutes()
            => "10080, a week", Later, User, check lifecycle::minutes;
        /// How many days after its end an archived run keeps its log.
        retention_days: Setting<Option<u64>> = None => "for ever", Later, User, check lifecycle::days;
        /// How far runs may go.
        limits: LimitSettings => "20 GiB written, else none", Section, Anyone;
        /// How much of the machine a command may use.
        command: CommandSettings => "see below", Section, Anyone;
        /// What a root run and all runs below it may spend together.
        budget: BudgetSettings => "10,000 children", Section, Anyone;
        /// How long Posse retries failed model calls.
        patience: PatienceSettings => "see below", Section, User;
        /// Your own vendors, and changes of the built-in ones.
        vendors: Setting<Catalog> = Catalog::built_in(), Later, User;
        /// Tables `[models."VENDOR/NAME"]` of your own models, and changes of the built-in ones.
        models: catalog::Models, Elsewhere, User;
        /// Your own short names of models: `{ boss = "work/large" }`.
        aliases: catalog::Aliases, Elsewhere, User;
        /// URLs that Posse notifies when runs end.
        webhooks: Vec<Setting<WebhookSettings>>, All, User;
        /// An MCP server that Posse starts for runs that may use it. Projects have `.mcp.json`.
        mcp_servers | "mcpServers": Vec<Setting<ServerSettings>>, All, User;
        /// An agent, or a change of one. An agent of a project is read-only until you trust the project. A
        /// change in a project can only narrow.
        agents: Vec<Setting<AgentTable>>, All, Anyone;
    }
    beside {
        /// Keys that the project's file sets and that have no effect, because the user does not trust it.
        held_back: Vec<Setting<&'static str>>;
        /// What has no effect for another reason, in words.
        warnings: Vec<Setting<String>>;
    }
}

fn is_host(name: &str, row: &Row) -> Result<(), String> {
    match posse_store::is_worker_name(name) {
        true => Ok(()),
        false => Err(row.wrong(" cannot name a machine: use letters, digits, `.`, `_` and `-`")),
    }
}

fn are_whole(folders: &[String], row: &Row) -> Result<(), String> {
    let why = "must be the whole path of a folder: write it as `/srv/projects` or `~/projects`, without `..`";
    let is_whole = |path: &str| {
        (path.starts_with('/') || path.starts_with("~/"))
            && !path.split('/').any(|part| part == "..")
    };
    each(folders, row, is_whole, why)
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
    /// Its content is invalid.
    #[error("{path}{}: {reason}", place(.at))]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// Line and column, if known.
        at: Option<(u32, u32)>,
        /// What is wrong.
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
        /// The line of the key.
        line: u32,
        /// Which key.
        key: &'static str,
        /// The file that may set it.
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

    /// The line, if known, and what is wrong, without the name of the file.
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

/// A place in a file, in the form that follows the file's name.
fn place(at: &Option<(u32, u32)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}

/// Where to look for settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The user's file, whether it exists or not.
    pub user: Option<PathBuf>,
    /// The project's file, whether it exists or not.
    pub project: Option<PathBuf>,
    /// The folders that the user trusts. An untrusted project can only make settings stricter.
    pub trust: TrustedFolders,
}

impl Config {
    /// The model of the role `word`; `None` if there is no such role. Without a value, the caller's model applies.
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
    /// When a file cannot be read, is invalid, or sets a key that it may not set.
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
                let mut keys = Vec::new();
                Config::hold_back(&mut file, &mut keys);
                let origin = || Origin::Project(path.clone());
                let held_back = keys.into_iter().map(|value| Setting { value, origin: origin() });
                config.held_back = held_back.collect();
            }
            config.apply(file, &text, path, &Origin::Project(path.clone()))?;
        }
        Ok(config)
    }

    /// Loads the settings of the user at `path` that are valid, each at the top of the file by itself. Returns
    /// `None` if it is not known then which database they name.
    pub fn load_valid(path: &Path) -> Option<Self> {
        let text = file::read_text(path).ok()?.unwrap_or_default();
        let origin = Origin::User(path.to_owned());
        let of_table = |table: &toml::Table| {
            let text = toml::to_string(table).ok()?;
            let mut config = Config::default();
            config.apply(toml::from_str(&text).ok()?, &text, path, &origin).ok()?;
            Some(config)
        };
        let Ok(mut table) = toml::from_str::<toml::Table>(&text) else {
            let names_database = text.contains("database") || text.contains("postgres");
            return (!names_database).then(Config::default);
        };
        const OF_DATABASE: [&str; 3] = ["database", "postgres", "host"];
        let named = OF_DATABASE.map(|key| table.contains_key(key));
        let is_valid = |key: &str, value: &toml::Value| {
            of_table(&toml::Table::from_iter([(key.to_owned(), value.clone())])).is_some()
        };
        table.retain(|key, value| {
            // One of several tables with the same name.
            if let Some(several) =
                value.as_array_mut().filter(|it| it.iter().all(toml::Value::is_table))
            {
                several.retain(|one| is_valid(key, &toml::Value::Array(vec![one.clone()])));
            }
            is_valid(key, value)
        });
        let is_known = OF_DATABASE.map(|key| table.contains_key(key)) == named;
        of_table(&table).filter(|_| is_known)
    }

    /// The built-in vendors and models, and those that the user adds.
    pub fn catalog(&self) -> &Catalog {
        &self.vendors.value
    }

    /// What `posse config` shows: every key with its value, or a key for each layer or name.
    pub fn effective(&self) -> Vec<Effective> {
        let mut shown = Vec::new();
        self.show(&Row::default(), &mut shown);
        shown
    }

    /// All settings. The rows of a section follow the row of the section.
    pub fn rows() -> Vec<Row> {
        <Config as Layered>::rows()
    }

    fn apply(
        &mut self,
        mut file: File,
        text: &str,
        path: &Path,
        origin: &Origin,
    ) -> Result<(), ConfigError> {
        let invalid = |reason: String| words::unusable(path, text, reason);
        let mut layer = Layer::new(origin, path, text);
        file.settle().map_err(invalid)?;
        self.overlay(file, &mut layer).map_err(invalid)?;
        self.lanes.resolve(&self.vendors.value).map_err(invalid)?;
        let told = |value| Setting { value, origin: origin.clone() };
        self.warnings.extend(layer.warnings.into_iter().map(told));
        Ok(())
    }
}

impl File {
    /// Moves values that a file may write under two keys to the right key.
    fn settle(&mut self) -> Result<(), String> {
        if let Some(budget) = &mut self.budget {
            budget.settle();
        }
        let (models, aliases) = (self.models.take(), self.aliases.take());
        if models.is_some() || aliases.is_some() {
            let FileCatalog(additions) = self.vendors.get_or_insert_default();
            additions.models = models.unwrap_or_default();
            additions.aliases = aliases.unwrap_or_default();
        }
        let Some(subagents) = &mut self.subagents else { return Ok(()) };
        if let Some(why) = subagents.unfit() {
            return Err(why);
        }
        subagents.settle();
        self.max_depth = self.max_depth.or(subagents.depth());
        self.archive_after_minutes = self.archive_after_minutes.or(subagents.archive_after_minutes);
        if let Some(most) = subagents.max_concurrent {
            let lanes = self.lanes.get_or_insert_default();
            lanes.per_parent = lanes.per_parent.or(Some(most as usize));
        }
        Ok(())
    }
}

#[allow(clippy::expect_used)]
fn default_agent() -> AgentName {
    "general-purpose".parse().expect("a literal that is a name; see the tests of AgentName")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
