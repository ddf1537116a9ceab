//! Rules about files, asked once a file is open: only then it is known which one it is. A rule that
//! looks at a path before sees what the path says, not where its links lead.

use std::path::{Path, PathBuf};

/// What a tool wants with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Read, search or name it.
    Read,
    /// Name what is in the folder.
    List,
    /// Look for files below the folder, and ask about each.
    Walk,
    /// Use everything below the folder without asking again.
    Tree,
    /// Write or change it.
    Change,
}

/// How a tool came to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The call named it, and so was judged by it.
    Named,
    /// A search came by it.
    Found,
}

/// There is more below a link than is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// How many files and folders are.
    pub at_most: usize,
}

/// Says which files may be used. Both paths are absolute, without `.`, `..`; the second has no links.
pub trait PathRules: Send + Sync {
    /// False when no file that is used so is ever refused: then it need not be found out which one it
    /// is.
    fn are_about(&self, _usage: Usage) -> bool {
        true
    }

    /// Why the file that is really at `real` may not be used so by `tool`, or by commands when that
    /// is `None`; it was reached by the path `named`.
    fn refuse(
        &self,
        tool: Option<&str>,
        usage: Usage,
        reached: Reached,
        named: &Path,
        real: &Path,
    ) -> Option<String>;

    /// True when it may refuse that something in this folder is read, however deep: commands must not
    /// see it either.
    fn hide_some_in(&self, _folder: &Path) -> bool {
        false
    }

    /// Folders beside the workspace for which the same holds: the checkout that it is a worktree of.
    fn checkouts(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Folders anywhere on the machine in which rules deny that something is read.
    fn elsewhere(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// True when a rule denies that what is really at `real` is read, whoever is asked.
    fn denies_read(&self, _real: &Path) -> bool {
        false
    }

    /// True when there may be something in this folder of which that is denied, however deep.
    fn denies_some_reads_in(&self, _folder: &Path) -> bool {
        false
    }

    /// What `link` leads to and may not be used so by a command because of the link's name: where it
    /// really leads, or some of what is below that.
    ///
    /// # Errors
    /// When there is too much to look at.
    fn linked(&self, _usage: Usage, _link: &Path) -> Result<Vec<PathBuf>, TooMuch> {
        Ok(Vec::new())
    }

    /// True when a rule denies that the file which is really at `real` is changed, whoever is asked.
    fn denies_change(&self, _real: &Path) -> bool {
        false
    }

    /// True when there may be something in this folder of which that is denied, however deep: commands
    /// must not change it either.
    fn deny_some_changes_in(&self, _folder: &Path) -> bool {
        false
    }
}
