//! Stalls: a run whose tools show no sign of life is stopped in the middle of its step. The same
//! run then restarts from its log, as after a crash.
//!
//! This watches tools only. The watchdog of the model gives up replies that do not arrive, and a
//! run that waits for other runs or for a person is not executed at all.

use parking_lot::Mutex;
use posse_agent::Transcript;
use posse_protocol::{RunId, Seq};
use posse_store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long tools may show no sign of life by default.
pub(crate) const USUAL: Duration = Duration::from_secs(15 * 60);
/// How many times a stalled run is restarted.
const AGAIN: u32 = 2;

/// When a run last showed a sign of life.
pub(crate) struct Pulse(Mutex<Beat>);

#[derive(Clone, Copy)]
struct Beat {
    at: Instant,
    /// The position of the last event that is known to be stored.
    stored: Seq,
}

impl Pulse {
    /// Notes a sign of life.
    pub(crate) fn beat(&self) {
        self.set(|beat| beat.at = Instant::now());
    }

    /// Notes that the log now ends at `last`, which is a sign of life too.
    pub(crate) fn stored(&self, last: Seq) {
        self.set(|beat| *beat = Beat { at: Instant::now(), stored: beat.stored.max(last) });
    }

    fn set(&self, change: impl FnOnce(&mut Beat)) {
        change(&mut self.0.lock());
    }

    fn last(&self) -> Beat {
        *self.0.lock()
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

/// How a watched piece of work ended.
pub(crate) enum Ended<T> {
    /// It finished.
    Itself(T),
    /// It showed no sign of life and was dropped; the caller restarts the run.
    Stalled,
    /// It stalled once too often. The text is the reason, for people.
    Hopeless(String),
}

impl Stall {
    pub(crate) fn new(store: Arc<dyn Store>, run: RunId, after: Duration) -> Self {
        let beat = Beat { at: Instant::now(), stored: Seq::ZERO };
        let pulse = Arc::new(Pulse(Mutex::new(beat)));
        Stall { store, run, after, pulse, stalls: 0 }
    }

    /// Returns the pulse that tools report signs of life to.
    pub(crate) fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// Waits for `work` until it finishes or stalls.
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

    /// Returns when nothing was stored or shown for the time `after` while a tool was at work.
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
            // Events of other processes count from now: their time of storage is unknown.
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

    /// True when the log has open tool calls.
    async fn is_at_tools(&self) -> bool {
        let records = self.store.read(self.run, Seq::ZERO, usize::MAX).await;
        records.is_ok_and(|records| Transcript::of(&records).open_calls().next().is_some())
    }
}
