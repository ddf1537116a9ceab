//! Protected paths: files in a workspace that programs outside the sandbox run or obey. No confined
//! command writes them, whether they exist or not.

use super::aliases::Mounts;
use super::git::{GITDIR, POINTER, SETTINGS_BYTES, first_line, is_hooks, plain, text_at};
use super::home_links::{links_at, links_of, way};
use super::placeholder::{is_missing, is_placeholder};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Names at the top of a workspace that no confined command and no file tool writes. They are settings,
/// agents and hooks of this and other agents, of editors and of the shell. Programs outside the sandbox
/// run or obey each of them.
pub const PROTECTED: [&str; 49] = [
    ".posse",
    "posse.toml",
    ".claude",
    ".mcp.json",
    ".codex",
    ".gemini",
    ".cursor",
    ".windsurf",
    ".zed",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    "crush.json",
    ".crush.json",
    ".qwen",
    ".amazonq",
    ".kilocode",
    ".trae",
    ".kiro",
    ".roo",
    ".continue",
    ".aider.conf.yml",
    ".vscode",
    ".idea",
    ".fleet",
    ".helix",
    ".nvim.lua",
    ".nvimrc",
    ".lazy.lua",
    ".exrc",
    ".vimrc",
    ".gvimrc",
    "_vimrc",
    "_gvimrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".gdbinit",
    ".lldbinit",
    ".pdbrc",
    ".devcontainer",
    ".devcontainer.json",
    ".envrc",
    ".mise",
    ".mise.toml",
    ".mise.local.toml",
    "mise.toml",
    "mise.local.toml",
    ".husky",
    MODULES,
];

/// The file that names the submodules of a repository.
pub(super) const MODULES: &str = ".gitmodules";

/// The entry in which git keeps a repository.
pub(super) const GIT: &str = ".git";

/// One of the three parts that make a folder a repository.
pub(super) const HEAD: &str = "HEAD";

/// Another of the three parts. Few folders of other kinds have this name.
pub(super) const REFS: &str = "refs";

/// The third part.
pub(super) const OBJECTS: &str = "objects";

/// What git runs or obeys in its folder, including the repositories of submodules and worktrees.
pub(super) const IN_GIT: [&str; 8] = [
    "hooks",
    "config",
    "modules",
    "worktrees",
    "remotes",
    "branches",
    COMMON_FOLDER,
    WORKTREE_CONFIG,
];

/// With one of these beside `HEAD`, a folder counts as the data of a repository: the rest may come later, and
/// not by a command. Git itself asks for more, so it obeys nothing in a folder that has no `HEAD`.
const BESIDE_HEAD: [&str; 5] = [OBJECTS, REFS, COMMON_FOLDER, "config", "hooks"];

/// A file that makes git obey the settings and hooks of another folder. It is harmless if it names its
/// own folder.
pub(super) const COMMON_FOLDER: &str = "commondir";

/// More settings. The file is harmless if it is empty.
pub(super) const WORKTREE_CONFIG: &str = "config.worktree";

/// Returns true for a name that a placeholder can have at the top of a workspace.
pub(crate) fn may_be_held(name: &str) -> bool {
    [GIT, HEAD, REFS, OBJECTS].contains(&name) || PROTECTED.contains(&name)
}

/// Returns the name that must not appear in `workspace`, so that no command can make the workspace itself a
/// repository: the first of the three parts that is missing. `None` if the workspace is a repository already. A
/// repository in `.git` makes no difference: if a command breaks it, git searches further. `HEAD` comes last,
/// because a file `HEAD` beside the agent would make git take the word `HEAD` for a file name.
pub(super) fn makes_a_repository(workspace: &Path) -> Option<&'static str> {
    let is_folder = |name: &str| {
        let found = workspace.join(name).symlink_metadata();
        found.is_ok_and(|found| (found.is_dir() && !is_placeholder(&found)) || found.is_symlink())
    };
    let head = workspace.join(HEAD).symlink_metadata();
    let has_head = head.is_ok_and(|found| !found.is_dir() || !is_placeholder(&found));
    match [REFS, OBJECTS].into_iter().find(|name| !is_folder(name)) {
        None if has_head => None,
        missing => Some(missing.unwrap_or(HEAD)),
    }
}

