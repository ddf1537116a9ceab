//! The same confinement for the file tools, which work within this process.
//!
//! A rule is applied to an open file, by its real path. So links, renames and other spellings of a name
//! make no difference.

use super::git::{HOOKS_HERE, NestedCheckouts, is_hooks, why_closed};
use super::protected::{
    GIT, HEAD, IN_GIT, IN_HOME, PROTECTED, data_of, is_closed, makes_a_repository,
    obeyed_below_home,
};
use super::{Confinement, Repository, aliases, secrets};
use crate::path_rules::{PathRules, Reached, TooMuch, Usage};
use posse_protocol::Profile;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The rules for files that follow from a confinement.
pub(crate) struct FileRules {
    profile: Profile,
    /// Canonical.
    workspace: PathBuf,
    /// The other folders of the run.
    others: Vec<PathBuf>,
    homes: Vec<PathBuf>,
    /// Secrets in the folders of the run.
    hidden: Vec<PathBuf>,
    /// Additional rules.
    further: Option<Arc<dyn PathRules>>,
    nested: NestedCheckouts,
}

/// The path of a file without links, as far as it exists.
fn real_path(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|it| Some(it.canonicalize().ok()?.join(path.strip_prefix(it).ok()?)))
}

impl FileRules {
    /// The rules for files in `roots`, the first of which is the workspace. A root inside a hidden folder is
    /// visible all the same: scratch folders and worktrees are in the host's data, for example.
    pub(crate) fn new(
        confinement: &Confinement,
        roots: &[&Path],
        homes: &[PathBuf],
        hidden: &[PathBuf],
        further: Option<Arc<dyn PathRules>>,
    ) -> FileRules {
        let workspace = roots.first().copied().unwrap_or(Path::new("/"));
        let inside = |path: &PathBuf| roots.iter().any(|root| path.starts_with(root));
        let around = |path: &PathBuf| roots.iter().any(|root| root.starts_with(path));
        // By their real paths: a link may lead into the workspace. What is the host's own is hidden even if it does
        // not exist yet: the host would obey what a tool makes there.
        let secrets = secrets::in_homes(homes).filter_map(|path| path.canonicalize().ok());
        let secrets = secrets.chain(hidden.iter().filter_map(|path| real_path(path)));
        let secrets: Vec<PathBuf> = secrets.collect();
        let again = aliases::of(secrets.iter().map(PathBuf::as_path));
        let again: Vec<PathBuf> = again.into_iter().map(|alias| alias.path).collect();
        let secrets = secrets.into_iter().chain(again);
        let secrets = secrets.filter(|path| inside(path) && !around(path));
        let profile = confinement.files.unwrap_or(confinement.profile);
        let hidden = match profile {
            Profile::Full => Vec::new(),
            _ => secrets.collect(),
        };
        let others = roots.iter().skip(1).map(|root| root.to_path_buf()).collect();
        let (workspace, homes) = (workspace.to_owned(), homes.to_vec());
        let nested = NestedCheckouts::default();
        FileRules { profile, workspace, others, homes, hidden, further, nested }
    }

    /// The same rules. Searches for repositories again when this number of ended commands has changed.
    pub(crate) fn renewed_after(self, commands: Arc<AtomicU64>) -> FileRules {
        FileRules { nested: NestedCheckouts::renewed_after(commands), ..self }
    }

    /// Returns why git makes it impossible to change `real`, which is in `folder`.
    fn why_closed(&self, real: &Path, folder: &Path) -> Option<String> {
        let data = Repository::of(&self.workspace, &self.homes).data;
        let roots = std::iter::once(&self.workspace).chain(&self.others);
        let roots = roots.map(|root| (root.clone(), false)).chain(data.map(|data| (data, true)));
        match self.nested.below(&roots.collect::<Vec<_>>()) {
            Ok(nested) => why_closed(real, folder, &self.homes, &nested),
            Err(why) => Some(why),
        }
    }

    fn refuse_change(&self, real: &Path) -> Option<String> {
        let closed = |why: Option<String>| {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            format!(
                "it is run or obeyed outside of what confines this agent{why}; ask the user to change it"
            )
        };
        let Ok(below) = real.strip_prefix(&self.workspace) else {
            // A link in the workspace may lead here.
            let others = self.others.iter().filter(|other| real.starts_with(other));
            let mut around = others.filter_map(|other| other.parent());
            let why = around.find_map(|it| self.why_closed(real, it));
            return why.filter(|_| self.profile != Profile::Full).map(|why| closed(Some(why)));
        };
        match self.profile {
            Profile::Full => return None,
            Profile::ReadOnly => return Some("this agent only reads".to_owned()),
            Profile::WorkspaceWrite => {}
        }
        let names: Vec<String> =
            below.iter().map(|name| name.to_string_lossy().to_lowercase()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let in_workspace = self.homes.iter().filter(|home| home.starts_with(&self.workspace));
        let in_home = in_workspace.into_iter().any(|home| {
            let name = real.strip_prefix(home).ok().and_then(|below| below.iter().next());
            let name = name.map(|name| name.to_string_lossy().to_lowercase());
            name.is_some_and(|name| IN_HOME.iter().any(|it| it.to_lowercase() == name))
        });
        let protected = match names.as_slice() {
            [GIT] => true,
            [GIT, inside, ..] => {
                IN_GIT.contains(inside) || !self.workspace.join(GIT).join(HEAD).exists()
            }
            [name, ..] => {
                let unmade = makes_a_repository(&self.workspace);
                PROTECTED.contains(name)
                    || unmade.is_some_and(|unmade| name.eq_ignore_ascii_case(unmade))
            }
            [] => false,
        };
        // A repository at an unusual path.
        let data = data_of(&self.workspace).into_iter();
        let mut in_data = data.filter_map(|data| real.strip_prefix(data).ok().map(Path::to_owned));
        let protected = protected
            || in_data.any(|below| {
                let first = below.iter().next().map(|name| name.to_string_lossy().to_lowercase());
                first.is_some_and(|name| IN_GIT.contains(&name.as_str()))
            });
        let obeyed = obeyed_below_home(&self.workspace, &self.homes, &self.hidden);
        if obeyed.places.iter().any(|path| real.starts_with(path)) {
            let why = "programs of the user obey it, through a link or the home folder";
            return Some(closed(Some(why.to_owned())));
        }
        if is_hooks(&self.workspace, &self.homes) {
            return Some(closed(Some(HOOKS_HERE.to_owned())));
        }
        if protected || in_home || is_closed(&self.workspace, &self.homes) {
            return Some(closed(None));
        }
        self.why_closed(real, &self.workspace).map(|why| closed(Some(why)))
    }
}

impl PathRules for FileRules {
    fn are_about(&self, usage: Usage) -> bool {
        let further = self.further.as_ref();
        usage == Usage::Change
            || !self.hidden.is_empty()
            || further.is_some_and(|it| it.are_about(usage))
    }

