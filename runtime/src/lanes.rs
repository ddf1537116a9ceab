//! Whose turn it is: which of the waiting runs this process executes next.
//!
//! Order: priority; then fair between sessions, which are roots: the one with the fewest runs at
//! work here goes first, in turn among equals; then who waits longest. Nobody goes over a cap, and
//! no slot stays free while somebody waits whom no cap keeps back. Of the runs whose processes died
//! again and again one is executed at a time: so the others do not die with the one that is to blame.
//! Decides only: knows no store and no clock.

mod caps;
#[cfg(test)]
mod properties;
mod running;
mod waiting;

pub use caps::{LaneCaps, Shares};

use posse_protocol::RunId;
use posse_store::{Passed, Queued};
use running::Running;
use std::collections::HashMap;
use waiting::{Standing, Waiting};

/// How many processes in a row must have died that executed a run, for it to be a suspect.
const SUSPECT: u32 = 3;

/// True when a run may take its process along, since so many in a row died that executed it.
pub(crate) fn is_suspect(deaths: u32) -> bool {
    deaths >= SUSPECT
}

/// What this process executes, and what it knows to wait.
pub(crate) struct Lanes {
    running: Running,
    waiting: Waiting,
    /// When each root was last served.
    served: HashMap<RunId, u64>,
    /// Counts the runs that were begun.
    begun: u64,
}

impl Lanes {
    pub(crate) fn new(slots: usize, caps: LaneCaps) -> Self {
        let (running, waiting) = (Running::new(slots, caps), Waiting::default());
        Lanes { running, waiting, served: HashMap::new(), begun: 0 }
    }

    /// Slots that nobody has.
    pub(crate) fn free(&self) -> usize {
        self.running.free()
    }

    /// How many are known to wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// True when none of `root` is known to wait.
    pub(crate) fn is_out_of(&self, root: RunId) -> bool {
        self.waiting.has_none_of(root)
    }

    /// True when somebody is known to wait whom no cap keeps back.
    pub(crate) fn has_next(&self) -> bool {
        self.waiting.next(|kind| self.running.has_room_for(kind)).is_some()
    }

    /// Of what kinds no more can be executed now.
    pub(crate) fn full(&self) -> Passed {
        self.running.full()
    }

    /// Makes it known that `run` waits.
    pub(crate) fn offer(&mut self, run: Queued) {
        let standing = self.standing(run.root);
        self.waiting.insert(run, standing);
    }

    /// Takes the next one, if there is a slot. It is executed from now on, until it leaves.
    pub(crate) fn take(&mut self) -> Option<Queued> {
        if self.free() == 0 {
            return None;
        }
        let next = self.waiting.next(|kind| self.running.has_room_for(kind))?;
        let run = self.waiting.remove(next)?;
        self.begin(&run);
        Some(run)
    }

    /// Takes a slot for `run`, which is new, if nobody who waits goes before it.
    pub(crate) fn take_at_once(&mut self, run: &Queued) -> bool {
        if self.free() == 0 {
            return false;
        }
        // Among its siblings it is the last.
        self.offer(Queued { ready_at: u64::MAX, ..run.clone() });
        let next = self.waiting.next(|kind| self.running.has_room_for(kind));
        self.waiting.remove(run.id);
        let is_next = next == Some(run.id);
        if is_next {
            self.begin(run);
        } else {
            self.forget_if_gone(run.root);
        }
        is_next
    }

    /// `run` is no longer executed, or could not be.
    pub(crate) fn leave(&mut self, run: RunId) {
        if let Some(root) = self.running.leave(run) {
            self.waiting.restand(root, self.standing(root));
            self.forget_if_gone(root);
        }
    }

    /// `run`, which is executed, is no suspect any more.
    pub(crate) fn clear(&mut self, run: RunId) {
        self.running.clear(run);
    }

    /// A run goes on that had given its slot to others, whether one is free or not.
    pub(crate) fn come_back(&mut self, run: &Queued) {
        self.begin(run);
    }

    fn begin(&mut self, run: &Queued) {
        self.running.enter(run);
        self.begun += 1;
        self.served.insert(run.root, self.begun);
        self.waiting.restand(run.root, self.standing(run.root));
    }

    fn standing(&self, root: RunId) -> Standing {
        let served = self.served.get(&root).copied().unwrap_or(0);
        Standing { running: self.running.of_root(root), served }
    }

    fn forget_if_gone(&mut self, root: RunId) {
        if self.running.of_root(root) == 0 && self.waiting.has_none_of(root) {
            self.served.remove(&root);
        }
    }
}
