//! Which workers are alive. A worker renews a lease in the database and holds a lock on a file of
//! its own. The kernel releases the lock when the process dies, for whatever reason. So the runs of
//! a killed process are free at once, and those of a suspended process when its lease ends.

use super::wal::beside;
use crate::clock::Clock;
use crate::engine::{Introduction, Lease};
use posse_protocol::WorkerId;
use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Presence {
    pub(super) worker: WorkerId,
    clock: Arc<dyn Clock>,
    pub(super) lease: Duration,
    folder: PathBuf,
    /// Locked while the worker is alive. `None` for a worker that only reads.
    lock: Option<File>,
    held: Lease,
    pub(super) introduction: Introduction,
}

/// Which processes have had a database open, according to their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenProcesses {
    /// No process has it open, and those since the boot have closed it cleanly.
    None,
    /// A process had it open since the boot and has died.
    Dead,
    /// A process has it open.
    Living,
}

/// Returns which processes have had `database` open. `boot` is the id of the current boot.
pub(super) fn company(database: &Path, boot: &str) -> OpenProcesses {
    let mut company = OpenProcesses::None;
    for file in std::fs::read_dir(folder(database)).into_iter().flatten().flatten() {
        let Ok(mut file) = File::open(file.path()) else { continue };
        if file.try_lock_shared().is_err() {
            return OpenProcesses::Living;
        }
        let mut text = String::new();
        if file.read_to_string(&mut text).is_ok() && text == boot {
            company = OpenProcesses::Dead;
        }
    }
    company
}

fn folder(database: &Path) -> PathBuf {
    beside(database, "-workers")
}

/// A row of the table `workers`.
pub(super) struct WorkerRow {
    pub(super) id: WorkerId,
    pub(super) boot: String,
    pub(super) lease_until: u64,
    pub(super) about: String,
}

impl Presence {
    pub(super) fn announce(
        database: &Path,
        clock: Arc<dyn Clock>,
        lease: Duration,
    ) -> std::io::Result<Self> {
        let quiet = Presence::unannounced(database, clock, lease);
        let (worker, folder) = (quiet.worker, &quiet.folder);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // Lock the file before others can see it: otherwise the worker would seem dead.
        let hidden = folder.join(format!("new-{worker}"));
        let mut lock = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&hidden)?;
        lock.lock()?;
        // Without space for it, [`company`] only knows less.
        let _ = lock.write_all(quiet.boot().as_bytes());
        std::fs::rename(hidden, folder.join(worker.to_string()))?;
        Ok(Presence { lock: Some(lock), ..quiet })
    }

    /// A worker that others do not know: a reader that cannot write.
    pub(super) fn unannounced(database: &Path, clock: Arc<dyn Clock>, lease: Duration) -> Self {
        let (worker, folder) = (WorkerId::new(), folder(database));
        let (held, introduction) = (Lease::default(), Introduction::default());
        Presence { worker, clock, lease, folder, lock: None, held, introduction }
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn boot(&self) -> &str {
        self.clock.boot()
    }

    /// Returns the end of the lease if it is renewed now.
    pub(super) fn lease_end(&self) -> u64 {
        self.clock.steady_ms() + self.lease.as_millis() as u64
    }

    /// Records that the lease was stored and holds until `until`.
    pub(super) fn renewed(&self, until: u64) {
        self.held.renewed(self.clock.steady_ms(), until);
    }

    /// Returns a number that is the same while the lease holds without a gap, `None` after its end.
    pub(super) fn lease_number(&self) -> Option<u64> {
        self.held.number(self.clock.steady_ms())
    }

    /// Returns the workers whose locks are free. Call this before you take the snapshot from which
    /// you read the workers. Another process may remove the row and the file of a dead worker in
    /// between, and a worker without a file, as in a copy of the database, is alive until its lease
    /// ends.
    pub(super) fn fallen(&self) -> HashSet<WorkerId> {
        // If the folder cannot be read, only the leases count.
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let workers = files.filter_map(|file| file.file_name().to_str()?.parse().ok());
        workers.filter(|&worker| worker != self.worker && self.is_unlocked(worker)).collect()
    }

    /// Returns those of `workers` that are alive. `fallen` are known to be dead.
    pub(super) fn living(
        &self,
        workers: impl Iterator<Item = WorkerRow>,
        fallen: &HashSet<WorkerId>,
    ) -> HashSet<WorkerId> {
        workers.filter(|worker| self.lives(worker, fallen)).map(|worker| worker.id).collect()
    }

    pub(super) fn lives(&self, other: &WorkerRow, fallen: &HashSet<WorkerId>) -> bool {
        other.id == self.worker
            || other.boot == self.boot()
                && other.lease_until >= self.clock.steady_ms()
                && !fallen.contains(&other.id)
    }

    /// Uses a shared lock, so that two processes do not mistake each other for the worker.
    fn is_unlocked(&self, worker: WorkerId) -> bool {
        File::open(self.file_of(worker)).is_ok_and(|file| file.try_lock_shared().is_ok())
    }

    /// Releases the lock. From now on other workers see this one as dead.
    pub(super) fn leave(&self) {
        // If this fails, the kernel does it when the file is closed.
        let _ = self.lock.as_ref().map(File::unlock);
    }

    /// Removes the file of a dead worker. A silent worker still holds its lock and keeps its file,
    /// because it may come back.
    pub(super) fn bury(&self, worker: WorkerId) {
        if self.is_unlocked(worker) {
            // A remaining file does no harm, because only its lock counts.
            let _ = std::fs::remove_file(self.file_of(worker));
        }
    }

    fn file_of(&self, worker: WorkerId) -> PathBuf {
        self.folder.join(worker.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MachineClock;

    const LEASE: Duration = Duration::from_secs(60);

    fn announced(database: &Path) -> Presence {
        Presence::announce(database, Arc::new(MachineClock::new()), LEASE).unwrap()
    }

    fn row(presence: &Presence) -> WorkerRow {
        let (id, boot) = (presence.worker, presence.boot().to_owned());
        WorkerRow { id, boot, lease_until: presence.lease_end(), about: String::new() }
    }

    #[test]
    fn who_dies_while_others_look_is_dead_to_whoever_looked_first() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("posse.db");
        let (reader, other) = (announced(&database), announced(&database));
        let workers = || [row(&reader), row(&other)].into_iter();
        assert_eq!(reader.living(workers(), &reader.fallen()).len(), 2);
        other.leave();
        let fallen = reader.fallen();
        // A third worker removes the file.
        announced(&database).bury(other.worker);
        assert_eq!(reader.living(workers(), &fallen), HashSet::from([reader.worker]));
    }
}
