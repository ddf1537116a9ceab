//! What holds the place of protected names that do not exist, while commands run.
//!
//! Only what exists can be mounted over. So a missing name gets an empty folder, which git does
//! not see, and which is told from others by its mode. The last command in a workspace to end
//! removes them: removing one takes the mount away from every command that still runs. Who runs
//! there is told by a lock on the workspace. What a crash leaves, the next command removes.

use super::mounts::protected;
use super::protected::{GIT, UNWANTED_IN_GIT};
use super::walls::Walls;
use posse_protocol::Profile;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode, flock, open, statat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// No folder that people make is like this: sticky, and closed to writers.
const MODE: RawMode = 0o1555;
const STICKY: RawMode = 0o1000;
const WRITABLE: RawMode = 0o222;

/// The placeholders of one workspace, while a command runs in it.
pub(crate) struct Placeholders {
    workspace: File,
    /// Where they are or would be.
    paths: Vec<PathBuf>,
    /// What was not there and must not be there afterwards.
    unwanted: Vec<PathBuf>,
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
        // Some file systems do not know it; then nobody removes anything.
        let locked = flock(&workspace, FlockOperation::LockShared).is_ok();
        let mut paths = vec![root.join(GIT)];
        paths.extend(protected(walls));
        let unwanted = UNWANTED_IN_GIT.iter().map(|name| root.join(GIT).join(name));
        let unwanted = unwanted.filter(|path| path.symlink_metadata().is_err()).collect();
        let placeholders = Placeholders { workspace, paths, unwanted, locked };
        for path in &placeholders.paths {
            if let Err(error) = put_up(path) {
                placeholders.take_down();
                return Err(error);
            }
        }
        Ok(Some(placeholders))
    }

    /// Takes them down, unless others still need them. For when the command and all it started are
    /// dead.
    pub(crate) fn take_down(&self) {
        for path in &self.unwanted {
            let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path));
        }
        let last =
            self.locked && flock(&self.workspace, FlockOperation::NonBlockingLockExclusive).is_ok();
        if last {
            // What is in a folder comes before the folder.
            self.paths.iter().rev().for_each(|path| take_down(path));
        }
    }
}

fn put_up(path: &Path) -> io::Result<()> {
    match rustix::fs::lstat(path) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
            let why = "is a link, which cannot be protected: put a folder or a file in its place";
            Err(io::Error::other(format!("{} {why}", path.display())))
        }
        Ok(_) => Ok(()),
        Err(Errno::NOENT) => match rustix::fs::mkdir(path, Mode::from_raw_mode(MODE)) {
            // Who cannot write there is no danger there; and another command may have been first.
            Ok(()) | Err(Errno::EXIST | Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(()),
            Err(error) => Err(error.into()),
        },
        // Not below a folder.
        Err(Errno::NOTDIR) => Ok(()),
        Err(error) => Err(error.into()),
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

/// Removes a placeholder, and nothing else: what is not empty cannot be removed like this.
fn take_down(path: &Path) {
    let (Some(around), Some(name)) = (path.parent(), path.file_name()) else { return };
    let named = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(around) = open(around, named, Mode::empty()) else { return };
    let Ok(found) = statat(&around, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if is_folder && marked(found.st_mode) {
        let _ = unlinkat(&around, name, AtFlags::REMOVEDIR);
    }
}
