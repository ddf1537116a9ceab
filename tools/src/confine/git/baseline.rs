//! Baselines: what existed before any of the commands that run at the same time.
//!
//! If a command has created something, a command that begins later must not count it as the user's. The
//! later command may work in the same workspace, above or below it, or in another folder of the same
//! repository. So each supervisor stores the baseline of its command and the folders that it covers,
//! where no command can see it. It also uses the baselines of other commands whose folders overlap with
//! its own. A lock ensures that only one supervisor inspects at a time.
//!
//! A supervisor holds a lock on its stored baseline, and removes the file after it has handled
//! everything that its command left. A file without a lock is a leftover: all of Posse was killed, or
//! the power failed. The next supervisor uses it, and handles what was left.

use super::super::command_sandbox::CommandSandbox;
use super::tree::{Identity, identity};
use super::unsafe_entry::UnsafeEntry;
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

/// The file whose lock ensures that only one command inspects at a time.
const LOCK: &str = "lock";

/// The extension of files with baselines.
const ENDING: &str = "json";

/// The format of a stored baseline.
#[derive(Serialize, Deserialize)]
struct Document {
    workspace: OsString,
    /// Identifies the workspace folder: another folder may get its path.
    identity: Option<Identity>,
    unsafe_entries: Vec<(OsString, BTreeSet<UnsafeEntry>)>,
    named: Vec<(OsString, Option<OsString>)>,
}

/// Paths that settings of git name, with their real paths.
pub(super) type Named = BTreeMap<PathBuf, Option<PathBuf>>;

/// The baseline of one command.
struct Known {
    workspace: PathBuf,
    /// The unsafe_entries in each inspected folder.
    unsafe_entries: BTreeMap<PathBuf, BTreeSet<UnsafeEntry>>,
    named: Named,
}

/// The baseline of another command.
struct Other {
    known: Known,
    /// True if it is a leftover that we handle.
    is_left: bool,
}

/// How long to keep the leftover baseline of a folder that cannot be found.
const LONG_GONE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Our baseline, and those of other commands.
pub(super) struct Baseline {
    own: Known,
    identity: Option<Identity>,
    others: Vec<Other>,
    /// The folders in which it is stored.
    folders: Vec<PathBuf>,
    /// Files to remove once ours is stored.
    needless: Vec<PathBuf>,
    /// As long as we hold these, no other command inspects.
    _locks: Vec<File>,
}

