//! The folders to search for definitions of agents and skills, in order.

use super::{children, plugin_name, up_to_root};
use std::path::{Path, PathBuf};

/// Where to look.
pub(crate) struct Places<'a> {
    /// The working folder. Projects are this folder and the folders above it, up to the root of its repository.
    pub(crate) working: Option<&'a Path>,
    /// The user's folders of definitions, in order of precedence.
    pub(crate) user: &'a [PathBuf],
    /// Folders that contain plugin folders.
    pub(crate) plugins: &'a [PathBuf],
    /// Plugins that the settings name.
    pub(crate) named_plugins: &'a [PathBuf],
}

/// A folder of definitions.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    pub(crate) owner: Owner,
    /// True when its files are in the format of Claude Code.
    pub(crate) is_claude: bool,
}

/// The owner of a folder of definitions.
pub(crate) enum Owner {
    Project {
        /// The folder that contains `.posse` or `.claude`.
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
    /// The existing folders called `kind`, such as `agents`: the nearest project's first, then the user's, then those
    /// of plugins.
    pub(crate) fn homes(&self, kind: &str) -> Vec<Home> {
        let user: Vec<PathBuf> = self.user.iter().filter_map(|it| it.canonicalize().ok()).collect();
        let ancestors = self.working.map(up_to_root).unwrap_or_default();
        let mut found = Vec::new();
        for folder in &ancestors {
            for (name, is_claude) in [(".posse", false), (".claude", true)] {
                let path = folder.join(name).join(kind);
                // The user's home may be a repository, too. The user's own folders do not belong to a project.
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
