//! Where skills come from, and who comes before whom.

use crate::config;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Where a skill comes from. An earlier kind comes before a later one; of the same kind, the nearer
/// folder does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A project's folder of skills.
    Project {
        /// The folder.
        path: PathBuf,
    },
    /// A folder of the user's.
    User {
        /// The folder.
        path: PathBuf,
    },
    /// A plugin.
    Plugin {
        /// Its name, which its skills' names begin with.
        plugin: String,
        /// Its folder.
        path: PathBuf,
    },
    /// A folder that the settings name, or whoever starts a run.
    Extra {
        /// The folder.
        path: PathBuf,
    },
}

impl Source {
    /// What it is called, without its path.
    pub fn kind(&self) -> &'static str {
        match self {
            Source::Project { .. } => "project",
            Source::User { .. } => "user",
            Source::Plugin { .. } => "plugin",
            Source::Extra { .. } => "extra folder",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Project { path } | Source::User { path } | Source::Extra { path } => {
                write!(f, "{} ({})", self.kind(), path.display())
            }
            Source::Plugin { plugin, .. } => write!(f, "plugin {plugin}"),
        }
    }
}

/// Where skills are looked for. What does not exist holds none.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The folder that is worked in. `.posse/skills` and `.claude/skills` are looked for in it and
    /// above, up to the root of its repository.
    pub working_folder: Option<PathBuf>,
    /// The user's folders of skills, the nearest first: `~/.config/posse/skills`,
    /// `~/.claude/skills`.
    pub user_folders: Vec<PathBuf>,
    /// Folders that hold plugins, each in a folder of its own: `~/.config/posse/plugins`. Beside
    /// them, the user's settings may name plugins.
    pub plugin_folders: Vec<PathBuf>,
    /// Further folders of skills, beside those that the user's settings name.
    pub extra_folders: Vec<PathBuf>,
    /// The settings files, which say which skills there may be.
    pub settings: config::Sources,
}
