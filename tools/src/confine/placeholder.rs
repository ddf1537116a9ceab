//! What holds the place of protected names that do not exist, while commands run.
//!
//! Only what exists can be mounted over. So a missing name gets an empty folder, which git does
//! not see, and which is told from others by its mode; where git would stop at a folder, a file that
//! says nothing. The last command in a workspace to end
//! removes them: removing one takes the mount away from every command that still runs. Who runs
//! there is told by a lock on the workspace. What a crash leaves, the next command removes.

use super::mounts::protected;
use super::protected::{COMMON_FOLDER, GIT, WORKTREE_CONFIG};
use super::walls::Walls;
use posse_protocol::Profile;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode, flock, linkat, open, openat, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Nothing that people make is like this: sticky, and closed to writers.
const MODE: RawMode = 0o1555;
const FILE_MODE: RawMode = 0o1444;
const STICKY: RawMode = 0o1000;
const WRITABLE: RawMode = 0o222;

/// The placeholders of one workspace, while a command runs in it.
pub(crate) struct Placeholders {
    workspace: File,
    /// Where they are or would be in there.
    paths: Vec<PathBuf>,
    locked: bool,
}

impl Placeholders {
    /// Puts them up, where the command could write and something is missing.
    pub(crate) fn put_up(walls: &Walls) -> io::Result<Option<Placeholders>> {
        if walls.profile != Profile::WorkspaceWrite {
            return Ok(None);
        }
        let root = &walls.workspace;
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let workspace = File::from(open(root, folder, Mode::empty())?);
        let found = rustix::fs::fstat(&workspace)?;
        if walls.identity.is_some_and(|identity| identity != (found.st_dev, found.st_ino)) {
            return Err(io::Error::other("the workspace was replaced meanwhile"));
        }
        // Some file systems do not know it; then nobody removes anything.
        let locked = flock(&workspace, FlockOperation::LockShared).is_ok();
        let mut paths = vec![root.join(GIT)];
        paths.extend(protected(walls));
        let below = |path: &PathBuf| path.strip_prefix(root).ok().map(Path::to_owned);
        let paths = paths.iter().filter_map(below).collect();
        let placeholders = Placeholders { workspace, paths, locked };
        for path in &placeholders.paths {
            if let Err(error) = placeholders.put_up_one(path) {
                placeholders.take_down();
                return Err(error);
            }
        }
        Ok(Some(placeholders))
    }

    /// Takes them down, unless others still need them. For when the command and all it started are
    /// dead.
    pub(crate) fn take_down(&self) {
        let last =
            self.locked && flock(&self.workspace, FlockOperation::NonBlockingLockExclusive).is_ok();
        if last {
            // What is in a folder comes before the folder.
            self.paths.iter().rev().for_each(|path| self.take_down_one(path));
        }
    }

    fn put_up_one(&self, path: &Path) -> io::Result<()> {
        match statat(&self.workspace, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
                let why =
                    "is a link, which cannot be protected: put a folder or a file in its place";
                Err(io::Error::other(format!("{} {why}", path.display())))
            }
            Ok(_) => Ok(()),
            Err(Errno::NOENT) => match self.make(path) {
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
        let here = &self.workspace;
        let Some(content) = content_of(path) else {
            return rustix::fs::mkdirat(here, path, Mode::from_raw_mode(MODE));
        };
        // Under its name only when it is whole: git may look at any moment.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let around = path.parent().unwrap_or(path);
        let hidden = around.join(format!("posse-{}-{}", std::process::id(), content.len()));
        let file = openat(here, &hidden, flags, Mode::from_raw_mode(0o600))?;
        let made = rustix::io::write(&file, content)
            .and_then(|_| rustix::fs::fchmod(&file, Mode::from_raw_mode(FILE_MODE)))
            .and_then(|()| linkat(here, &hidden, here, path, AtFlags::empty()));
        let _ = unlinkat(here, &hidden, AtFlags::empty());
        made
    }

    /// Removes a placeholder, and nothing else: what is not empty cannot be removed like this.
    fn take_down_one(&self, path: &Path) {
        let Ok(found) = statat(&self.workspace, path, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if !marked(found.st_mode) {
            return;
        }
        let _ = match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => unlinkat(&self.workspace, path, AtFlags::REMOVEDIR),
            FileType::RegularFile if content_of(path).is_some() => {
                unlinkat(&self.workspace, path, AtFlags::empty())
            }
            _ => Ok(()),
        };
    }
}

/// What is in the file that holds the place of this name, if it is a file.
fn content_of(path: &Path) -> Option<&'static [u8]> {
    match path.file_name()?.to_str()? {
        COMMON_FOLDER => Some(b".\n"),
        WORKTREE_CONFIG => Some(b""),
        _ => None,
    }
}

/// True for what stands, while commands run, in the place of a file that must not appear in a
/// workspace.
pub fn is_placeholder(found: &std::fs::Metadata) -> bool {
    found.is_dir() && marked(found.mode())
}

fn marked(mode: RawMode) -> bool {
    mode & STICKY != 0 && mode & WRITABLE == 0
}
