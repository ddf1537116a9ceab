//! Whom the user trusts: folders that bring agents, skills and settings along.
//!
//! A decision is for one folder with exactly what it brought along then. What is added or changed
//! later is not trusted; definitions and skills that did not change stay so, unless settings have
//! changed, which say what the others may do. Nothing in a folder can say that it is to be trusted. Runs nothing: what a
//! folder brings along is read, hashed and compared.

mod brought;
mod log;
mod verdict;

pub use brought::Brought;
pub use log::{Act, Decision, TrustError, TrustLog};
pub(crate) use verdict::{Verdict, Verdicts};

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// What is thought of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The user trusts it with what it brings along now.
    Trusted,
    /// Nobody has said so.
    Unknown,
    /// The user trusted it, and what it brings along has changed since.
    Changed,
    /// That cannot be told, for this reason. It is not trusted.
    Unsure(String),
}

impl Standing {
    /// True when it may do more than look.
    pub fn is_trusted(&self) -> bool {
        *self == Standing::Trusted
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Trusted => f.write_str("trusted"),
            Standing::Unknown => f.write_str("not trusted"),
            Standing::Changed => f.write_str("changed since it was trusted"),
            Standing::Unsure(why) => write!(f, "not trusted: {why}"),
        }
    }
}

/// What became of a file since its folder was trusted, by its path below the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was not there.
    Added(String),
    /// It was another.
    Changed(String),
    /// It is not there any more.
    Removed(String),
}

impl Change {
    /// Which file.
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

/// Whom the user trusts: as the log says, and for the time of one command. By default nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trustees {
    /// The log of decisions, whether it exists or not.
    pub log: Option<PathBuf>,
    /// Folders that are trusted for now, by what they brought along when that was said.
    once: BTreeMap<PathBuf, String>,
}

impl Trustees {
    /// Those that the log at `path` names.
    pub fn of_log(path: impl Into<PathBuf>) -> Self {
        Trustees { log: Some(path.into()), once: BTreeMap::new() }
    }

    /// The same, and `folder` with all above it in its repository, as they are now. Nothing is
    /// recorded.
    ///
    /// # Errors
    /// When what they bring along cannot be looked at whole, in words.
    pub fn and_for_now(mut self, folder: &Path) -> Result<Self, String> {
        for brought in Brought::around(folder)? {
            self.once.insert(brought.folder, brought.digest);
        }
        Ok(self)
    }

    /// The same, and these folders, which are canonical, with what they bring along by these hashes.
    /// Nothing if that is said already.
    pub(crate) fn and_as(&self, trusted: &BTreeMap<String, String>) -> Option<Self> {
        let trusted = trusted.iter().map(|(folder, digest)| (folder.into(), digest.clone()));
        let mut more = self.clone();
        more.once.extend(trusted);
        (more != *self).then_some(more)
    }

    /// The folders that are trusted for now, by the hash of what each brought along. A name that is not
    /// text is left out: it cannot be stored.
    pub(crate) fn for_now(&self) -> BTreeMap<String, String> {
        let named = self
            .once
            .iter()
            .filter_map(|(folder, digest)| Some((folder.to_str()?.to_owned(), digest.clone())));
        named.collect()
    }

    /// What is thought of `folder`, which is canonical, now.
    pub fn standing(&self, folder: &Path) -> Standing {
        self.verdict(folder).standing
    }

    /// What has changed in `folder`, which is canonical, since it was trusted. Nothing if it is
    /// trusted as it is, if nobody trusted it, or if an older version recorded that.
    pub fn changes(&self, folder: &Path) -> Vec<Change> {
        self.verdict(folder).changes
    }

    pub(crate) fn verdict(&self, folder: &Path) -> Verdict {
        Verdicts::default().verdict(self, folder)
    }
}

/// `folder`, canonical, and those above it up to the root of its repository, the nearest first:
/// what they bring along is in force in it.
pub fn repository(folder: &Path) -> Vec<PathBuf> {
    crate::files::up_to_root(folder)
}

/// The folder that brought the file or folder at `path` along: the one that holds `.posse`,
/// `.claude` or the settings file in question.
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
