//! Decides which of the waiting runs this process executes next.
//!
//! The order is: priority; then fairness between trees, where the root with the fewest running runs goes first, in turn
//! among equals; then waiting time. No cap is exceeded, and no slot stays free while a run waits that no cap holds
//! back. Of the runs whose processes died again and again, one is executed at a time, so that the others do not die
//! with the one that is the cause. This module only decides: it uses no store and no clock.

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
use waiting::{RootShare, Waiting};

/// After how many deaths in a row of its processes a run is a suspect.
const SUSPECT: u32 = 3;

/// True when a run may kill its process, because `deaths` processes in a row died while they executed it.
pub(crate) fn is_suspect(deaths: u32) -> bool {
    deaths >= SUSPECT
}

/// The runs that this process executes, and the waiting runs that it knows.
pub(crate) struct Lanes {
    running: Running,
    waiting: Waiting,
    /// When each root was last served.
    served: HashMap<RunId, u64>,
    /// How many runs have started.
    begun: u64,
}

impl Lanes {
    pub(crate) fn new(slots: usize, caps: LaneCaps) -> Self {
        let (running, waiting) = (Running::new(slots, caps), Waiting::default());
        Lanes { running, waiting, served: HashMap::new(), begun: 0 }
    }

    /// The number of free slots.
    pub(crate) fn free(&self) -> usize {
        self.running.free()
    }

    /// How many waiting runs are known.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// True when no run of `root` is known to wait.
    pub(crate) fn is_out_of(&self, root: RunId) -> bool {
        self.waiting.has_none_of(root)
    }

    /// True when a run is known to wait that no cap holds back.
    pub(crate) fn has_next(&self) -> bool {
        self.waiting.next(|kind| self.running.has_room_for(kind)).is_some()
    }

    /// The parents, agents and models whose caps are reached.
    pub(crate) fn full(&self) -> Passed {
        self.running.full()
    }

    /// Adds `run` to the waiting runs.
    pub(crate) fn offer(&mut self, run: Queued) {
        let standing = self.standing(run.root);
        self.waiting.insert(run, standing);
    }

    /// Takes the next run, if a slot is free. It counts as executed until it leaves.
    pub(crate) fn take(&mut self) -> Option<Queued> {
        if self.free() == 0 {
            return None;
        }
        let next = self.waiting.next(|kind| self.running.has_room_for(kind))?;
        let run = self.waiting.remove(next)?;
        self.begin(&run);
        Some(run)
    }

    /// Takes a slot for the new run `run`, if no waiting run goes before it.
    pub(crate) fn take_at_once(&mut self, run: &Queued) -> bool {
        if self.free() == 0 {
            return false;
        }
        // It comes after its siblings.
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

    /// Removes `run`, which is no longer executed, or could not be.
    pub(crate) fn leave(&mut self, run: RunId) {
        if let Some(root) = self.running.leave(run) {
            self.waiting.restand(root, self.standing(root));
            self.forget_if_gone(root);
        }
    }

    /// Marks the executed run `run` as no longer suspect.
    pub(crate) fn clear(&mut self, run: RunId) {
        self.running.clear(run);
    }

    /// Counts a run that continues after it lent its slot, even if no slot is free.
    pub(crate) fn come_back(&mut self, run: &Queued) {
        self.begin(run);
    }

    fn begin(&mut self, run: &Queued) {
        self.running.enter(run);
        self.begun += 1;
        self.served.insert(run.root, self.begun);
        self.waiting.restand(run.root, self.standing(run.root));
    }

    fn standing(&self, root: RunId) -> RootShare {
        let served = self.served.get(&root).copied().unwrap_or(0);
        RootShare { running: self.running.of_root(root), served }
    }

    fn forget_if_gone(&mut self, root: RunId) {
        if self.running.of_root(root) == 0 && self.waiting.has_none_of(root) {
            self.served.remove(&root);
        }
    }
}
