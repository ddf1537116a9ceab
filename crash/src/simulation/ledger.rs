//! What can be seen from outside of the store: effects of tools, and what the store answered.

use posse_protocol::{RunId, Seq};

/// Everything that the checker knows beside the logs.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub(super) effects: Vec<Effect>,
    /// Events that the store acknowledged.
    pub(super) acknowledged: Vec<Acknowledged>,
    /// Claims, as they left the store.
    pub(super) claims: Vec<Claim>,
    /// Keys of runs whose start was acknowledged to a host.
    pub(super) started: Vec<(String, RunId)>,
    /// Messages that a host sent to runs.
    pub(super) messages: Vec<Sent>,
}

/// A tool did something.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) run: RunId,
    pub(super) call: String,
}

/// An event that the store said it has.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    pub(super) run: RunId,
    pub(super) seq: Seq,
    pub(super) mark: String,
}

/// A run got an owner.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) run: RunId,
    pub(super) epoch: u64,
    pub(super) worker: u32,
    /// The last event of the log at that time.
    pub(super) last: Seq,
}

/// A message to a run.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) run: RunId,
    pub(super) text: String,
    pub(super) taken: Taken,
}

/// What the sender knows about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
    Unknown,
}
