//! What a worker knows about its own lease, from memory.

use std::sync::atomic::{AtomicU64, Ordering};

/// The end of the lease of this worker, and how often it lapsed. Times are steady milliseconds.
#[derive(Default)]
pub(crate) struct Lease {
    /// The stored end of the lease.
    until: AtomicU64,
    /// How often the lease had ended before it was renewed.
    lapses: AtomicU64,
}

impl Lease {
    /// Records that the lease was stored and holds until `until`.
    pub(crate) fn renewed(&self, now: u64, until: u64) {
        if self.number(now).is_none() {
            self.lapses.fetch_add(1, Ordering::SeqCst);
        }
        self.until.fetch_max(until, Ordering::SeqCst);
    }

    /// Records that another worker has ended the lease.
    pub(crate) fn lost(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// Returns a number that is the same while the lease holds without a gap, `None` after its end.
    pub(crate) fn number(&self, now: u64) -> Option<u64> {
        let number = self.lapses.load(Ordering::SeqCst);
        (now <= self.until.load(Ordering::SeqCst)).then_some(number)
    }
}
