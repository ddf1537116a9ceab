//! A run's private folder beside its workspace, and the folder that its commands see as `/tmp`.
//!
//! This module creates, opens and removes it, through a handle of the folder around it, so that it
//! never follows a link in its place. The folder is created when a tool first needs it; most runs never
//! do. Each use opens it again, so that a run whose command removed it gets a new one.

use crate::failure::{PathError, ToolError};
use crate::{linux, remove};
use cap_std::fs::Dir;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Only the user may enter it.
const MODE: u32 = 0o700;

/// The suffix of the folder beside a scratch folder that commands see as the temporary folders of the machine.
const TEMPORARY: &str = ".tmp";

/// A run's private folder. Creating this value creates no folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    path: PathBuf,
}

/// The open folder.
pub(crate) struct Opened {
    /// Canonical, and only a hint.
    pub path: PathBuf,
    pub dir: Dir,
}

impl Scratch {
    /// The folder at `path`. Its first use creates it, together with the folders above it.
    ///
    /// # Errors
    /// If `path` does not end in a name, such as `/` and `a/..`.
    pub fn at(path: &Path) -> Result<Scratch, ToolError> {
        match std::path::absolute(path) {
            Ok(absolute) if absolute.file_name().is_some() => Ok(Scratch { path: absolute }),
            _ => Err(ToolError::ScratchPath { path: path.to_owned() }),
        }
    }

    /// Its absolute path, even before it exists. Tell the model this path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder beside this one, with the same lifetime, that the run's commands see as the machine's temporary
    /// folders. It is not inside this one, because a command could replace it with a link there.
    pub(crate) fn temporary(&self) -> Scratch {
        let mut name = self.name().to_owned();
        name.push(TEMPORARY);
        Scratch { path: self.path.with_file_name(name) }
    }

    /// Removes the folder with everything in it, and the temporary folders of its commands. Succeeds if
    /// there is nothing. Removes links but not their targets, even if a link is in the place of the
    /// folder itself. It can take long, so call it where blocking is allowed.
    ///
    /// # Errors
    /// If an entry cannot be removed. The rest then remains.
    pub fn remove(&self) -> Result<(), ToolError> {
        let removed = match Dir::open_ambient_dir(self.around(), cap_std::ambient_authority()) {
            // This folder goes last: as long as it exists, a later clean-up removes the rest.
            Ok(around) => remove::remove(&around, self.temporary().name())
                .and_then(|()| remove::remove(&around, self.name())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|source| ToolError::ScratchRemoval { path: self.path.clone(), source })
    }

    /// Opens it, and creates it if it is missing.
    pub(crate) fn open(&self) -> Result<Opened, PathError> {
        self.make().map_err(|source| PathError::Scratch { path: self.path.clone(), source })
    }

    fn make(&self) -> io::Result<Opened> {
        let around = match self.around().canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(MODE).create(self.around())?;
                self.around().canonicalize()?
            }
            found => found?,
        };
        require_trust(self.around())?;
        let handle = Dir::open_ambient_dir(&around, cap_std::ambient_authority())?;
        match rustix::fs::mkdirat(&handle, self.name(), Mode::from_raw_mode(MODE)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = match linux::name_folder(&handle, self.name()) {
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(io::Error::other("a link or a file is in its place"));
            }
            found => found?,
        };
        if rustix::fs::fstat(&folder)?.st_mode & 0o777 != MODE {
            linux::set_mode(&folder, MODE)?;
        }
        let dir = Dir::from_std_file(File::from(folder));
        Ok(Opened { path: around.join(self.name()), dir })
    }

    /// The part of an absolute `path` below the folder. The kernel ensures, when the path is opened,
    /// that it stays below.
    pub(crate) fn part_below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.path).ok()
    }

    /// The same for a path with links resolved, which a command may have shown to the model.
    pub(crate) fn part_below_canonical<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let canonical = self.around().canonicalize().ok()?.join(self.name());
        path.strip_prefix(canonical).ok()
    }

    fn around(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }
}

/// Refuses a folder or link that belongs neither to this user nor to the owner of the folder around it.
/// Where every user may create files, another user may have been first.
fn require_trust(folder: &Path) -> io::Result<()> {
    let owner = folder.symlink_metadata()?.uid();
    let around = folder.parent().map(Path::symlink_metadata).transpose()?;
    if owner == geteuid().as_raw() || around.is_some_and(|around| around.uid() == owner) {
        return Ok(());
    }
    let why = format!("{} belongs to another user", folder.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}
