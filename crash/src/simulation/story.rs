//! What a worker knows of a run: a fold over its log, and the next step as a function of that.

use super::plan::{Part, Step};
use posse_protocol::{Announce, CallId, Ending, Event, RunId, Sender, Seq};
use std::collections::{BTreeMap, BTreeSet};

/// A run as its log tells it.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    /// Its number in the plan.
    pub(super) number: usize,
    /// The last event that was read.
    pub(super) last: Seq,
    pub(super) ancestors: Vec<RunId>,
    /// The run that gets the result, until it has it.
    pub(super) caller: Option<(RunId, Option<CallId>, Option<Announce>)>,
    calls: BTreeMap<String, Call>,
    /// All children that have not told their end.
    pub(super) children: BTreeSet<RunId>,
    /// Background children whose announcements the run must have before it completes.
    expected: BTreeSet<RunId>,
    pub(super) cancelled: bool,
    pub(super) ended: bool,
}

#[derive(Clone, Debug, Default)]
struct Call {
    answered: bool,
    /// The worker did nothing, so the run calls again.
    again: bool,
    child: Option<RunId>,
}

/// The next step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Record that these calls of a step begin.
    Start {
        step: usize,
        calls: Vec<String>,
    },
    /// Create the child of a started call.
    Create {
        call: String,
        child: usize,
        announce: Option<Announce>,
    },
    /// A worker died while the call ran, and the call must not run again.
    Interrupt(String),
    /// Wait for this many results.
    Await(u32),
    /// Wait for announcements.
    Rest,
    End(Ends),
    /// There is nothing to do.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Completed,
    Failed,
    Cancelled,
}

impl Story {
    /// Applies the event at `seq`. Returns false if events before it are missing.
    pub(super) fn observe(&mut self, seq: Seq, event: &Event) -> bool {
        if seq <= self.last {
            return true;
        }
        if seq != self.last.next() {
            return false;
        }
        self.last = seq;
        match event {
            Event::RunStarted(started) => {
                self.number = started.label.parse().unwrap_or(usize::MAX);
                if let Some(parent) = &started.parent {
                    self.ancestors.clone_from(&parent.ancestors);
                    self.caller = Some((parent.run, parent.call.clone(), parent.announce));
                }
            }
            Event::MessageReceived(received) => match &received.from {
                Sender::Child(told) => {
                    self.expected.remove(&told.run);
                    self.children.remove(&told.run);
                }
                _ => self.ended = false,
            },
            Event::ToolStarted(started) => {
                self.calls.entry(started.call.0.clone()).or_default();
            }
            Event::ToolFinished(finished) => {
                let call = self.calls.entry(finished.call.0.clone()).or_default();
                call.answered = true;
                call.again = finished.output.is_error && finished.ending == Ending::Returned;
                if let Some(child) = call.child.filter(|child| !self.expected.contains(child)) {
                    self.children.remove(&child);
                }
            }
            Event::ChildStarted(child) => {
                self.children.insert(child.run);
                match (&child.call, child.announce) {
                    (Some(call), _) => {
                        self.calls.entry(call.0.clone()).or_default().child = Some(child.run);
                    }
                    (None, Some(announce)) if announce != Announce::Silent => {
                        self.expected.insert(child.run);
                    }
                    _ => {}
                }
            }
            Event::CancelRequested(_) => self.cancelled = true,
            Event::RunFinished(_) => (self.ended, self.caller) = (true, None),
            _ => {}
        }
        true
    }

    /// The calls that have started and have no result.
    pub(super) fn open_calls(&self) -> Vec<String> {
        let open = self.calls.iter().filter(|(_, call)| !call.answered);
        open.map(|(name, _)| name.clone()).collect()
    }

    /// Decides on the next step.
    pub(super) fn next(&self, part: &Part) -> Next {
        if self.ended {
            return Next::Nothing;
        }
        if self.cancelled {
            return Next::End(Ends::Cancelled);
        }
        for (index, step) in part.steps.iter().enumerate() {
            let next = match step {
                Step::Effect { repeatable } => self.next_of_effect(index, *repeatable),
                Step::Calls(children) => self.next_of_calls(index, children),
                Step::Spawn(child, announce) => self.next_of_spawn(index, *child, *announce),
            };
            if let Some(next) = next {
                return next;
            }
        }
        match part.fails {
            true => Next::End(Ends::Failed),
            false if self.expected.is_empty() => Next::End(Ends::Completed),
            false => Next::Rest,
        }
    }

    fn next_of_effect(&self, step: usize, repeatable: bool) -> Option<Next> {
        for attempt in 0.. {
            let name = format!("{step}.{attempt}");
            match self.calls.get(&name) {
                Some(call) if call.answered && call.again => {}
                Some(call) if call.answered => return None,
                Some(_) if !repeatable => return Some(Next::Interrupt(name)),
                Some(_) | None => return Some(Next::Start { step, calls: vec![name] }),
            }
        }
        None
    }

    fn next_of_calls(&self, step: usize, children: &[usize]) -> Option<Next> {
        let name = |index: usize| format!("{step}.{index}");
        if !self.calls.contains_key(&name(0)) {
            return Some(Next::Start { step, calls: (0..children.len()).map(name).collect() });
        }
        let mut waits = 0;
        for (index, child) in children.iter().enumerate() {
            let call = name(index);
            match self.calls.get(&call) {
                Some(known) if known.answered => {}
                Some(known) if known.child.is_some() => waits += 1,
                _ => return Some(Next::Create { call, child: *child, announce: None }),
            }
        }
        (waits > 0).then_some(Next::Await(waits))
    }

    /// A background child is created once its call has started. The key tells whether it was.
    fn next_of_spawn(&self, step: usize, child: usize, announce: Announce) -> Option<Next> {
        let call = format!("{step}.0");
        match self.calls.get(&call) {
            None => Some(Next::Start { step, calls: vec![call] }),
            Some(known) if known.answered => None,
            Some(_) => Some(Next::Create { call, child, announce: Some(announce) }),
        }
    }
}
