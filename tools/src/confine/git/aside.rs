//! Setting things aside, where git does not find them: beneath the handle of a folder, and without
//! following a link, since others may change the folder at the same time.

use super::tree::{Root, identity};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What is added to the name of something that git is not to find.
const ASIDE: &str = ".set-aside";

/// Things set aside at one name, at most.
const ASIDES: u32 = 1_000;

/// The folder that `path` is in, and its name there; nothing where it has gone.
pub(super) fn parent(root: &Root, path: &Path) -> io::Result<Option<(OwnedFd, OsString)>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let folder = root.folder(path.parent().unwrap_or(Path::new("")))?;
    Ok(folder.map(|folder| (folder, name.to_owned())))
}

/// Removes a link.
pub(super) fn remove(root: &Root, path: &Path) -> io::Result<()> {
    match parent(root, path)? {
        Some((folder, name)) => gone(unlinkat(&folder, &name, AtFlags::empty())),
        None => Ok(()),
    }
}

pub(super) fn set_aside(root: &Root, path: &Path) -> io::Result<()> {
    match parent(root, path)? {
        Some((folder, name)) => set_aside_at(&folder, &name),
        None => Ok(()),
    }
}

/// The same for the first link on the way to `path`, or for what is there. Returns its name.
pub(super) fn set_aside_way(root: &Root, path: &Path) -> io::Result<PathBuf> {
    let mut way: Vec<&Path> = path.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
    way.reverse();
    let is_link =
        |it: &&&Path| root.path.join(it).symlink_metadata().is_ok_and(|it| it.is_symlink());
    let first = way.iter().find(is_link).copied().unwrap_or(path);
    set_aside(root, first).map(|()| first.to_owned())
}

pub(super) fn set_aside_at(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    for number in 1..ASIDES {
        let mut aside = name.to_owned();
        aside.push(ASIDE);
        if number > 1 {
            aside.push(format!("-{number}"));
        }
        match renameat_with(folder, name, folder, &aside, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // Some file systems do not know this way to rename.
            Err(Errno::INVAL | Errno::NOSYS) if identity(folder, &aside).is_some() => {}
            Err(Errno::INVAL | Errno::NOSYS) => {
                return gone(renameat(folder, name, folder, &aside));
            }
            renamed => return gone(renamed),
        }
    }
    Err(io::Error::other("too much was set aside there"))
}

/// Writes a new file in one step.
pub(super) fn write(folder: &OwnedFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let passing = format!(".posse-{:016x}.tmp", RandomState::new().hash_one(name));
    let file = openat(folder, &passing, flags, Mode::from_raw_mode(0o644))?;
    let mut file = std::fs::File::from(file);
    let written = io::Write::write_all(&mut file, content);
    let done = written.and_then(|()| Ok(renameat(folder, &passing, folder, name)?));
    if done.is_err() {
        let _ = unlinkat(folder, &passing, AtFlags::empty());
    }
    done
}

/// What has gone meanwhile needs no more doing.
fn gone(done: Result<(), Errno>) -> io::Result<()> {
    match done {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        done => Ok(done?),
    }
}
