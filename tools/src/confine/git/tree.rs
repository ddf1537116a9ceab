//! Finds repositories below a folder, by a search of all of it.
//!
//! Other processes may change the folder meanwhile, and this code is not confined. So it opens
//! everything beneath a handle of the folder, and follows no link.

use super::super::mounts::LASTING;
use super::super::protected::{GIT, HEAD, OBJECTS, REFS, is_left_of_data, is_repository};
use super::settings::MOST;
use super::unsafe_entry::brief;
use rustix::fs::{
    Access, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, access, chmod, fstat,
    openat, openat2, readlinkat, statat, statx,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

/// The maximum length of a path for one system call, with a margin.
const PIECE: usize = 4000;

/// The maximum length of a path below a root, in bytes. Links lead programs into folders whose paths
/// are too long for one system call. But an even deeper path can only be a trap.
const DEEPEST: usize = 4 * PIECE;

/// How many folders stay open, so that their entries can be opened without the whole path.
const OPEN: usize = 128;

/// Of the folders on the way to a deep one, each that is so many levels below the one before stays open besides. So no
/// entry is opened by a path with thousands of parts.
const LEVELS: usize = 64;

/// Names in a repository's data that git writes to.
const IN_DATA: [&str; 19] = [
    OBJECTS,
    REFS,
    "config",
    "description",
    "gc.log",
    "gc.pid",
    "index",
    "info",
    "lfs",
    "logs",
    "lost-found",
    "modules",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "reftable",
    "rr-cache",
    "sequencer",
    "shallow",
];

/// A folder to search.
pub(super) struct Root {
    pub path: PathBuf,
    pub handle: OwnedFd,
    /// True if all of it is the data of a repository.
    pub is_data: bool,
    /// True if commands see it as the temporary folders of the machine.
    pub is_temporary: bool,
}

/// What a search found, with paths relative to the root.
#[derive(Default)]
pub(super) struct Found {
    /// Folders with the data of a repository, or its remains.
    pub data: BTreeSet<PathBuf>,
    /// Those of them that git does not obey, because they have no `HEAD`.
    pub remains: BTreeSet<PathBuf>,
    /// Files and links `.git`.
    pub pointers: Vec<PathBuf>,
    /// Links within the data of a repository, and a text that identifies their targets.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Folders that are deeper than the search goes.
    pub too_deep: Vec<PathBuf>,
    /// Folders that could not be listed, and why.
    pub unseen: Vec<(PathBuf, io::Error)>,
}

/// The kind of an entry in a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    None,
    File(Vec<u8>),
    Link(PathBuf),
    Folder,
    /// A pipe, a socket, a device, or a file above the size limit.
    Other,
}

