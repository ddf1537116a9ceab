//! What a worker knows of its own lease, from memory.

use std::sync::atomic::{AtomicU64, Ordering};

/// Until when the lease of this worker holds, and whether it has held. Times are steady milliseconds.
#[derive(Default)]
pub(crate) struct Lease {
    /// Until when it holds, as it was last stored.
    until: AtomicU64,
    /// How often it was over before it was renewed.
    lapses: AtomicU64,
}

impl Lease {
    /// It was stored, and holds until then.
    pub(crate) fn renewed(&self, now: u64, until: u64) {
        if self.number(now).is_none() {
            self.lapses.fetch_add(1, Ordering::SeqCst);
        }
        self.until.fetch_max(until, Ordering::SeqCst);
    }

    /// Others have ended it, whatever this worker's clock says.
    pub(crate) fn lost(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// A number that is the same as long as the lease has held; nothing when it is over.
    pub(crate) fn number(&self, now: u64) -> Option<u64> {
        let number = self.lapses.load(Ordering::SeqCst);
        (now <= self.until.load(Ordering::SeqCst)).then_some(number)
    }
}
