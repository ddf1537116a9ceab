//! What a store is asked for: logs, claims, inspection, and what is told to the outside.

use crate::append::{Append, Appended};
use crate::delivery::Outbox;
use crate::error::StoreError;
use crate::filter::Filter;
use crate::leftover::Leftovers;
use crate::queue::{Claimed, Look, Queue, Wanted};
use crate::row::RunRow;
use crate::spending::{LedgerRow, Spending, SpendingQuery};
use async_trait::async_trait;
use posse_protocol::{Record, RunId, Seq, WorkerId};
use std::collections::HashMap;
use tokio::sync::watch;

/// Durable logs of runs, and what is told of them.
///
/// To implement it: events, rows and the ledger are what [`crate::transaction`] says they are, a log is
/// read with [`crate::check_log`], and [`crate::conformance_tests!`] tells whether all is as it should be.
#[async_trait]
pub trait Store: Logs + Claims + Inspection + Outbox {
    /// Stores what was asked for before, gives up every claim, and closes. What is asked for
    /// afterwards is answered with [`StoreError::Closed`].
    async fn close(&self);
}

/// The logs themselves: appending, reading, watching.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Appends to one or several runs, all or nothing. The answers stand in the order of `batch`.
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<Appended>, StoreError>;

    /// The events of `run` after `after`, at most `limit`, checked against their hashes. A log
    /// that fails the check is marked as damaged and nothing executes it any more.
    async fn read(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// The hashes that tie the events of `run` after `after` to all before them, at most `limit`, as
    /// they are stored. Whether they hold is what [`Logs::read`] checks.
    async fn hashes(&self, run: RunId, after: Seq, limit: usize)
    -> Result<Vec<String>, StoreError>;

    /// The last known position of `run`'s log, as it moves: at once for what this store
    /// appends, soon for what other processes append. Starts at zero while nothing has moved:
    /// whoever must miss nothing watches first and reads then. The channel closes with the store.
    fn watch(&self, run: RunId) -> watch::Receiver<Seq>;

    /// Removes the log of a run that has ended and whose last event is `last`; it is archived from
    /// then on. Its row and what its model calls cost stay.
    async fn erase(&self, run: RunId, last: Seq) -> Result<(), StoreError>;

    /// What time it is on the clock that stamps what is appended: milliseconds since 1970. Whoever
    /// compares the time of an event, or of a row, with the present asks here.
    async fn now(&self) -> Result<u64, StoreError>;
}

/// Who executes what: one worker at a time owns a run.
#[async_trait]
pub trait Claims: Send + Sync {
    /// Who this worker is: the owner of what it claims.
    fn worker(&self) -> WorkerId;

    /// Takes ownership of runs that have something to do and no living owner: those of a higher
    /// priority first, then the longest waiting.
    async fn claim(&self, wanted: &Wanted) -> Result<Vec<Claimed>, StoreError>;

    /// Some of the runs that wait to be claimed, at a glance. What dead workers owned waits too.
    async fn queue(&self, look: &Look) -> Result<Queue, StoreError>;

    /// Where `runs` stand among all that wait, by priority and then by time; 1 is the next. One that
    /// does not wait has no place.
    async fn places(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, StoreError>;

    /// Changes whenever a run may have become claimable, also because its owner died.
    fn ready(&self) -> watch::Receiver<u64>;

    /// Says that this worker lives. Its runs may be claimed by others when it has not said so
    /// for the length of the lease.
    async fn renew(&self) -> Result<(), StoreError>;

    /// The lease of this worker, as far as it knows without asking: a number that is the same as long
    /// as the lease has held all the time, and nothing when it is over. While it is the same as before
    /// an append of an owner, nobody else can have claimed that run.
    fn lease(&self) -> Option<u64>;
}

/// What there is, what it cost, and whether it is as it should be.
#[async_trait]
pub trait Inspection: Send + Sync {
    /// The runs that `filter` selects.
    async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError>;

    /// The runs whose ids begin or end with `part`, at least four characters in lower case; if there
    /// are none, those that have it among the last eight characters, which people are shown. The
    /// newest first; of very many it finds a thousand.
    async fn find(&self, part: &str) -> Result<Vec<RunRow>, StoreError>;

    /// The runs of which something can be put away, those that ended first first.
    async fn leftovers(&self, wanted: Leftovers) -> Result<Vec<RunRow>, StoreError>;

    /// What model calls cost, summed up as `query` asks.
    async fn spending(&self, query: &SpendingQuery) -> Result<Vec<Spending>, StoreError>;

    /// The rows of the ledger that `run` has: one for each of its model calls that was settled.
    async fn ledger(&self, run: RunId) -> Result<Vec<LedgerRow>, StoreError>;

    /// What is wrong with the store that no log of a run can tell: what leads to rows and does not fit
    /// them, what is to be told to the outside and was changed. Reads everything.
    async fn flaws(&self) -> Result<Vec<Flaw>, StoreError>;

    /// The runs of which there are events and no row, by the names they are stored under. There are
    /// none unless someone changed the store behind its back.
    async fn orphans(&self) -> Result<Vec<String>, StoreError>;

    /// The runs that the ledger has calls of, and of which there is nothing else, by the names they
    /// are stored under. There are none unless someone changed the store behind its back.
    async fn strangers(&self) -> Result<Vec<String>, StoreError>;

    /// Why nothing can be stored, if that was found when the store was opened.
    fn refusal(&self) -> Option<StoreError>;
}

/// Something that is wrong with a store, and that no log of a run can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The run that it is about, if it is about one.
    pub run: Option<RunId>,
    /// In words for people.
    pub reason: String,
}
