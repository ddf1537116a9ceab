//! Settings: defaults, the user's file, the project's file. Later layers win, and every value
//! knows where it came from. Reads files that it is pointed to; never the environment.

use crate::agents::AgentCatalog;
use posse_protocol::{AgentName, AgentSpec, Extra, Limits, Usd};
use posse_store::Durability;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The effective settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The model of runs and agents that name none.
    pub model: Setting<Option<String>>,
    /// The agent of runs that name none.
    pub agent: Setting<AgentName>,
    /// Runs executed at the same time.
    pub max_concurrent: Setting<usize>,
    /// Whether unfinished runs go on by themselves.
    pub recovery: Setting<AutoResume>,
    /// What an acknowledged event survives.
    pub durability: Setting<Durability>,
    /// How far runs may go that say nothing else.
    pub limits: LimitSettings,
    /// Agents defined in the files.
    pub agents: Vec<Setting<AgentSpec>>,
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The user's file.
    User(PathBuf),
    /// The project's file.
    Project(PathBuf),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::User(path) | Origin::Project(path) => path.display().fmt(f),
            Origin::Flag(flag) => f.write_str(flag),
        }
    }
}

/// Whether unfinished runs go on by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoResume {
    /// They go on.
    Continue,
    /// They wait for `posse runs resume`.
    Wait,
}

/// Limits and where each came from.
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// Model calls.
    pub turns: Setting<Option<u32>>,
    /// Tool calls.
    pub tool_calls: Setting<Option<u32>>,
    /// Tokens sent.
    pub input_tokens: Setting<Option<u64>>,
    /// Tokens received.
    pub output_tokens: Setting<Option<u64>>,
    /// Money.
    pub cost: Setting<Option<Usd>>,
    /// Time at work, in milliseconds.
    pub wall_ms: Setting<Option<u64>>,
}

impl LimitSettings {
    /// The limits without their origins.
    pub fn limits(&self) -> Limits {
        Limits {
            turns: self.turns.value,
            tool_calls: self.tool_calls.value,
            input_tokens: self.input_tokens.value,
            output_tokens: self.output_tokens.value,
            cost: self.cost.value,
            wall_ms: self.wall_ms.value,
            extra: Extra::default(),
        }
    }
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
    /// A project may not set this.
    #[error(
        "{path}: a project may not set `{key}`; it belongs into the user's own settings ({user})"
    )]
    NotForProjects {
        /// Which file.
        path: PathBuf,
        /// Which key.
        key: &'static str,
        /// Where it may stand.
        user: String,
    },
}

/// Where settings are looked for.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The user's file, whether it exists or not.
    pub user: Option<PathBuf>,
    /// The project's file, whether it exists or not.
    pub project: Option<PathBuf>,
}

/// What an agent may use that a project brings along: nobody has said that the project is trusted.
const READ_ONLY: [&str; 4] = ["Read", "Glob", "Grep", "List"];

