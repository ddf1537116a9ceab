//! The traits of a store: logs, claims, inspection, and deliveries to webhooks.

use crate::append::{Append, Appended};
use crate::bundle::Bundle;
use crate::chain::StoredEvent;
use crate::copy::{Brought, RunCopy};
use crate::delivery::Outbox;
use crate::error::StoreError;
use crate::filter::Filter;
use crate::leftover::Leftovers;
use crate::queue::{Claimed, Look, Queue, Wanted};
use crate::row::RunRow;
use crate::spending::{LedgerRow, Spending, SpendingQuery};
use crate::stage::Piece;
use crate::worker::{Worker, WorkerAbout};
use async_trait::async_trait;
use posse_protocol::{Record, RunId, Seq, WorkerId};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::watch;

/// Stores the logs of runs durably, with their rows, costs and deliveries.
///
/// To implement it, use [`crate::transaction`] to compute events, rows and the ledger, and
/// [`crate::check_log`] to read a log. [`crate::conformance_tests!`] tests an implementation.
#[async_trait]
pub trait Store: Logs + Claims + Inspection + Outbox {
    /// Completes earlier requests, gives up every claim, and closes. Later requests fail with
    /// [`StoreError::Closed`].
    async fn close(&self);
}

/// Appends to logs, reads them and watches them.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Appends to one or several runs, all or nothing. The results are in the order of `batch`.
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<Appended>, StoreError>;

    /// Returns the events of `run` after `after`, at most `limit`, and checks them against their
    /// hashes. If the check fails, the store marks the run as damaged, and no worker executes it.
    async fn read(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// Returns the events of `run` after `after` as they are stored, at most `limit`. It does not
    /// check them; [`Logs::read`] does. An event that cannot be read is `None`.
    async fn stored(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Option<StoredEvent>>, StoreError>;

    /// Returns the stored hashes of the events of `run` after `after`, at most `limit`. The hash of
    /// an event that cannot be read is empty.
    async fn hashes(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let stored = self.stored(run, after, limit).await?;
        Ok(stored.into_iter().map(|event| event.map(|it| it.hash).unwrap_or_default()).collect())
    }

    /// Stores something that nobody sees before an append or [`Logs::bring`] shows it, in small
    /// transactions. If nothing shows it, it is removed after [`Piece::KEPT_FOR`]. An append stages its
    /// bundle itself.
    async fn stage(&self, run: RunId, piece: Piece) -> Result<(), StoreError>;

    /// Shows copies of all runs of a tree from another store, all or nothing, whose logs and bundles
    /// were staged. The events keep their times and hashes. If a run exists with another log, or its
    /// key belongs to another run, nothing changes. The results are in the order of `tree`.
    async fn bring(&self, tree: Vec<RunCopy>) -> Result<Vec<Brought>, StoreError>;

    /// Returns the last stored state of the run's checkout, and checks it against its hashes.
    async fn bundle(&self, run: RunId) -> Result<Option<Bundle>, StoreError>;

    /// Watches the last known position of the log of `run`. It changes at once when this store
    /// appends, and soon when another process appends. It starts at zero: to miss nothing, watch
    /// first and then read. The channel closes with the store.
    fn watch(&self, run: RunId) -> watch::Receiver<Seq>;

    /// Removes the log of an ended run whose last event is `last`, with its bundle, and archives the
    /// run. Its row and its costs stay. From then on nobody can read the log. What is large is removed
    /// from the disk soon after that; [`Inspection::leftovers`] does it too, and waits for it.
    async fn erase(&self, run: RunId, last: Seq) -> Result<(), StoreError>;

    /// Returns the time, in milliseconds since 1970, of the clock that stamps appended events. Use
    /// it to compare the time of an event or of a row with the present.
    async fn now(&self) -> Result<u64, StoreError>;
}

/// Decides which worker executes which run: one worker at a time owns a run.
#[async_trait]
pub trait Claims: Send + Sync {
    /// Returns the id of this worker, the owner of the runs that it claims.
    fn worker(&self) -> WorkerId;

    /// Takes ownership of runs that have something to do and no living owner. Runs with a higher
    /// priority come first, then runs that have waited longest.
    async fn claim(&self, wanted: &Wanted) -> Result<Vec<Claimed>, StoreError>;

    /// Returns some of the runs that wait to be claimed, including runs of dead workers.
    async fn queue(&self, look: &Look) -> Result<Queue, StoreError>;

    /// Returns the places of `runs` in the queue, by priority and then by time; 1 is next. A run
    /// that does not wait has no place.
    async fn places(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, StoreError>;

    /// Changes whenever a run may have become claimable, also because its owner died.
    fn ready(&self) -> watch::Receiver<u64>;

    /// Tells others about this worker with the next renewal of its lease, and restricts
    /// [`Claims::claim`] and [`Claims::queue`] to the runs that it takes.
    fn introduce(&self, about: WorkerAbout);

    /// Renews the lease of this worker. When the lease ends, other workers may claim its runs.
    async fn renew(&self) -> Result<(), StoreError>;

    /// Returns a number for the lease of this worker, from memory: the same number while the lease
    /// has held without a gap, and `None` when it has ended. If an owner gets the same number
    /// before and after an append, no other worker has claimed the run in between.
    fn lease(&self) -> Option<u64>;

    /// Returns how long a lease holds after it was renewed.
    fn lease_length(&self) -> Duration;
}

/// Lists runs and costs, and finds damage.
#[async_trait]
pub trait Inspection: Send + Sync {
    /// Returns the runs that `filter` selects.
    async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError>;

    /// Finds runs whose ids begin or end with `part`, at least four characters in lower case. If
    /// there are none, finds runs that have `part` within the last eight characters of their ids,
    /// which lists show. Newest first, at most a thousand.
    async fn find(&self, part: &str) -> Result<Vec<RunRow>, StoreError>;

    /// Removes what of erased runs is still on the disk, and what was staged and has expired. Then
    /// returns ended runs that can be archived, or whose logs can be removed; oldest end first.
    async fn leftovers(&self, wanted: Leftovers) -> Result<Vec<RunRow>, StoreError>;

    /// Returns the costs of model calls, summed up as `query` says.
    async fn spending(&self, query: &SpendingQuery) -> Result<Vec<Spending>, StoreError>;

    /// Returns the rows of `run` in the ledger: one for each settled model call. Calls from before
    /// the ledger are one row.
    async fn ledger(&self, run: RunId) -> Result<Vec<LedgerRow>, StoreError>;

    /// Returns the living workers that have introduced themselves.
    async fn workers(&self) -> Result<Vec<Worker>, StoreError>;

    /// Finds damage outside of the logs, such as changed deliveries. SQLite also checks the schema,
    /// and the indexes against their rows. Reads the whole store.
    async fn flaws(&self) -> Result<Vec<Flaw>, StoreError>;

    /// Returns the stored names of runs that have events but no row. There are none unless another
    /// program changed the store.
    async fn orphans(&self) -> Result<Vec<String>, StoreError>;

    /// Returns the stored names of runs that have costs in the ledger and nothing else. There are
    /// none unless another program changed the store.
    async fn strangers(&self) -> Result<Vec<String>, StoreError>;

    /// Returns why the store accepts no writes, if it found a reason when it was opened.
    fn refusal(&self) -> Option<StoreError>;
}

/// Damage to a store outside of the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The run that is affected, if the damage is about one run.
    pub run: Option<RunId>,
    /// A description for people.
    pub reason: String,
}

impl Flaw {
    /// A bundle whose run, by its stored name, has no log.
    pub(crate) fn of_bundle(run: &str) -> Flaw {
        Flaw { run: run.parse().ok(), reason: format!("the bundle of {run}: its log is not there") }
    }
}
