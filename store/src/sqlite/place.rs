//! Whether the file that is open is still the one at its place.

use crate::StoreError;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A file that was at a place. Once it is removed, or another put there, what is written into it
/// is lost with the process that has it open.
#[derive(Clone)]
pub(super) struct Place {
    path: PathBuf,
    file: (u64, u64),
}

impl Place {
    /// The file that is at `path` now.
    pub(super) fn of(path: impl Into<PathBuf>) -> std::io::Result<Self> {
        let path = path.into();
        let found = path.metadata()?;
        Ok(Place { path, file: (found.dev(), found.ino()) })
    }

    /// Whether it is still there. A place that cannot be looked at for another reason counts as one
    /// where it is.
    pub(super) fn is_kept(&self) -> bool {
        match self.path.metadata() {
            Ok(found) => (found.dev(), found.ino()) == self.file,
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Refuses what is no longer there.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if self.is_kept() {
            return Ok(());
        }
        let reason = "it was removed, or another was put in its place, while it was open; start \
                      again with the one that is there now";
        let path = self.path.display().to_string();
        Err(StoreError::Unusable { path, reason: reason.to_owned() })
    }
}