/// The largest settings file that is read.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    model: Option<String>,
    agent: Option<AgentName>,
    max_concurrent: Option<usize>,
    recovery: Option<AutoResume>,
    durability: Option<DurabilityWord>,
    limits: FileLimits,
    agents: BTreeMap<AgentName, FileAgent>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DurabilityWord {
    Power,
    Process,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    turns: Option<u32>,
    tool_calls: Option<u32>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost: Option<f64>,
    time: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAgent {
    description: String,
    instructions: String,
    tools: Option<Vec<String>>,
    model: Option<String>,
    #[serde(default)]
    limits: FileLimits,
}

impl Config {
    /// The settings that `sources` give. A file that does not exist sets nothing.
    ///
    /// # Errors
    /// When a file cannot be read or understood, or sets what it may not.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut config = Config::default();
        if let Some(path) = &sources.user
            && let Some(file) = read(path)?
        {
            config.apply(file, path, &Origin::User(path.clone()))?;
        }
        if let Some(path) = &sources.project
            && let Some(file) = read(path)?
        {
            refuse_what_is_not_for_projects(&file, path, sources, &config)?;
            config.apply(file, path, &Origin::Project(path.clone()))?;
        }
        Ok(config)
    }

    fn apply(&mut self, file: File, path: &Path, origin: &Origin) -> Result<(), ConfigError> {
        let invalid = |reason: String| ConfigError::Invalid { path: path.to_owned(), reason };
        set_some(&mut self.model, file.model, origin);
        set(&mut self.agent, file.agent, origin);
        set(&mut self.max_concurrent, file.max_concurrent, origin);
        set(&mut self.recovery, file.recovery, origin);
        let durability = file.durability.map(|word| match word {
            DurabilityWord::Power => Durability::Power,
            DurabilityWord::Process => Durability::Process,
        });
        set(&mut self.durability, durability, origin);
        if self.max_concurrent.value == 0 {
            return Err(invalid("`max_concurrent` must be at least 1".to_owned()));
        }
        let limits = file.limits.check().map_err(invalid)?;
        // The user's file comes first, so what a project sets can only be stricter.
        narrow(&mut self.limits.turns, limits.turns, origin);
        narrow(&mut self.limits.tool_calls, limits.tool_calls, origin);
        narrow(&mut self.limits.input_tokens, limits.input_tokens, origin);
        narrow(&mut self.limits.output_tokens, limits.output_tokens, origin);
        narrow(&mut self.limits.cost, limits.cost, origin);
        narrow(&mut self.limits.wall_ms, limits.wall_ms, origin);
        for (name, agent) in file.agents {
            let limits = agent
                .limits
                .check()
                .map_err(|reason| invalid(format!("in [agents.{name}.limits]: {reason}")))?;
            let limits = match origin {
                Origin::Project(_) => stricter(limits, &self.limits.limits()),
                _ => limits,
            };
            let value = AgentSpec {
                description: agent.description,
                instructions: agent.instructions,
                tools: agent.tools,
                model: agent.model,
                limits,
                ..AgentSpec::new(name.clone())
            };
            self.agents.retain(|known| known.value.name != name);
            self.agents.push(Setting { value, origin: origin.clone() });
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            model: default(None),
            agent: default(default_agent()),
            max_concurrent: default(16),
            recovery: default(AutoResume::Continue),
            durability: default(Durability::Power),
            limits: LimitSettings {
                turns: default(None),
                tool_calls: default(None),
                input_tokens: default(None),
                output_tokens: default(None),
                cost: default(None),
                wall_ms: default(None),
            },
            agents: Vec::new(),
        }
    }
}

#[allow(clippy::expect_used)]
fn default_agent() -> AgentName {
    "general-purpose".parse().expect("a literal that is a name; see the tests of AgentName")
}

fn default<T>(value: T) -> Setting<T> {
    Setting { value, origin: Origin::Default }
}

fn set<T>(setting: &mut Setting<T>, value: Option<T>, origin: &Origin) {
    if let Some(value) = value {
        *setting = Setting { value, origin: origin.clone() };
    }
}

fn set_some<T>(setting: &mut Setting<Option<T>>, value: Option<T>, origin: &Origin) {
    if value.is_some() {
        *setting = Setting { value, origin: origin.clone() };
    }
}

/// The stricter of two in each limit.
fn stricter(one: Limits, other: &Limits) -> Limits {
    fn least<T: Ord + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
        one.into_iter().chain(other).min()
    }
    Limits {
        turns: least(one.turns, other.turns),
        tool_calls: least(one.tool_calls, other.tool_calls),
        input_tokens: least(one.input_tokens, other.input_tokens),
        output_tokens: least(one.output_tokens, other.output_tokens),
        cost: least(one.cost, other.cost),
        wall_ms: least(one.wall_ms, other.wall_ms),
        extra: one.extra,
    }
}

/// Sets what is not set, or stricter than what is.
fn narrow<T: PartialOrd>(setting: &mut Setting<Option<T>>, value: Option<T>, origin: &Origin) {
    let stricter = match (&setting.value, &value) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(known), Some(new)) => new < known,
    };
    if stricter {
        *setting = Setting { value, origin: origin.clone() };
    }
}

fn read(path: &Path) -> Result<Option<File>, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { path: path.to_owned(), reason };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
        Ok(data) if !data.is_file() => return Err(unreadable("it is not a file".to_owned())),
        Ok(data) if data.len() > MAX_BYTES => {
            return Err(unreadable(format!("it is larger than {MAX_BYTES} bytes")));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    toml::from_str(&text).map(Some).map_err(|error| {
        let reason = error.to_string();
        ConfigError::Invalid { path: path.to_owned(), reason: reason.trim_end().to_owned() }
    })
}

