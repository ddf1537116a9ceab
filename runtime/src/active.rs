//! The runs that this process executes, and the futures that wait for runs to end or be released.

use parking_lot::Mutex;
use posse_protocol::{Outcome, RunId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;

/// Marks a run that is stopping. What it appends from then on may use the reserved disk space.
#[derive(Clone, Default)]
pub(crate) struct Stopping(Arc<AtomicBool>);

impl Stopping {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self) {
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
    waiters: Waiters<Outcome>,
    /// Resolved when this process releases a run, whether the run ended or not.
    leaving: Waiters<()>,
}

/// Senders to notify, by run. A run without waiters has no entry.
type Waiters<T> = Mutex<HashMap<RunId, Vec<oneshot::Sender<T>>>>;

/// Resolves when the event has happened. Dropping it removes its sender from the map.
pub(crate) struct Waiting<'a, T> {
    among: &'a Waiters<T>,
    run: RunId,
    told: oneshot::Receiver<T>,
}

impl<'a, T> Waiting<'a, T> {
    fn among(among: &'a Waiters<T>, run: RunId) -> Self {
        let (sender, told) = oneshot::channel();
        among.lock().entry(run).or_default().push(sender);
        Waiting { among, run, told }
    }
}

impl<T> Future for Waiting<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.told).poll(context)
    }
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        self.told.close();
        if let Entry::Occupied(mut entry) = self.among.lock().entry(self.run) {
            entry.get_mut().retain(|waiter| !waiter.is_closed());
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

impl Active {
    pub(crate) fn enter(&self, run: RunId, epoch: u64) -> Stopping {
        let stopping = Stopping::default();
        self.runs.lock().insert(run, Executed { epoch, stopping: stopping.clone() });
        stopping
    }

    /// Ends the execution of `run` claimed with `epoch`. The next execution may have begun.
    pub(crate) fn leave(&self, run: RunId, epoch: u64) {
        if let Entry::Occupied(entry) = self.runs.lock().entry(run)
            && entry.get().epoch == epoch
        {
            entry.remove();
        }
        for waiter in self.leaving.lock().remove(&run).into_iter().flatten() {
            let _ = waiter.send(());
        }
    }

    /// Resolves when this process next releases `run`.
    pub(crate) fn wait_for_leave(&self, run: RunId) -> Waiting<'_, ()> {
        Waiting::among(&self.leaving, run)
    }

    pub(crate) fn contains(&self, run: RunId) -> bool {
        self.runs.lock().contains_key(&run)
    }

    /// The epoch of this process's claim to `run`, while the process executes the run.
    pub(crate) fn epoch(&self, run: RunId) -> Option<u64> {
        self.runs.lock().get(&run).map(|executed| executed.epoch)
    }

    /// The runs that this process executes.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        self.runs.lock().keys().copied().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.runs.lock().len()
    }

    pub(crate) fn stop(&self, run: RunId) {
        if let Some(executed) = self.runs.lock().get(&run) {
            executed.stopping.set();
        }
    }

    /// Resolves when this process has seen `run` end.
    pub(crate) fn wait_for_end(&self, run: RunId) -> Waiting<'_, Outcome> {
        Waiting::among(&self.waiters, run)
    }

    pub(crate) fn ended(&self, run: RunId, outcome: &Outcome) {
        for waiter in self.waiters.lock().remove(&run).into_iter().flatten() {
            let _ = waiter.send(outcome.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn whoever_gives_up_waiting_leaves_nothing_behind() {
        let active = Active::default();
        for _ in 0..3 {
            let run = RunId::new();
            drop((active.wait_for_leave(run), active.wait_for_end(run)));
        }
        assert_eq!((active.leaving.lock().len(), active.waiters.lock().len()), (0, 0));
    }

    #[tokio::test]
    async fn whoever_goes_on_waiting_is_told_when_another_gives_up() {
        let (active, run) = (Active::default(), RunId::new());
        let (one, other) = (active.wait_for_end(run), active.wait_for_end(run));
        drop(one);
        active.ended(run, &Outcome::completed("done"));
        assert_eq!(other.await.unwrap().text(), "done");
        assert!(active.waiters.lock().is_empty());
    }
}
