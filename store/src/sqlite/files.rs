//! Checks whether the open files are still in place, and whether a path can hold a database.

use super::wal::beside;
use crate::StoreError;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files of an open database: the database and its write-ahead log. If another program removes
/// or replaces one of them, this process would write to a file that is lost when it ends.
#[derive(Clone)]
pub(super) struct DatabaseFiles {
    database: Spot,
    /// Known after the engine has opened it.
    log: Option<Spot>,
}

/// A path and the file that was there.
#[derive(Clone)]
struct Spot {
    path: PathBuf,
    file: (u64, u64),
}

impl Spot {
    fn of(path: PathBuf) -> std::io::Result<Self> {
        let found = path.metadata()?;
        Ok(Spot { path, file: (found.dev(), found.ino()) })
    }

    /// Returns true if the file is still there. If the path cannot be read for another reason, it
    /// counts as there.
    fn is_kept(&self) -> bool {
        match self.path.metadata() {
            Ok(found) => (found.dev(), found.ino()) == self.file,
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

impl DatabaseFiles {
    /// Records the file that is at `path` now.
    pub(super) fn of(path: impl Into<PathBuf>) -> std::io::Result<Self> {
        Ok(DatabaseFiles { database: Spot::of(path.into())?, log: None })
    }

    /// Adds the write-ahead log, which the engine has just opened. It stays in place until the last
    /// process closes the database.
    pub(super) fn with_log(self) -> Self {
        let log = Spot::of(beside(&self.database.path, "-wal")).ok();
        DatabaseFiles { log, ..self }
    }

    /// The path of the database.
    pub(super) fn database(&self) -> &Path {
        &self.database.path
    }

    /// Returns true if both files are still in place.
    pub(super) fn is_kept(&self) -> bool {
        self.database.is_kept() && self.log.as_ref().is_none_or(Spot::is_kept)
    }

    /// Fails if one of the files is not in place.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if self.is_kept() {
            return Ok(());
        }
        let what = match self.database.is_kept() {
            true => "its write-ahead log (`-wal`)",
            false => "it",
        };
        let reason = format!(
            "{what} was removed, or another was put in its place, while it was open; start again \
             with the one that is there now"
        );
        let path = self.database.path.display().to_string();
        Err(StoreError::Unusable { path, reason })
    }
}

/// Files and folders next to a database that was in use.
const BESIDE: [&str; 5] = ["-scratch", "-worktrees", "-workers", "-reserve", "-damage"];

/// Fails for a path that cannot hold a database, and for an empty file that was a database before:
/// a new database would hide the loss.
pub(super) fn check(path: &Path) -> Result<(), StoreError> {
    let name = || path.display().to_string();
    let unusable = |reason: &str| StoreError::Unusable { path: name(), reason: reason.to_owned() };
    let has_log = || beside(path, "-wal").metadata().is_ok_and(|log| log.len() > 0);
    match path.metadata() {
        // Opening a pipe would wait for its other end.
        Ok(found) if !found.is_file() => Err(unusable("it is not a regular file")),
        Ok(found) if found.len() == 0 => {
            let left = BESIDE.into_iter().find(|ending| beside(path, ending).exists());
            match left.or_else(|| has_log().then_some("-wal")) {
                None => Ok(()),
                Some(ending) => Err(StoreError::Corrupt {
                    path: name(),
                    reason: format!(
                        "it is empty, and `{ending}` next to it belongs to a database that was not"
                    ),
                }),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound && has_log() => Err(unusable(
            "it is not there, and its write-ahead log (`-wal`) is, with what was stored last; put it \
             back, or move the log to where it is",
        )),
        _ => Ok(()),
    }
}
