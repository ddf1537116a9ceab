//! Sets files aside so that git does not find them. Works beneath the handle of a folder and follows no
//! links, because other processes may change the folder at the same time.

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

/// The suffix of a name that git must not find.
const ASIDE: &str = ".set-aside";

/// The maximum number of bytes of a name before the suffix.
const LONGEST: usize = 200;

/// How many names are tried.
const TRIES: u32 = 100;

/// The folder of `path`, and its name there. `None` if the folder is gone.
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

/// Sets it aside under an unpredictable name, because existing links may lead through a known one.
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

/// Runs `act` in a folder of the user that a command may have made read-only.
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
        // The name may have the maximum length already.
        let mut aside = OsStr::from_bytes(&name.as_bytes()[..name.len().min(LONGEST)]).to_owned();
        aside.push(ASIDE);
        // The random part ensures that no command can have taken every name.
        if number > 0 {
            aside.push(format!("-{:08x}", RandomState::new().hash_one(number) as u32));
        }
        match renameat_with(folder, name, folder, &aside, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // Some file systems do not support this flag.
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

/// Treats a file that is gone as success.
fn gone(done: Result<(), Errno>) -> io::Result<()> {
    match done {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        done => Ok(done?),
    }
}
