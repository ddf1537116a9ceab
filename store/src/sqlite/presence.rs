//! Which workers live. A worker renews a lease in the database, and holds a lock on a file of its
//! own, which the kernel drops when the process dies, however it dies: so the runs of a killed
//! process are free at once, and those of a stopped one when its lease ends.

use super::Worker;
use crate::clock::Clock;
use posse_protocol::WorkerId;
use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Presence {
    pub(super) worker: Worker,
    clock: Arc<dyn Clock>,
    lease: Duration,
    folder: PathBuf,
    /// Held as long as the process lives.
    _lock: File,
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
        Ok(Presence { worker, clock, lease, folder, _lock: lock })
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

    /// Which of `workers` live.
    pub(super) fn living(&self, workers: &[WorkerRow]) -> HashMap<WorkerId, bool> {
        workers.iter().map(|worker| (worker.id, self.lives(worker))).collect()
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
        match File::open(self.folder.join(worker.to_string())) {
            Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
            // Without the file only the lease speaks: another process may have removed it when
            // it took this worker for dead.
            Err(_) => true,
        }
    }

    /// Removes what a dead worker left.
    pub(super) fn forget(&self, worker: WorkerId) {
        // A file that stays costs nothing: its lock is what counts.
        let _ = std::fs::remove_file(self.folder.join(worker.to_string()));
    }
}
