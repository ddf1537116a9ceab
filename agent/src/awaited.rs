//! What other runs are at work for this one and will be announced: part of the fold.

use posse_protocol::{Announce, ChildStarted, Message, Part, RunId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What other runs are at work for this one, and what is to be told of them together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Awaited {
    /// Those that have not ended, and how their ends are told.
    runs: BTreeMap<RunId, Expected>,
    /// Results that are told together, and whose.
    gathered: Vec<(RunId, Arc<Message>)>,
}

#[derive(Clone, Copy, Debug)]
struct Expected {
    announce: Announce,
    /// It was set to work since this run was: their times run side by side.
    in_this_leg: bool,
}

impl Awaited {
    /// This run is set to work anew.
    pub(crate) fn begin_leg(&mut self) {
        self.runs.values_mut().for_each(|run| run.in_this_leg = false);
    }

    pub(crate) fn begun(&mut self, child: &ChildStarted) {
        match child.announce {
            // What became of it comes as the result of a call, or not at all.
            None | Some(Announce::Silent) => {}
            Some(announce) => {
                self.runs.insert(child.run, Expected { announce, in_this_leg: true });
            }
        }
    }

    /// A run has ended. Returns whether it was set to work since this one was.
    pub(crate) fn ended(&mut self, run: RunId) -> bool {
        self.runs.remove(&run).is_some_and(|run| run.in_this_leg)
    }

    pub(crate) fn gather(&mut self, run: RunId, message: Arc<Message>) {
        self.gathered.push((run, message));
    }

    /// True when others are at work whose results are told together with those gathered.
    pub(crate) fn gathers_more(&self) -> bool {
        self.runs.values().any(|run| run.announce == Announce::Collect)
    }

    /// Takes what was gathered, as one message, and says whose result each part of it is.
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

    /// How many runs are at work that will be told of.
    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }
}
