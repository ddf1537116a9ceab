//! What holds the place of protected names that do not exist, while commands run.
//!
//! Only what exists can be mounted over. So a missing name gets an empty folder, which git does
//! not see, and which is told from others by its mode; where git would stop at a folder, a file that
//! says nothing; and where an empty folder would do for a repository, or git would read it, a socket
//! that nobody listens at, which git does not see either. The last command that needs those of a folder removes them: removing one takes the
//! mount away from every command that still runs. Who needs them is told by a lock on the folder:
//! the workspace, or the data of its repository, which other workspaces may have in common. What a
//! crash leaves, the next command removes.

use super::mounts::protected;
use super::protected::{
    COMMON_FOLDER, FOLDERS_IN_HOME, GIT, IN_HOME, MODULES, OBJECTS, PROTECTED, REFS,
    WORKTREE_CONFIG, data_of, makes_a_repository, obeyed_below_home,
};
use super::walls::Walls;
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

/// Nothing that people make is like this: sticky, and closed to writers.
const MODE: RawMode = 0o1555;
const FILE_MODE: RawMode = 0o1444;
const STICKY: RawMode = 0o1000;
const WRITABLE: RawMode = 0o222;

/// Fewer names than this, somewhere in a text, are no listing of a folder.
const A_LISTING: usize = 3;

/// The placeholders of one workspace, while a command runs in it.
pub(crate) struct Placeholders {
    folders: Vec<Folder>,
}

/// Those in one folder.
struct Folder {
    /// Where it is, to be told.
    path: PathBuf,
    handle: File,
    /// Where they are or would be in there.
    names: Vec<PathBuf>,
    /// Those of them that are empty files, whatever they are called.
    files: Vec<PathBuf>,
    locked: bool,
}

impl Placeholders {
    /// Puts them up, where the command could write and something is missing.
    pub(crate) fn put_up(walls: &Walls) -> io::Result<Option<Placeholders>> {
        if walls.profile != Profile::WorkspaceWrite {
            return Ok(None);
        }
        let workspace = open_folder(&walls.workspace)?;
        let found = rustix::fs::fstat(&workspace)?;
        if walls.identity.is_some_and(|identity| identity != (found.st_dev, found.st_ino)) {
            return Err(io::Error::other("the workspace was replaced meanwhile"));
        }
        let mut paths = vec![walls.workspace.join(GIT)];
        paths.extend(protected(walls));
        let files = obeyed_below_home(&walls.workspace, &walls.homes, &walls.hidden).files;
        // What is in the data of a repository is locked there.
        let mut data = data_of(&walls.workspace);
        data.retain(|data| *data != walls.workspace);
        let mut placeholders = Placeholders { folders: Vec::new() };
        for root in data.iter().chain(&walls.repository) {
            placeholders.add(root, open_folder(root)?, &mut paths, &files);
        }
        placeholders.add(&walls.workspace, workspace, &mut paths, &files);
        for folder in &placeholders.folders {
            if let Err(error) = folder.put_up() {
                placeholders.take_down();
                return Err(error);
            }
        }
        Ok(Some(placeholders))
    }

    /// Takes those of `paths` that are in the folder at `root`; `files` are empty files.
    fn add(&mut self, root: &Path, handle: File, paths: &mut Vec<PathBuf>, files: &[PathBuf]) {
        // Some file systems do not know it; then nobody removes anything.
        let locked = flock(&handle, FlockOperation::LockShared).is_ok();
        let inside = paths.extract_if(.., |path| path.starts_with(root) && *path != root);
        let names = inside.filter_map(|path| path.strip_prefix(root).ok().map(Path::to_owned));
        let names = names.collect();
        let below = |path: &PathBuf| path.strip_prefix(root).ok().map(Path::to_owned);
        let files = files.iter().filter_map(below).collect();
        self.folders.push(Folder { path: root.to_owned(), handle, names, files, locked });
    }

