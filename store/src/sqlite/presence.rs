//! Which workers live. A worker renews a lease in the database, and holds a lock on a file of its
//! own, which the kernel drops when the process dies, however it dies: so the runs of a killed
//! process are free at once, and those of a stopped one when its lease ends.

use crate::clock::Clock;
use posse_protocol::WorkerId;
use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Presence {
    pub(super) worker: WorkerId,
    clock: Arc<dyn Clock>,
    lease: Duration,
    folder: PathBuf,
    /// Locked as long as the worker lives.
    lock: File,
}

/// A worker as its row shows it.
pub(super) struct WorkerRow {
    pub(super) id: WorkerId,
    pub(super) boot: String,
    pub(super) lease_until: u64,
}

impl Presence {
    pub(super) fn announce(
        database: &Path,
        clock: Arc<dyn Clock>,
        lease: Duration,
    ) -> std::io::Result<Self> {
        let mut folder = database.as_os_str().to_owned();
        folder.push("-workers");
        let folder = PathBuf::from(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let worker = WorkerId::new();
        let lock = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(folder.join(worker.to_string()))?;
        lock.lock()?;
        Ok(Presence { worker, clock, lease, folder, lock })
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn boot(&self) -> &str {
        self.clock.boot()
    }

    /// Until when the lease holds if it is renewed now.
    pub(super) fn lease_end(&self) -> u64 {
        self.clock.steady_ms() + self.lease.as_millis() as u64
    }

    /// Those of `workers` that live.
    pub(super) fn living(&self, workers: impl Iterator<Item = WorkerRow>) -> HashSet<WorkerId> {
        workers.filter(|worker| self.lives(worker)).map(|worker| worker.id).collect()
    }

    pub(super) fn lives(&self, other: &WorkerRow) -> bool {
        if other.id == self.worker {
            return true;
        }
        other.boot == self.boot()
            && other.lease_until >= self.clock.steady_ms()
            && self.holds_its_lock(other.id)
    }

    fn holds_its_lock(&self, worker: WorkerId) -> bool {
        match File::open(self.file_of(worker)) {
            Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
            // Without the file, as in a copy of the database, only the lease speaks.
            Err(_) => true,
        }
    }

    /// Lets go of the lock: from now on this worker is dead to others.
    pub(super) fn leave(&self) {
        // If this fails, the kernel does it when the file is closed.
        let _ = self.lock.unlock();
    }

    /// Removes what a dead worker left. One that was only silent still holds its lock, and
    /// keeps it: it may come back.
    pub(super) fn bury(&self, worker: WorkerId) {
        let file = self.file_of(worker);
        if File::open(&file).is_ok_and(|open| open.try_lock().is_ok()) {
            // A file that stays costs nothing: its lock is what counts.
            let _ = std::fs::remove_file(file);
        }
    }

    fn file_of(&self, worker: WorkerId) -> PathBuf {
        self.folder.join(worker.to_string())
    }
}
