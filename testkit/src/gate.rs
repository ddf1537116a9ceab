//! Gates: a test holds a reply back, acts while the call is in flight, and releases it.

use crate::signal::{TimedOut, wait_for};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Holds replies back until it is opened. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    open: AtomicBool,
    opened: Notify,
    held: AtomicUsize,
    held_changed: Notify,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everything through that waits here, and all that comes later.
    pub fn open(&self) {
        self.shared.open.store(true, Ordering::SeqCst);
        self.shared.opened.notify_waiters();
    }

    /// The number of replies that wait here now.
    pub fn held(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    /// Returns when at least `count` replies wait here: from then on they are surely in flight.
    pub async fn wait_for_held(&self, count: usize) -> Result<(), TimedOut> {
        let changed = &self.shared.held_changed;
        wait_for("replies held by a gate", count, changed, || self.held(), |held| held >= count)
            .await
    }

    /// Returns when the gate is open. A caller that gives up earlier no longer counts as held.
    pub(crate) async fn pass(&self) {
        let opened = self.shared.opened.notified();
        tokio::pin!(opened);
        // Registered before the check, so that an `open` between check and wait is not missed.
        opened.as_mut().enable();
        if self.shared.open.load(Ordering::SeqCst) {
            return;
        }
        let _held = Held::new(&self.shared);
        opened.await;
    }
}

/// One reply that waits; gone on drop, also when its client left.
struct Held<'a>(&'a Shared);

impl<'a> Held<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.held.fetch_add(1, Ordering::SeqCst);
        shared.held_changed.notify_waiters();
        Held(shared)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
        self.0.held_changed.notify_waiters();
    }
}
