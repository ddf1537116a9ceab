//! Setting things aside, where git does not find them: beneath the handle of a folder, and without
//! following a link, since others may change the folder at the same time.

use super::tree::{Root, identity};
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fchmod, fstat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is added to the name of something that git is not to find.
const ASIDE: &str = ".set-aside";

/// The most bytes of a name to which more is added.
const LONGEST: usize = 200;

/// How often another name is tried.
const TRIES: u32 = 100;

/// The folder that `path` is in, and its name there; nothing where it has gone.
pub(super) fn parent(root: &Root, path: &Path) -> io::Result<Option<(OwnedFd, OsString)>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let folder = root.folder(path.parent().unwrap_or(Path::new("")))?;
    Ok(folder.map(|folder| (folder, name.to_owned())))
}

/// Removes a link.
pub(super) fn remove(root: &Root, path: &Path) -> io::Result<()> {
    match parent(root, path)? {
        Some((folder, name)) => {
            while_writable(&folder, || gone(unlinkat(&folder, &name, AtFlags::empty())))
        }
        None => Ok(()),
    }
}

pub(super) fn set_aside(root: &Root, path: &Path) -> io::Result<()> {
    match parent(root, path)? {
        Some((folder, name)) => while_writable(&folder, || set_aside_at(&folder, &name)),
        None => Ok(()),
    }
}

/// The same under a name that nobody foresees: links may be there that lead through it.
pub(super) fn hide(root: &Root, path: &Path) -> io::Result<()> {
    match parent(root, path)? {
        Some((folder, name)) => while_writable(&folder, || rename(&folder, &name, 1)),
        None => Ok(()),
    }
}

/// The first link on the way to `path`, or `path` itself.
pub(super) fn first_link<'p>(root: &Root, path: &'p Path) -> &'p Path {
    let mut way: Vec<&'p Path> = path.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
    way.reverse();
    let is_link =
        |it: &&&Path| root.path.join(it).symlink_metadata().is_ok_and(|it| it.is_symlink());
    way.iter().find(is_link).copied().unwrap_or(path)
}

/// Does `act` in a folder of the user's that may be closed to writers: a command can do that.
pub(super) fn while_writable<T>(
    folder: &OwnedFd,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let before = fstat(folder)?;
    let is_closed = before.st_uid == geteuid().as_raw() && before.st_mode & 0o300 != 0o300;
    let mode = before.st_mode & 0o7777;
    if is_closed {
        fchmod(folder, Mode::from_raw_mode(mode | 0o300))?;
    }
    let done = act();
    if is_closed {
        fchmod(folder, Mode::from_raw_mode(mode))?;
    }
    done
}

pub(super) fn set_aside_at(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    rename(folder, name, 0)
}

fn rename(folder: &OwnedFd, name: &OsStr, first: u32) -> io::Result<()> {
    for number in first..TRIES {
        // It may be as long as a name can be.
        let mut aside = OsStr::from_bytes(&name.as_bytes()[..name.len().min(LONGEST)]).to_owned();
        aside.push(ASIDE);
        // Whoever wants this to fail cannot have taken every name.
        if number > 0 {
            aside.push(format!("-{:08x}", RandomState::new().hash_one(number) as u32));
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
    Err(Errno::EXIST.into())
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
