//! What was there before any of the commands that run at the same time.
//!
//! What one command has put somewhere must not count as the user's for another that begins later, in the same
//! workspace, in one around it or below it, or in another folder of the same repository. So each command writes down what
//! counts as there before it, and in which folders, where no command sees it; and each goes by what those have
//! written down whose folders have something in common with its own. One lock makes sure that nobody looks
//! while another does.
//!
//! Whoever is written down holds a lock on that file, and removes it when all that its command left is seen to. A
//! file without a lock was left: all of Posse was killed, or the power failed. The next command goes by it, and
//! sees to what was left.

use super::super::walls::Walls;
use super::offence::Offence;
use super::tree::{Identity, identity};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file whose lock makes sure that only one looks.
const LOCK: &str = "lock";

/// How the names of files end in which something is written down.
const ENDING: &str = "json";

/// It, as it is written down.
#[derive(Serialize, Deserialize)]
struct Document {
    workspace: OsString,
    /// Which folder the workspace is: another may get its name.
    identity: Option<Identity>,
    offences: Vec<(OsString, BTreeSet<Offence>)>,
    named: Vec<(OsString, Option<OsString>)>,
}

/// What settings of git name, and where that is.
pub(super) type Named = BTreeMap<PathBuf, Option<PathBuf>>;

/// What was there before the commands of one supervisor.
struct Known {
    workspace: PathBuf,
    /// What makes git run or obey something, by the folders that were looked through.
    offences: BTreeMap<PathBuf, BTreeSet<Offence>>,
    named: Named,
}

/// The same of somebody else.
struct Other {
    known: Known,
    /// It was left by a command that nobody saw to, and we do.
    is_left: bool,
}

/// How long is kept what was written down of a folder that nobody finds.
const LONG_GONE: Duration = Duration::from_secs(30 * 24 * 3600);

/// What was there, and who knows it.
pub(super) struct Baseline {
    own: Known,
    identity: Option<Identity>,
    others: Vec<Other>,
    /// Where it is written down.
    folders: Vec<PathBuf>,
    /// Files that are not needed once ours is there.
    needless: Vec<PathBuf>,
    /// Nobody else looks as long as these are there.
    _locks: Vec<File>,
}

impl Baseline {
    /// That of the commands whose folders have something in common with ours; empty if there are none.
    pub(super) fn of(walls: &Walls) -> io::Result<Baseline> {
        let mut baseline = Baseline {
            own: Known {
                workspace: walls.workspace.clone(),
                offences: BTreeMap::new(),
                named: Named::new(),
            },
            identity: identity_of(&walls.workspace),
            others: Vec::new(),
            folders: Vec::new(),
            needless: Vec::new(),
            _locks: Vec::new(),
        };
        for folder in places(walls) {
            // Where nothing can be written, nobody writes.
            let Ok(lock) = lock(&folder) else { continue };
            baseline._locks.push(lock);
            baseline.folders.push(folder);
        }
        let mut seen = BTreeSet::new();
        for folder in baseline.folders.clone() {
            for entry in std::fs::read_dir(&folder)?.flatten() {
                let file = entry.path();
                if file.extension().is_some_and(|it| it == ENDING) {
                    let is_new = seen.insert(entry.file_name());
                    baseline.read(file, is_new);
                }
            }
        }
        Ok(baseline)
    }

    /// Reads what somebody has written down. It may be there more than once.
    fn read(&mut self, file: PathBuf, is_new: bool) {
        let Ok(mut handle) = File::open(&file) else { return };
        let locked = flock(&handle, FlockOperation::NonBlockingLockShared);
        let is_alone = locked.is_ok();
        let mut text = Vec::new();
        let read = io::Read::read_to_end(&mut handle, &mut text);
        let document = read.ok().and_then(|_| serde_json::from_slice::<Document>(&text).ok());
        // Nobody can have run who has not written all of it.
        let Some(document) = document else {
            self.needless.extend(is_alone.then_some(file));
            return;
        };
        let (which, mut known) = (document.identity, Known::of(document));
        let is_it = |folder: Option<Identity>| match (&which, folder) {
            (Some(which), Some(folder)) => which.is(&folder),
            (which, folder) => which.is_none() && folder.is_none(),
        };
        if is_alone && which.is_some() && is_it(self.identity) {
            // It may have been moved since.
            known.move_to(&self.own.workspace);
        } else if is_alone && !is_it(identity_of(&known.workspace)) {
            // The folder has gone, with all that was left in it; or it was moved, or its disk is not
            // there now.
            let age = handle.metadata().and_then(|it| it.modified()).map(|it| it.elapsed());
            let is_old = age.is_ok_and(|age| age.is_ok_and(|age| age > LONG_GONE));
            self.needless.extend(is_old.then_some(file));
            return;
        }
        let is_left = is_alone && known.workspace.starts_with(&self.own.workspace);
        self.needless.extend(is_left.then_some(file));
        if is_new {
            self.others.push(Other { known, is_left });
        }
    }

