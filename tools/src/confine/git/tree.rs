//! Repositories below a folder, found by looking at all of it.
//!
//! Others may change the folder at the same time, and whoever looks here is not confined. So
//! everything is opened beneath a handle of the folder, without following a link.

use super::super::mounts::LASTING;
use super::super::protected::{COMMON_FOLDER, GIT, HEAD, OBJECTS, REFS, is_left_of_data};
use super::offence::brief;
use super::settings::MOST;
use rustix::fs::{
    Access, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, access, chmod, fstat,
    openat, openat2, readlinkat, statat, statx,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

/// The most bytes of a path that the kernel takes at once, with room to spare.
const PIECE: usize = 4000;

/// How long a path below a root may be, in bytes. Links lead programs into folders whose paths are
/// longer than the kernel takes at once; but deeper than this is nothing but a trap.
const DEEPEST: usize = 4 * PIECE;

/// How many open folders are kept to find what is in them without going all the way once more.
const OPEN: usize = 128;

/// What git keeps in the data of a repository and writes to.
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

/// A folder that is looked through.
pub(super) struct Root {
    pub path: PathBuf,
    pub handle: OwnedFd,
    /// All of it is data of a repository.
    pub is_data: bool,
    /// It holds what commands find in the temporary folders of the machine.
    pub is_temporary: bool,
}

/// What is found in it, by paths below it.
#[derive(Default)]
pub(super) struct Found {
    /// Folders with the data of a repository.
    pub data: Vec<PathBuf>,
    /// Files and links `.git`.
    pub pointers: Vec<PathBuf>,
    /// Links within the data of a repository, and what tells where they lead.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Folders that are deeper than anybody looks.
    pub too_deep: Vec<PathBuf>,
    /// Folders that could not be looked into, and why.
    pub unseen: Vec<(PathBuf, io::Error)>,
}

/// What a name in a folder is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    None,
    File(Vec<u8>),
    Link(PathBuf),
    Folder,
    /// A pipe, a socket, a device, or more than is read.
    Other,
}

