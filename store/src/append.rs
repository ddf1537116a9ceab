//! Requests to append to logs, and their conditions.

mod scrub;

pub use scrub::Scrub;

use crate::bundle::{Bundle, BundleHead};
use crate::delivery::Notice;
use crate::error::StoreError;
use posse_protocol::{Event, RunId, Seq};
use scrub::{scrubbed, written};
use std::sync::Arc;

/// Events to append to one run. A store appends a batch of these as a whole or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    /// The run.
    pub run: RunId,
    /// The events, in order. May be empty if only the owner changes.
    pub events: Arc<[Event]>,
    /// The condition.
    pub guard: Guard,
    /// Whether the append may use the reserved space when the disk is full.
    pub reserve: Reserve,
    /// Notices to webhooks about the last of the events. The same transaction stores them.
    pub outbox: Vec<Notice>,
    /// The state of the run's checkout from now on. Only the owner of a run may replace it.
    pub bundle: Option<Arc<Bundle>>,
}

/// The condition of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The run does not exist, and the events begin with `RunStarted`.
    Create(Ownership),
    /// This worker owns the run with this epoch and, if given, `last` is the last event.
    Owner {
        /// The epoch of the claim.
        epoch: u64,
        /// The last event that the owner knows.
        last: Option<Seq>,
        /// The owner afterwards.
        then: Ownership,
    },
    /// The run has not ended, or has completed. It is not archived, and was not asked to stop. The
    /// append must not contain events.
    Open,
    /// The run has not ended, or the event may follow the end. If given, `last` is the last event.
    Anyone {
        /// The last event that the appender knows.
        last: Option<Seq>,
    },
}

/// The owner of a run after an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The worker of this store.
    Mine,
    /// None: the run waits for a worker to claim it.
    Queued,
    /// None: the run has nothing to do until something is appended.
    Waiting,
    /// None: the run has nothing to do until this many calls have results, or another append.
    Awaiting(u32),
}

/// Whether an append may use the reserved space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserve {
    /// It may not.
    #[default]
    Leave,
    /// It may, because it must be stored even when the disk is full: it stops a run.
    Use,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The position of the first event. If there was none, the position after the last event.
    pub first: Seq,
    /// The position of the last event of the run.
    pub last: Seq,
    /// The epoch of the run.
    pub epoch: u64,
    /// The time of the append: milliseconds since 1970.
    pub at: u64,
}

impl Guard {
    /// Returns the last event that the appender expects.
    pub(crate) fn last(&self) -> Option<Seq> {
        match self {
            Guard::Create(_) | Guard::Open => None,
            Guard::Owner { last, .. } | Guard::Anyone { last } => *last,
        }
    }
}

/// An append with its events as JSON. The caller serializes them, to save work in the writer.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The append.
    pub append: Append,
    /// The JSON of each event.
    pub bodies: Vec<Arc<str>>,
    /// The bundle of the append, whose data must be stored before.
    pub bundle: Option<BundleHead>,
}

impl Draft {
    /// Serializes the events of `append`, without the secrets that `scrub` finds.
    ///
    /// # Errors
    /// When an event cannot be serialized, or consists of nothing but secrets, and when the bundle is
    /// too large.
    pub fn new(append: Append, scrub: Option<&dyn Scrub>) -> Result<Self, StoreError> {
        let check = |bundle: &Arc<Bundle>| bundle.check().map(|()| bundle.head());
        let bundle = append.bundle.as_ref().map(check).transpose()?;
        let bodies = append.events.iter().map(written).collect::<Result<_, _>>()?;
        let (append, bodies) = match scrub {
            Some(scrub) => scrubbed(append, bodies, scrub)?,
            None => (append, bodies),
        };
        Ok(Draft { append, bodies, bundle })
    }
}

impl Append {
    /// An append without events, which fails unless `run` is open. See [`Guard::Open`].
    pub fn while_open(run: RunId) -> Self {
        Append {
            run,
            events: Arc::new([]),
            guard: Guard::Open,
            reserve: Reserve::Leave,
            outbox: Vec::new(),
            bundle: None,
        }
    }

    /// An append of one event that does not require ownership.
    pub fn by_anyone(run: RunId, event: Event) -> Self {
        let guard = Guard::Anyone { last: None };
        let (events, outbox) = (Arc::new([event]), Vec::new());
        Append { run, events, guard, reserve: Reserve::Leave, outbox, bundle: None }
    }
}
