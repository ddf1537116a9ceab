//! Folders beside the workspace that a run may read and never write, such as those of skills.
//!
//! Each use opens the folder again, and only if it is still at its path: a link in its place is not
//! followed. Files in it are then opened beneath that handle.

use crate::failure::PathError;
use crate::scratch::Opened;
use cap_std::fs::Dir;
use std::io;
use std::path::{Path, PathBuf};

/// A folder that a run may read and never write. Making this value opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOnly {
    path: PathBuf,
}

impl ReadOnly {
    /// The folder at `path`, which must be absolute and without links. Otherwise it cannot be read.
    pub fn at(path: impl Into<PathBuf>) -> ReadOnly {
        ReadOnly { path: path.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The part of an absolute `path` below the folder. The kernel ensures, when the path is opened,
    /// that it stays below.
    pub(crate) fn part_below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.path).ok()
    }

    pub(crate) fn open(&self) -> Result<Opened, PathError> {
        let shown = || self.path.display().to_string();
        let failed = |source: io::Error| PathError::Io { path: shown(), source };
        if self.path.canonicalize().map_err(failed)? != self.path {
            return Err(failed(io::Error::other("it is not where it was, but behind a link")));
        }
        let dir = Dir::open_ambient_dir(&self.path, cap_std::ambient_authority());
        Ok(Opened { path: self.path.clone(), dir: dir.map_err(failed)? })
    }
}
