//! The git repository of a workspace, as far as it is outside the workspace. Git must see it, and a
//! command that may change the workspace may commit to it.
//!
//! This code inspects files that it cannot trust: an archive or another user may have put a `.git`
//! somewhere. So the rules about which folders it shows are strict.

use super::git::{POINTER, SETTINGS_BYTES, text_at};
use super::placeholder::is_placeholder;
use super::protected::{GIT, HEAD, is_data};
use rustix::process::geteuid;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The permission for every user to create files in a folder.
const WORLD_WRITABLE: u32 = 0o002;

/// The parts of a repository that are outside the workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The top of its working tree, if that is above the workspace.
    pub top: Option<PathBuf>,
    /// Its data, if it is the folder `.git` in `top`.
    pub data: Option<PathBuf>,
    /// Its data, if a file `.git` names another folder, as in a worktree or a submodule.
    pub elsewhere: Vec<PathBuf>,
}

impl Repository {
    /// Returns the repository that git would find from `workspace`. Never the repository of a home
    /// folder: a person who keeps a home folder in git does not mean every project in it.
    pub(crate) fn of(workspace: &Path, homes: &[PathBuf]) -> Repository {
        let found = workspace.metadata().ok().and_then(|own| search(workspace, &own, homes));
        found.unwrap_or_default()
    }
}

/// Returns true if `folder` has an entry `.git`: a repository or the remains of one. A placeholder does
/// not count.
#[must_use]
pub fn has_git(folder: &Path) -> bool {
    let git = folder.join(GIT);
    // Only an empty folder counts as a placeholder, whatever its mode.
    let is_empty = || std::fs::read_dir(&git).is_ok_and(|mut all| all.next().is_none());
    match git.symlink_metadata() {
        Ok(found) => !(found.is_dir() && is_placeholder(&found) && is_empty()),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// The workspace, and the folders above it that have an entry `name`. The owner of the entry does not matter: the
/// user may allow programs to obey other owners (`safe.directory` of git).
pub(super) fn folders_with<'p>(name: &str, workspace: &'p Path) -> Vec<&'p Path> {
    let has = |folder: &Path| folder.join(name).symlink_metadata().is_ok();
    workspace.ancestors().filter(|folder| *folder == workspace || has(folder)).collect()
}

/// Returns true for what belongs to this user, or to the owner of `own`.
fn is_ours(found: &Metadata, own: &Metadata) -> bool {
    found.uid() == own.uid() || found.uid() == geteuid().as_raw()
}

/// Searches the workspace and the folders above it, up to the first with an entry `.git`. If that is no
/// complete repository, git itself would search further. We stop, because a command could take its
/// repository apart to get access to the one above.
fn search(workspace: &Path, own: &Metadata, homes: &[PathBuf]) -> Option<Repository> {
    for top in workspace.ancestors() {
        let folder = top.metadata().ok()?;
        // Git does not cross file systems either.
        if folder.dev() != own.dev() {
            return None;
        }
        let git = top.join(GIT);
        if !has_git(top) {
            continue;
        }
        let found = git.symlink_metadata().ok()?;
        let is_above = top != workspace;
        if is_above && !(is_ours(&found, own) && may_be_shown(top, &folder, homes)) {
            return None;
        }
        let top = is_above.then(|| top.to_owned());
        if found.is_dir() && is_repository(&git) {
            let data = is_above.then_some(git);
            return Some(Repository { top, data, elsewhere: Vec::new() });
        }
        if found.is_file() {
            let elsewhere = data_elsewhere(&git, own)?;
            return Some(Repository { top, data: None, elsewhere });
        }
        return None;
    }
    None
}

/// Returns false for folders that hold more than one project.
fn may_be_shown(top: &Path, folder: &Metadata, homes: &[PathBuf]) -> bool {
    let is_home = homes.iter().any(|home| home.starts_with(top))
        || top == Path::new("/root")
        || top.parent().is_none_or(|around| around == Path::new("/home"));
    !is_home && folder.mode() & WORLD_WRITABLE == 0
}

/// Returns true even for an incomplete repository: a command may have taken it apart.
fn is_repository(data: &Path) -> bool {
    data.join(HEAD).symlink_metadata().is_ok_and(|found| !found.is_dir()) || is_data(data)
}

/// Returns the folder that the file `.git` names, and the folder that it shares with other worktrees.
/// Any program can write such a file, so it counts only if the repository names the file, too.
fn data_elsewhere(file: &Path, own: &Metadata) -> Option<Vec<PathBuf>> {
    let named = |file: &Path, prefix: &str| {
        // Git reads only up to the first zero byte, and so another path.
        let text =
            String::from_utf8(text_at(file, POINTER)?).ok().filter(|it| !it.contains('\0'))?;
        let path = text.strip_prefix(prefix)?.trim();
        file.parent()?.join(path).canonicalize().ok()
    };
    let data = named(file, "gitdir:")?;
    // A worktree has a file that names its `.git`; a submodule has a setting.
    let is_worktree =
        named(&data.join("gitdir"), "").is_some_and(|it| Some(it) == file.canonicalize().ok());
    let is_submodule = work_folder(&data).is_some_and(|it| Some(it.as_path()) == file.parent());
    if !is_worktree && !is_submodule {
        return Some(Vec::new());
    }
    let common = named(&data.join("commondir"), "");
    let common = common.filter(|common| is_worktree && data.starts_with(common.join("worktrees")));
    let is_ours = |path: &PathBuf| path.metadata().is_ok_and(|it| it.uid() == own.uid());
    let all = [Some(data), common].into_iter().flatten();
    Some(all.filter(|path| is_repository(path) && is_ours(path)).collect())
}

