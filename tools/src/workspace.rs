//! The folder that agents work in, as a handle.
//!
//! Owns how a path of the model becomes an open file: beneath the handle (openat2 with
//! RESOLVE_BENEATH), so neither `..`, links, renames nor races lead out. Nothing in this crate
//! opens a file of the workspace by its full path.

use crate::failure::{PathError, ToolError};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::hash_map::DefaultHasher;
use std::fs::{File, Metadata};
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many files of one workspace can be written at the same time.
const WRITE_LOCKS: usize = 64;

/// How many names of a folder are looked at for one that resembles a missing one.
const NAMES_CONSIDERED: usize = 2000;

/// The folder that agents work in. Open it once and share it among runs.
pub struct Workspace {
    path: PathBuf,
    /// As the host named it, which a model may have seen too.
    given: PathBuf,
    dir: Dir,
    writing: [Mutex<()>; WRITE_LOCKS],
}

impl Workspace {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// When it is not a folder that can be read.
    pub fn open(path: &Path) -> Result<Arc<Workspace>, ToolError> {
        let failed = |source| ToolError::Workspace { path: path.to_owned(), source };
        let given = std::path::absolute(path).map_err(failed)?;
        let canonical = path.canonicalize().map_err(failed)?;
        let dir =
            Dir::open_ambient_dir(&canonical, cap_std::ambient_authority()).map_err(failed)?;
        let writing = std::array::from_fn(|_| Mutex::new(()));
        Ok(Arc::new(Workspace { path: canonical, given, dir, writing }))
    }

    /// Where it is: canonical and absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The part of `path` below the workspace. Absolute paths are compared by component, so
    /// `/work-evil` is not below `/work`. Whether it stays below is for the kernel to say.
    pub(crate) fn relative<'p>(&self, path: &'p str) -> Result<&'p Path, PathError> {
        let workspace = || self.path.display().to_string();
        if path.is_empty() {
            return Err(PathError::Empty { workspace: workspace() });
        }
        let path = Path::new(path);
        let below = if path.is_absolute() {
            let below = path.strip_prefix(&self.path).or_else(|_| path.strip_prefix(&self.given));
            below.map_err(|_| PathError::Outside {
                path: path.display().to_string(),
                workspace: workspace(),
            })?
        } else {
            path.strip_prefix(".").unwrap_or(path)
        };
        Ok(if below.as_os_str().is_empty() { Path::new(".") } else { below })
    }

    /// Opens a regular file to read. Anything else is an error at once, never a wait.
    pub(crate) fn open_file(&self, path: &Path) -> Result<(File, Metadata), PathError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nonblocking());
        let file = self.dir.open_with(path, &options).map_err(|error| self.explain(path, error))?;
        regular(path, file.into_std())
    }

    /// Opens a folder.
    pub(crate) fn open_folder(&self, path: &Path) -> Result<Dir, PathError> {
        self.dir.open_dir(path).map_err(|error| self.explain(path, error))
    }

    /// The path below the workspace without links, `.` and `..`.
    pub(crate) fn canonical(&self, path: &Path) -> Result<PathBuf, PathError> {
        self.dir.canonicalize(path).map_err(|error| self.explain(path, error))
    }

    /// Says what `error` means for the one who wanted `path`.
    pub(crate) fn explain(&self, path: &Path, error: io::Error) -> PathError {
        match error.kind() {
            ErrorKind::NotFound => PathError::Missing { path: show(path), near: self.near(path) },
            _ => explain(path, error),
        }
    }

    /// Keeps other runs in this process from writing `path` between a look and a write.
    pub(crate) fn lock_for_writing(&self, path: &Path) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let lock = &self.writing[hasher.finish() as usize % WRITE_LOCKS];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names in the same folder that resemble the missing one.
    fn near(&self, path: &Path) -> Vec<String> {
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Vec::new();
        };
        let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let Ok(entries) = self.dir.read_dir(folder) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .take(NAMES_CONSIDERED)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        similar::get_close_matches(&*name.to_string_lossy(), &names, 3, 0.6)
            .into_iter()
            .map(|name| show(&parent.join(name)))
            .collect()
    }
}

/// The flags with which a FIFO or a device cannot make the open wait or become a terminal.
pub(crate) fn nonblocking() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32
}

/// A path as it is shown to the model.
pub(crate) fn show(path: &Path) -> String {
    path.display().to_string()
}

/// Refuses everything but a regular file.
pub(crate) fn regular(path: &Path, file: File) -> Result<(File, Metadata), PathError> {
    let metadata = file.metadata().map_err(|error| explain(path, error))?;
    let file_type = metadata.file_type();
    if file_type.is_file() {
        return Ok((file, metadata));
    }
    if file_type.is_dir() {
        return Err(PathError::Folder { path: show(path) });
    }
    let kind = match () {
        () if file_type.is_fifo() => "a named pipe",
        () if file_type.is_socket() => "a socket",
        () => "a device",
    };
    Err(PathError::Special { path: show(path), kind })
}

/// Says what `error` means for the one who wanted `path`.
pub(crate) fn explain(path: &Path, source: io::Error) -> PathError {
    let path = show(path);
    match source.kind() {
        ErrorKind::NotFound => PathError::Missing { path, near: Vec::new() },
        ErrorKind::IsADirectory => PathError::Folder { path },
        ErrorKind::NotADirectory => PathError::NotFolder { path },
        // cap-std makes up this error itself when a path would leave the folder.
        ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
            PathError::Escapes { path }
        }
        ErrorKind::PermissionDenied => PathError::Denied { path },
        _ if source.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            PathError::Special { path, kind: "a socket" }
        }
        _ => PathError::Io { path, source },
    }
}

/// Reads at most `cap` bytes of a file of about `size` bytes, in one read where possible.
pub(crate) fn read_up_to(file: &mut File, size: u64, cap: usize) -> io::Result<Vec<u8>> {
    let expected = usize::try_from(size).unwrap_or(cap).min(cap);
    // One byte more than expected, so that the end shows without growing the buffer.
    let mut bytes = vec![0; (expected + 1).min(cap)];
    let mut filled = 0;
    loop {
        if filled == bytes.len() {
            if filled == cap {
                break;
            }
            bytes.resize((filled * 2).clamp(4096, cap.max(1)), 0);
        }
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => {
                filled += count;
                // Short of what was asked for and all that the file said it has: its end. A
                // read that is short for other reasons must not pass for the whole file.
                if filled < bytes.len() && filled as u64 == size {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
