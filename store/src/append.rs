//! What a store is asked to add to logs, and on which conditions.

mod scrub;

pub use scrub::Scrub;

use crate::delivery::Notice;
use crate::error::StoreError;
use posse_protocol::{Event, RunId, Seq};
use scrub::{scrubbed, written};
use std::sync::Arc;

/// Events for one run, appended together. A batch of these is appended whole or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    /// Which run.
    pub run: RunId,
    /// What to append, in order. May be empty when only ownership changes.
    pub events: Arc<[Event]>,
    /// What must hold.
    pub guard: Guard,
    /// May be written to the space kept in reserve when the disk is full.
    pub reserve: Reserve,
    /// What to tell the outside of the last of the events, stored with it.
    pub outbox: Vec<Notice>,
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
    /// The run has not ended, or not before it was done, and nobody has asked it to stop. Nothing may
    /// be appended with it.
    Open,
    /// The run has not ended, or the event may follow the end; and, if given, this is the run's
    /// last event.
    Anyone {
        /// The last event that the appender knows.
        last: Option<Seq>,
    },
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
    /// Nobody: the run has nothing to do until so many calls have their results, or something else
    /// is appended.
    Awaiting(u32),
}

/// Whether an append may use the space kept in reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserve {
    /// It waits for space like any other.
    #[default]
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
    /// When: milliseconds since 1970.
    pub at: u64,
}

impl Guard {
    /// The last event that the appender expects.
    pub(crate) fn last(&self) -> Option<Seq> {
        match self {
            Guard::Create(_) | Guard::Open => None,
            Guard::Owner { last, .. } | Guard::Anyone { last } => *last,
        }
    }
}

/// An append whose events are written out, by whoever asks: the one writer has enough to do.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What is appended.
    pub append: Append,
    /// The JSON of each event.
    pub bodies: Vec<Arc<str>>,
}

impl Draft {
    /// Writes `append` out, without what `scrub` takes out.
    ///
    /// # Errors
    /// When an event cannot be written, or nothing would be left of it.
    pub fn new(append: Append, scrub: Option<&dyn Scrub>) -> Result<Self, StoreError> {
        let bodies = append.events.iter().map(written).collect::<Result<_, _>>()?;
        let (append, bodies) = match scrub {
            Some(scrub) => scrubbed(append, bodies, scrub)?,
            None => (append, bodies),
        };
        Ok(Draft { append, bodies })
    }
}

impl Append {
    /// Nothing, on the condition that `run` is still open.
    pub fn while_open(run: RunId) -> Self {
        Append {
            run,
            events: Arc::new([]),
            guard: Guard::Open,
            reserve: Reserve::Leave,
            outbox: Vec::new(),
        }
    }

    /// An append that anyone may make.
    pub fn by_anyone(run: RunId, event: Event) -> Self {
        let guard = Guard::Anyone { last: None };
        let (events, outbox) = (Arc::new([event]), Vec::new());
        Append { run, events, guard, reserve: Reserve::Leave, outbox }
    }
}