/// The working tree of the repository in `data`, as its settings name it.
fn work_folder(data: &Path) -> Option<PathBuf> {
    let settings = String::from_utf8(text_at(&data.join("config"), SETTINGS_BYTES)?).ok()?;
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let is_meant = key.trim().eq_ignore_ascii_case("worktree");
        is_meant.then(|| value.trim().trim_matches('"').to_owned())
    };
    data.join(settings.lines().find_map(value)?).canonicalize().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_repository_is_found_above_a_folder_but_not_where_more_than_a_project_is() {
        let around = tempfile::tempdir().unwrap();
        let root = around.path().canonicalize().unwrap();
        let (top, inner) = (root.join("r"), root.join("r/a/b"));
        fs::create_dir_all(&inner).unwrap();
        let of = |homes: &[PathBuf]| Repository::of(&inner, homes);
        assert_eq!(of(&[]), Repository::default());
        fs::create_dir(top.join(".git")).unwrap();
        // A placeholder for a missing repository is no repository.
        fs::create_dir(inner.join(".git")).unwrap();
        let held = fs::Permissions::from_mode(0o1555);
        fs::set_permissions(inner.join(".git"), held).unwrap();
        assert_eq!(of(&[]), Repository::default());
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let found = of(&[]);
        assert_eq!((found.top, found.data), (Some(top.clone()), Some(top.join(".git"))));
        assert_eq!(Repository::of(&top, &[]), Repository::default(), "all of it is inside");
        assert_eq!(of(std::slice::from_ref(&top)), Repository::default(), "a home folder");
        assert_eq!(of(&[top.join("home")]), Repository::default(), "around a home folder");
        fs::set_permissions(&top, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(of(&[]), Repository::default(), "a folder for everybody");
    }

    /// Git ignores a folder `.git` without HEAD. A command may have removed HEAD.
    #[test]
    fn nothing_is_found_around_a_repository_that_is_not_whole() {
        let around = tempfile::tempdir().unwrap();
        let root = around.path().canonicalize().unwrap();
        let inner = root.join("r/lib/sub");
        fs::create_dir_all(root.join("r/.git")).unwrap();
        fs::write(root.join("r/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::create_dir_all(&inner).unwrap();
        let of = |folder: &str| Repository::of(&root.join(folder), &[]);
        for folder in ["r/lib", "r/lib/sub"] {
            assert_eq!(of(folder).top, Some(root.join("r")), "{folder}: it means something");
        }
        let git = root.join("r/lib/.git");
        fs::create_dir_all(git.join("objects")).unwrap();
        // The mode of a placeholder does not make it one.
        for mode in [0o755, 0o1555] {
            fs::set_permissions(&git, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(of("r/lib"), Repository::default());
            assert_eq!(of("r/lib/sub"), Repository::default());
        }
        fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_dir_all(&git).unwrap();
        fs::write(&git, "gitdir: nowhere\n").unwrap();
        assert_eq!(of("r/lib"), Repository::default());
        fs::remove_file(&git).unwrap();
        std::os::unix::fs::symlink("nowhere", &git).unwrap();
        assert_eq!(of("r/lib"), Repository::default());
    }

    #[test]
    fn the_data_of_a_worktree_is_found_where_its_file_says_if_it_is_a_repository() {
        let around = tempfile::tempdir().unwrap();
        let root = around.path().canonicalize().unwrap();
        let (common, data) = (root.join("main/.git"), root.join("main/.git/worktrees/w"));
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(root.join("w/sub")).unwrap();
        let points = format!("gitdir: {}\n", data.display());
        fs::write(root.join("w/.git"), points).unwrap();
        assert_eq!(Repository::of(&root.join("w"), &[]), Repository::default(), "it has no HEAD");
        for folder in [&common, &data] {
            fs::write(folder.join("HEAD"), "x").unwrap();
        }
        fs::write(data.join("commondir"), "../..\n").unwrap();
        let unnamed = Repository::of(&root.join("w"), &[]);
        assert_eq!(unnamed, Repository::default(), "anybody can name a repository");
        fs::write(data.join("gitdir"), format!("{}\n", root.join("w/.git").display())).unwrap();
        for (folder, top) in [("w", None), ("w/sub", Some(root.join("w")))] {
            let found = Repository::of(&root.join(folder), &[]);
            let elsewhere = vec![data.clone(), common.clone()];
            assert_eq!(found, Repository { top, data: None, elsewhere }, "{folder}");
        }
    }
}
