//! The log that the loop reads from and appends to.

use crate::Allowance;
use async_trait::async_trait;
use posse_protocol::{Event, Record, Seq, Share};
use std::sync::Arc;

/// The log of a run, as the worker that owns the run sees it.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Appends `events` in order, all or none, and returns the position of the first. Other processes
    /// may have appended events between the last known position and this one.
    ///
    /// With [`Expect::Last`], appends only if that position is still the last one. Returns
    /// [`JournalError::OverBudget`] if the events would draw more than a budget has left.
    async fn record(&self, events: Vec<Event>, expect: Expect) -> Result<Seq, JournalError>;

    /// All records after `seq`.
    async fn read_after(&self, seq: Seq) -> Result<Vec<Record>, JournalError>;

    /// The last position known to be taken. Cheap; may lag behind the log for a moment.
    fn tail(&self) -> Seq;

    /// Returns when an event was appended after `seq`. May return early.
    async fn changed(&self, seq: Seq);

    /// Whether this process still owns the run, to be checked right before an effect. By default it does.
    fn claim(&self) -> Claim {
        Claim::default()
    }

    /// How much the run may still draw from budgets. By default, no budget limits it.
    async fn allowance(&self) -> Result<Allowance, JournalError> {
        Ok(Allowance::default())
    }
}

/// Tells whether this process still has the claim on a run. A process that was suspended for too long
/// may have lost the run to another one, and would otherwise notice only at its next append. So check
/// right before each effect.
#[derive(Clone, Default)]
pub struct Claim(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Claim {
    /// A claim that holds as long as `holds` returns true. `holds` must not block.
    pub fn new(holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Claim(Some(Arc::new(holds)))
    }

    /// Whether the claim holds now.
    pub fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|holds| holds())
    }
}

/// The condition for an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No condition.
    Any,
    /// This is the position of the last event in the log.
    Last(Seq),
}

/// Why the log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process appended after the expected position. Read its events and decide again.
    #[error("the log has moved on")]
    Moved,
    /// A budget cannot cover the events. Read the allowance and decide again.
    #[error("the budget of run {} has not enough {} left", .0.holder, .0.limit)]
    OverBudget(Share),
    /// Another process owns the run now. Stop at once.
    #[error("another process owns the run")]
    NotOwner,
    /// The log was changed, or a part of it is missing. Stop at once.
    #[error("{0}")]
    Damaged(String),
    /// The store refuses these events, and would refuse them again. End the run.
    #[error("{0}")]
    Unstorable(String),
    /// The log cannot be written or read now.
    #[error("{0}")]
    Failed(String),
}
