//! Notifies watchers in this process.

use super::recent::{MOST_BYTES, Recent, Stored};
use parking_lot::{Mutex, MutexGuard};
use posse_protocol::{Record, RunId, Seq};
use std::collections::HashMap;
use tokio::sync::watch;

/// Tells watchers in this process where logs end, and that runs may have become claimable.
pub(crate) struct Hub {
    tails: Mutex<Tails>,
    ready: watch::Sender<u64>,
}

struct Tails {
    watched: HashMap<RunId, Watched>,
    /// The bytes of the events in all `recent`.
    bytes: usize,
    /// The number of runs at which those without a watcher are removed.
    sweep_at: usize,
    /// True if the store is closed.
    closed: bool,
}

/// A run that has a watcher.
struct Watched {
    tail: watch::Sender<Seq>,
    /// True if a watcher reads its events as they are appended.
    followed: bool,
    recent: Recent,
}

/// The smallest `sweep_at`.
const FEW: usize = 256;

impl Tails {
    fn sweep(&mut self) {
        self.watched.retain(|_, watched| watched.tail.receiver_count() > 0);
        self.bytes = self.watched.values().map(|watched| watched.recent.bytes()).sum();
        self.sweep_at = (self.watched.len() * 2).max(FEW);
    }
}

impl Default for Hub {
    fn default() -> Self {
        let tails = Tails { watched: HashMap::new(), bytes: 0, sweep_at: FEW, closed: false };
        Hub { tails: Mutex::new(tails), ready: watch::Sender::new(0) }
    }
}

impl Hub {
    pub(crate) fn watch(&self, run: RunId) -> watch::Receiver<Seq> {
        let mut tails = self.lock();
        if tails.closed {
            return watch::channel(Seq::ZERO).1;
        }
        if tails.watched.len() >= tails.sweep_at {
            tails.sweep();
        }
        let watched = tails.watched.entry(run).or_insert_with(|| Watched {
            tail: watch::Sender::new(Seq::ZERO),
            followed: false,
            recent: Recent::default(),
        });
        watched.tail.subscribe()
    }

    pub(crate) fn ready(&self) -> watch::Receiver<u64> {
        self.ready.subscribe()
    }

    /// Tells the watchers of each run the last position of its log.
    pub(crate) fn moved(&self, tails: impl IntoIterator<Item = (RunId, Seq)>) {
        let known = self.lock();
        for (run, seq) in tails {
            let Some(watched) = known.watched.get(&run) else { continue };
            watched.tail.send_if_modified(|tail| {
                let moved = *tail < seq;
                *tail = (*tail).max(seq);
                moved
            });
        }
    }

    /// Keeps events that were just stored, if a watcher follows their run. Call it before `moved`.
    pub(crate) fn keep(&self, stored: impl IntoIterator<Item = (RunId, Stored)>) {
        let mut tails = self.lock();
        for (run, stored) in stored {
            if tails.watched.get(&run).is_none_or(|watched| !watched.followed) {
                continue;
            }
            if tails.bytes + stored.bytes > MOST_BYTES {
                tails.sweep();
            }
            let fits = tails.bytes + stored.bytes <= MOST_BYTES;
            let Some(watched) = tails.watched.get_mut(&run) else { continue };
            let before = watched.recent.bytes();
            match fits {
                true => watched.recent.push(stored),
                false => watched.recent.clear(),
            }
            let after = watched.recent.bytes();
            tails.bytes = tails.bytes + after - before;
        }
    }

    /// Returns the events after `after` in the log of `run`, if this process has just stored all of
    /// them. From now on, the run counts as followed, and its new events are kept.
    pub(crate) fn recent(&self, run: RunId, after: Seq, limit: usize) -> Option<Vec<Record>> {
        let mut tails = self.lock();
        let watched = tails.watched.get_mut(&run)?;
        if !std::mem::replace(&mut watched.followed, true) {
            return None;
        }
        let before = watched.recent.bytes();
        let tail = *watched.tail.borrow();
        let records = watched.recent.read(run, after, limit);
        let freed = before - watched.recent.bytes();
        tails.bytes -= freed;
        // Another process may have appended more.
        let reached = records.as_ref()?.last()?.seq;
        records.filter(|records| reached >= tail || records.len() == limit)
    }

    /// Tells workers that there may be runs to claim.
    pub(crate) fn wake(&self) {
        self.ready.send_modify(|count| *count += 1);
    }

    /// Closes the channels of all watchers. New watchers get a closed channel.
    pub(crate) fn close(&self) {
        let mut tails = self.lock();
        tails.closed = true;
        tails.watched.clear();
    }

    /// Returns the runs that have watchers.
    pub(crate) fn watched(&self) -> Vec<RunId> {
        let mut tails = self.lock();
        tails.sweep();
        tails.watched.keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Tails> {
        self.tails.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_nobody_watches_any_more_are_forgotten() {
        let hub = Hub::default();
        let kept = hub.watch(RunId::from_u128(0));
        for bits in 1..10_000 {
            drop(hub.watch(RunId::from_u128(bits)));
        }
        assert!(hub.lock().watched.len() <= FEW);
        hub.moved([(RunId::from_u128(0), Seq(3))]);
        assert_eq!(*kept.borrow(), Seq(3));
        assert_eq!(hub.watched(), [RunId::from_u128(0)]);
    }
}
