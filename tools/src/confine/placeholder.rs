//! Placeholders for protected names that do not exist, while commands run.
//!
//! Bubblewrap can mount only over files that exist. So a missing name gets a placeholder, which its mode marks.
//! Usually it is an empty folder, which git ignores. If git would fail at a folder, it is a file without any
//! effect. If an empty folder could become part of a repository, or if git would read the file, it is a socket
//! without a listener, which git ignores, too. The last command that needs the placeholders of a folder removes
//! them, because removing one takes the mount away from every command that still runs. A lock on the folder
//! shows which commands need them. The folder is the workspace, or the data of its repository, which several
//! workspaces may share. After a crash, the next command removes what is left.

use super::command_sandbox::CommandSandbox;
use super::mounts::protected;
use super::protected::{
    COMMON_FOLDER, FOLDERS_IN_HOME, GIT, IN_HOME, MODULES, OBJECTS, ObeyedPaths, PROTECTED, REFS,
    WORKTREE_CONFIG, data_of, makes_a_repository, obeyed_below_home,
};
use posse_protocol::Profile;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode, fchmod, flock, fstat, linkat, open,
    openat, statat, unlinkat,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Modes that people do not use: sticky, and without write permission.
const MODE: RawMode = 0o1555;
const FILE_MODE: RawMode = 0o1444;
const STICKY: RawMode = 0o1000;
const WRITABLE: RawMode = 0o222;

/// A text with fewer of the names than this is not a listing of a folder.
const A_LISTING: usize = 3;

/// The placeholders of one workspace, while a command runs in it.
pub(crate) struct Placeholders {
    folders: Vec<Folder>,
}

/// The placeholders in one folder.
struct Folder {
    /// Its path, for messages.
    path: PathBuf,
    handle: File,
    /// The paths of the placeholders, relative to the folder.
    names: Vec<PathBuf>,
    /// The placeholders that are empty files, whatever their names.
    files: Vec<PathBuf>,
    /// Links that stay as they are, because the names around them do.
    links: Vec<PathBuf>,
    locked: bool,
}

impl Placeholders {
    /// Creates the placeholders, if the command can write and names are missing.
    pub(crate) fn put_up(sandbox: &CommandSandbox) -> io::Result<Option<Placeholders>> {
        if sandbox.profile != Profile::WorkspaceWrite {
            return Ok(None);
        }
        let workspace = open_folder(&sandbox.workspace)?;
        let found = rustix::fs::fstat(&workspace)?;
        if sandbox.identity.is_some_and(|identity| identity != (found.st_dev, found.st_ino)) {
            return Err(io::Error::other("the workspace was replaced meanwhile"));
        }
        let mut paths = vec![sandbox.workspace.join(GIT)];
        paths.extend(protected(sandbox));
        let ObeyedPaths { files, links, .. } =
            obeyed_below_home(&sandbox.workspace, &sandbox.homes, &sandbox.hidden);
        // Paths in the data of a repository are locked there, not in the workspace.
        let mut data = data_of(&sandbox.workspace);
        data.retain(|data| *data != sandbox.workspace);
        let mut placeholders = Placeholders { folders: Vec::new() };
        for root in data.iter().chain(&sandbox.repository) {
            let opened = open_folder(root).map_err(|error| {
                let path = root.display();
                io::Error::new(error.kind(), format!("{path} cannot be opened, so it cannot be protected: {error}. Make it readable with: chmod u+rwx {path}"))
            });
            placeholders.add(root, opened?, &mut paths, &files, &links);
        }
        placeholders.add(&sandbox.workspace, workspace, &mut paths, &files, &links);
        for folder in &placeholders.folders {
            if let Err(error) = folder.put_up() {
                placeholders.take_down();
                return Err(error);
            }
        }
        Ok(Some(placeholders))
    }

    /// Adds those of `paths` that are in the folder at `root`. Those in `files` are empty files, and `links` stay.
    fn add(
        &mut self,
        root: &Path,
        handle: File,
        paths: &mut Vec<PathBuf>,
        files: &[PathBuf],
        links: &[PathBuf],
    ) {
        // Some file systems have no locks. Then no placeholder is removed.
        let locked = flock(&handle, FlockOperation::LockShared).is_ok();
        let inside = paths.extract_if(.., |path| path.starts_with(root) && *path != root);
        let names = inside.filter_map(|path| path.strip_prefix(root).ok().map(Path::to_owned));
        let names = names.collect();
        let below = |path: &PathBuf| path.strip_prefix(root).ok().map(Path::to_owned);
        let files = files.iter().filter_map(below).collect();
        let links = links.iter().filter_map(below).collect();
        self.folders.push(Folder { path: root.to_owned(), handle, names, files, links, locked });
    }

