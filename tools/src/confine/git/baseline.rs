//! What was there before any of the commands that run at the same time in one workspace.
//!
//! What one command has put there must not count as the user's for another that begins later. So the
//! first one writes down what it found, where no command sees it, and the others go by that. Who runs
//! is told by the lock of the placeholders on the workspace. The last one removes what is written down. If
//! it is there and nobody runs, somebody did not get to look at what the last commands have left: all of Posse
//! was killed, or the power failed. Then the next one goes by it, and sees to what they left.

use super::super::walls::Walls;
use super::offence::Offence;
use super::tree::{Identity, identity};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// It, as it is written down.
#[derive(Default, Serialize, Deserialize)]
struct Document {
    /// Which folder the workspace is: another may get its number.
    #[serde(default)]
    workspace: Option<Identity>,
    offences: Vec<(OsString, BTreeSet<Offence>)>,
    named: Vec<(OsString, Option<OsString>)>,
}

/// What settings of git name, and where that is.
pub(super) type Named = BTreeMap<PathBuf, Option<PathBuf>>;

/// What was there, and who knows it.
pub(super) struct Baseline {
    workspace: File,
    /// Where it is written down, if there is a place for it.
    file: Option<PathBuf>,
    /// Nobody else runs.
    is_first: bool,
    /// It was left by commands that nobody saw to.
    is_left: bool,
    /// What makes git run or obey something, by the folders that were looked through.
    known: BTreeMap<PathBuf, BTreeSet<Offence>>,
    named: Named,
}

impl Baseline {
    /// That of the commands which run in the workspace, or ran there last and nobody saw to what they
    /// left; empty if there are none.
    pub(super) fn of(walls: &Walls) -> io::Result<Baseline> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let workspace = File::from(open(&walls.workspace, flags, Mode::empty())?);
        let found = workspace.metadata()?;
        let name = format!("{:x}-{:x}.json", found.dev(), found.ino());
        let folder = walls.state.iter().filter(|state| !walls.gives(state));
        let file = folder.map(|state| state.join("repositories").join(&name)).next();
        // Whoever is first has it alone until all is written down.
        let alone = || flock(&workspace, FlockOperation::NonBlockingLockExclusive).is_ok();
        let is_first = alone() || {
            let _ = flock(&workspace, FlockOperation::LockShared);
            alone()
        };
        if !is_first {
            let _ = flock(&workspace, FlockOperation::LockShared);
        }
        let text = file.iter().find_map(|file| std::fs::read(file).ok());
        let document = text.and_then(|text| serde_json::from_slice::<Document>(&text).ok());
        let which = identity(&workspace, OsStr::new("."));
        let document = document.filter(|it| it.workspace == which);
        let is_left = is_first && document.is_some();
        let document = document.unwrap_or_default();
        let known = document.offences.into_iter().map(|(path, it)| (path.into(), it)).collect();
        let named = document.named.into_iter();
        let named = named.map(|(path, real)| (path.into(), real.map(PathBuf::from))).collect();
        Ok(Baseline { workspace, file, is_first, is_left, known, named })
    }

    /// Folders that commands could change which nobody saw to.
    pub(super) fn left(&self) -> Vec<PathBuf> {
        self.known.keys().filter(|_| self.is_left).cloned().collect()
    }

    /// What counts as there before in the folder at `path`, in which `found` is there now.
    pub(super) fn settled(&mut self, path: &Path, found: BTreeSet<Offence>) -> BTreeSet<Offence> {
        self.known.entry(path.to_owned()).or_insert(found).clone()
    }

    /// The same of what settings name.
    pub(super) fn settled_names(&mut self, found: Named) -> Named {
        for (path, real) in found {
            self.named.entry(path).or_insert(real);
        }
        self.named.clone()
    }

    /// Lets others begin, who go by what is known. From here on it is the lock of the placeholders that
    /// tells them of us; whoever begins in between finds what we have found. Returns where it is written
    /// down.
    pub(super) fn share(self) -> WrittenDown {
        if let Some(file) = self.file.as_ref().filter(|_| self.is_first) {
            // What is left of earlier commands would be wrong.
            if self.write_down(file).is_err() {
                let _ = std::fs::remove_file(file);
            }
        }
        let _ = flock(&self.workspace, FlockOperation::Unlock);
        let Baseline { workspace, file, is_first, is_left, .. } = self;
        WrittenDown { workspace, file, is_new: is_first && !is_left }
    }

    fn write_down(&self, file: &Path) -> io::Result<()> {
        let name = |path: &PathBuf| path.as_os_str().to_owned();
        let text = serde_json::to_vec(&Document {
            workspace: identity(&self.workspace, OsStr::new(".")),
            offences: self.known.iter().map(|(path, it)| (name(path), it.clone())).collect(),
            named: self
                .named
                .iter()
                .map(|(path, it)| (name(path), it.as_ref().map(name)))
                .collect(),
        })?;
        let folder = file.parent().unwrap_or(file);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(&text)?;
        new.persist(file)?;
        Ok(())
    }
}

/// Where a baseline is written down.
pub(super) struct WrittenDown {
    workspace: File,
    file: Option<PathBuf>,
    /// Nobody went by it before.
    is_new: bool,
}

impl WrittenDown {
    /// Removes it. For whoever has the workspace alone, when all that commands left is seen to.
    pub(super) fn remove(&self) {
        self.file.iter().for_each(|file| drop(std::fs::remove_file(file)));
    }

    /// The same for a command that never began, if no other goes by it.
    pub(super) fn remove_unused(&self) {
        let alone = || flock(&self.workspace, FlockOperation::NonBlockingLockExclusive).is_ok();
        if self.is_new && alone() {
            self.remove();
            let _ = flock(&self.workspace, FlockOperation::Unlock);
        }
    }
}