fn refuse_what_is_not_for_projects(
    file: &File,
    path: &Path,
    sources: &Sources,
    known: &Config,
) -> Result<(), ConfigError> {
    let invalid = |reason: String| ConfigError::Invalid { path: path.to_owned(), reason };
    let built_in = AgentCatalog::built_in();
    for (name, agent) in &file.agents {
        let same = |other: &AgentName| other.as_str().eq_ignore_ascii_case(name.as_str());
        if built_in.iter().any(|agent| same(&agent.name))
            || known.agents.iter().any(|agent| same(&agent.value.name))
        {
            return Err(invalid(format!(
                "a project may not take the place of the agent `{name}`; give its agent another name"
            )));
        }
        let wanted = agent.tools.as_deref().unwrap_or_default();
        let beyond = wanted.iter().find(|tool| !READ_ONLY.contains(&tool.as_str()));
        if agent.tools.is_none() || beyond.is_some() {
            return Err(invalid(format!(
                "[agents.{name}]: an agent of a project may only look: name its tools, of {}; \
                 an agent that may do more belongs into your own settings",
                READ_ONLY.join(", ")
            )));
        }
    }
    let reserved = [
        ("max_concurrent", file.max_concurrent.is_some()),
        ("recovery", file.recovery.is_some()),
        ("durability", file.durability.is_some()),
    ];
    match reserved.into_iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(ConfigError::NotForProjects {
            path: path.to_owned(),
            key,
            user: sources.user.as_ref().map_or_else(String::new, |user| user.display().to_string()),
        }),
        None => Ok(()),
    }
}

impl FileLimits {
    fn check(self) -> Result<Limits, String> {
        let cost = match self.cost {
            Some(dollars) if !(dollars.is_finite() && dollars > 0.0) => {
                return Err(format!("`cost` is {dollars}: give dollars, more than 0"));
            }
            cost => cost.map(Usd::from_dollars),
        };
        let wall_ms = self.time.map(|time| parse_duration(&time)).transpose()?;
        Ok(Limits {
            turns: self.turns,
            tool_calls: self.tool_calls,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cost,
            wall_ms,
            extra: Extra::default(),
        })
    }
}

/// Milliseconds of a duration like `90s`, `10m`, `2h`, `500ms`, or a number of seconds.
///
/// # Errors
/// When it is none of these, or nothing at all.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a duration: write it like 90s, 10m, 2h or 500ms");
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..number_end].parse().map_err(|_| wrong())?;
    let factor = match &text[number_end..] {
        "ms" => 1.0,
        "" | "s" => 1e3,
        "m" | "min" => 60e3,
        "h" => 3600e3,
        _ => return Err(wrong()),
    };
    let milliseconds = number * factor;
    if milliseconds < 1.0 || !milliseconds.is_finite() || milliseconds > 1e15 {
        return Err(wrong());
    }
    Ok(milliseconds as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Loads a user's and a project's file with these texts.
    fn load(user: &str, project: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let sources =
            Sources { user: write("config.toml", user), project: write("posse.toml", project) };
        Config::load(&sources)
    }

    #[test]
    fn later_files_win_and_values_know_where_they_came_from() {
        let config = load("model = \"sonnet\"\nmax_concurrent = 4", "model = \"haiku\"").unwrap();
        assert_eq!(config.model.value.as_deref(), Some("haiku"));
        assert!(matches!(config.model.origin, Origin::Project(_)));
        assert!(matches!(config.max_concurrent.origin, Origin::User(_)));
        assert_eq!(config.agent.origin, Origin::Default);
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

        let project = "[agents.scout]\ndescription = \"d\"\ninstructions = \"i\"\ntools = [\"Read\"]\n\
                       [agents.scout.limits]\ncost = 1000.0\nturns = 3";
        let config = load("[limits]\ncost = 2.0\nturns = 5", project).unwrap();
        let limits = &config.agents[0].value.limits;
        assert_eq!((limits.cost, limits.turns), (Some(Usd::from_dollars(2.0)), Some(3)));
    }

    #[test]
    fn a_project_cannot_grant_more_than_looking() {
        let agent = |name: &str, tools: &str| {
            format!("[agents.{name}]\ndescription = \"d\"\ninstructions = \"i\"\n{tools}")
        };
        assert!(load("", &agent("scout", "tools = [\"Read\", \"Grep\"]")).is_ok());
        for (user, project, expected) in [
            (String::new(), agent("scout", "tools = [\"Bash\"]"), "may only look"),
            (String::new(), agent("scout", ""), "may only look"),
            (String::new(), agent("Explore", "tools = [\"Read\"]"), "take the place"),
            (agent("mine", ""), agent("mine", "tools = [\"Read\"]"), "take the place"),
            (String::new(), "recovery = \"wait\"".to_owned(), "may not set `recovery`"),
            (String::new(), "base_url = \"http://x\"".to_owned(), "unknown field"),
        ] {
            let error = load(&user, &project).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("posse.toml"), "{error}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, expected) in
            [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("500ms", 500), ("1.5", 1_500)]
        {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
        for text in ["", "s", "-1s", "10 parsecs", "0", "1e99h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
