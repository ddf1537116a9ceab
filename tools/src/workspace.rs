//! The folder that agents work in, as a handle.
//!
//! Everything in it is opened beneath the handle (openat2 with RESOLVE_BENEATH), so neither `..`, links,
//! renames nor races lead out. Nothing in this crate opens a file of the workspace by its full path.

use crate::failure::{Bounds, PathError, ToolError, explain};
use cap_std::fs::Dir;
use parking_lot::{Mutex, MutexGuard};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many files of one workspace can be written at the same time.
const WRITE_LOCKS: usize = 64;

/// The folder that agents work in. Open it once and share it among runs.
pub struct Workspace {
    path: PathBuf,
    /// The path as the host named it. A model may have seen it, too.
    given: PathBuf,
    dir: Dir,
    writing: [Mutex<()>; WRITE_LOCKS],
}

impl Workspace {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// If it is not a folder that can be read.
    pub fn open(path: &Path) -> Result<Arc<Workspace>, ToolError> {
        let failed = |source| ToolError::Workspace { path: path.to_owned(), source };
        let given = std::path::absolute(path).map_err(failed)?;
        let canonical = path.canonicalize().map_err(failed)?;
        let dir =
            Dir::open_ambient_dir(&canonical, cap_std::ambient_authority()).map_err(failed)?;
        let writing = std::array::from_fn(|_| Mutex::new(()));
        Ok(Arc::new(Workspace { path: canonical, given, dir, writing }))
    }

    /// Its canonical, absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The part of an absolute `path` below the workspace. It compares components, so `/work-evil` is
    /// not below `/work`. The kernel ensures, when the path is opened, that it stays below.
    pub(crate) fn part_below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.path).or_else(|_| path.strip_prefix(&self.given)).ok()
    }

    /// Opens a folder that the host named, relative to the workspace or absolute.
    pub(crate) fn open_folder(&self, path: &Path) -> Result<Dir, PathError> {
        let bounds = Bounds { workspace: &self.path, scratch: None };
        let shown = path.display().to_string();
        let below = if path.is_absolute() { self.part_below(path) } else { Some(path) };
        let Some(below) = below else {
            return Err(PathError::Outside { path: shown, bounds: bounds.all() });
        };
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        self.dir.open_dir(below).map_err(|error| explain(shown, error, &bounds))
    }

    /// Prevents other runs in this process from writing `path` between a read and a write.
    pub(crate) fn lock_for_writing(&self, path: &Path) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let lock = &self.writing[hasher.finish() as usize % WRITE_LOCKS];
        lock.lock()
    }
}
