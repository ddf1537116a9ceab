//! What a worker knows about its own lease, from memory, as the client of the real store does.

/// The end of the lease on the clock of the worker, and how often it lapsed.
#[derive(Clone, Debug, Default)]
pub(super) struct Lease {
    until: u64,
    pub(super) lapses: u64,
}

impl Lease {
    pub(super) fn renewed(&mut self, now: u64, until: u64) {
        if self.number(now).is_none() {
            self.lapses += 1;
        }
        self.until = self.until.max(until);
    }

    /// Another worker has ended the lease.
    pub(super) fn lost(&mut self) {
        self.until = 0;
    }

    /// Returns a number that is the same while the lease holds without a gap.
    pub(super) fn number(&self, now: u64) -> Option<u64> {
        (now <= self.until).then_some(self.lapses)
    }
}
