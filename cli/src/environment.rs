//! The environment: keys, folders, the terminal. Only this module reads it.

#![expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]

mod secrets;

pub use secrets::is_address;

use crate::print;
use parking_lot::Mutex;
use posse::config::Config;
use posse::launch::{self, Environment as ProcessEnvironment};
use posse::{Catalog, Keys};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone)]
pub struct Environment {
    /// The home folder of the user.
    pub home_folder: Option<PathBuf>,
    /// The user's settings of Claude Code.
    pub claude_folder: Option<PathBuf>,
    /// The user's settings.
    pub config_folder: Option<PathBuf>,
    /// The databases and the history.
    pub data_folder: Option<PathBuf>,
    /// Logs and other state that is not data.
    pub state_folder: Option<PathBuf>,
    /// Sockets of the user's session.
    pub runtime_folder: Option<PathBuf>,
    /// The database that `POSSE_DB` names.
    pub database: Option<PathBuf>,
    /// The user does not want colours.
    pub no_color: bool,
    /// The terminal cannot move its cursor, or is unknown.
    pub dumb_terminal: bool,
    /// The values of secret variables by name. They are no longer in the environment of this process.
    secrets: Arc<BTreeMap<String, String>>,
    /// Files that contain secrets.
    pub key_files: Vec<PathBuf>,
    /// Secrets from other places: files and keyrings.
    found: Arc<Mutex<BTreeSet<String>>>,
    /// Errors about files that should contain a secret.
    unread: Arc<Mutex<BTreeSet<String>>>,
    /// All errors about files that should contain secrets.
    failed: Arc<Mutex<BTreeSet<String>>>,
}

impl Environment {
    pub fn read() -> Self {
        // Before the values of secrets are overwritten.
        let database = std::env::var_os(secrets::DATABASE).filter(|value| !value.is_empty());
        let secrets = Arc::new(secrets::take());
        let folder = |name: &str| text(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = folder("HOME");
        // Claude Code resolves a relative path from the current folder.
        let claude = text("CLAUDE_CONFIG_DIR").and_then(|path| std::path::absolute(path).ok());
        let under_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let config = folder("XDG_CONFIG_HOME").or_else(|| under_home(".config"));
        let data = folder("XDG_DATA_HOME").or_else(|| under_home(".local/share"));
        let state = folder("XDG_STATE_HOME").or_else(|| under_home(".local/state"));
        let dumb_terminal = text("TERM").is_none_or(|name| name == "dumb");
        Environment {
            config_folder: config.map(|folder| folder.join("posse")),
            data_folder: data.map(|folder| folder.join("posse")),
            state_folder: state.map(|folder| folder.join("posse")),
            runtime_folder: folder("XDG_RUNTIME_DIR").map(|folder| folder.join("posse")),
            claude_folder: claude.or_else(|| under_home(".claude")),
            no_color: text("NO_COLOR").is_some() || dumb_terminal,
            dumb_terminal,
            home_folder: home,
            database: database.map(PathBuf::from),
            secrets,
            key_files: secrets::files(),
            found: Arc::default(),
            unread: Arc::default(),
            failed: Arc::default(),
        }
    }

    /// The variables for commands: the usual ones, and `more`.
    pub fn for_processes(more: &[String]) -> ProcessEnvironment {
        launch::allowed_environment(std::env::vars_os(), more)
    }

    /// The variables for git when it fetches a repository.
    pub fn for_fetching() -> ProcessEnvironment {
        launch::fetching_environment(std::env::vars_os())
    }

    /// The value of the variable `name`, or else of the file in `NAME_FILE`, or else, for a secret, of
    /// the keyring.
    pub fn value(&self, name: &str) -> Option<String> {
        let variable = self.secrets.get(name).cloned().or_else(|| text(name));
        variable.or_else(|| {
            let of_file = secrets::of_file(name).unwrap_or_else(|why| {
                self.failed.lock().insert(why.clone());
                self.unread.lock().insert(why);
                None
            });
            let found = of_file.or_else(|| secrets::of_keyring(name))?;
            if secrets::is_secret(name) {
                print::hide([found.as_str()]);
                self.found.lock().insert(found.clone());
            }
            Some(found)
        })
    }

    /// The secrets that were used so far, which must never be shown.
    pub fn secrets(&self) -> Vec<String> {
        let variables = self.secrets.iter().filter_map(|(name, value)| match name.as_str() {
            secrets::DATABASE => secrets::secret_of(value),
            _ => Some(value.clone()),
        });
        variables.chain(self.found.lock().iter().cloned()).collect()
    }

    /// New errors about files that should contain secrets.
    pub fn unread(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.unread.lock())
    }

    /// The first error about a file that should contain a secret, told or not.
    pub fn failed(&self) -> Option<String> {
        self.failed.lock().first().cloned()
    }

    /// The secret variables for a child process that is this program.
    pub fn secret_variables(&self) -> impl Iterator<Item = (&String, &String)> {
        self.secrets.iter()
    }

    /// The name of this machine: that of `config`, or else that of the system.
    pub fn host(&self, config: &Config) -> String {
        if let Some(host) = &config.host.value {
            return host.clone();
        }
        let system = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name: String = system.chars().map(plain).take(64).collect();
        if name.is_empty() { "localhost".to_owned() } else { name }
    }

    /// The API keys and addresses that `catalog` needs.
    pub fn keys(&self, catalog: &Catalog) -> Keys {
        Keys::collect(catalog, |name| self.value(name))
    }
}

/// The home folder of the user, without links.
pub fn real_home() -> Option<PathBuf> {
    text("HOME").map(PathBuf::from).filter(|path| path.is_absolute())?.canonicalize().ok()
}

fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
