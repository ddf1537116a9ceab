//! What is in a workspace and is run or obeyed by programs outside of any confinement: nobody
//! confined writes there, whether it exists or not.

/// Names at the top of a workspace that no confined command and no file tool writes: settings,
/// agents and hooks of this and other agents, of editors and of the shell, each of which something
/// outside runs or obeys.
pub const PROTECTED: [&str; 13] = [
    ".posse",
    "posse.toml",
    ".claude",
    ".mcp.json",
    ".codex",
    ".gemini",
    ".cursor",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".envrc",
    ".husky",
    ".gitmodules",
];

/// Where git keeps a repository.
pub(super) const GIT: &str = ".git";

/// What git runs or obeys in there. The repositories of submodules and worktrees lie in there too.
pub(super) const IN_GIT: [&str; 4] = ["hooks", "config", "modules", "worktrees"];

/// What would make git obey another file. There cannot be something harmless in their place: git
/// stops at it. So they are taken away when they were not there before.
pub(super) const UNWANTED_IN_GIT: [&str; 2] = ["commondir", "config.worktree"];

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