    /// Folders that commands could change which nobody saw to.
    pub(super) fn left(&self) -> Vec<PathBuf> {
        let left = self.others.iter().filter(|other| other.is_left);
        left.flat_map(|other| other.known.offences.keys().cloned()).collect()
    }

    /// What counts as there before in the folder at `path`, in which `found` is there now: where others
    /// have looked, only what they have all found.
    pub(super) fn settled(&mut self, path: &Path, found: BTreeSet<Offence>) -> BTreeSet<Offence> {
        let theirs = self.others.iter().flat_map(|other| other.known.within(path));
        let all: BTreeSet<Offence> = theirs.chain(found.iter().cloned()).collect();
        let counts = |offence: &Offence| {
            let mut of_others = self.others.iter().filter_map(|other| {
                let at = path.join(&offence.path);
                other.known.looked_at(&at).then(|| other.known.has(&at, offence))
            });
            match of_others.next() {
                None => found.contains(offence),
                Some(has) => has && of_others.all(|has| has),
            }
        };
        let before: BTreeSet<Offence> = all.into_iter().filter(counts).collect();
        self.own.offences.insert(path.to_owned(), before.clone());
        before
    }

    /// The same of what settings name.
    pub(super) fn settled_names(&mut self, found: Named) -> Named {
        let workspace = &self.own.workspace;
        let theirs = self.others.iter().flat_map(|other| other.known.named.keys());
        let theirs = theirs.filter(|path| path.starts_with(workspace));
        let all: BTreeSet<&PathBuf> = found.keys().chain(theirs).collect();
        let before = all.into_iter().map(|path| {
            let covers = |other: &&Other| path.starts_with(&other.known.workspace);
            let mut said = self.others.iter().filter(covers);
            let said_by = |other: &Other| other.known.named.get(path).cloned().flatten();
            let real = match said.next().map(said_by) {
                None => found.get(path).cloned().flatten(),
                Some(first) => {
                    first.filter(|first| said.all(|it| said_by(it).as_ref() == Some(first)))
                }
            };
            (path.clone(), real)
        });
        self.own.named = before.collect();
        self.own.named.clone()
    }

    /// Writes it down and lets others look, who go by it.
    ///
    /// # Errors
    /// When it cannot be written down: others would take what our command does for the user's.
    pub(super) fn share(self) -> io::Result<WrittenDown> {
        let text = serde_json::to_vec(&self.own.document(self.identity))?;
        let seed = RandomState::new();
        let name = format!("{:016x}.{ENDING}", seed.hash_one(std::process::id()));
        let mut files = Vec::new();
        for folder in &self.folders {
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            flock(new.as_file(), FlockOperation::NonBlockingLockExclusive)?;
            new.write_all(&text)?;
            let file = folder.join(&name);
            files.push((new.persist(&file)?, file));
        }
        self.needless.iter().for_each(|file| drop(std::fs::remove_file(file)));
        Ok(WrittenDown { files, is_new: !self.others.iter().any(|other| other.is_left) })
    }
}

impl Known {
    fn of(document: Document) -> Known {
        let offences = document.offences.into_iter().map(|(path, it)| (path.into(), it)).collect();
        let named = document.named.into_iter();
        let named = named.map(|(path, real)| (path.into(), real.map(PathBuf::from))).collect();
        Known { workspace: document.workspace.into(), offences, named }
    }

