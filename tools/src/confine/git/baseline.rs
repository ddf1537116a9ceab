//! What was there before any of the commands that run at the same time in one workspace.
//!
//! What one command has put there must not count as the user's for another that begins later. So the
//! first one writes down what it found, where no command sees it, and the others go by that. Who runs
//! is told by the lock of the placeholders on the workspace. What is written down means nothing when nobody runs.

use super::super::walls::Walls;
use super::offence::Offence;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// It, as it is written down.
#[derive(Default, Serialize, Deserialize)]
struct Document {
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
    /// What makes git run or obey something, by the folders that were looked through.
    known: BTreeMap<PathBuf, BTreeSet<Offence>>,
    named: Named,
}

impl Baseline {
    /// That of the commands which run in the workspace; empty if none does.
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
        let text = file.iter().filter(|_| !is_first).find_map(|file| std::fs::read(file).ok());
        let document: Document =
            text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let known = document.offences.into_iter().map(|(path, it)| (path.into(), it)).collect();
        let named = document.named.into_iter();
        let named = named.map(|(path, real)| (path.into(), real.map(PathBuf::from))).collect();
        Ok(Baseline { workspace, file, is_first, known, named })
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
    /// tells them of us; whoever begins in between finds what we have found.
    pub(super) fn share(self) {
        if let Some(file) = self.file.as_ref().filter(|_| self.is_first) {
            // What is left of earlier commands would be wrong.
            if self.write_down(file).is_err() {
                let _ = std::fs::remove_file(file);
            }
        }
        let _ = flock(&self.workspace, FlockOperation::Unlock);
    }

    fn write_down(&self, file: &Path) -> io::Result<()> {
        let name = |path: &PathBuf| path.as_os_str().to_owned();
        let text = serde_json::to_vec(&Document {
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
