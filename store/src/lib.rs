//! Durable logs of runs.
//!
//! A [`Store`] keeps, for every run, an append-only log of events and one row that projects it.
//! It assigns positions and hashes inside the transaction, appends a batch over several runs
//! whole or not at all, and lets one worker at a time own a run: what an owner appends carries
//! the epoch of its claim, which is checked in the same transaction.
//!
//! [`SqliteStore`] is the store of one machine. Any other implementation must pass
//! [`conformance`]. A store holds no policy: what may follow what in a log is one pure function,
//! the same for all of them.

mod admission;
mod append;
mod budget;
mod chain;
mod clock;
pub mod conformance;
mod delivery;
mod error;
mod filter;
mod leftover;
mod projection;
mod queue;
mod reckoning;
mod row;
mod selection;
mod spending;
mod sql;
mod sqlite;
pub mod transaction;

pub use append::{Append, Appended, Draft, Guard, Ownership, Reserve, Scrub};
pub use budget::shares;
pub use chain::{StoredEvent, Tail, check as check_log};
pub use clock::{Clock, MachineClock};
pub use delivery::{
    Delivery, DeliveryFilter, DeliveryState, Notice, Outbox, Revival, Settled, Settlement,
};
pub use error::StoreError;
pub use filter::{Background, Filter, Kin, Label, Unfinished};
pub use leftover::{Leftover, Leftovers};
pub use projection::Projection;
pub use queue::{Claimed, Look, Passed, Queue, Queued, Wanted};
pub use reckoning::Reckoning;
pub use row::{Columns, NO_PROGRESS, OpenCall, RunRow, Spent, deaths_in_a_row};
pub use spending::{By, LedgerRow, ModelCall, Spending, SpendingQuery, date};
pub use sqlite::{Durability, Mended, Opening, Options, SqliteStore, rebuild, restore};

use async_trait::async_trait;
use posse_protocol::{Record, RunId, Seq, WorkerId};
use std::collections::HashMap;
use tokio::sync::watch;

/// Durable logs of runs, and what is told of them.
#[async_trait]
pub trait Store: Outbox {
    /// Appends to one or several runs, all or nothing. The answers stand in the order of `batch`.
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<Appended>, StoreError>;

    /// The events of `run` after `after`, at most `limit`, checked against their hashes. A log
    /// that fails the check is marked as damaged and nothing executes it any more.
    async fn read(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// The hashes that tie the events of `run` after `after` to all before them, at most `limit`, as
    /// they are stored. Whether they hold is what [`Store::read`] checks.
    async fn hashes(&self, run: RunId, after: Seq, limit: usize)
    -> Result<Vec<String>, StoreError>;

    /// What time it is on the clock that stamps what is appended: milliseconds since 1970. Whoever
    /// compares the time of an event, or of a row, with the present asks here.
    async fn now(&self) -> Result<u64, StoreError>;

    /// The runs that `filter` selects.
    async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError>;

    /// The runs whose ids begin or end with `part`, at least four characters in lower case; if there
    /// are none, those that have it among the last eight characters, which people are shown. The
    /// newest first; of very many it finds a thousand.
    async fn find(&self, part: &str) -> Result<Vec<RunRow>, StoreError>;

    /// What model calls cost, summed up as `query` asks.
    async fn spending(&self, query: &SpendingQuery) -> Result<Vec<Spending>, StoreError>;

    /// The rows of the ledger that `run` has: one for each of its model calls that was settled.
    async fn ledger(&self, run: RunId) -> Result<Vec<LedgerRow>, StoreError>;

    /// The runs that the ledger has calls of, and of which there is nothing else, by the names they
    /// are stored under. There are none unless someone changed the store behind its back.
    async fn strangers(&self) -> Result<Vec<String>, StoreError>;

    /// The runs of which something can be put away, those that ended first first.
    async fn leftovers(&self, wanted: Leftovers) -> Result<Vec<RunRow>, StoreError>;

    /// Removes the log of a run that has ended and whose last event is `last`; it is archived from
    /// then on. Its row and what its model calls cost stay.
    async fn erase(&self, run: RunId, last: Seq) -> Result<(), StoreError>;

    /// The runs of which there are events and no row, by the names they are stored under. There are
    /// none unless someone changed the store behind its back.
    async fn orphans(&self) -> Result<Vec<String>, StoreError>;

    /// What is wrong with the store that no log of a run can tell: what leads to rows and does not fit
    /// them, what is to be told to the outside and was changed. Reads everything.
    async fn flaws(&self) -> Result<Vec<Flaw>, StoreError>;

    /// Why nothing can be stored, if that was found when the store was opened.
    fn refusal(&self) -> Option<StoreError>;

    /// Some of the runs that wait to be claimed, at a glance. What dead workers owned waits too.
    async fn queue(&self, look: &Look) -> Result<Queue, StoreError>;

    /// Where `runs` stand among all that wait, by priority and then by time; 1 is the next. One that
    /// does not wait has no place.
    async fn places(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, StoreError>;

    /// Takes ownership of runs that have something to do and no living owner: those of a higher
    /// priority first, then the longest waiting.
    async fn claim(&self, wanted: &Wanted) -> Result<Vec<Claimed>, StoreError>;

    /// Who this worker is: the owner of what it claims.
    fn worker(&self) -> WorkerId;

    /// Says that this worker lives. Its runs may be claimed by others when it has not said so
    /// for the length of the lease.
    async fn renew(&self) -> Result<(), StoreError>;

    /// The lease of this worker, as far as it knows without asking: a number that is the same as long
    /// as the lease has held all the time, and nothing when it is over. While it is the same as before
    /// an append of an owner, nobody else can have claimed that run.
    fn lease(&self) -> Option<u64>;

    /// The last known position of `run`'s log, as it moves: at once for what this store
    /// appends, soon for what other processes append. Starts at zero while nothing has moved:
    /// whoever must miss nothing watches first and reads then. The channel closes with the store.
    fn watch(&self, run: RunId) -> watch::Receiver<Seq>;

    /// Changes whenever a run may have become claimable, also because its owner died.
    fn ready(&self) -> watch::Receiver<u64>;

    /// Stores what was asked for before, gives up every claim, and closes. What is asked for
    /// afterwards is answered with [`StoreError::Closed`].
    async fn close(&self);
}

/// Something that is wrong with a store, and that no log of a run can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The run that it is about, if it is about one.
    pub run: Option<RunId>,
    /// In words for people.
    pub reason: String,
}
