//! The background children of a run that have not ended, and their collected results: part of the fold.

use posse_protocol::{Announce, ChildStarted, Message, Part, RunId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The background children that will be announced to this run, and the results it collects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Awaited {
    /// The children that have not ended, and how each will be announced.
    runs: BTreeMap<RunId, Expected>,
    /// Results for the next `collect` announcement, each with its run.
    gathered: Vec<(RunId, Arc<Message>)>,
}

#[derive(Clone, Copy, Debug)]
struct Expected {
    announce: Announce,
    /// The child started in the present leg, so its time runs in parallel with this run's time.
    in_this_leg: bool,
}

impl Awaited {
    /// A new leg of this run begins.
    pub(crate) fn begin_leg(&mut self) {
        self.runs.values_mut().for_each(|run| run.in_this_leg = false);
    }

    pub(crate) fn begun(&mut self, child: &ChildStarted) {
        match child.announce {
            // The result comes as the result of a tool call, or never.
            None | Some(Announce::Silent) => {}
            Some(announce) => {
                self.runs.insert(child.run, Expected { announce, in_this_leg: true });
            }
        }
    }

    /// A child has ended. Returns whether it started in the present leg.
    pub(crate) fn ended(&mut self, run: RunId) -> bool {
        self.runs.remove(&run).is_some_and(|run| run.in_this_leg)
    }

    pub(crate) fn gather(&mut self, run: RunId, message: Arc<Message>) {
        self.gathered.push((run, message));
    }

    /// True when children are still at work whose results belong into the same `collect` announcement.
    pub(crate) fn gathers_more(&self) -> bool {
        self.runs.values().any(|run| run.announce == Announce::Collect)
    }

    /// Takes the collected results as one message, and returns the run that each part comes from.
    pub(crate) fn gathered(&mut self) -> Option<(Arc<Message>, Vec<Option<RunId>>)> {
        let gathered = std::mem::take(&mut self.gathered);
        let (run, first) = gathered.first()?;
        let count = gathered.len();
        if count == 1 {
            return Some((first.clone(), vec![Some(*run); first.parts.len()]));
        }
        let head = Part::text(format!("{count} tasks in the background have ended:"));
        let of = |(run, message): &(RunId, Arc<Message>)| {
            let parts = message.parts.clone().into_iter();
            parts.map(|part| (part, Some(*run))).collect::<Vec<_>>()
        };
        let parts = std::iter::once((head, None)).chain(gathered.iter().flat_map(of));
        let (parts, of) = parts.unzip();
        Some((Arc::new(Message { parts, ..Message::user("") }), of))
    }

    /// The number of children that will still be announced.
    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }
}
