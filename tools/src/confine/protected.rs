//! What is in a workspace and is run or obeyed by programs outside of any confinement: nobody
//! confined writes there, whether it exists or not.

use super::git::{GITDIR, POINTER, first_line, text_at};
use super::placeholder::is_placeholder;
use std::path::{Path, PathBuf};

/// Names at the top of a workspace that no confined command and no file tool writes: settings,
/// agents and hooks of this and other agents, of editors and of the shell, each of which something
/// outside runs or obeys.
pub const PROTECTED: [&str; 33] = [
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
    ".exrc",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    ".devcontainer",
    ".devcontainer.json",
    ".envrc",
    ".mise.toml",
    "mise.toml",
    ".husky",
    ".gitmodules",
];

/// Where git keeps a repository.
pub(super) const GIT: &str = ".git";

/// What makes a folder one, together with others.
pub(super) const HEAD: &str = "HEAD";

/// Another part of a repository. Few folders of other kinds have this name.
pub(super) const REFS: &str = "refs";

/// The third part of one.
pub(super) const OBJECTS: &str = "objects";

/// What git runs or obeys in there. The repositories of submodules and worktrees lie in there too.
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

/// Would make git obey the settings and hooks of another folder; harmless when it names the folder
/// that it is in.
pub(super) const COMMON_FOLDER: &str = "commondir";

/// More settings; harmless when it is empty.
pub(super) const WORKTREE_CONFIG: &str = "config.worktree";

/// True for the name of a placeholder at the top of a workspace.
pub(crate) fn may_be_held(name: &str) -> bool {
    [GIT, HEAD, REFS, OBJECTS].contains(&name) || PROTECTED.contains(&name)
}

/// The name that must not appear in `workspace`, since the workspace itself could be made a
/// repository with it: the first of its three parts that is no folder. None where it is one already.
/// A repository in `.git` is no reason to hold none: who breaks that one makes git look further.
/// `HEAD` comes last: beside an agent it would make git take `HEAD` for the name of a file.
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

/// The data of the repository whose files are in `workspace`, if they are in there too: in the usual
/// place, where a file says, or, of a repository without files, right there.
pub(super) fn data_of(workspace: &Path) -> Option<PathBuf> {
    let git = workspace.join(GIT);
    let named = text_at(&git, POINTER).and_then(|text| {
        let folder = workspace.join(first_line(text.strip_prefix(GITDIR)?));
        folder.canonicalize().ok().filter(|it| it.starts_with(workspace))
    });
    let is_bare = [OBJECTS, REFS].iter().all(|name| workspace.join(name).is_dir());
    let bare = is_bare.then(|| workspace.to_owned());
    let mut all = [Some(git), named, bare].into_iter().flatten();
    all.find(|folder| folder.join(HEAD).symlink_metadata().is_ok_and(|found| !found.is_dir()))
}

/// Those of the names below that are folders.
pub(super) const FOLDERS_IN_HOME: [&str; 5] = [".config", ".local", ".cargo", ".ssh", ".gnupg"];

/// What is run or obeyed in a home folder, should somebody work there.
pub(super) const IN_HOME: [&str; 20] = [
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
];
