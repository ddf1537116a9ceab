//! Where agents come from, and who comes before whom.

use crate::config;
use crate::tool_facts::{ToolFacts, built_in_tools};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Where an agent comes from. An earlier kind comes before a later one; of the same kind, the
/// nearer folder does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// Given on the command line.
    CommandLine {
        /// The file that was named; `None` when the agents themselves were given.
        file: Option<PathBuf>,
    },
    /// Added by the program that Posse is part of.
    Host,
    /// A project's folder of agents, or its settings file. Such an agent only looks.
    Project {
        /// The folder or file.
        path: PathBuf,
    },
    /// A folder of the user's, or the user's settings file.
    User {
        /// The folder or file.
        path: PathBuf,
    },
    /// A plugin.
    Plugin {
        /// Its name, which its agents' names begin with.
        plugin: String,
        /// Its folder.
        path: PathBuf,
    },
    /// Comes with Posse.
    BuiltIn,
}

impl Source {
    /// Lower comes first.
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

    /// What it is called, without its path.
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
    /// The file it is in.
    File(PathBuf),
}

impl Given {
    /// What `text` means: a map if it begins with `{`, else the path of a file.
    pub fn of(text: &str) -> Self {
        match text.trim_start().starts_with('{') {
            true => Given::Inline(text.to_owned()),
            false => Given::File(text.into()),
        }
    }
}

/// Where agents are looked for. What does not exist holds none.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Maps of agents that the command line gives.
    pub command_line: Vec<Given>,
    /// The folder that is worked in. `.posse/agents` and `.claude/agents` are looked for in it and
    /// above, up to the root of its repository.
    pub working_folder: Option<PathBuf>,
    /// The user's folders of agents, the nearest first: `~/.config/posse/agents`,
    /// `~/.claude/agents`. One below a folder called `.claude` is read as Claude Code's.
    pub user_folders: Vec<PathBuf>,
    /// Folders that hold plugins, each in a folder of its own: `~/.config/posse/plugins`. Beside
    /// them, the user's settings may name plugins.
    pub plugin_folders: Vec<PathBuf>,
    /// The settings files, which may define and change agents.
    pub settings: config::Sources,
    /// The tools there are.
    pub tools: Vec<ToolFacts>,
}

impl Default for Sources {
    /// Nowhere but in Posse itself, with the tools that come with it.
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
