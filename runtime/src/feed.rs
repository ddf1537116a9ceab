//! What is shown while it happens: deltas of runs, to whoever listens in this process.

use posse_protocol::{Delta, Record, RunId, Seq};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::broadcast;

/// Something new about a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A stored event.
    Event(Box<Record>),
    /// A piece of something under way. A slow reader may miss some.
    Delta(Delta),
}

/// Deltas that a slow reader may fall behind.
const BACKLOG: usize = 1_024;

/// Channels by run. A run that nobody listens to has none.
#[derive(Default)]
pub(crate) struct Feed {
    channels: Mutex<HashMap<RunId, broadcast::Sender<(Seq, Delta)>>>,
}

impl Feed {
    /// Deltas of `run`, each with the last position of the log when it came.
    pub(crate) fn subscribe(&self, run: RunId) -> broadcast::Receiver<(Seq, Delta)> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if channels.len().is_multiple_of(64) {
            channels.retain(|_, sender| sender.receiver_count() > 0);
        }
        channels.entry(run).or_insert_with(|| broadcast::channel(BACKLOG).0).subscribe()
    }

    pub(crate) fn send(&self, run: RunId, tail: Seq, delta: Delta) {
        let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = channels.get(&run) {
            // Nobody listening any more is no failure.
            let _ = sender.send((tail, delta));
        }
    }
}