    /// Removes the placeholders, unless other commands still need them. Call it when the command and
    /// all its processes are dead.
    pub(crate) fn take_down(&self) {
        // The workspace is the last folder in the list.
        self.folders.iter().for_each(Folder::take_down);
    }
}

fn open_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

impl Folder {
    fn put_up(&self) -> io::Result<()> {
        self.names.iter().try_for_each(|name| self.put_up_one(name))
    }

    fn take_down(&self) {
        let last =
            self.locked && flock(&self.handle, FlockOperation::NonBlockingLockExclusive).is_ok();
        if last {
            // The content of a folder comes before the folder.
            self.names.iter().rev().for_each(|name| self.take_down_one(name));
        }
    }

    fn put_up_one(&self, path: &Path) -> io::Result<()> {
        match statat(&self.handle, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found)
                if FileType::from_raw_mode(found.st_mode) == FileType::Symlink
                    && !self.links.iter().any(|link| link == path) =>
            {
                let why =
                    "is a link, which cannot be protected: put a folder or a file in its place";
                Err(io::Error::other(format!("{} {why}", self.path.join(path).display())))
            }
            Ok(_) => Ok(()),
            Err(Errno::NOENT) => match self.while_writable(|| self.make(path)) {
                // If we cannot write there, the command cannot either. Or another command was first.
                Ok(()) | Err(Errno::EXIST | Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(()),
                Err(error) => Err(error.into()),
            },
            // The parent is not a folder.
            Err(Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn make(&self, path: &Path) -> Result<(), Errno> {
        let here = &self.handle;
        // Git would read `.gitmodules`. In the sandbox it sees an empty file instead: see `mounts.rs`.
        if [REFS, OBJECTS, MODULES].iter().any(|name| path == Path::new(name)) {
            return self.make_socket(path);
        }
        let is_file = self.files.iter().any(|file| file == path);
        let Some(content) = content_of(path).or_else(|| is_file.then_some(&b""[..])) else {
            return rustix::fs::mkdirat(here, path, Mode::from_raw_mode(MODE));
        };
        // It gets its name only when it is complete, because git may read it at any moment.
        let (hidden, file) = self.make_hidden(path.parent().unwrap_or(path))?;
        let made = rustix::io::write(&file, content)
            .and_then(|_| rustix::fs::fchmod(&file, Mode::from_raw_mode(FILE_MODE)))
            .and_then(|()| linkat(here, &hidden, here, path, AtFlags::empty()));
        let _ = unlinkat(here, &hidden, AtFlags::empty());
        made
    }

    /// Creates a file in the folder `around` with an unpredictable name, so that no command can create
    /// it first.
    fn make_hidden(&self, around: &Path) -> Result<(PathBuf, OwnedFd), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let hidden = around.join(format!("posse-{:016x}", RandomState::new().hash_one(0)));
        let file = openat(&self.handle, &hidden, flags, Mode::from_raw_mode(0o600));
        // The name exists all the same. `EXIST` would mean that the placeholder is in place.
        let file = file.map_err(|error| if error == Errno::EXIST { Errno::BUSY } else { error })?;
        Ok((hidden, file))
    }

    fn make_socket(&self, path: &Path) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(FILE_MODE);
        match rustix::fs::mknodat(&self.handle, path, FileType::Socket, mode, 0) {
            // Some file systems have no sockets.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                openat(&self.handle, path, flags, mode).map(drop)
            }
            made => made,
        }
    }

    /// Removes a placeholder, and nothing else. A folder that is not empty remains.
    fn take_down_one(&self, path: &Path) {
        let Ok(found) = statat(&self.handle, path, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if !marks_placeholder(found.st_mode) {
            return;
        }
        let _ = self.while_writable(|| match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => unlinkat(&self.handle, path, AtFlags::REMOVEDIR),
            FileType::RegularFile if content_of(path).is_some() || found.st_size == 0 => {
                unlinkat(&self.handle, path, AtFlags::empty())
            }
            FileType::Socket => unlinkat(&self.handle, path, AtFlags::empty()),
            _ => Ok(()),
        });
    }

