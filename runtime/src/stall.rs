//! Stalls: a run whose tools show no sign of life is stopped where it is and taken up anew from
//! its log, as after a crash. The run stays the same; nothing is started in its place.
//!
//! Only what tools do is watched: a reply that does not come is given up by the model's own
//! watchdog, and whoever waits for others or for a person is not executed at all.

use posse_agent::Transcript;
use posse_protocol::{RunId, Seq};
use posse_store::Store;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long tools may show no sign of life when nobody says.
pub(crate) const USUAL: Duration = Duration::from_secs(15 * 60);
/// How often a run is taken up anew.
const AGAIN: u32 = 2;

/// When a run last showed a sign of life.
pub(crate) struct Pulse(Mutex<Beat>);

#[derive(Clone, Copy)]
struct Beat {
    at: Instant,
    /// The last event that is known to be stored.
    stored: Seq,
}

impl Pulse {
    /// It showed something.
    pub(crate) fn beat(&self) {
        self.set(|beat| beat.at = Instant::now());
    }

    /// Its log ends here now.
    pub(crate) fn stored(&self, last: Seq) {
        self.set(|beat| *beat = Beat { at: Instant::now(), stored: beat.stored.max(last) });
    }

    fn set(&self, change: impl FnOnce(&mut Beat)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn last(&self) -> Beat {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches one execution of a run.
pub(crate) struct Stall {
    store: Arc<dyn Store>,
    run: RunId,
    after: Duration,
    pulse: Arc<Pulse>,
    stalls: u32,
}

/// How a stretch of work ended.
pub(crate) enum Ended<T> {
    /// By itself.
    Itself(T),
    /// It showed no sign of life and was dropped; the run is to be taken up anew.
    Stalled,
    /// The same, once too often. Says so.
    Hopeless(String),
}

impl Stall {
    pub(crate) fn new(store: Arc<dyn Store>, run: RunId, after: Duration) -> Self {
        let beat = Beat { at: Instant::now(), stored: Seq::ZERO };
        let pulse = Arc::new(Pulse(Mutex::new(beat)));
        Stall { store, run, after, pulse, stalls: 0 }
    }

    /// What signs of life are told to.
    pub(crate) fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// Waits for `work`, as long as it lives.
    pub(crate) async fn watch<T>(&mut self, work: impl Future<Output = T>) -> Ended<T> {
        tokio::select! {
            biased;
            done = work => return Ended::Itself(done),
            () = self.silence() => {}
        }
        self.stalls += 1;
        if self.stalls <= AGAIN {
            return Ended::Stalled;
        }
        Ended::Hopeless(format!(
            "its tools showed no sign of life for {} s, {} times; `stall_after` sets how long they may",
            self.after.as_secs_f64(),
            self.stalls
        ))
    }

    /// Ends when nothing has been stored or shown for so long, and a tool is at work.
    async fn silence(&self) {
        if self.after.is_zero() {
            return std::future::pending().await;
        }
        let tail = self.store.watch(self.run);
        self.pulse.stored(*tail.borrow());
        loop {
            let last = self.pulse.last();
            tokio::time::sleep_until(last.at + self.after).await;
            let end = *tail.borrow();
            // What others have stored meanwhile counts from now on: nothing tells when it was.
            if end > self.pulse.last().stored {
                self.pulse.stored(end);
            }
            if self.pulse.last().at > last.at {
                continue;
            }
            if self.is_at_tools().await {
                return;
            }
            self.pulse.beat();
        }
    }

    /// Whether calls of tools are open, by the log.
    async fn is_at_tools(&self) -> bool {
        let records = self.store.read(self.run, Seq::ZERO, usize::MAX).await;
        records.is_ok_and(|records| Transcript::of(&records).open_calls().next().is_some())
    }
}
