//! Sends deltas of runs to the listeners in this process.

use parking_lot::Mutex;
use posse_protocol::{Delta, Record, RunId, Seq};
use std::collections::HashMap;
use tokio::sync::broadcast;

/// Something new about a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A stored event.
    Event(Box<Record>),
    /// A piece of text or progress while it arrives. A slow reader may miss some.
    Delta(Delta),
}

/// How many deltas a reader may fall behind.
const BACKLOG: usize = 1_024;

/// Channels by run. A run without listeners has none.
#[derive(Default)]
pub(crate) struct Feed {
    channels: Mutex<HashMap<RunId, broadcast::Sender<(Seq, Delta)>>>,
}

impl Feed {
    /// Deltas of `run`, each with the last position of the log at its time.
    pub(crate) fn subscribe(&self, run: RunId) -> broadcast::Receiver<(Seq, Delta)> {
        let mut channels = self.channels.lock();
        if channels.len().is_multiple_of(64) {
            channels.retain(|_, sender| sender.receiver_count() > 0);
        }
        channels.entry(run).or_insert_with(|| broadcast::channel(BACKLOG).0).subscribe()
    }

    pub(crate) fn send(&self, run: RunId, tail: Seq, delta: Delta) {
        let channels = self.channels.lock();
        if let Some(sender) = channels.get(&run) {
            // It is no error if no listener is left.
            let _ = sender.send((tail, delta));
        }
    }
}
