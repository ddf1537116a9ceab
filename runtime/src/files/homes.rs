//! The folders that definitions of agents and skills are looked for in, in their order.

use super::{children, plugin_name, up_to_root};
use std::path::{Path, PathBuf};

/// Where to look.
pub(crate) struct Places<'a> {
    /// The folder that is worked in. Projects are this folder and those above it, up to the root of
    /// its repository.
    pub(crate) working: Option<&'a Path>,
    /// The user's own folders of definitions, the nearest first.
    pub(crate) user: &'a [PathBuf],
    /// Folders that hold plugins, each in a folder of its own.
    pub(crate) plugins: &'a [PathBuf],
    /// Plugins that the settings name.
    pub(crate) named_plugins: &'a [PathBuf],
}

/// A folder of definitions.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    pub(crate) owner: Owner,
    /// Whether its files are written as Claude Code reads them.
    pub(crate) is_claude: bool,
}

/// Whose definitions these are.
pub(crate) enum Owner {
    Project {
        /// The folder around `.posse` or `.claude`.
        folder: PathBuf,
        /// The root of the repository.
        root: PathBuf,
    },
    User,
    Plugin {
        name: String,
        folder: PathBuf,
    },
}

impl Places<'_> {
    /// The folders called `kind`, such as `agents`, that exist: the nearest project's first, then the
    /// user's, then those of plugins.
    pub(crate) fn homes(&self, kind: &str) -> Vec<Home> {
        let user: Vec<PathBuf> = self.user.iter().filter_map(|it| it.canonicalize().ok()).collect();
        let ancestors = self.working.map(up_to_root).unwrap_or_default();
        let mut found = Vec::new();
        for folder in &ancestors {
            for (name, is_claude) in [(".posse", false), (".claude", true)] {
                let path = folder.join(name).join(kind);
                // The user's home may be a repository too; what is the user's own is no project's.
                if path.canonicalize().is_ok_and(|real| !user.contains(&real)) {
                    let root = ancestors.last().unwrap_or(folder).clone();
                    let owner = Owner::Project { folder: folder.clone(), root };
                    found.push(Home { path, owner, is_claude });
                }
            }
        }
        for path in self.user.iter().filter(|path| path.is_dir()) {
            let is_claude = path.parent().is_some_and(|it| it.ends_with(".claude"));
            found.push(Home { path: path.clone(), owner: Owner::User, is_claude });
        }
        let beside = self.plugins.iter().flat_map(|folder| children(folder));
        for folder in self.named_plugins.iter().cloned().chain(beside) {
            let path = folder.join(kind);
            if path.is_dir() {
                let owner = Owner::Plugin { name: plugin_name(&folder), folder };
                found.push(Home { path, owner, is_claude: true });
            }
        }
        found
    }
}
