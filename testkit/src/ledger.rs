//! What the server has seen: requests, connections, and how many are under way.

use crate::captured::Captured;
use crate::counts::Counts;
use crate::http::Request;
use crate::script::Capture;
use crate::signal::{TimedOut, wait_for};
use crate::wire::Note;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The most reasons for refusals to keep.
const REASONS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    capture: Capture,
    /// Kept unparsed, because most are never looked at.
    requests: Mutex<Vec<Kept>>,
    counts: Mutex<Counts>,
    /// Why requests were refused, the first of them.
    reasons: Mutex<Vec<String>>,
    arrived: AtomicUsize,
    in_flight: AtomicUsize,
    peak: AtomicUsize,
    abandoned: AtomicUsize,
    refused: AtomicUsize,
    connections: AtomicUsize,
    changed: Notify,
}

/// A request, and how it was answered once it is.
#[derive(Clone, Debug)]
struct Kept {
    request: Arc<Request>,
    note: Option<Note>,
}

impl Ledger {
    pub(crate) fn new(capture: Capture) -> Self {
        Ledger { capture, ..Ledger::default() }
    }

    /// Notes a request, which is in flight until what is returned is dropped.
    pub(crate) fn arrive(&self, request: &Arc<Request>) -> InFlight<'_> {
        let in_flight = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(in_flight, Ordering::SeqCst);
        let number = match self.capture {
            Capture::Discard => self.arrived.fetch_add(1, Ordering::SeqCst),
            Capture::Keep => {
                let mut requests = self.requests.lock();
                requests.push(Kept { request: request.clone(), note: None });
                // Counted under the lock, so that numbers follow the order of the list.
                self.arrived.fetch_add(1, Ordering::SeqCst)
            }
        } + 1;
        self.changed.notify_waiters();
        InFlight { ledger: self, number }
    }

    pub(crate) fn connect(&self) {
        self.connections.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn abandon(&self) {
        self.abandoned.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes how request `number` is answered.
    pub(crate) fn note(&self, number: usize, note: Note) {
        if note.status == Some(400) {
            self.refused.fetch_add(1, Ordering::SeqCst);
        }
        self.counts.lock().add(&note);
        if let Some(reason) = &note.refused {
            let mut reasons = self.reasons.lock();
            if reasons.len() < REASONS {
                reasons.push(format!("request {number}: {reason}"));
            }
        }
        if self.capture == Capture::Keep
            && let Some(kept) = self.requests.lock().get_mut(number - 1)
        {
            kept.note = Some(note);
        }
    }

    pub(crate) fn requests(&self) -> Vec<Captured> {
        let requests = self.requests.lock().clone();
        let captured = requests.into_iter().enumerate();
        captured.map(|(index, kept)| Captured::new(index + 1, kept.request, kept.note)).collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().clone()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.reasons.lock().clone()
    }

    pub(crate) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }

    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }

    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) async fn wait_for_requests(&self, count: usize) -> Result<(), TimedOut> {
        wait_for("requests", count, &self.changed, || self.arrived(), |seen| seen >= count).await
    }

    pub(crate) async fn wait_until_idle(&self) -> Result<(), TimedOut> {
        wait_for("requests in flight", 0, &self.changed, || self.in_flight(), |seen| seen == 0)
            .await
    }
}

/// A request under way.
pub(crate) struct InFlight<'a> {
    ledger: &'a Ledger,
    pub(crate) number: usize,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.ledger.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.ledger.changed.notify_waiters();
    }
}
