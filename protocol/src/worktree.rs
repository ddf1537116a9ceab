//! Git worktrees of runs.

use crate::Extra;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a run is isolated from its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// It works in a git worktree of its own.
    Worktree,
}

/// The git worktree of a run. The workspace of the run is its folder, or a folder in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The checkout from which it was made, absolute.
    pub repository: String,
    /// The folder with git's data of that repository, absolute.
    pub data: String,
    /// The folder that the run would work in without a worktree, absolute. The run can read it.
    pub origin: String,
    /// The folder of the worktree, absolute.
    pub folder: String,
    /// The commit at which it began.
    pub base: String,
    /// The branch for the changes.
    pub branch: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The changes of a run in its worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The branch with the changes, in the repository from which the worktree was made.
    pub branch: String,
    /// The last commit.
    pub commit: String,
    /// The commit at which the worktree began.
    pub base: String,
    /// The number of changed files.
    pub files: u64,
    /// The number of added lines.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
    /// The diff, or its beginning if it is long.
    pub difference: String,
    /// Why the changes are not on the branch, if so. They are then still in the worktree's folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// The files that are on no branch, if there are any. The worktree's folder is then kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// The SHA-256 of the bundle of these changes in the store, in hex; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bundle: String,
    /// How many bytes of the diff are left out.
    #[serde(default, skip_serializing_if = "crate::usage::is_zero")]
    pub left_out: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Files of a worktree that are on no branch: git ignores them, or they are in a submodule, of which
/// git stores only a commit id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The worktree's folder, absolute.
    pub folder: String,
    /// The number of files.
    pub files: u64,
    /// The first of them, as paths in the folder.
    pub names: Vec<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept { folder, files, .. } = self;
        let are = if *files == 1 { "1 file is".to_owned() } else { format!("{files} files are") };
        write!(
            f,
            "{are} on no branch (ignored or refused by git, or in a submodule) and kept in {folder}"
        )
    }
}
