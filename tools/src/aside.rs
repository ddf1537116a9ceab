//! Taking a file out of a workspace, through handles: neither the way to it nor where it goes can be
//! made to lead elsewhere by whoever made the file.

use crate::linux;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A file that is to go, by the handle of the folder it is in.
pub(crate) struct Unwanted<'p> {
    folder: OwnedFd,
    name: &'p OsStr,
    /// Where it really is.
    pub path: PathBuf,
}

/// Where it has gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It has this name in the other folder.
    Moved(String),
    /// It could not be kept.
    Removed,
}

impl<'p> Unwanted<'p> {
    /// What is at `path` below `workspace`, unless a link is on the way.
    pub(crate) fn find(workspace: &Dir, path: &'p Path) -> io::Result<Unwanted<'p>> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut folder = workspace.try_clone()?.into_std_file().into();
        for part in path.parent().into_iter().flat_map(Path::components) {
            folder = linux::name_folder(&folder, part.as_os_str())?;
        }
        let path = linux::real_path(&folder)?.join(name);
        Ok(Unwanted { folder, name, path })
    }

    /// Moves it into `folder`, or removes it if that cannot be.
    pub(crate) fn put_into(&self, folder: &Dir) -> io::Result<Gone> {
        let first = self.try_to_put_into(folder);
        let Err(error) = first else { return first };
        if error.kind() != io::ErrorKind::PermissionDenied {
            return Err(error);
        }
        // Whoever made it may have closed the folder that it is in.
        let mode = rustix::fs::fstat(&self.folder)?.st_mode & 0o7777;
        linux::set_mode(&self.folder, mode | 0o700)?;
        let second = self.try_to_put_into(folder);
        linux::set_mode(&self.folder, mode)?;
        second
    }

    fn try_to_put_into(&self, folder: &Dir) -> io::Result<Gone> {
        // Nobody can have taken a name that nobody knows.
        let name = format!("set-aside-{:016x}", RandomState::new().hash_one(self.name));
        let moved = match renameat(&self.folder, self.name, folder, &name) {
            Err(Errno::XDEV) => self.copy_to(folder, &name),
            moved => moved.map_err(io::Error::from).map(|()| true),
        };
        match moved {
            Ok(true) => Ok(Gone::Moved(name)),
            Ok(false) => {
                unlinkat(&self.folder, self.name, AtFlags::empty())?;
                Ok(Gone::Removed)
            }
            Err(error) => {
                let removed = unlinkat(&self.folder, self.name, AtFlags::empty());
                removed.map(|()| Gone::Removed).map_err(|_| error)
            }
        }
    }

    /// Copies a file and removes it. Of anything else there is nothing to keep, and it stays.
    fn copy_to(&self, folder: &Dir, name: &str) -> io::Result<bool> {
        let found = statat(&self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(false);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut from = File::from(openat(&self.folder, self.name, flags, Mode::empty())?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let mut to = File::from(openat(folder.as_fd(), name, flags, mode)?);
        io::copy(&mut from, &mut to)?;
        unlinkat(&self.folder, self.name, AtFlags::empty())?;
        Ok(true)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_moved_goes_nowhere_else() {
        let around = tempfile::tempdir().unwrap();
        let [from, to, other] = ["from", "to", "other"].map(|name| around.path().join(name));
        for folder in [&from, &to, &other] {
            fs::create_dir(folder).unwrap();
        }
        let long = "x".repeat(250);
        fs::create_dir(from.join("sub")).unwrap();
        for name in ["sub/x", &long, "here"] {
            fs::write(from.join(name), name).unwrap();
        }
        fs::write(other.join("y"), "not to be moved").unwrap();
        symlink(&other, from.join("link")).unwrap();
        symlink(".", from.join("loop")).unwrap();
        let open = |path| Dir::open_ambient_dir(path, cap_std::ambient_authority()).unwrap();
        let (workspace, folder) = (open(&from), open(&to));
        for name in ["sub/x", &long] {
            let found = Unwanted::find(&workspace, Path::new(name)).unwrap();
            assert_eq!(found.path, from.join(name).canonicalize().unwrap());
            let Gone::Moved(kept) = found.put_into(&folder).unwrap() else { panic!("{name}") };
            assert_eq!(fs::read_to_string(to.join(kept)).unwrap(), name);
            assert!(!from.join(name).exists());
        }
        for way in ["link/y", "loop/here"] {
            assert!(Unwanted::find(&workspace, Path::new(way)).is_err(), "{way}");
        }
        assert!(from.join("here").exists() && other.join("y").exists());
        let copied = Unwanted::find(&workspace, Path::new("here")).unwrap();
        assert!(copied.copy_to(&folder, "copy").unwrap());
        assert_eq!(fs::read_to_string(to.join("copy")).unwrap(), "here");
        assert!(!from.join("here").exists());
        symlink("/", from.join("odd")).unwrap();
        let odd = Unwanted::find(&workspace, Path::new("odd")).unwrap();
        assert!(!odd.copy_to(&folder, "odd").unwrap());
    }
}
