//! Rules about files. They are checked after a file is open, because only then is its real path known.
//! A check before that would see only the path as written, not where its links lead.

use std::path::{Path, PathBuf};

/// What a tool does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Read, search or name it.
    Read,
    /// List the names in the folder.
    List,
    /// Search for files below the folder, and check each of them.
    Walk,
    /// Use everything below the folder without further checks.
    Tree,
    /// Write or change it.
    Change,
}

/// How a tool got to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The call named it, so the call was judged by it.
    Named,
    /// A search found it.
    Found,
}

/// There are more files below a link than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// The maximum number of files and folders to check.
    pub at_most: usize,
}

/// Decides which files may be used. Paths are absolute, without `.` and `..`; a path `real` has no links.
pub trait PathRules: Send + Sync {
    /// Returns false if no file is ever refused for this usage. Then the real path of a file need not
    /// be determined.
    fn are_about(&self, _usage: Usage) -> bool {
        true
    }

    /// Returns why `tool` may not use the file at `real` like this, or `None` if it may. `tool` is
    /// `None` for commands. `named` is the path by which the file was reached.
    fn refuse(
        &self,
        tool: Option<&str>,
        usage: Usage,
        reached: Reached,
        named: &Path,
        real: &Path,
    ) -> Option<String>;

    /// Returns true if reading some file in this folder may be refused, at any depth. Commands must not
    /// see such files either.
    fn hide_some_in(&self, _folder: &Path) -> bool {
        false
    }

    /// More folders to which `hide_some_in` applies: the checkout of which the workspace is a worktree.
    fn checkouts(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Folders anywhere on the machine that contain files which rules deny to read.
    fn elsewhere(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns true if a rule denies reading `real`, whichever person could be asked.
    fn denies_read(&self, _real: &Path) -> bool {
        false
    }

    /// Returns true if `denies_read` may be true for some file in this folder, at any depth.
    fn denies_some_reads_in(&self, _folder: &Path) -> bool {
        false
    }

    /// Returns files behind `link` that a command may not use like this because of the link's name: its
    /// real target, or some files below that.
    ///
    /// # Errors
    /// If there are too many files to check.
    fn linked(&self, _usage: Usage, _link: &Path) -> Result<Vec<PathBuf>, TooMuch> {
        Ok(Vec::new())
    }

    /// Returns true if a rule denies changing `real`, whichever person could be asked.
    fn denies_change(&self, _real: &Path) -> bool {
        false
    }

    /// Returns true if `denies_change` may be true for some file in this folder, at any depth. Commands
    /// must not change such files either.
    fn deny_some_changes_in(&self, _folder: &Path) -> bool {
        false
    }
}
