//! What a worker says about itself.

use crate::worker::WorkerAbout;
use parking_lot::Mutex;
use std::sync::Arc;

/// What this worker says about itself, in memory. Its next renewal writes it.
#[derive(Default)]
pub(crate) struct Introduction(Mutex<Introduced>);

#[derive(Clone, Default)]
struct Introduced {
    text: Arc<str>,
    condition: Arc<str>,
}

impl Introduction {
    pub(crate) fn set(&self, about: &WorkerAbout) {
        // It has no maps with other keys than texts, so this does not fail.
        let text = serde_json::to_string(about).unwrap_or_default();
        let said = Introduced { text: text.into(), condition: about.condition().into() };
        *self.0.lock() = said;
    }

    /// The text for the row of the worker; empty if it has not introduced itself.
    pub(crate) fn text(&self) -> String {
        self.said().text.to_string()
    }

    /// The condition for the runs that it takes; empty if it takes all.
    pub(crate) fn condition(&self) -> Arc<str> {
        self.said().condition
    }

    fn said(&self) -> Introduced {
        self.0.lock().clone()
    }
}

/// Reads the text in the row of a worker. Returns `None` for a worker that has not introduced itself.
pub(crate) fn introduced(text: &str) -> Option<WorkerAbout> {
    serde_json::from_str(text).ok()
}