impl Root {
    pub(super) fn open(path: &Path, is_data: bool) -> io::Result<Root> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Root { path: path.to_owned(), handle, is_data, is_temporary: false })
    }

    /// Where it is that a command finds at `path`, if outside there is nothing by this name.
    pub(super) fn outside(&self, path: &Path) -> Option<PathBuf> {
        let mut lasting = LASTING.iter().filter(|_| self.is_temporary);
        lasting.find_map(|(at, name)| {
            let below = path.strip_prefix(at).ok()?;
            let is_free = Path::new(at).join(below.iter().next()?).symlink_metadata().is_err();
            is_free.then(|| self.path.join(name).join(below))
        })
    }

    /// Looks through all of it.
    pub(super) fn search(&self) -> Found {
        let mut found = Found::default();
        // Each as a name in a folder: a million ways that are long would fill the memory.
        let top = (Rc::new(Around::default()), OsString::new(), self.is_data);
        let (mut ahead, mut open) = (vec![top], Vec::<Weak<Around>>::new());
        while let Some((around, name, is_data)) = ahead.pop() {
            let path = if name.is_empty() { PathBuf::new() } else { around.path.join(&name) };
            if path.as_os_str().len() > DEEPEST {
                found.too_deep.push(path);
                continue;
            }
            // What has gone meanwhile, others have removed.
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
            let has_head = entries.iter().any(|(name, kind)| {
                name.eq_ignore_ascii_case(HEAD) && *kind != FileType::Directory
            });
            // Beside HEAD, something of git's: the rest may come later, and not by a command.
            let further = [OBJECTS, REFS, COMMON_FOLDER, "config", "hooks"];
            let is_whole = has_head && further.iter().any(|name| has(name));
            // A command may have taken one apart that others are to leave alone.
            let is_left = || {
                let is_named = path.file_name().is_some_and(|it| it.eq_ignore_ascii_case(GIT));
                let has_part = is_named || has(HEAD) || has(OBJECTS) || has(REFS);
                (has("config") || has_part && has("hooks")) && is_left(&folder, has_part)
            };
            let is_repository = is_whole || is_left();
            if is_repository {
                found.data.push(path.clone());
            }
            // The whole workspace may be a repository without files, and have others beside git's.
            let is_top = path.as_os_str().is_empty();
            let is_data = is_data || (is_repository && !is_top);
            open.retain(|it| it.strong_count() > 0);
            let handle = (open.len() < OPEN).then(|| folder.try_clone().ok()).flatten();
            let here = Rc::new(Around { path: path.clone(), handle });
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

    /// The folder at `path` below this one; nothing where there is none.
    pub(super) fn folder(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        Self::opened(|flags| self.beneath(path, flags))
    }

    /// The same for `name` in the folder `around`, which together are `path`.
    fn folder_in(&self, around: &Around, name: &OsStr, path: &Path) -> io::Result<Option<OwnedFd>> {
        match &around.handle {
            Some(handle) => Self::opened(|flags| one_beneath(handle, Path::new(name), flags)),
            None => self.folder(path),
        }
    }

    fn opened(beneath: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> io::Result<Option<OwnedFd>> {
        let open = |flags: OFlags| beneath(flags | OFlags::DIRECTORY);
        match open(OFlags::RDONLY) {
            Ok(folder) => Ok(Some(folder)),
            // What is a link by now is looked at as one.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(Errno::ACCESS) => {
                // Git may enter a folder that cannot be listed. Whoever owns it may list it.
                let closed = match open(OFlags::PATH) {
                    Err(Errno::ACCESS | Errno::NOENT) => return Ok(None),
                    closed => closed?,
                };
                let before = fstat(&closed)?;
                let by_handle = format!("/proc/self/fd/{}", closed.as_raw_fd());
                // Of others, nobody but they can list it.
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
        let mut from: Option<OwnedFd> = None;
        let mut piece = PathBuf::new();
        for name in path {
            if piece.as_os_str().len() + name.len() >= PIECE {
                let around = from.as_ref().unwrap_or(&self.handle);
                from = Some(one_beneath(around, &piece, OFlags::PATH | OFlags::DIRECTORY)?);
                piece = PathBuf::new();
            }
            piece.push(name);
        }
        one_beneath(from.as_ref().unwrap_or(&self.handle), &piece, flags)
    }
}

/// A folder whose entries are ahead.
#[derive(Default)]
struct Around {
    path: PathBuf,
    /// As long as there are few of them.
    handle: Option<OwnedFd>,
}

/// True when the open folder holds what is left of a repository's data.
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

/// True for a name that git gives to something in the data of a repository: `FETCH_HEAD` and the like, and
/// some others.
fn is_gits(name: &OsStr) -> bool {
    let is_loud = |letter: &u8| letter.is_ascii_uppercase() || *letter == b'_';
    name.as_bytes().iter().all(is_loud) || IN_DATA.iter().any(|it| name == *it)
}

/// Opens a path that is short enough for the kernel.
fn one_beneath(around: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        match openat2(around, path, flags, Mode::empty(), resolve) {
            // Somebody renamed something at the same time.
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened,
        }
    }
}

/// The names in an open folder, and what they are.
pub(super) fn entries(folder: &OwnedFd) -> io::Result<Vec<(OsString, FileType)>> {
    let mut entries = Vec::new();
    // Not opened once more: it may be closed again by now.
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

/// What `name` is in an open folder, and what is in it if it is a file of at most `most` bytes.
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

/// What is in the file at `path`, at most `most` bytes of it; nothing where there is no file. Never waits,
/// as a pipe would make one do.
pub(in super::super) fn text_at(path: &Path, most: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    let is_file = file.metadata().ok()?.is_file();
    (is_file && file.take(most).read_to_end(&mut text).is_ok()).then_some(text)
}

/// Which file it is: its device, its number there, and when it was made, where that is known: numbers
/// are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Identity {
    device: (u32, u32),
    number: u64,
    made: (i64, u32),
}

impl Identity {
    /// True for the same file, also if its file system was mounted again, under another number.
    pub(super) fn is(&self, other: &Identity) -> bool {
        let is_known = self.made != (0, 0);
        self == other || is_known && (self.number, self.made) == (other.number, other.made)
    }
}

/// Which file a name stands for.
pub(super) fn identity(folder: impl AsFd, name: &OsStr) -> Option<Identity> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    let made = (found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
    let device = (found.stx_dev_major, found.stx_dev_minor);
    Some(Identity { device, number: found.stx_ino, made })
}