impl Baseline {
    /// Takes the locks, and reads the baselines of other commands.
    pub(super) fn of(sandbox: &CommandSandbox) -> io::Result<Baseline> {
        let mut baseline = Baseline {
            own: Known {
                workspace: sandbox.workspace.clone(),
                unsafe_entries: BTreeMap::new(),
                named: Named::new(),
            },
            identity: identity_of(&sandbox.workspace),
            others: Vec::new(),
            folders: Vec::new(),
            needless: Vec::new(),
            _locks: Vec::new(),
        };
        for folder in places(sandbox) {
            // If we cannot write to a folder, no command stores a baseline there.
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

    /// Reads a stored baseline. The same one may be stored in several folders.
    fn read(&mut self, file: PathBuf, is_new: bool) {
        let Ok(mut handle) = File::open(&file) else { return };
        let locked = flock(&handle, FlockOperation::NonBlockingLockShared);
        let is_alone = locked.is_ok();
        let mut text = Vec::new();
        let read = io::Read::read_to_end(&mut handle, &mut text);
        let document = read.ok().and_then(|_| serde_json::from_slice::<Document>(&text).ok());
        // A command cannot have run if its baseline is incomplete.
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
            // The workspace may have been moved since.
            known.move_to(&self.own.workspace);
        } else if is_alone && !is_it(identity_of(&known.workspace)) {
            // The folder is gone with everything in it, or it was moved, or its disk is not mounted now.
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

    /// Folders that earlier commands could change and that were not inspected after them.
    pub(super) fn left(&self) -> Vec<PathBuf> {
        let left = self.others.iter().filter(|other| other.is_left);
        left.flat_map(|other| other.known.unsafe_entries.keys().cloned()).collect()
    }

    /// Returns the unsafe_entries that existed before in the folder at `path`, which now has `found`. Where
    /// other commands have inspected, only unsafe_entries that all of them found count.
    pub(super) fn settled(
        &mut self,
        path: &Path,
        found: BTreeSet<UnsafeEntry>,
    ) -> BTreeSet<UnsafeEntry> {
        let theirs = self.others.iter().flat_map(|other| other.known.within(path));
        let all: BTreeSet<UnsafeEntry> = theirs.chain(found.iter().cloned()).collect();
        let counts = |entry: &UnsafeEntry| {
            let mut of_others = self.others.iter().filter_map(|other| {
                let at = path.join(&entry.path);
                other.known.looked_at(&at).then(|| other.known.has(&at, entry))
            });
            match of_others.next() {
                None => found.contains(entry),
                Some(has) => has && of_others.all(|has| has),
            }
        };
        let before: BTreeSet<UnsafeEntry> = all.into_iter().filter(counts).collect();
        self.own.unsafe_entries.insert(path.to_owned(), before.clone());
        before
    }

    /// The same for paths that settings name.
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

    /// Stores our baseline and lets other commands inspect, which then use it.
    ///
    /// # Errors
    /// If it cannot be stored: other commands would take what our command does for the user's work.
    pub(super) fn share(self) -> io::Result<StoredBaseline> {
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
        Ok(StoredBaseline { files, is_new: !self.others.iter().any(|other| other.is_left) })
    }
}

impl Known {
    fn of(document: Document) -> Known {
        let unsafe_entries =
            document.unsafe_entries.into_iter().map(|(path, it)| (path.into(), it)).collect();
        let named = document.named.into_iter();
        let named = named.map(|(path, real)| (path.into(), real.map(PathBuf::from))).collect();
        Known { workspace: document.workspace.into(), unsafe_entries, named }
    }

    fn document(&self, identity: Option<Identity>) -> Document {
        let name = |path: &PathBuf| path.as_os_str().to_owned();
        let named = self.named.iter();
        Document {
            workspace: name(&self.workspace),
            identity,
            unsafe_entries: self
                .unsafe_entries
                .iter()
                .map(|(path, it)| (name(path), it.clone()))
                .collect(),
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
        let unsafe_entries = std::mem::take(&mut self.unsafe_entries);
        self.unsafe_entries =
            unsafe_entries.into_iter().map(|(path, it)| (moved(path), it)).collect();
        let named = std::mem::take(&mut self.named);
        self.named = named.into_iter().map(|(at, it)| (moved(at), it.map(moved))).collect();
        self.workspace = path.to_owned();
    }

    /// Returns true if this baseline covers the path.
    fn looked_at(&self, path: &Path) -> bool {
        self.unsafe_entries.keys().any(|root| path.starts_with(root))
    }

    /// Returns true if `entry`, which is now at this path, is in this baseline.
    fn has(&self, path: &Path, entry: &UnsafeEntry) -> bool {
        self.unsafe_entries.iter().any(|(root, all)| {
            let below = path.strip_prefix(root);
            let same = |below: &Path| {
                all.contains(&UnsafeEntry { path: below.to_owned(), what: entry.what.clone() })
            };
            below.is_ok_and(same)
        })
    }

    /// All its unsafe_entries in the folder at `path`, with paths relative to that folder.
    fn within(&self, path: &Path) -> Vec<UnsafeEntry> {
        let overlaps = |root: &Path| root.starts_with(path) || path.starts_with(root);
        let roots = self.unsafe_entries.iter().filter(|(root, _)| overlaps(root));
        let all = roots.flat_map(|(root, all)| all.iter().map(move |it| (root.join(&it.path), it)));
        all.filter_map(|(at, it)| {
            let path = at.strip_prefix(path).ok()?.to_owned();
            Some(UnsafeEntry { path, what: it.what.clone() })
        })
        .collect()
    }
}

/// Folders for baselines that no command can see. The state folder survives a power failure. But it may
/// be inside a workspace, and runs may have different state folders.
fn places(sandbox: &CommandSandbox) -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    let state = sandbox.state.iter().map(|state| state.join("repositories"));
    // Commands see their own folders under these names.
    let shared = ["/run/user", "/dev/shm"].map(PathBuf::from);
    let [mine, everybody] = shared;
    let shared =
        [mine.join(user.to_string()).join("posse"), everybody.join(format!("posse-{user}"))];
    state.chain(shared).filter(|folder| !sandbox.gives(folder)).collect()
}

/// Takes the lock in `folder`. Waits while another command inspects.
fn lock(folder: &Path) -> io::Result<File> {
    let is_state = !["/run", "/dev"].iter().any(|it| folder.starts_with(it));
    match DirBuilder::new().recursive(is_state).mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Another user may have created it first.
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

/// The files of a stored baseline.
pub(super) struct StoredBaseline {
    /// The lock on a file means that its command will handle what it leaves.
    files: Vec<(File, PathBuf)>,
    /// True if it contains no leftovers of commands before ours.
    is_new: bool,
}

impl StoredBaseline {
    /// Removes the files. Call it after everything that the command left has been handled.
    pub(super) fn remove(&self) {
        self.files.iter().for_each(|(_, file)| drop(std::fs::remove_file(file)));
    }

    /// The same for a command that never began. Keeps leftovers of others, which are still to be handled.
    pub(super) fn remove_unused(&self) {
        if self.is_new {
            self.remove();
        }
    }
}