    /// Takes them down, unless others still need them. For when the command and all it started are
    /// dead.
    pub(crate) fn take_down(&self) {
        // The workspace comes last.
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
            // What is in a folder comes before the folder.
            self.names.iter().rev().for_each(|name| self.take_down_one(name));
        }
    }

    fn put_up_one(&self, path: &Path) -> io::Result<()> {
        match statat(&self.handle, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
                let why =
                    "is a link, which cannot be protected: put a folder or a file in its place";
                Err(io::Error::other(format!("{} {why}", self.path.join(path).display())))
            }
            Ok(_) => Ok(()),
            Err(Errno::NOENT) => match self.while_writable(|| self.make(path)) {
                // Who cannot write there is no danger there; and another may have been first.
                Ok(()) | Err(Errno::EXIST | Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(()),
                Err(error) => Err(error.into()),
            },
            // Not below a folder.
            Err(Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn make(&self, path: &Path) -> Result<(), Errno> {
        let here = &self.handle;
        // Git would read this one, and sees an empty file there: see `mounts.rs`.
        if [REFS, OBJECTS, MODULES].iter().any(|name| path == Path::new(name)) {
            return self.make_socket(path);
        }
        let is_file = self.files.iter().any(|file| file == path);
        let Some(content) = content_of(path).or_else(|| is_file.then_some(&b""[..])) else {
            return rustix::fs::mkdirat(here, path, Mode::from_raw_mode(MODE));
        };
        // Under its name only when it is whole: git may look at any moment.
        let (hidden, file) = self.make_hidden(path.parent().unwrap_or(path))?;
        let made = rustix::io::write(&file, content)
            .and_then(|_| rustix::fs::fchmod(&file, Mode::from_raw_mode(FILE_MODE)))
            .and_then(|()| linkat(here, &hidden, here, path, AtFlags::empty()));
        let _ = unlinkat(here, &hidden, AtFlags::empty());
        made
    }

    /// A new file in the folder `around`, under a name that nobody foresees: a command could have
    /// taken it.
    fn make_hidden(&self, around: &Path) -> Result<(PathBuf, OwnedFd), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let hidden = around.join(format!("posse-{:016x}", RandomState::new().hash_one(0)));
        let file = openat(&self.handle, &hidden, flags, Mode::from_raw_mode(0o600));
        // Somebody has it all the same: that is no placeholder of ours.
        let file = file.map_err(|error| if error == Errno::EXIST { Errno::BUSY } else { error })?;
        Ok((hidden, file))
    }

    fn make_socket(&self, path: &Path) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(FILE_MODE);
        match rustix::fs::mknodat(&self.handle, path, FileType::Socket, mode, 0) {
            // Some file systems have none.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                openat(&self.handle, path, flags, mode).map(drop)
            }
            made => made,
        }
    }

    /// Removes a placeholder, and nothing else: what is not empty cannot be removed like this.
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

    /// Does something that needs a folder which can be written, also where its owner has closed it: a
    /// command can open it again.
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

/// What is in the file that holds the place of this name, if it is a file.
fn content_of(path: &Path) -> Option<&'static [u8]> {
    match path.file_name()?.to_str()? {
        COMMON_FOLDER => Some(b".\n"),
        WORKTREE_CONFIG | "config" | "config.toml" | "attributes" => Some(b""),
        // The user's shells and git read these, and complain of a folder.
        name if IN_HOME.contains(&name)
            && !FOLDERS_IN_HOME.contains(&name)
            && !PROTECTED.contains(&name) =>
        {
            Some(b"")
        }
        _ => None,
    }
}

/// The names that placeholders had at the top of `workspace` while a command ran, if `text`, its
/// output, lists them: at least half of all, or of those that do not begin with a dot, which is what
/// a plain `ls` shows. Else those that a program wanted to read.
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

/// What programs say that could not make or change something.
const REFUSED: [&str; 6] = [
    "File exists",
    "Permission denied",
    "Is a directory",
    "Device or resource busy",
    "Read-only file system",
    "Operation not permitted",
];

/// How a line begins in which a program says that it could not read a folder.
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

/// The names in these lines, of whatever kind.
fn named_in<'t>(lines: impl Iterator<Item = &'t str>) -> HashSet<&'t str> {
    let ends = |letter: char| letter.is_whitespace() || "/'\"`‘’:,()".contains(letter);
    lines.flat_map(|line| line.split(ends)).collect()
}

/// The protected names of `workspace` that `text`, the output of a command, says could not be made or
/// changed. Who could not read one has not tried to.
pub(crate) fn refused_names(text: &str, workspace: &Path) -> Vec<&'static str> {
    let is_refusal = |line: &&str| REFUSED.iter().any(|word| line.contains(word));
    let reads = |line: &&str| is_of_reader(line) || line.starts_with("warning: unable to access '");
    let words = named_in(text.lines().filter(is_refusal).filter(|line| !reads(line)));
    let names = PROTECTED.into_iter().chain(makes_a_repository(workspace));
    names.filter(|name| words.contains(name)).collect()
}

/// True for what stands, while commands run, in the place of a file that must not appear in a
/// workspace.
pub fn is_placeholder(found: &std::fs::Metadata) -> bool {
    marks_placeholder(found.mode())
}

/// True for the mode that only placeholders have.
pub(crate) fn marks_placeholder(mode: RawMode) -> bool {
    mode & STICKY != 0 && mode & WRITABLE == 0
}