/// The data of the workspace's repository, if it is in the workspace: at the usual place, where a file
/// `.git` says, or, for a bare repository, the workspace itself. It need not be complete: a command may
/// have removed `HEAD`, to restore it after other commands are done.
pub(super) fn data_of(workspace: &Path) -> Vec<PathBuf> {
    let git = workspace.join(GIT);
    // A folder that cannot be listed counts: a command may have closed it, and may open it again.
    let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let is_filled = |folder: &PathBuf| match folder.symlink_metadata() {
        Ok(found) if found.is_dir() => {
            std::fs::read_dir(folder).map_or(true, |mut all| all.next().is_some())
        }
        Ok(_) => false,
        Err(error) => is_closed(&error),
    };
    let named = text_at(&git, POINTER).and_then(|text| {
        let folder = workspace.join(first_line(text.strip_prefix(GITDIR)?));
        let real = match folder.canonicalize() {
            Err(error) if is_closed(&error) => plain(&folder),
            real => real.ok()?,
        };
        Some(real).filter(|it| it.starts_with(workspace))
    });
    let bare = is_data(workspace).then(|| workspace.to_owned());
    [Some(git), named, bare].into_iter().flatten().filter(is_filled).collect()
}

/// Returns true for the data of a repository, by the names in a folder and whether each is a folder. Capital letters
/// make no difference: some file systems ignore them, and a command can change them.
pub(super) fn is_repository<'n>(names: impl Iterator<Item = (&'n OsStr, bool)> + Clone) -> bool {
    let mut further = names.clone();
    has_head(names) && further.any(|(name, _)| is_one_of(name, &BESIDE_HEAD))
}

/// Returns true if one of these names is `HEAD`, which is no folder in the data of a repository.
pub(super) fn has_head<'n>(mut names: impl Iterator<Item = (&'n OsStr, bool)>) -> bool {
    names.any(|(name, is_folder)| !is_folder && name.eq_ignore_ascii_case(HEAD))
}

/// Returns true for a name that nothing but git may create beside `HEAD`: it makes the folder a repository, or git
/// runs or obeys it there.
pub(super) fn is_closed_beside_head(name: &OsStr) -> bool {
    is_one_of(name, &BESIDE_HEAD) || is_one_of(name, &IN_GIT)
}

fn is_one_of(name: &OsStr, names: &[&str]) -> bool {
    names.iter().any(|it| name.eq_ignore_ascii_case(it))
}

/// Returns true for a folder with the data of a repository, or its remains. A command may have removed
/// parts of it, to restore them after other commands are done. It cannot remove the settings and the
/// hooks, which mounts protect.
pub(super) fn is_data(folder: &Path) -> bool {
    let there = |name: &str| folder.join(name).symlink_metadata().ok();
    let there = |name: &str| there(name).filter(|found| !is_placeholder(found));
    let is_folder = |name: &str| there(name).is_some_and(|found| found.is_dir());
    let has_head = there(HEAD).is_some_and(|found| !found.is_dir());
    let parts = [has_head, is_folder(OBJECTS), is_folder(REFS)].iter().filter(|it| **it).count();
    // All parts that git requires, or all but one.
    if parts > 1 {
        return true;
    }
    let settings = there("config").filter(std::fs::Metadata::is_file);
    let settings = settings.and_then(|_| text_at(&folder.join("config"), SETTINGS_BYTES));
    let hooks = || {
        let entries = std::fs::read_dir(folder.join("hooks")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).collect()
    };
    is_left_of_data(parts > 0 || there(HEAD).is_some(), settings.as_deref(), hooks)
}

/// The same check on given facts: whether one of the three parts of a repository exists in any form,
/// the settings, and the names in the folder of hooks. Other programs use such names, too, so the
/// content must look like git's.
pub(super) fn is_left_of_data(
    has_part: bool,
    settings: Option<&[u8]>,
    hooks: impl FnOnce() -> Vec<OsString>,
) -> bool {
    let settings = settings.map(|text| String::from_utf8_lossy(text).to_lowercase());
    let says = |word: &str| settings.as_ref().is_some_and(|text| text.contains(word));
    let is_hook = |name: &OsString| {
        name.to_str().is_some_and(|name| HOOKS.contains(&name.trim_end_matches(".sample")))
    };
    says("repositoryformatversion") || has_part && (says("[core") || hooks().iter().any(is_hook))
}

/// The names of git's hooks.
const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
];