    fn refuse(
        &self,
        tool: Option<&str>,
        usage: Usage,
        reached: Reached,
        named: &Path,
        real: &Path,
    ) -> Option<String> {
        let holds = |secret: &PathBuf| usage == Usage::Tree && secret.starts_with(real);
        if self.hidden.iter().any(|secret| real.starts_with(secret) || holds(secret)) {
            return Some("it holds secrets, which are not for agents".to_owned());
        }
        let refused = match usage {
            Usage::Change => self.refuse_change(real),
            _ => None,
        };
        let further = self.further.as_ref();
        refused.or_else(|| further.and_then(|it| it.refuse(tool, usage, reached, named, real)))
    }

    fn hide_some_in(&self, folder: &Path) -> bool {
        self.further.as_ref().is_some_and(|it| it.hide_some_in(folder))
    }

    fn checkouts(&self) -> Vec<PathBuf> {
        self.further.as_ref().map(|it| it.checkouts()).unwrap_or_default()
    }

    fn elsewhere(&self) -> Vec<PathBuf> {
        self.further.as_ref().map(|it| it.elsewhere()).unwrap_or_default()
    }

    fn denies_read(&self, real: &Path) -> bool {
        self.further.as_ref().is_some_and(|it| it.denies_read(real))
    }

    fn denies_some_reads_in(&self, folder: &Path) -> bool {
        self.further.as_ref().is_some_and(|it| it.denies_some_reads_in(folder))
    }

    fn deny_some_changes_in(&self, folder: &Path) -> bool {
        self.further.as_ref().is_some_and(|it| it.deny_some_changes_in(folder))
    }

    fn linked(&self, usage: Usage, link: &Path) -> Result<Vec<PathBuf>, TooMuch> {
        self.further.as_ref().map_or(Ok(Vec::new()), |it| it.linked(usage, link))
    }

    fn denies_change(&self, real: &Path) -> bool {
        self.further.as_ref().is_some_and(|it| it.denies_change(real))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_names_are_told_by_any_spelling_and_only_at_their_place() {
        let workspace = Path::new("/w");
        let rules = FileRules::new(&Confinement::workspace_write(), &[workspace], &[], &[], None);
        let check = |path: &str, refused: bool| {
            assert_eq!(rules.refuse_change(&workspace.join(path)).is_some(), refused, "{path}");
        };
        check(".posse/agents/a.md", true);
        check(".Posse/agents/a.md", true);
        check(".hus\u{212A}y/pre-commit", true);
        check("posse.toml", true);
        check(".git/hooks/pre-commit", true);
        check(".GIT/config", true);
        check(".git", true);
        check("posse.toml.bak", false);
        check("docs/.posse-notes", false);
        check("src/main.rs", false);
        let read_only = FileRules::new(&Confinement::default(), &[workspace], &[], &[], None);
        assert!(read_only.refuse_change(Path::new("/w/a")).is_some());
        assert!(read_only.refuse_change(Path::new("/scratch/a")).is_none());
    }

    #[test]
    fn secrets_are_refused_where_the_home_folder_is_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        std::fs::create_dir(home.join(".ssh")).unwrap();
        let homes = [home.clone()];
        let rules = FileRules::new(&Confinement::workspace_write(), &[&home], &homes, &[], None);
        let refused = |usage, path: &str| {
            let path = home.join(path);
            rules.refuse(None, usage, Reached::Named, &path, &path).is_some()
        };
        assert!(refused(Usage::Read, ".ssh/id"));
        assert!(refused(Usage::Change, ".bashrc"));
        assert!(refused(Usage::Change, ".BASHRC"));
        std::fs::write(home.join(".gitconfig"), "[core]\nhooksPath = .githooks\n").unwrap();
        for path in [".githooks/pre-commit", ".GITHOOKS/pre-commit", ".GitHoo\u{212A}s/a"] {
            assert!(refused(Usage::Change, path), "{path}");
        }
        assert!(!refused(Usage::Change, ".githooks-old/a"));
        assert!(!refused(Usage::Read, ".bashrc"));
        assert!(!refused(Usage::Change, "project/a"));
        assert!(rules.are_about(Usage::Read));
        let project = home.join("project");
        let hidden = [home.clone()];
        let inside = FileRules::new(&Confinement::default(), &[&project], &[], &hidden, None);
        let file = project.join("a");
        assert_eq!(inside.refuse(None, Usage::Read, Reached::Named, &file, &file), None);
        assert!(!inside.are_about(Usage::Read), "nothing is hidden from it");
        assert!(inside.are_about(Usage::Change));
    }
}