    fn document(&self, identity: Option<Identity>) -> Document {
        let name = |path: &PathBuf| path.as_os_str().to_owned();
        let named = self.named.iter();
        Document {
            workspace: name(&self.workspace),
            identity,
            offences: self.offences.iter().map(|(path, it)| (name(path), it.clone())).collect(),
            named: named.map(|(path, it)| (name(path), it.as_ref().map(name))).collect(),
        }
    }

    /// Changes all paths as if the workspace were at `path`.
    fn move_to(&mut self, path: &Path) {
        let moved = |it: PathBuf| match it.strip_prefix(&self.workspace) {
            Ok(below) if below.as_os_str().is_empty() => path.to_owned(),
            Ok(below) => path.join(below),
            Err(_) => it,
        };
        let offences = std::mem::take(&mut self.offences);
        self.offences = offences.into_iter().map(|(path, it)| (moved(path), it)).collect();
        let named = std::mem::take(&mut self.named);
        self.named = named.into_iter().map(|(at, it)| (moved(at), it.map(moved))).collect();
        self.workspace = path.to_owned();
    }

    /// True when all was looked at that was at this path.
    fn looked_at(&self, path: &Path) -> bool {
        self.offences.keys().any(|root| path.starts_with(root))
    }

    /// True when `offence`, now at this path, was there.
    fn has(&self, path: &Path, offence: &Offence) -> bool {
        self.offences.iter().any(|(root, all)| {
            let below = path.strip_prefix(root);
            let same = |below: &Path| {
                all.contains(&Offence { path: below.to_owned(), what: offence.what.clone() })
            };
            below.is_ok_and(same)
        })
    }

    /// All that was in the folder at `path`, by paths below it.
    fn within(&self, path: &Path) -> Vec<Offence> {
        let overlaps = |root: &Path| root.starts_with(path) || path.starts_with(root);
        let roots = self.offences.iter().filter(|(root, _)| overlaps(root));
        let all = roots.flat_map(|(root, all)| all.iter().map(move |it| (root.join(&it.path), it)));
        all.filter_map(|(at, it)| {
            let path = at.strip_prefix(path).ok()?.to_owned();
            Some(Offence { path, what: it.what.clone() })
        })
        .collect()
    }
}

/// Where something can be written down that no command sees. What is in the state folder outlives a
/// power failure; but that may lie in a workspace, and not all runs need have the same.
fn places(walls: &Walls) -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    let state = walls.state.iter().map(|state| state.join("repositories"));
    // Commands have their own folders of these names.
    let shared = ["/run/user", "/dev/shm"].map(PathBuf::from);
    let [mine, everybody] = shared;
    let shared =
        [mine.join(user.to_string()).join("posse"), everybody.join(format!("posse-{user}"))];
    state.chain(shared).filter(|folder| !walls.gives(folder)).collect()
}

/// Waits until nobody else looks, and keeps others from it.
fn lock(folder: &Path) -> io::Result<File> {
    let is_state = !["/run", "/dev"].iter().any(|it| folder.starts_with(it));
    match DirBuilder::new().recursive(is_state).mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Others may have made it first.
    let found = folder.symlink_metadata()?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(Errno::PERM.into());
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = open(folder.join(LOCK), flags, Mode::from_raw_mode(0o600))?;
    loop {
        match flock(&lock, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            locked => return Ok(locked.map(|()| File::from(lock))?),
        }
    }
}

fn identity_of(folder: &Path) -> Option<Identity> {
    identity(rustix::fs::CWD, folder.as_os_str())
}

/// Where a baseline is written down.
pub(super) struct WrittenDown {
    /// The lock on a file says that somebody sees to what the command leaves.
    files: Vec<(File, PathBuf)>,
    /// It says nothing of commands before ours.
    is_new: bool,
}

impl WrittenDown {
    /// Removes it. For when all that the command left is seen to.
    pub(super) fn remove(&self) {
        self.files.iter().for_each(|(_, file)| drop(std::fs::remove_file(file)));
    }

    /// The same for a command that never began. What others left is still to be seen to.
    pub(super) fn remove_unused(&self) {
        if self.is_new {
            self.remove();
        }
    }
}
