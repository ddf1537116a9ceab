//! Who is to be told what moved.

use posse_protocol::{RunId, Seq};
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::watch;

/// Tells watchers in this process where logs end and that runs have become claimable.
pub(super) struct Hub {
    tails: Mutex<HashMap<RunId, watch::Sender<Seq>>>,
    ready: watch::Sender<u64>,
}

impl Default for Hub {
    fn default() -> Self {
        Hub { tails: Mutex::default(), ready: watch::Sender::new(0) }
    }
}

impl Hub {
    pub(super) fn watch(&self, run: RunId) -> watch::Receiver<Seq> {
        let mut tails = self.lock();
        tails.entry(run).or_insert_with(|| watch::Sender::new(Seq::ZERO)).subscribe()
    }

    pub(super) fn ready(&self) -> watch::Receiver<u64> {
        self.ready.subscribe()
    }

    /// Tells the watchers of each run where its log ends; forgets runs nobody watches.
    pub(super) fn moved(&self, tails: impl IntoIterator<Item = (RunId, Seq)>) {
        let mut watched = self.lock();
        for (run, seq) in tails {
            let Some(sender) = watched.get(&run) else { continue };
            if sender.receiver_count() == 0 {
                watched.remove(&run);
                continue;
            }
            sender.send_if_modified(|tail| {
                let moved = *tail < seq;
                *tail = (*tail).max(seq);
                moved
            });
        }
    }

    /// Tells workers that there may be something to claim.
    pub(super) fn wake(&self) {
        self.ready.send_modify(|count| *count += 1);
    }

    /// The runs somebody watches.
    pub(super) fn watched(&self) -> Vec<RunId> {
        let mut watched = self.lock();
        watched.retain(|_, sender| sender.receiver_count() > 0);
        watched.keys().copied().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, watch::Sender<Seq>>> {
        // Nothing panics while it is held; if it ever did, the map is still whole.
        self.tails.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
