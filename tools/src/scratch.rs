//! A run's private folder beside its workspace, and the one that its commands find at `/tmp`.
//!
//! Owns how it is made, opened and removed: through a handle of the folder around it, so that a
//! link in its place is never followed. It is made when a tool first needs it; most runs never
//! do. Each use opens it anew, so that a run that removed it by a command has it again.

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

/// Nobody but the user may look into it.
const MODE: u32 = 0o700;

/// What the name of the folder ends in that lies beside a scratch folder, for what commands take for
/// temporary folders of the machine.
const TEMPORARY: &str = ".tmp";

/// A run's private folder. Making this value makes no folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    path: PathBuf,
}

/// The folder, open.
pub(crate) struct Opened {
    /// Canonical, and only a hint.
    pub path: PathBuf,
    pub dir: Dir,
}

impl Scratch {
    /// The folder that is at `path`, or will be when it is first used. The folders around it are
    /// made then too.
    ///
    /// # Errors
    /// When `path` does not end in a name, as `/` and `a/..` do not.
    pub fn at(path: &Path) -> Result<Scratch, ToolError> {
        match std::path::absolute(path) {
            Ok(absolute) if absolute.file_name().is_some() => Ok(Scratch { path: absolute }),
            _ => Err(ToolError::ScratchPath { path: path.to_owned() }),
        }
    }

    /// Where it is, or will be: absolute. Tell the model this path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder beside this one that lasts as long, in which the commands of the run find the
    /// temporary folders of the machine. It is not in this one: there a command could put a link in
    /// its place.
    pub(crate) fn temporary(&self) -> Scratch {
        let mut name = self.name().to_owned();
        name.push(TEMPORARY);
        Scratch { path: self.path.with_file_name(name) }
    }

    /// Removes the folder and everything in it, if it is there, and what its commands left in
    /// temporary folders. Links are removed, and what they
    /// lead to is left alone, also if one is in the place of the folder itself. Takes long when
    /// there is much in it, so call it where blocking is allowed.
    ///
    /// # Errors
    /// When something in it cannot be removed; the rest stays then.
    pub fn remove(&self) -> Result<(), ToolError> {
        let removed = match Dir::open_ambient_dir(self.around(), cap_std::ambient_authority()) {
            // As long as this folder is there, somebody comes back to remove the rest.
            Ok(around) => remove::remove(&around, self.temporary().name())
                .and_then(|()| remove::remove(&around, self.name())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|source| ToolError::ScratchRemoval { path: self.path.clone(), source })
    }

    /// Opens it, making it where it is missing.
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

    /// The part of an absolute `path` below the folder. Whether it stays below is for the kernel
    /// to say.
    pub(crate) fn part_below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.path).ok()
    }

    /// The same for a path without links, as a command may have shown it to the model.
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

/// Refuses a folder (or a link) that is neither this user's nor that of the owner of what is around it:
/// where everybody may create files, somebody else may have been first.
fn require_trust(folder: &Path) -> io::Result<()> {
    let owner = folder.symlink_metadata()?.uid();
    let around = folder.parent().map(Path::symlink_metadata).transpose()?;
    if owner == geteuid().as_raw() || around.is_some_and(|around| around.uid() == owner) {
        return Ok(());
    }
    let why = format!("{} belongs to another user", folder.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}
