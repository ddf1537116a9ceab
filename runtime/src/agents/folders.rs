//! Finds files of agents: which folders, and which files in them. Reads names and times, but no
//! contents except plugin manifests.

use super::source::{Source, Sources};
use crate::definition::reading::Form;
use crate::files::{Home, Owner, Places, Stamp, children};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The maximum depth below a folder of agents, and the maximum number of files in all its levels.
const DEPTH: usize = 8;
const FILES: usize = 10_000;

/// A folder of agents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Folder {
    pub(crate) source: Source,
    pub(crate) form: Form,
    pub(crate) path: PathBuf,
    /// Its files, sorted.
    pub(crate) files: Vec<(PathBuf, Stamp)>,
    /// True when the folder has more files or levels than Posse reads.
    pub(crate) cut: bool,
    /// Links in a project that point outside its repository, to files that are not its own.
    pub(crate) outward: Vec<PathBuf>,
}

/// The existing folders of `sources` and of the plugins in the settings, by precedence.
pub(crate) fn find(sources: &Sources, plugins: &[PathBuf]) -> Vec<Folder> {
    let places = Places {
        working: sources.working_folder.as_deref(),
        user: &sources.user_folders,
        plugins: &sources.plugin_folders,
        named_plugins: plugins,
    };
    let listed = |Home { path, owner, is_claude }: Home| {
        let form = if is_claude { Form::Claude } else { Form::Own };
        let (source, within) = match owner {
            Owner::Project { root, .. } => (Source::Project { path: path.clone() }, Some(root)),
            Owner::User => (Source::User { path: path.clone() }, None),
            Owner::Plugin { name: plugin, folder: path } => (Source::Plugin { plugin, path }, None),
        };
        list(source, form, path, within.as_deref())
    };
    places.homes("agents").into_iter().map(listed).collect()
}

/// Lists the agents in a folder. Does not follow links that point outside `within`.
fn list(source: Source, form: Form, path: PathBuf, within: Option<&Path>) -> Folder {
    let (files, outward) = (Vec::new(), Vec::new());
    let mut folder = Folder { source, form, path, files, cut: false, outward };
    let path = folder.path.clone();
    let mut walk = Walk { within, seen: HashSet::new(), into: &mut folder };
    if walk.stays_within(&path) {
        walk.enter(&path, 0);
    }
    folder.files.sort_by(|(one, _), (other, _)| one.cmp(other));
    folder
}

struct Walk<'a> {
    within: Option<&'a Path>,
    seen: HashSet<(u64, u64)>,
    into: &'a mut Folder,
}

impl Walk<'_> {
    /// Collects the Markdown files below `path`. Enters each folder once, whatever links there are.
    fn enter(&mut self, path: &Path, depth: usize) {
        let Ok(data) = std::fs::metadata(path) else { return };
        if !self.seen.insert((data.dev(), data.ino())) {
            return;
        }
        for child in children(path) {
            if self.into.files.len() >= FILES {
                self.into.cut = true;
                return;
            }
            let Ok(data) = std::fs::metadata(&child) else { continue };
            let is_markdown =
                child.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
            if !(data.is_file() && is_markdown || data.is_dir()) || !self.stays_within(&child) {
                continue;
            }
            if data.is_file() {
                self.into.files.push((child, Stamp::from(&data)));
            } else if depth < DEPTH {
                self.enter(&child, depth + 1);
            } else {
                self.into.cut = true;
            }
        }
    }

    /// True unless `path` leads outside `within`. Adds such a path to `outward`.
    fn stays_within(&mut self, path: &Path) -> bool {
        let Some(within) = self.within else { return true };
        let stays = path.canonicalize().is_ok_and(|real| real.starts_with(within));
        if !stays {
            self.into.outward.push(path.to_owned());
        }
        stays
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(root: &Path, path: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }

    /// The files found, relative to `root`, folder by folder.
    fn found(root: &Path, sources: &Sources) -> Vec<String> {
        let folders = find(sources, &[]);
        let files = folders.iter().flat_map(|folder| &folder.files);
        let relative =
            files.map(|(path, _)| path.strip_prefix(root).unwrap().display().to_string());
        relative.collect()
    }

    fn at(working: PathBuf, user: &[PathBuf]) -> Sources {
        Sources { working_folder: Some(working), user_folders: user.to_vec(), ..Sources::default() }
    }

    #[test]
    fn folders_are_found_up_to_the_repository_the_nearest_first_and_ours_before_theirs() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for path in [
            ".claude/agents/outside.md",
            "repo/.git/HEAD",
            "repo/.claude/agents/top.md",
            "repo/.posse/agents/top.md",
            "repo/a/b/.claude/agents/deep/near.md",
            "repo/a/b/.claude/agents/.hidden.md",
            "repo/a/b/.claude/agents/notes.txt",
        ] {
            write(root, path);
        }
        assert_eq!(
            found(root, &at(root.join("repo/a/b"), &[])),
            [
                "repo/a/b/.claude/agents/deep/near.md",
                "repo/.posse/agents/top.md",
                "repo/.claude/agents/top.md",
            ]
        );
    }

    #[test]
    fn what_holds_the_place_of_git_while_commands_run_is_no_repository() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "repo/.git/HEAD");
        write(root, "repo/.posse/agents/top.md");
        let held = root.join("repo/a/.git");
        std::fs::create_dir_all(&held).unwrap();
        assert_eq!(found(root, &at(root.join("repo/a"), &[])), [""; 0]);
        std::fs::set_permissions(&held, PermissionsExt::from_mode(0o1555)).unwrap();
        assert_eq!(found(root, &at(root.join("repo/a"), &[])), ["repo/.posse/agents/top.md"]);
    }

    #[test]
    fn without_a_repository_only_the_working_folder_counts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, ".claude/agents/outside.md");
        write(root, "work/.claude/agents/inside.md");
        assert_eq!(found(root, &at(root.join("work"), &[])), ["work/.claude/agents/inside.md"]);
    }

    #[test]
    fn the_user_s_own_folder_is_never_a_project_s() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        write(home, ".git/HEAD");
        write(home, ".claude/agents/mine.md");
        let sources = at(home.join("."), &[home.join(".claude/agents")]);
        let folders = find(&sources, &[]);
        assert_eq!(folders.len(), 1);
        assert!(matches!(folders[0].source, Source::User { .. }));
        assert_eq!(folders[0].form, Form::Claude);
    }

    #[test]
    fn links_in_circles_end() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, ".posse/agents/a/one.md");
        symlink(root.join(".posse/agents"), root.join(".posse/agents/a/again")).unwrap();
        symlink("/dev/zero", root.join(".posse/agents/zero.md")).unwrap();
        symlink(root.join("nowhere"), root.join(".posse/agents/gone.md")).unwrap();
        assert_eq!(found(root, &at(root.to_owned(), &[])), [".posse/agents/a/one.md"]);
    }

    #[test]
    fn plugins_are_called_as_they_say_or_as_their_folder() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "plugins/one/agents/a.md");
        write(root, "plugins/two/agents/b.md");
        write(root, "plugins/none/README.md");
        std::fs::create_dir(root.join("plugins/two/.claude-plugin")).unwrap();
        let manifest = root.join("plugins/two/.claude-plugin/plugin.json");
        std::fs::write(manifest, "{\"name\": \"second\", \"version\": \"1\"}").unwrap();
        let sources = Sources { plugin_folders: vec![root.join("plugins")], ..Sources::default() };
        let names: Vec<String> =
            find(&sources, &[]).iter().map(|folder| folder.source.to_string()).collect();
        assert_eq!(names, ["plugin one", "plugin second"]);
    }
}
