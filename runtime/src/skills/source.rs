//! Where skills come from, and their precedence.

use crate::config;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Where a skill comes from. An earlier kind takes precedence over a later one; within a kind, the
/// nearer folder does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A folder of skills in a project.
    Project {
        /// The folder.
        path: PathBuf,
    },
    /// A folder of the user.
    User {
        /// The folder.
        path: PathBuf,
    },
    /// A plugin.
    Plugin {
        /// Its name, which begins the names of its skills.
        plugin: String,
        /// Its folder.
        path: PathBuf,
    },
    /// A folder that the settings name, or the start of a run.
    Extra {
        /// The folder.
        path: PathBuf,
    },
}

impl Source {
    /// Returns its kind, without its path.
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

/// Where to look for skills. A missing folder holds none.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The workspace. Posse looks for `.posse/skills` and `.claude/skills` in it and in its
    /// parents, up to the root of its repository.
    pub working_folder: Option<PathBuf>,
    /// The folders of the user, nearest first: `~/.config/posse/skills`, `~/.claude/skills`.
    pub user_folders: Vec<PathBuf>,
    /// The folders of the user with commands: `~/.config/posse/commands`, `~/.claude/commands`.
    pub user_commands: Vec<PathBuf>,
    /// Folders that contain plugins, each in a folder of its own: `~/.config/posse/plugins`. The
    /// settings of the user may name more plugins.
    pub plugin_folders: Vec<PathBuf>,
    /// Further folders of skills, in addition to those that the settings of the user name.
    pub extra_folders: Vec<PathBuf>,
    /// The settings files, which say which skills are allowed.
    pub settings: config::Sources,
}
