//! Notifies the watchers of one worker.

use parking_lot::{Mutex, MutexGuard};
use posse_protocol::{RunId, Seq};
use std::collections::HashMap;
use tokio::sync::watch;

#[derive(Default)]
pub(super) struct Hub(Mutex<Watchers>);

struct Watchers {
    tails: HashMap<RunId, watch::Sender<Seq>>,
    ready: watch::Sender<u64>,
    closed: bool,
}

impl Default for Watchers {
    fn default() -> Self {
        Watchers { tails: HashMap::new(), ready: watch::Sender::new(0), closed: false }
    }
}

impl Hub {
    pub(super) fn watch(&self, run: RunId) -> watch::Receiver<Seq> {
        let mut watchers = self.lock();
        if watchers.closed {
            return watch::channel(Seq::ZERO).1;
        }
        watchers.tails.entry(run).or_insert_with(|| watch::Sender::new(Seq::ZERO)).subscribe()
    }

    pub(super) fn ready(&self) -> watch::Receiver<u64> {
        self.lock().ready.subscribe()
    }

    /// Tells the watchers of `run` the last position of its log.
    pub(super) fn moved(&self, run: RunId, last: Seq) {
        let mut watchers = self.lock();
        let Some(tail) = watchers.tails.get(&run) else { return };
        if tail.receiver_count() == 0 {
            watchers.tails.remove(&run);
            return;
        }
        tail.send_if_modified(|tail| {
            let moved = *tail < last;
            *tail = last.max(*tail);
            moved
        });
    }

    /// Tells the worker that a run may have become claimable.
    pub(super) fn wake(&self) {
        self.lock().ready.send_modify(|times| *times += 1);
    }

    /// Closes the channels of all watchers.
    pub(super) fn close(&self) {
        let mut watchers = self.lock();
        watchers.tails.clear();
        watchers.closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, Watchers> {
        self.0.lock()
    }
}