    /// Calls `act`, which needs a writable folder. If the owner has made it read-only, makes it
    /// writable for that time, because a command could do so, too.
    fn while_writable(&self, act: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
        match act() {
            Err(Errno::ACCESS) => {}
            done => return done,
        }
        let mode = Mode::from_raw_mode(fstat(&self.handle)?.st_mode & 0o7777);
        fchmod(&self.handle, mode | Mode::RWXU).map_err(|_| Errno::ACCESS)?;
        let done = act();
        fchmod(&self.handle, mode)?;
        done
    }
}

/// The content of the placeholder for this name, if it is a file.
fn content_of(path: &Path) -> Option<&'static [u8]> {
    match path.file_name()?.to_str()? {
        COMMON_FOLDER => Some(b".\n"),
        WORKTREE_CONFIG | "config" | "config.toml" | "attributes" => Some(b""),
        // The user's shells and git read these files, and complain about folders.
        name if IN_HOME.contains(&name)
            && !FOLDERS_IN_HOME.contains(&name)
            && !PROTECTED.contains(&name) =>
        {
            Some(b"")
        }
        _ => None,
    }
}

/// The names of placeholders at the top of `workspace` that `text`, the output of a command, lists. A
/// listing contains at least half of all names, or half of those without a leading dot, as a plain `ls`
/// shows them. If there is no listing, returns the names that a program failed to read.
pub(crate) fn listed_names(text: &str, workspace: &Path) -> Vec<&'static str> {
    let names = PROTECTED.into_iter().chain([GIT]).chain(makes_a_repository(workspace));
    let is_held = |name: &&str| match workspace.join(name).symlink_metadata() {
        Ok(found) => is_placeholder(&found),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    let words = text.split(|letter: char| letter.is_whitespace() || letter == '/');
    let words: HashSet<&str> = words.collect();
    let held: Vec<&str> = names.filter(is_held).collect();
    let are_listed = |names: &Vec<&str>| {
        let listed = names.iter().filter(|name| words.contains(*name)).count();
        listed >= A_LISTING.max(names.len().div_ceil(2))
    };
    let plain: Vec<&str> = held.iter().copied().filter(|name| !name.starts_with('.')).collect();
    let read = named_in(text.lines().filter(|line| is_of_reader(line)));
    let read: Vec<&str> = held.iter().copied().filter(|name| read.contains(name)).collect();
    [held, plain].into_iter().find(are_listed).unwrap_or(read)
}

/// Error texts of programs that could not create or change a file.
const REFUSED: [&str; 6] = [
    "File exists",
    "Permission denied",
    "Is a directory",
    "Device or resource busy",
    "Read-only file system",
    "Operation not permitted",
];

/// Beginnings of lines in which a program reports that it could not read a folder.
const READERS: [&str; 12] = [
    "cat: ",
    "grep: ",
    "head: ",
    "tail: ",
    "wc: ",
    "sort: ",
    "sed: read error on ",
    "awk: ",
    "gawk: ",
    "mawk: ",
    "diff: ",
    "warning: unable to access '",
];

fn is_of_reader(line: &str) -> bool {
    line.contains("Is a directory") && READERS.iter().any(|start| line.starts_with(start))
}

/// All words in these lines that may be names.
fn named_in<'t>(lines: impl Iterator<Item = &'t str>) -> HashSet<&'t str> {
    let ends = |letter: char| letter.is_whitespace() || "/'\"`‘’:,()".contains(letter);
    lines.flat_map(|line| line.split(ends)).collect()
}

/// The protected names of `workspace` that a command could not create or change, according to its
/// output `text`. Failed reads do not count.
pub(crate) fn refused_names(text: &str, workspace: &Path) -> Vec<&'static str> {
    let is_refusal = |line: &&str| REFUSED.iter().any(|word| line.contains(word));
    let reads = |line: &&str| is_of_reader(line) || line.starts_with("warning: unable to access '");
    let words = named_in(text.lines().filter(is_refusal).filter(|line| !reads(line)));
    let names = PROTECTED.into_iter().chain(makes_a_repository(workspace));
    names.filter(|name| words.contains(name)).collect()
}

/// Returns true for a placeholder: an entry that stands, while commands run, for a file that must not
/// appear in a workspace.
pub fn is_placeholder(found: &std::fs::Metadata) -> bool {
    marks_placeholder(found.mode())
}

/// Returns true if nothing is at `path` but perhaps a placeholder.
pub(super) fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().map_or(true, |found| is_placeholder(&found))
}

/// Returns true for a mode that only placeholders have.
pub(crate) fn marks_placeholder(mode: RawMode) -> bool {
    mode & STICKY != 0 && mode & WRITABLE == 0
}
