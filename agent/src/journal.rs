//! What the loop needs of the world: a log to write to and to read from.

use crate::Allowance;
use async_trait::async_trait;
use posse_protocol::{Event, Record, Seq, Share};
use std::sync::Arc;

/// A run's log, as its owner sees it.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Appends `events` in order, all or none, and returns the position of the first. Positions
    /// between the last known one and that belong to what others appended meanwhile.
    ///
    /// With [`Expect::Last`], appends only if nothing was appended after that position. What would
    /// draw more than a budget has is refused with [`JournalError::OverBudget`].
    async fn record(&self, events: Vec<Event>, expect: Expect) -> Result<Seq, JournalError>;

    /// Everything after `seq`.
    async fn read_after(&self, seq: Seq) -> Result<Vec<Record>, JournalError>;

    /// The last position known to be taken: cheap, and possibly behind the truth for a moment.
    fn tail(&self) -> Seq;

    /// Returns when something was appended after `seq`. May return early.
    async fn changed(&self, seq: Seq);

    /// Whether the run is still this process's, to be asked right before an effect; by itself, it is.
    fn claim(&self) -> Claim {
        Claim::default()
    }

    /// What may still be drawn of budgets that limit the run; by itself, nothing is limited.
    async fn allowance(&self) -> Result<Allowance, JournalError> {
        Ok(Allowance::default())
    }
}

/// Tells whether a run is still executed by whoever began a step of it. A process that stood still
/// for too long may have lost the run to another, and learns of it at its next append only: whoever
/// is about to have an effect asks first.
#[derive(Clone, Default)]
pub struct Claim(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Claim {
    /// One that holds as long as `holds` says so. It must not block.
    pub fn new(holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Claim(Some(Arc::new(holds)))
    }

    /// Whether it holds now.
    pub fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|holds| holds())
    }
}

/// What must hold for an append to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// This is the last event in the log.
    Last(Seq),
}

/// Why the log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Something was appended after the expected position: read it and decide again.
    #[error("the log has moved on")]
    Moved,
    /// A budget does not have what the events would draw: see what it has, and decide again.
    #[error("the budget of run {} has not enough {} left", .0.holder, .0.limit)]
    OverBudget(Share),
    /// Another process owns the run now: stop at once.
    #[error("another process owns the run")]
    NotOwner,
    /// The log was changed, or part of it is missing: stop at once.
    #[error("{0}")]
    Damaged(String),
    /// The log cannot be written or read now.
    #[error("{0}")]
    Failed(String),
}
