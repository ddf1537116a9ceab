//! A checkout of its own for a run.

use crate::Extra;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a run works apart from its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In a git worktree of its own.
    Worktree,
}

/// The git worktree that is a run's own. Its folder is the run's workspace, or around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The checkout it was made from, absolute.
    pub repository: String,
    /// Where git keeps the data of that repository, absolute.
    pub data: String,
    /// The folder that the run would work in without it, absolute; it can be read.
    pub origin: String,
    /// The folder of the worktree, absolute.
    pub folder: String,
    /// The commit it began with.
    pub base: String,
    /// The branch that takes what was changed.
    pub branch: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a run has changed in its worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The branch that holds it, in the repository the run began with.
    pub branch: String,
    /// The commit it ends with.
    pub commit: String,
    /// The commit it began with.
    pub base: String,
    /// How many files it changed.
    pub files: u64,
    /// Lines it added.
    pub added: u64,
    /// Lines it removed.
    pub removed: u64,
    /// The difference; only its beginning if it is long.
    pub difference: String,
    /// Why the branch does not hold it, if that is so: then it still is in the worktree's folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// What is on no branch, if there is something: then the worktree's folder is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// Bytes of the difference that are not there.
    #[serde(default, skip_serializing_if = "crate::usage::is_zero")]
    pub left_out: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Files of a worktree that no branch holds: git ignores them, or keeps a commit's name in the place of
/// the folder that they are in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The worktree's folder, absolute.
    pub folder: String,
    /// How many they are.
    pub files: u64,
    /// The first of them, by their paths in the folder.
    pub names: Vec<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept { folder, files, .. } = self;
        let are = if *files == 1 { "1 file is".to_owned() } else { format!("{files} files are") };
        write!(f, "{are} on no branch (ignored by git, or in a submodule) and kept in {folder}")
    }
}