/// Paths below a home folder that decide what programs of the user run: settings of git, of agents and
/// of the desktop, and programs. They matter if the workspace is a part of the home folder, or if links
/// lead into the workspace.
const OBEYED_BELOW_HOME: [&str; 22] = [
    ".config/git/config",
    ".config/git/attributes",
    ".config/posse",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".config/fish",
    ".config/plasma-workspace",
    ".config/direnv",
    ".config/mise",
    ".config/nvim",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/agents",
    ".claude/skills",
    ".claude/plugins",
    ".local/bin",
    ".local/share/applications",
    ".cargo/bin",
    ".cargo/config.toml",
    ".ssh/config",
    "bin",
];

/// The files among these paths, and among the names below, that git reads.
const FILES: [&str; 3] = [".gitconfig", ".config/git/config", ".config/git/attributes"];

/// Paths below a home folder where only the user may work. They decide who may log in, and what agents
/// are instructed and permitted to do.
const CLOSED_BELOW_HOME: [&str; 6] =
    [".config/posse", ".claude/agents", ".claude/skills", ".claude/plugins", ".ssh", ".gnupg"];

/// Returns true if the workspace is such a path, or is inside one, if git takes hooks from it, and also if there
/// are too many names to check for links, in a home folder or below a protected name.
pub(crate) fn is_closed(workspace: &Path, homes: &[PathBuf]) -> bool {
    let places = homes.iter().flat_map(|home| CLOSED_BELOW_HOME.map(|name| way(&home.join(name))));
    let mut all = places.flat_map(|way| way.ends);
    all.any(|place| workspace.starts_with(place))
        || is_hooks(workspace, homes)
        || !homes.iter().all(|home| links_of(home, workspace).are_all)
        || !links_at(workspace).are_all
}

/// Paths in a workspace that programs of the user obey: it is below a home folder, or links lead there, from a
/// home folder or from the protected names at the top of the workspace.
#[derive(Debug, Default)]
pub(super) struct ObeyedPaths {
    /// Paths that exist, or the first missing folder on the way.
    pub places: Vec<PathBuf>,
    /// Paths that must be files: git stops if it finds a folder there.
    pub files: Vec<PathBuf>,
    /// Links on the way. Nothing can be mounted over a link, so the names around it must stay as they are.
    pub links: Vec<PathBuf>,
    /// Folders that the way leaves again by `..`. They must stay where they are.
    pub left: Vec<PathBuf>,
}

