//! Whether the files that are open are still those at their place, and whether a place is one for a
//! database at all.

use super::wal::beside;
use crate::StoreError;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A database that was at a place, and its write-ahead log. Once either is removed, or another put
/// there, what is written into it is lost with the process that has it open.
#[derive(Clone)]
pub(super) struct Place {
    database: Spot,
    /// Once it is open.
    log: Option<Spot>,
}

/// A file that was somewhere.
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

    /// Whether it is still there. A place that cannot be looked at for another reason counts as one
    /// where it is.
    fn is_kept(&self) -> bool {
        match self.path.metadata() {
            Ok(found) => (found.dev(), found.ino()) == self.file,
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

impl Place {
    /// The file that is at `path` now.
    pub(super) fn of(path: impl Into<PathBuf>) -> std::io::Result<Self> {
        Ok(Place { database: Spot::of(path.into())?, log: None })
    }

    /// The same with its write-ahead log, which the engine has just opened: it stays where it is until
    /// the last who has it open has closed it.
    pub(super) fn with_log(self) -> Self {
        let log = Spot::of(beside(&self.database.path, "-wal")).ok();
        Place { log, ..self }
    }

    /// The database.
    pub(super) fn database(&self) -> &Path {
        &self.database.path
    }

    /// Whether both are still there.
    pub(super) fn is_kept(&self) -> bool {
        self.database.is_kept() && self.log.as_ref().is_none_or(Spot::is_kept)
    }

    /// Refuses what is no longer there.
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

/// What lies beside a database that was in use.
const BESIDE: [&str; 5] = ["-scratch", "-worktrees", "-workers", "-reserve", "-damage"];

/// Refuses a place where no database can be, and one where there was a database of which nothing is
/// left: a new one in its place would hide the loss.
pub(super) fn check(path: &Path) -> Result<(), StoreError> {
    let name = || path.display().to_string();
    let unusable = |reason: &str| StoreError::Unusable { path: name(), reason: reason.to_owned() };
    let has_log = || beside(path, "-wal").metadata().is_ok_and(|log| log.len() > 0);
    match path.metadata() {
        // To open a pipe is to wait for its other end.
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
