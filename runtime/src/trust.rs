//! Trust: folders whose agents, skills and settings the user accepts.
//!
//! A decision covers one folder with exactly its content at that time. Files that are added or changed later are not
//! trusted. Unchanged definitions and skills stay trusted, unless settings have changed, because settings say what the
//! others may do. No file in a folder can declare the folder trusted. This module runs nothing: it reads, hashes and
//! compares files.

mod brought;
mod log;
mod verdict;

pub use brought::FilesToTrust;
pub use log::{Act, Decision, TrustError, TrustLog};
pub(crate) use verdict::{Verdict, Verdicts};

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The trust in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustStatus {
    /// The user trusts it with its current content.
    Trusted,
    /// The user has not decided.
    Unknown,
    /// The user trusted it, but its content has changed since.
    Changed,
    /// It could not be checked, for this reason. It is not trusted.
    Unsure(String),
}

impl TrustStatus {
    /// True when its agents may do more than read.
    pub fn is_trusted(&self) -> bool {
        *self == TrustStatus::Trusted
    }
}

impl fmt::Display for TrustStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustStatus::Trusted => f.write_str("trusted"),
            TrustStatus::Unknown => f.write_str("not trusted"),
            TrustStatus::Changed => f.write_str("changed since it was trusted"),
            TrustStatus::Unsure(why) => write!(f, "not trusted: {why}"),
        }
    }
}

/// How a file changed since its folder was trusted, by its path relative to the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Added(String),
    /// Its content differs.
    Changed(String),
    /// It is gone.
    Removed(String),
}

impl Change {
    /// Returns the path of the file.
    pub fn path(&self) -> &str {
        match self {
            Change::Added(path) | Change::Changed(path) | Change::Removed(path) => path,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self {
            Change::Added(_) => '+',
            Change::Changed(_) => '~',
            Change::Removed(_) => '-',
        };
        write!(f, "{sign} {}", self.path())
    }
}

/// The folders that the user trusts: from the log, and for one command only. By default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedFolders {
    /// The log of decisions, which need not exist.
    pub log: Option<PathBuf>,
    /// Folders that are trusted for one command, with the hash of their content at that time.
    once: BTreeMap<PathBuf, String>,
}

impl TrustedFolders {
    /// Returns the folders that the log at `path` names.
    pub fn of_log(path: impl Into<PathBuf>) -> Self {
        TrustedFolders { log: Some(path.into()), once: BTreeMap::new() }
    }

    /// Adds `folder` with all folders above it in its repository, as they are now. Nothing is recorded.
    ///
    /// # Errors
    /// When their content cannot be read completely, with the reason.
    pub fn and_for_now(mut self, folder: &Path) -> Result<Self, String> {
        for brought in FilesToTrust::around(folder)? {
            self.once.insert(brought.folder, brought.digest);
        }
        Ok(self)
    }

    /// Adds these canonical folders with the hashes of their content. `None` if they are all known already.
    pub(crate) fn and_as(&self, trusted: &BTreeMap<String, String>) -> Option<Self> {
        let trusted = trusted.iter().map(|(folder, digest)| (folder.into(), digest.clone()));
        let mut more = self.clone();
        more.once.extend(trusted);
        (more != *self).then_some(more)
    }

    /// Returns the folders that are trusted for one command, with the hash of the content of each. It leaves out a path
    /// that is not valid text, because it cannot be stored.
    pub(crate) fn for_now(&self) -> BTreeMap<String, String> {
        let named = self
            .once
            .iter()
            .filter_map(|(folder, digest)| Some((folder.to_str()?.to_owned(), digest.clone())));
        named.collect()
    }

    /// Returns the current trust in `folder`, a canonical path.
    pub fn standing(&self, folder: &Path) -> TrustStatus {
        self.verdict(folder).standing
    }

    /// Returns what has changed in `folder`, a canonical path, since it was trusted. Empty if it is trusted as it is,
    /// or if it was never trusted.
    pub fn changes(&self, folder: &Path) -> Vec<Change> {
        self.verdict(folder).changes
    }

    pub(crate) fn verdict(&self, folder: &Path) -> Verdict {
        Verdicts::default().verdict(self, folder)
    }
}

/// Returns `folder`, canonical, and its parents up to the root of its repository, nearest first: the settings, agents
/// and skills in all of them apply to it.
pub fn repository(folder: &Path) -> Vec<PathBuf> {
    crate::files::up_to_root(folder)
}

/// Returns the folder that the file or folder at `path` belongs to: the one that holds `.posse`, `.claude` or the
/// settings file.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(path);
    let is_ours =
        parent.file_name().is_some_and(|name| brought::FOLDERS.iter().any(|it| name == *it));
    let folder = if is_ours { parent.parent() } else { Some(parent) };
    folder.unwrap_or(parent).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_belongs_to_is_the_folder_that_brought_it_along() {
        let check = |path: &str, folder: &str| {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        };
        check("/a/b/.posse/agents", "/a/b");
        check("/a/b/.claude/skills", "/a/b");
        check("/a/b/posse.toml", "/a/b");
    }
}
