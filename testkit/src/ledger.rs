//! What the server has seen: requests, connections, and how many are under way.

use crate::http::Request;
use crate::script::Capture;
use crate::signal::{TimedOut, wait_for};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Its place among all requests, counted from 1.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Names in lower case, and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null when it is none.
    pub body: Value,
    /// The body, byte for byte.
    pub raw: Vec<u8>,
}

impl Captured {
    /// The first value of the header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    capture: Capture,
    /// Kept as they came: what nobody looks at need not be parsed again.
    requests: Mutex<Vec<Arc<Request>>>,
    arrived: AtomicUsize,
    in_flight: AtomicUsize,
    peak: AtomicUsize,
    abandoned: AtomicUsize,
    refused: AtomicUsize,
    connections: AtomicUsize,
    changed: Notify,
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
                let mut requests = self.lock();
                requests.push(request.clone());
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

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn requests(&self) -> Vec<Captured> {
        let requests = self.lock().clone();
        let captured = requests.iter().enumerate().map(|(index, request)| Captured {
            number: index + 1,
            method: request.method.clone(),
            path: request.target.clone(),
            headers: request.headers.clone(),
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
            raw: request.body.clone(),
        });
        captured.collect()
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

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Request>>> {
        // A push cannot leave the list half done, so a poisoned lock is as good as any.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
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
