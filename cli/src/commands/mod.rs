//! One file a command.

pub mod chat;
pub mod completions;
pub mod config;
pub mod demo;
pub mod fake_model;
mod follow;
pub mod run;
pub mod runs;

use crate::args::{AgentOptions, Global};
use crate::environment::Environment;
use crate::exit::Failure;
use posse::config::{AutoResume, Config, Sources};
use posse::launch::Launcher;
use posse::protocol::Usd;
use posse::{AgentCatalog, Limits, Recovery, RunSpec, Runtime, RuntimeConfig};
use std::path::{Path, PathBuf};

/// What every command has.
pub struct Common {
    pub global: Global,
    pub environment: Environment,
    pub launcher: Launcher,
}

/// Which unfinished runs a command goes on with by itself.
pub enum Pickup {
    /// Those in this folder, if the settings say so.
    Folder(PathBuf),
    /// All.
    All,
    /// Only those it is told to.
    Named,
}

impl Common {
    /// Where runs are kept.
    pub fn database(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.global.db {
            return Ok(path.clone());
        }
        let folder = self.environment.data_folder.as_ref().ok_or_else(|| {
            Failure::usage("no folder for data: neither HOME nor XDG_DATA_HOME is set")
                .hint("name a database with --db FILE")
        })?;
        Ok(folder.join("posse.db"))
    }

    /// Where settings are looked for, for work in `folder`.
    pub fn sources(&self, folder: &Path) -> Sources {
        Sources {
            user: self.environment.config_folder.as_ref().map(|user| user.join("config.toml")),
            project: Some(folder.join("posse.toml")),
        }
    }

    /// The settings for work in `folder`.
    pub fn config(&self, folder: &Path) -> Result<Config, Failure> {
        Ok(Config::load(&self.sources(folder))?)
    }

    /// Whether any model can be had.
    pub fn has_key(&self) -> bool {
        self.environment.keys.anthropic_api_key.is_some()
    }

    /// The model when nothing names one: that of the key in the environment.
    pub fn default_model(&self) -> Option<String> {
        let key = self.environment.keys.anthropic_api_key.as_ref();
        key.map(|_| "anthropic/claude-sonnet-4-5".to_owned())
    }

    /// Opens the runtime.
    pub async fn runtime(&self, config: &Config, pickup: Pickup) -> Result<Runtime, Failure> {
        let mut agents = AgentCatalog::built_in();
        for agent in &config.agents {
            agents.set(agent.value.clone());
        }
        let environment = self.environment.for_processes.clone();
        // Without a key nothing can go on here: what was interrupted is left as it is.
        let recovery = match (pickup, config.recovery.value) {
            (Pickup::Folder(_) | Pickup::All, _) if !self.has_key() => Recovery::Wait,
            (Pickup::All, _) => Recovery::Continue,
            (Pickup::Folder(folder), AutoResume::Continue) => Recovery::ContinueIn(folder),
            (Pickup::Folder(_), AutoResume::Wait) | (Pickup::Named, _) => Recovery::Wait,
        };
        let runtime = RuntimeConfig {
            durability: config.durability.value,
            model: config.model.value.clone().or_else(|| self.default_model()),
            limits: config.limits.limits(),
            agents,
            launcher: Some(self.launcher.clone().with_environment(environment)),
            max_concurrent: config.max_concurrent.value,
            recovery,
            ..RuntimeConfig::new(self.database()?, self.environment.keys.clone())
        };
        Ok(Runtime::open(runtime).await?)
    }
}

/// The folder to work in.
pub fn folder(cwd: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let folder = match cwd {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().map_err(|error| {
            Failure::usage(format!("cannot work in the current folder: {error}"))
                .hint("it may have been removed; go to another, or name one with --cwd")
        })?,
    };
    folder
        .canonicalize()
        .map_err(|error| Failure::usage(format!("cannot work in {}: {error}", folder.display())))
}

/// What `options` and the settings ask for.
pub fn spec(
    options: &AgentOptions,
    config: &Config,
    folder: &Path,
    prompt: Option<String>,
) -> Result<RunSpec, Failure> {
    let agent = match &options.agent {
        Some(name) => name.parse().map_err(|error| Failure::usage(format!("{error}")))?,
        None => config.agent.value.clone(),
    };
    let limits = Limits {
        turns: options.max_turns,
        cost: options.max_cost.map(Usd::from_dollars),
        wall_ms: options.timeout,
        ..Limits::default()
    };
    Ok(RunSpec { prompt, model: options.model.clone(), limits, ..RunSpec::new(agent, "", folder) })
}
