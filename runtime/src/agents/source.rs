//! Where agents come from, and which source wins.

use crate::config;
use crate::tool_facts::{ToolFacts, built_in_tools};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Where an agent comes from. An earlier variant wins over a later one. Within a variant, the
/// nearer folder wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// Given on the command line.
    CommandLine {
        /// The named file; `None` if the command line contained the agents themselves.
        file: Option<PathBuf>,
    },
    /// Added by the host.
    Host,
    /// A project's folder of agents, or its settings file. Until the user trusts the project, such
    /// an agent only reads.
    Project {
        /// The folder or file.
        path: PathBuf,
    },
    /// A folder of the user, or the user's settings file.
    User {
        /// The folder or file.
        path: PathBuf,
    },
    /// A plugin.
    Plugin {
        /// Its name. The names of its agents begin with it.
        plugin: String,
        /// Its folder.
        path: PathBuf,
    },
    /// Built into Posse.
    BuiltIn,
}

impl Source {
    /// The precedence; a lower rank wins.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Source::CommandLine { .. } => 0,
            Source::Host => 1,
            Source::Project { .. } => 2,
            Source::User { .. } => 3,
            Source::Plugin { .. } => 4,
            Source::BuiltIn => 5,
        }
    }

    /// The kind of source, without its path.
    pub fn kind(&self) -> &'static str {
        match self {
            Source::CommandLine { .. } => "command line",
            Source::Host => "host",
            Source::Project { .. } => "project",
            Source::User { .. } => "user",
            Source::Plugin { .. } => "plugin",
            Source::BuiltIn => "built-in",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::CommandLine { file: Some(path) }
            | Source::Project { path }
            | Source::User { path } => write!(f, "{} ({})", self.kind(), path.display()),
            Source::Plugin { plugin, .. } => write!(f, "plugin {plugin}"),
            Source::CommandLine { file: None } | Source::Host | Source::BuiltIn => {
                f.write_str(self.kind())
            }
        }
    }
}

/// A map of agents in JSON, as the command line gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// The map itself.
    Inline(String),
    /// The file that contains the map.
    File(PathBuf),
}

impl Given {
    /// Interprets `text`: a map if it begins with `{`, else the path of a file.
    pub fn of(text: &str) -> Self {
        match text.trim_start().starts_with('{') {
            true => Given::Inline(text.to_owned()),
            false => Given::File(text.into()),
        }
    }
}

/// Where to look for agents. A place that does not exist has none.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Maps of agents that the command line gives.
    pub command_line: Vec<Given>,
    /// The working folder. Posse looks for `.posse/agents` and `.claude/agents` in it and above it,
    /// up to the root of its repository.
    pub working_folder: Option<PathBuf>,
    /// The user's folders of agents, in order of precedence: `~/.config/posse/agents`,
    /// `~/.claude/agents`. A folder below one called `.claude` is read as Claude Code's.
    pub user_folders: Vec<PathBuf>,
    /// Folders that contain plugin folders, such as `~/.config/posse/plugins`. The user's settings
    /// may name more plugins.
    pub plugin_folders: Vec<PathBuf>,
    /// The settings files, which may define and change agents.
    pub settings: config::Sources,
    /// The tools that exist.
    pub tools: Vec<ToolFacts>,
}

impl Default for Sources {
    /// Only the built-in agents and tools.
    fn default() -> Self {
        Sources {
            command_line: Vec::new(),
            working_folder: None,
            user_folders: Vec::new(),
            plugin_folders: Vec::new(),
            settings: config::Sources::default(),
            tools: built_in_tools(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_comes_first_and_what_is_built_in_last() {
        let path = PathBuf::from("/x");
        let sources = [
            Source::CommandLine { file: None },
            Source::Host,
            Source::Project { path: path.clone() },
            Source::User { path: path.clone() },
            Source::Plugin { plugin: "p".to_owned(), path },
            Source::BuiltIn,
        ];
        assert!(sources.is_sorted_by_key(Source::rank));
        assert_eq!(sources[2].to_string(), "project (/x)");
        assert_eq!(sources[4].to_string(), "plugin p");
    }

    #[test]
    fn a_map_begins_with_a_brace_and_anything_else_is_a_path() {
        assert_eq!(Given::of(" {\"a\": {}}"), Given::Inline(" {\"a\": {}}".to_owned()));
        assert_eq!(Given::of("agents.json"), Given::File("agents.json".into()));
    }
}