impl Root {
    pub(super) fn open(path: &Path, is_data: bool) -> io::Result<Root> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Root { path: path.to_owned(), handle, is_data, is_temporary: false })
    }

    /// Returns where the file is that a command sees at `path`, if nothing outside has this name.
    pub(super) fn outside(&self, path: &Path) -> Option<PathBuf> {
        let mut lasting = LASTING.iter().filter(|_| self.is_temporary);
        lasting.find_map(|(at, name)| {
            let below = path.strip_prefix(at).ok()?;
            let is_free = Path::new(at).join(below.iter().next()?).symlink_metadata().is_err();
            is_free.then(|| self.path.join(name).join(below))
        })
    }

    /// Searches the whole folder.
    pub(super) fn search(&self) -> Found {
        let mut found = Found::default();
        // Each as a name in a folder: a million long paths would fill the memory.
        let top = (Rc::new(Around::default()), OsString::new(), self.is_data);
        let (mut ahead, mut open) = (vec![top], Vec::<Weak<Around>>::new());
        while let Some((around, name, is_data)) = ahead.pop() {
            let path = if name.is_empty() { PathBuf::new() } else { around.path.join(&name) };
            if path.as_os_str().len() > DEEPEST {
                found.too_deep.push(path);
                continue;
            }
            // If the folder is gone, another process has removed it.
            let opened = self.folder_in(&around, &name, &path).and_then(|folder| match folder {
                Some(folder) => Ok(Some((entries(&folder)?, folder))),
                None => Ok(None),
            });
            let (entries, folder) = match opened {
                Ok(Some(opened)) => opened,
                Ok(None) => continue,
                Err(error) => {
                    found.unseen.push((path, error));
                    continue;
                }
            };
            let has = |name: &str| entries.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
            let names = entries.iter();
            let names = names.map(|(name, kind)| (name.as_os_str(), *kind == FileType::Directory));
            let is_whole = is_repository(names);
            // A command may have taken apart a repository that must stay protected.
            let is_left = || {
                let is_named = path.file_name().is_some_and(|it| it.eq_ignore_ascii_case(GIT));
                let has_part = is_named || has(HEAD) || has(OBJECTS) || has(REFS);
                let may_be = has("config") || has_part && has("hooks");
                // A folder `.git` with either of them waits for `git init`.
                may_be && (is_named || is_left(&folder, has_part))
            };
            let is_repository = is_whole || is_left();
            if is_repository {
                found.data.insert(path.clone());
            }
            if is_repository && !is_whole {
                found.remains.insert(path.clone());
            }
            // The whole workspace may be a bare repository, and contain other files besides git's.
            let is_top = path.as_os_str().is_empty();
            let is_data = is_data || (is_repository && !is_top);
            open.retain(|it| it.strong_count() > 0);
            let level = around.level + 1;
            let is_kept = open.len() < OPEN || level % LEVELS == 0;
            let handle = is_kept.then(|| folder.try_clone().ok()).flatten();
            let nearest = Some(around.clone()).filter(|it| it.handle.is_some());
            let nearest = nearest.or_else(|| around.nearest.clone());
            let here = Rc::new(Around { path: path.clone(), handle, nearest, level });
            if here.handle.is_some() {
                open.push(Rc::downgrade(&here));
            }
            for (name, kind) in entries {
                let is_git = name.eq_ignore_ascii_case(GIT);
                let is_data = is_data || (is_repository && is_gits(&name));
                match kind {
                    FileType::Directory => ahead.push((here.clone(), name, is_data || is_git)),
                    FileType::Symlink if is_data => {
                        let target = readlinkat(&folder, &name, Vec::new()).unwrap_or_default();
                        let path = path.join(&name);
                        found.links.insert(path, brief(target.as_bytes()));
                    }
                    _ if is_git => {
                        let path = path.join(&name);
                        found.pointers.push(path);
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// Opens the folder at `path` below this one. `None` if there is no folder.
    pub(super) fn folder(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        Self::opened(|flags| self.beneath(path, flags))
    }

    /// Like `folder`, for `name` in the folder `around`, which together are `path`.
    fn folder_in(&self, around: &Around, name: &OsStr, path: &Path) -> io::Result<Option<OwnedFd>> {
        if let Some(handle) = &around.handle {
            return Self::opened(|flags| one_beneath(handle, Path::new(name), flags));
        }
        let nearest = around.nearest.as_deref();
        let below =
            nearest.and_then(|it| Some((it.handle.as_ref()?, path.strip_prefix(&it.path).ok()?)));
        match below {
            Some((handle, below)) => Self::opened(|flags| beneath(handle, below, flags)),
            None => self.folder(path),
        }
    }

    fn opened(beneath: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> io::Result<Option<OwnedFd>> {
        let open = |flags: OFlags| beneath(flags | OFlags::DIRECTORY);
        match open(OFlags::RDONLY) {
            Ok(folder) => Ok(Some(folder)),
            // If it has become a link, the search treats it as a link.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(Errno::ACCESS) => {
                // Git may enter a folder that cannot be listed. The owner can make it listable.
                let closed = match open(OFlags::PATH) {
                    Err(Errno::ACCESS | Errno::NOENT) => return Ok(None),
                    closed => closed?,
                };
                let before = fstat(&closed)?;
                let by_handle = format!("/proc/self/fd/{}", closed.as_raw_fd());
                // Only the owner can make it listable.
                if before.st_uid != geteuid().as_raw() {
                    return match access(&by_handle, Access::EXEC_OK) {
                        Ok(()) => Err(Errno::ACCESS.into()),
                        Err(_) => Ok(None),
                    };
                }
                if before.st_mode & 0o100 == 0 {
                    return Ok(None);
                }
                chmod(&by_handle, Mode::from_raw_mode(before.st_mode & 0o7777 | 0o400))?;
                let opened = open(OFlags::RDONLY);
                chmod(&by_handle, Mode::from_raw_mode(before.st_mode & 0o7777))?;
                Ok(Some(opened?))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        beneath(&self.handle, path, flags)
    }
}

/// Opens `path` below `folder`, however long it is.
fn beneath(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut from: Option<OwnedFd> = None;
    let mut piece = PathBuf::new();
    for name in path {
        if piece.as_os_str().len() + name.len() >= PIECE {
            let around = from.as_ref().unwrap_or(folder);
            from = Some(one_beneath(around, &piece, OFlags::PATH | OFlags::DIRECTORY)?);
            piece = PathBuf::new();
        }
        piece.push(name);
    }
    one_beneath(from.as_ref().unwrap_or(folder), &piece, flags)
}

/// A folder whose entries are still to be searched.
#[derive(Default)]
struct Around {
    path: PathBuf,
    /// `None` if too many folders are open already.
    handle: Option<OwnedFd>,
    /// The nearest folder around it that has a handle.
    nearest: Option<Rc<Around>>,
    /// How many folders are around it.
    level: usize,
}

/// Returns true if the open folder holds the remains of a repository's data.
fn is_left(folder: &OwnedFd, has_part: bool) -> bool {
    let settings = match entry(folder, OsStr::new("config"), MOST) {
        Entry::File(text) => Some(text),
        _ => None,
    };
    let hooks = || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let hooks = one_beneath(folder, Path::new("hooks"), flags).ok();
        let all = hooks.and_then(|hooks| entries(&hooks).ok()).unwrap_or_default();
        all.into_iter().map(|(name, _)| name).collect()
    };
    is_left_of_data(has_part, settings.as_deref(), hooks)
}

/// Returns true for a name that git uses in the data of a repository: upper-case names such as
/// `FETCH_HEAD`, and some others.
fn is_gits(name: &OsStr) -> bool {
    let is_loud = |letter: &u8| letter.is_ascii_uppercase() || *letter == b'_';
    name.as_bytes().iter().all(is_loud) || IN_DATA.iter().any(|it| name == *it)
}

/// Opens a path that is short enough for one system call.
fn one_beneath(around: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        match openat2(around, path, flags, Mode::empty(), resolve) {
            // Another process renamed something at the same time.
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened,
        }
    }
}

/// The names in an open folder, and their types.
pub(super) fn entries(folder: &OwnedFd) -> io::Result<Vec<(OsString, FileType)>> {
    let mut entries = Vec::new();
    // Not reopened: its permissions may have been restored by now.
    for entry in Dir::new(folder.try_clone()?)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => FileType::from_raw_mode(found.st_mode),
                Err(_) => continue,
            },
            known => known,
        };
        entries.push((name.to_owned(), kind));
    }
    Ok(entries)
}

/// The kind of `name` in an open folder, with its content if it is a file of at most `most` bytes.
pub(super) fn entry(folder: &OwnedFd, name: &OsStr, most: u64) -> Entry {
    let Ok(found) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return Entry::None };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Entry::Folder,
        FileType::Symlink => match readlinkat(folder, name, Vec::new()) {
            Ok(target) => Entry::Link(OsString::from_vec(target.into_bytes()).into()),
            Err(_) => Entry::None,
        },
        FileType::RegularFile => {
            // It may have become a pipe meanwhile.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return Entry::Other };
            let mut content = Vec::new();
            match File::from(file).take(most + 1).read_to_end(&mut content) {
                Ok(length) if length as u64 <= most => Entry::File(content),
                _ => Entry::Other,
            }
        }
        _ => Entry::Other,
    }
}

/// Reads at most `most` bytes of the file at `path`. `None` if it is no regular file. Never blocks,
/// even if it is a pipe.
pub fn text_at(path: &Path, most: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    let is_file = file.metadata().ok()?.is_file();
    (is_file && file.take(most).read_to_end(&mut text).is_ok()).then_some(text)
}

/// Identifies a file: its device, its inode and, if known, its time of creation, because inodes are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Identity {
    device: (u32, u32),
    number: u64,
    made: (i64, u32),
}

impl Identity {
    /// Returns true for the same file, even if its file system was mounted again as another device.
    pub(super) fn is(&self, other: &Identity) -> bool {
        let is_known = self.made != (0, 0);
        self == other || is_known && (self.number, self.made) == (other.number, other.made)
    }
}

/// Identifies the file with this name.
pub(super) fn identity(folder: impl AsFd, name: &OsStr) -> Option<Identity> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    let made = (found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
    let device = (found.stx_dev_major, found.stx_dev_minor);
    Some(Identity { device, number: found.stx_ino, made })
}
