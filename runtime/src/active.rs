//! The runs this process executes now, and who waits here for runs to end or to be let go.

use posse_protocol::{Outcome, RunId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Marks a run that has been told to stop: what it appends from then on may use the space kept
/// in reserve.
#[derive(Clone, Default)]
pub(crate) struct Stopping(Arc<AtomicBool>);

impl Stopping {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A run that this process executes.
struct Executed {
    epoch: u64,
    stopping: Stopping,
}

#[derive(Default)]
pub(crate) struct Active {
    runs: Mutex<HashMap<RunId, Executed>>,
    waiters: Mutex<HashMap<RunId, Vec<oneshot::Sender<Outcome>>>>,
    /// Who waits for a run to be let go, whether it ended or not.
    leaving: Mutex<HashMap<RunId, Vec<oneshot::Sender<()>>>>,
}

impl Active {
    pub(crate) fn enter(&self, run: RunId, epoch: u64) -> Stopping {
        let stopping = Stopping::default();
        lock(&self.runs).insert(run, Executed { epoch, stopping: stopping.clone() });
        stopping
    }

    /// The execution of `run` that was claimed with `epoch` is over. The next one may have begun.
    pub(crate) fn leave(&self, run: RunId, epoch: u64) {
        if let Entry::Occupied(entry) = lock(&self.runs).entry(run)
            && entry.get().epoch == epoch
        {
            entry.remove();
        }
        for waiter in lock(&self.leaving).remove(&run).into_iter().flatten() {
            let _ = waiter.send(());
        }
    }

    /// Resolves when this process next lets go of `run`.
    pub(crate) fn wait_for_leave(&self, run: RunId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut leaving = lock(&self.leaving);
        let here = leaving.entry(run).or_default();
        here.retain(|waiter| !waiter.is_closed());
        here.push(sender);
        receiver
    }

    pub(crate) fn contains(&self, run: RunId) -> bool {
        lock(&self.runs).contains_key(&run)
    }

    /// The epoch of this process's claim to `run`, while it executes it.
    pub(crate) fn epoch(&self, run: RunId) -> Option<u64> {
        lock(&self.runs).get(&run).map(|executed| executed.epoch)
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.runs).len()
    }

    pub(crate) fn stop(&self, run: RunId) {
        if let Some(executed) = lock(&self.runs).get(&run) {
            executed.stopping.set();
        }
    }

    /// Resolves when this process has seen `run` end.
    pub(crate) fn wait_for_end(&self, run: RunId) -> oneshot::Receiver<Outcome> {
        let (sender, receiver) = oneshot::channel();
        let mut waiters = lock(&self.waiters);
        let here = waiters.entry(run).or_default();
        here.retain(|waiter| !waiter.is_closed());
        here.push(sender);
        receiver
    }

    pub(crate) fn ended(&self, run: RunId, outcome: &Outcome) {
        for waiter in lock(&self.waiters).remove(&run).into_iter().flatten() {
            let _ = waiter.send(outcome.clone());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while these are held; if it ever did, the maps are still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