/// Returns these paths in `workspace`, those of `own` that are Posse's folders, and the links on the way to all of
/// `own`.
pub(super) fn obeyed_below_home(
    workspace: &Path,
    homes: &[PathBuf],
    own: &[PathBuf],
) -> ObeyedPaths {
    let named = OBEYED_BELOW_HOME.iter().chain(IN_HOME.iter().filter(|it| !is_folder_in_home(it)));
    let below = homes.iter().flat_map(|home| named.clone().map(|name| home.join(name)));
    let is_own = |path: &&PathBuf| path.file_name().is_some_and(|name| name == OWN);
    let (own, hidden): (Vec<&PathBuf>, Vec<&PathBuf>) = own.iter().partition(is_own);
    let in_workspace: Vec<&PathBuf> =
        homes.iter().filter(|home| home.starts_with(workspace)).collect();
    let is_inside = |path: &PathBuf| path.starts_with(workspace) && path != workspace;
    // In a home folder that is in the workspace, these entries are protected as a whole.
    let is_protected = |path: &PathBuf| {
        let mut names = in_workspace.iter().flat_map(|home| IN_HOME.map(|name| home.join(name)));
        names.any(|name| path.starts_with(name))
    };
    let is_at_top_of_home =
        |link: &PathBuf| in_workspace.iter().any(|home| link.parent() == Some(home.as_path()));
    let first_missing = |path: PathBuf| {
        let around = path.ancestors().take_while(|it| *it != workspace);
        let missing = around.filter(|it| is_missing(it)).last();
        missing.map_or_else(|| path.clone(), Path::to_owned)
    };
    let (mut obeyed, mounts) = (ObeyedPaths::default(), Mounts::now());
    for path in below.chain(own.into_iter().cloned()) {
        let way = way(&path);
        let is_file = FILES.iter().any(|name| path.ends_with(name));
        if is_file {
            obeyed.files.extend(way.ends.last().cloned());
        }
        // The same file system may be mounted in the workspace once more.
        for alias in way.ends.last().map_or_else(Vec::new, |end| mounts.others(end)) {
            if is_file && !alias.is_part {
                obeyed.files.push(alias.path.clone());
            }
            obeyed.places.push(alias.path);
        }
        obeyed.places.extend(way.ends);
        obeyed.links.extend(way.links.into_iter().filter(|link| !is_at_top_of_home(link)));
        obeyed.left.extend(way.left);
    }
    // Another link on the way to what is hidden, such as the database, would lead the next process elsewhere.
    for way in hidden.into_iter().map(|path| way(path)) {
        obeyed.links.extend(way.links.into_iter().filter(|link| !is_at_top_of_home(link)));
        obeyed.left.extend(way.left);
    }
    for link in links_at(workspace).found {
        let way = way(&link);
        obeyed.places.extend(way.ends);
        // What is in a protected folder stays as it is anyway. A protected name that is itself a link has no mount,
        // so the names around it stay as they are. For another link at the top, such as `result`, that would be too
        // much: nothing new could be made at the top.
        let is_own = |path: &PathBuf| match path.strip_prefix(workspace) {
            Ok(below) => PROTECTED.iter().any(|it| below.starts_with(it) && below != Path::new(it)),
            Err(_) => false,
        } || path.parent() == Some(workspace)
            && !PROTECTED.iter().any(|it| path.ends_with(it));
        obeyed.links.extend(way.links.into_iter().filter(|path| !is_own(path)));
        obeyed.left.extend(way.left);
    }
    for link in homes.iter().flat_map(|home| links_of(home, workspace).found) {
        let mut way = way(&link);
        if is_in_own(&link, workspace) {
            way.ends.retain(|end| !is_missing(end));
        } else {
            obeyed.links.extend(way.links);
            obeyed.left.extend(way.left);
        }
        obeyed.places.extend(way.ends);
    }
    let ObeyedPaths { places, links, left, .. } = &mut obeyed;
    places.retain(|path| is_inside(path) && !is_protected(path));
    *places = std::mem::take(places).into_iter().map(first_missing).collect();
    // What is in a place that stays as it is stays, too.
    for paths in [&mut *links, &mut *left] {
        paths.retain(|path| is_inside(path) && !is_protected(path));
        paths.retain(|path| !places.iter().any(|place| path.starts_with(place)));
    }
    for paths in [places, links, left] {
        paths.sort();
        paths.dedup();
    }
    obeyed
}

/// Returns true for a link in a part of the home folder that is the workspace: who works there makes and
/// changes links. A folder of the workspace that a link of the home folder leads to is no such part.
fn is_in_own(link: &Path, workspace: &Path) -> bool {
    let is_inside = |folder: &Path| folder.canonicalize().is_ok_and(|it| it.starts_with(workspace));
    let is_workspace = |folder: &Path| folder.canonicalize().is_ok_and(|it| it == workspace);
    link.parent().is_some_and(is_inside) && link.ancestors().skip(1).any(is_workspace)
}

fn is_folder_in_home(name: &str) -> bool {
    FOLDERS_IN_HOME.contains(&name)
}

/// The name of the folders in which Posse keeps its own files.
const OWN: &str = "posse";

/// The names below that are folders.
pub(super) const FOLDERS_IN_HOME: [&str; 5] = [".config", ".local", ".cargo", ".ssh", ".gnupg"];

/// Names in a home folder that programs run or obey, if the workspace contains the home folder.
pub(super) const IN_HOME: [&str; 25] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".xprofile",
    ".xinitrc",
    ".gitconfig",
    ".vimrc",
    ".config",
    ".local",
    ".cargo",
    ".ssh",
    ".gnupg",
    ".pam_environment",
    ".inputrc",
    ".xsession",
    ".xsessionrc",
    ".tmux.conf",
    ".screenrc",
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_on_the_way_to_what_is_hidden_stay() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (work, data) = (top.join("work"), top.join("data"));
        std::fs::create_dir_all(work.join("sub")).unwrap();
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("p.db"), "").unwrap();
        symlink(&data, work.join("d")).unwrap();
        symlink(data.join("p.db"), work.join("sub/file.db")).unwrap();
        symlink(work.join("sub/file.db"), top.join("chain.db")).unwrap();
        let links = |hidden: &str| obeyed_below_home(&work, &[], &[top.join(hidden)]).links;
        assert_eq!(links("work/d/p.db"), [work.join("d")]);
        assert_eq!(links("work/sub/file.db"), [work.join("sub/file.db")]);
        assert_eq!(links("chain.db"), [work.join("sub/file.db")]);
        assert!(links("data/p.db").is_empty());
    }
}
