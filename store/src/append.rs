//! What a store is asked to add to logs, and on which conditions.

use posse_protocol::{Event, RunId, Seq};

/// Events for one run, appended together. A batch of these is appended whole or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    /// Which run.
    pub run: RunId,
    /// What to append, in order. May be empty when only ownership changes.
    pub events: Vec<Event>,
    /// What must hold.
    pub guard: Guard,
    /// May be written to the space kept in reserve when the disk is full.
    pub reserve: Reserve,
}

/// What must hold for an append to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The run does not exist; the events begin with `RunStarted`.
    Create(Ownership),
    /// This store's worker owns the run with this epoch and, if given, this is its last event.
    Owner {
        /// The epoch of the claim.
        epoch: u64,
        /// The last event the owner knows.
        last: Option<Seq>,
        /// What becomes of the claim.
        then: Ownership,
    },
    /// Nothing, except that the run has not ended, or that the event may follow the end.
    Anyone,
}

/// Who owns a run after an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This store's worker.
    Mine,
    /// Nobody: the run waits for a worker to claim it.
    Queued,
    /// Nobody: the run has nothing to do until something is appended.
    Waiting,
}

/// Whether an append may use the space kept in reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// It waits for space like any other.
    Leave,
    /// It must be stored even when the disk is full: what stops a run.
    Use,
}

/// Where appended events went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Position of the first event; one past the last known event if none was given.
    pub first: Seq,
    /// Position of the run's last event now.
    pub last: Seq,
    /// The run's epoch now.
    pub epoch: u64,
}

impl Append {
    /// An append that anyone may make.
    pub fn by_anyone(run: RunId, event: Event) -> Self {
        Append { run, events: vec![event], guard: Guard::Anyone, reserve: Reserve::Leave }
    }
}
