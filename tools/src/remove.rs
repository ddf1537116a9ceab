//! Removes a folder with everything in it, whatever its owner left there.
//!
//! It never follows a link, and never enters a mounted folder. It holds one handle at a time on its way
//! down and up, so that no depth exhausts the stack or the handles of the process. It also opens
//! folders that are closed even to their owner, as package caches leave them.

use crate::linux;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The permissions that the owner needs to empty a folder.
const OWNER: u32 = 0o700;

/// A folder above the one that is being emptied.
struct Level {
    identity: (u64, u64),
    /// Names in it that are still to be removed.
    names: Vec<CString>,
    /// The folder in it that is being emptied.
    entered: CString,
}

/// Removes the folder at `path` with everything in it. Succeeds if there is nothing.
///
/// # Errors
/// If an entry cannot be removed. The rest then remains.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let (Some(around), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    remove(linux::name_folder(rustix::fs::CWD, around)?, name)
}

/// Removes `name` from the folder `around`. Succeeds if there is nothing.
pub(crate) fn remove(around: impl AsFd, name: &OsStr) -> io::Result<()> {
    let (around, top) = (around.as_fd(), CString::new(name.as_bytes())?);
    let Some(mut folder) = enter(around, &top)? else {
        return remove_file(around, &top);
    };
    let mut names = names_in(&folder)?;
    let mut above: Vec<Level> = Vec::new();
    loop {
        if let Some(name) = names.pop() {
            match enter(&folder, &name)? {
                None => remove_file(&folder, &name)?,
                Some(inner) => {
                    let names = std::mem::replace(&mut names, names_in(&inner)?);
                    above.push(Level { identity: identity(&folder)?, names, entered: name });
                    folder = inner;
                }
            }
        } else if let Some(level) = above.pop() {
            let parent = linux::name_folder(&folder, c"..")?;
            // If the folder was moved meanwhile, we must not remove files elsewhere.
            if identity(&parent)? != level.identity {
                return Err(io::Error::other("it was changed while it was being removed"));
            }
            unlinkat(&parent, &level.entered, AtFlags::REMOVEDIR)?;
            (folder, names) = (parent, level.names);
        } else {
            return Ok(unlinkat(around, &top, AtFlags::REMOVEDIR)?);
        }
    }
}

/// Opens the folder `name` so that it can be emptied. `None` if it is no folder.
fn enter(around: impl AsFd, name: &CStr) -> io::Result<Option<OwnedFd>> {
    let folder = match linux::name_folder_unless_mounted(around, name) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(Errno::XDEV) => {
            let name = name.to_string_lossy();
            return Err(io::Error::other(format!("something is mounted at {name} in it")));
        }
        found => found?,
    };
    if fstat(&folder)?.st_mode & OWNER != OWNER {
        linux::set_mode(&folder, OWNER)?;
    }
    Ok(Some(folder))
}

fn names_in(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    let readable = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(openat(folder, c".", readable, Mode::empty())?)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

fn remove_file(folder: impl AsFd, name: &CStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn identity(folder: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = fstat(folder)?;
    Ok((found.st_dev, found.st_ino))
}
