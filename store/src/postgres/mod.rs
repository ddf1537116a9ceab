//! The store for many machines: a PostgreSQL database that any number of processes write to.
//!
//! Decision 51 (`docs/adr/0051-a-store-for-many-machines.md`) explains which rows a transaction
//! locks, and why that is enough.

mod address;
mod bell;
mod contact;
mod link;
mod message;
mod migrate;
mod options;
mod password;
#[cfg(test)]
mod plans;
mod queue;
mod reader;
mod removal;
mod stage;
mod statements;
mod transactor;
mod writer;

pub use contact::{Away, Contact};
pub use options::{Notifications, PostgresOptions, ServerIdentity};

use crate::append::Draft;
use crate::delivery::{Delivery, DeliveryFilter, Outbox, Revival, Settled, Settlement};
use crate::engine::{
    Change, Changed, Hub, Introduction, Lease, Removal, Reply, Request, listed, show,
};
use crate::{
    Append, Appended, Brought, Bundle, Claimed, Claims, DatabaseStatus, Filter, Flaw, Inspection,
    LedgerRow, Leftovers, Logs, Look, Piece, Queue, RunCopy, RunRow, Scrub, Spending,
    SpendingQuery, Store, StoreError, StoredEvent, Wanted, Worker, WorkerAbout, sql,
};
use async_trait::async_trait;
use bell::Outside;
use link::Link;
use posse_protocol::{Record, RunId, Seq, WorkerId};
use queue::QueueResult;
use reader::Reader;
use sqlx::postgres::PgPoolOptions;
use statements::Begin;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use transactor::{Presence, Transactor};
use writer::{Writer, closed};

/// The most requests that wait for the writer.
const QUEUE: usize = 16_384;
/// The most notifications that wait to be handled.
const HEARD: usize = 1_024;
/// How long a read waits for a connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store in a PostgreSQL database, which processes on other machines can use too.
///
/// ```no_run
/// # async fn open() -> Result<(), posse_store::StoreError> {
/// use posse_store::{PostgresOptions, PostgresStore};
/// let options = PostgresOptions::new("postgres://posse@db.example/posse");
/// let store = PostgresStore::open(options).await?;
/// # Ok(())
/// # }
/// ```
pub struct PostgresStore {
    requests: mpsc::Sender<Request>,
    reader: Arc<Reader>,
    hub: Arc<Hub>,
    tasks: TaskTracker,
    closing: watch::Sender<bool>,
    scrub: Option<Arc<dyn Scrub>>,
    removal: Removal,
}

impl PostgresStore {
    /// Opens the database, and creates its tables if there are none.
    ///
    /// # Errors
    /// When the server cannot be reached or cannot be verified, or when a newer or a development
    /// version created the tables. They are left unchanged then.
    pub async fn open(options: PostgresOptions) -> Result<Self, StoreError> {
        let worker = WorkerId::new();
        // Other workers look for sessions with this name when this worker is silent.
        let name = format!("posse {worker}");
        let connect = options.connect(&name)?;
        let listen = options.listen(&name)?;
        let place = options.name(&connect);
        let begin = Arc::new(Begin::of(&options.schema));
        let contact = options.contact.clone();
        let mut link = Link::new(connect.clone(), place.clone(), contact.clone());
        migrate::prepare(&mut link, &options.schema, &sql::SCHEMA).await?;
        let presence = Arc::new(Presence {
            worker,
            clock: options.clock.clone(),
            lease: options.lease,
            held: Lease::default(),
            introduction: Introduction::default(),
        });
        let (hub, bell) = (Arc::new(Hub::default()), Arc::new(bell::Bell::default()));
        let (requests, inbox) = mpsc::channel(QUEUE);
        let (closing, closed) = watch::channel(false);
        let (told, heard) = mpsc::channel(HEARD);
        let tasks = TaskTracker::new();
        let pool = PgPoolOptions::new()
            .max_connections(options.readers.max(1))
            .acquire_timeout(PATIENCE)
            .test_before_acquire(false)
            .connect_lazy_with(connect.clone());
        let channel = format!("posse_{}", options.schema);
        let outside = Outside {
            link: Link::new(connect, place.clone(), contact.clone()),
            begin: begin.clone(),
            worker,
            hub: hub.clone(),
            bell: bell.clone(),
            channel: channel.clone(),
            poll: options.poll_at_most(),
            tells: listen.is_some(),
            closing: closed.clone(),
        };
        let transactor = Transactor::new(link, begin.clone(), presence.clone());
        let writer = Writer { transactor, hub: hub.clone(), bell };
        if let Some(listen) = listen {
            let listening = bell::listen(listen, channel, worker, told, closed);
            #[expect(clippy::disallowed_methods, reason = "ends with the store; awaited by close")]
            tokio::spawn(tasks.track_future(listening));
        }
        #[expect(clippy::disallowed_methods, reason = "ends with the store; awaited by close")]
        tokio::spawn(tasks.track_future(outside.run(heard)));
        #[expect(clippy::disallowed_methods, reason = "the one writer; awaited by close")]
        tokio::spawn(tasks.track_future(writer.run(inbox)));
        let (freed, kept_at) = (AtomicI64::new(0), AtomicU64::new(0));
        let asks = requests.clone();
        let reader =
            Reader { pool, place, contact, begin, presence, requests: asks, freed, kept_at };
        let reader = Arc::new(reader);
        let (scrub, removal) = (options.scrub, Removal::default());
        Ok(PostgresStore { requests, reader, hub, tasks, closing, scrub, removal })
    }

    /// Returns facts about the database, and leaves it as it is.
    ///
    /// # Errors
    /// When the server cannot be reached or cannot be verified.
    pub async fn status(options: &PostgresOptions) -> Result<DatabaseStatus, StoreError> {
        let connect = options.connect("posse")?;
        let place = options.name(&connect);
        let mut link = Link::new(connect, place, options.contact.clone());
        let status = migrate::status(&mut link, &options.schema).await;
        link.close().await;
        status
    }

    /// Lets the reader do `work` in a task. It continues even if its caller is not polled for a
    /// while, because it holds one of a few connections that others wait for.
    async fn look<T, W>(&self, work: impl FnOnce(Arc<Reader>) -> W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.check()?;
        let work = self.tasks.track_future(work(self.reader.clone()));
        #[expect(clippy::disallowed_methods, reason = "a read of a moment; awaited by close")]
        let looking = tokio::spawn(work).await;
        match looking {
            Ok(found) => found,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(StoreError::Closed),
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.reader.pool.is_closed() { Err(StoreError::Closed) } else { Ok(()) }
    }

    async fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(make(reply)).await.map_err(closed)?;
        answer.await.map_err(closed)?
    }

    /// Stages the bundles of a batch, and appends it.
    async fn append_with_bundles(&self, batch: Vec<Draft>) -> Result<Vec<Appended>, StoreError> {
        let batch: Arc<[Draft]> = batch.into();
        let stage = || {
            let batch = batch.clone();
            self.look(move |reader| async move { reader.stage_bundles(&batch).await })
        };
        let append = || self.ask(|reply| Request::Append { batch: batch.to_vec(), reply });
        let appended = show(stage, append).await;
        // The bundles before.
        self.remove_soon();
        appended
    }

    /// Begins to remove what has expired.
    fn remove_soon(&self) {
        let reader = self.reader.clone();
        self.removal.begin(&self.tasks, async move { reader.remove_expired().await });
    }

    async fn change(&self, change: Change) -> Result<Changed, StoreError> {
        self.ask(|reply| Request::Deliveries { change, reply }).await
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn close(&self) {
        self.reader.pool.close().await;
        // The writer may have ended already.
        let _ = self.requests.send(Request::Close).await;
        // The writer releases its claims first, and then others are notified.
        self.requests.closed().await;
        self.closing.send_replace(true);
        self.tasks.close();
        self.tasks.wait().await;
        // Last, because the writer notifies watchers until it ends.
        self.hub.close();
    }
}

#[async_trait]
impl Logs for PostgresStore {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<Appended>, StoreError> {
        let draft = |append| Draft::new(append, self.scrub.as_deref());
        let batch = batch.into_iter().map(draft).collect::<Result<Vec<_>, _>>()?;
        match batch.iter().any(|draft| draft.bundle.is_some()) {
            true => self.append_with_bundles(batch).await,
            false => self.ask(|reply| Request::Append { batch, reply }).await,
        }
    }

    async fn read(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.check()?;
        if let Some(recent) = self.hub.recent(run, after, limit) {
            return Ok(recent);
        }
        self.look(move |reader| async move { reader.read(run, after, limit).await }).await
    }

    async fn stored(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Option<StoredEvent>>, StoreError> {
        self.look(move |reader| async move { reader.stored(run, after, limit).await }).await
    }

    async fn stage(&self, run: RunId, piece: Piece) -> Result<(), StoreError> {
        self.look(move |reader| async move {
            match piece {
                Piece::Bundle(bundle) => {
                    bundle.check()?;
                    reader.stage_bundle(run, &bundle, &bundle.head()).await
                }
                Piece::Events(events) => reader.stage_events(run, &events).await,
            }
        })
        .await
    }

    async fn bring(&self, tree: Vec<RunCopy>) -> Result<Vec<Brought>, StoreError> {
        self.ask(|reply| Request::Bring { tree, reply }).await
    }

    async fn bundle(&self, run: RunId) -> Result<Option<Bundle>, StoreError> {
        self.look(move |reader| async move { reader.bundle(run).await }).await
    }

    fn watch(&self, run: RunId) -> watch::Receiver<Seq> {
        self.hub.watch(run)
    }

    async fn erase(&self, run: RunId, last: Seq) -> Result<(), StoreError> {
        self.ask(|reply| Request::Erase { run, last, reply }).await?;
        self.remove_soon();
        Ok(())
    }

    async fn now(&self) -> Result<u64, StoreError> {
        self.look(|reader| async move { reader.now().await }).await
    }
}

#[async_trait]
impl Claims for PostgresStore {
    fn worker(&self) -> WorkerId {
        self.reader.presence.worker
    }

    async fn claim(&self, wanted: &Wanted) -> Result<Vec<Claimed>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let mut claiming = Claiming { answer, requests: &self.requests };
        let request = Request::Claim { wanted: wanted.clone(), reply };
        self.requests.send(request).await.map_err(closed)?;
        (&mut claiming.answer).await.map_err(closed)?
    }

    async fn queue(&self, look: &Look) -> Result<Queue, StoreError> {
        let look = Arc::new(look.clone());
        let again = look.clone();
        let seen = self.look(move |reader| async move { reader.queue(&look).await });
        if let QueueResult::Whole(queue) = seen.await? {
            return Ok(queue);
        }
        // Only the writer releases runs of dead workers, before a claim.
        self.claim(&Wanted { limit: 0, ..Wanted::default() }).await?;
        match self.look(move |reader| async move { reader.queue(&again).await }).await? {
            QueueResult::Whole(queue) => Ok(Queue { freed: true, ..queue }),
            // Another worker has died meanwhile. The next query sees it.
            QueueResult::Dead => Ok(Queue { freed: true, ..Queue::default() }),
        }
    }

    async fn places(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, StoreError> {
        let runs = runs.to_vec();
        self.look(move |reader| async move { reader.places(&runs).await }).await
    }

    fn ready(&self) -> watch::Receiver<u64> {
        self.hub.ready()
    }

    async fn renew(&self) -> Result<(), StoreError> {
        self.ask(|reply| Request::Renew { reply }).await
    }

    fn lease(&self) -> Option<u64> {
        self.reader.presence.lease_number()
    }

    fn introduce(&self, about: WorkerAbout) {
        self.reader.presence.introduction.set(&about);
    }

    fn lease_length(&self) -> Duration {
        self.reader.presence.lease
    }
}

#[async_trait]
impl Inspection for PostgresStore {
    async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        let filter = filter.clone();
        self.look(move |reader| async move { reader.list(&filter).await }).await
    }

    async fn find(&self, part: &str) -> Result<Vec<RunRow>, StoreError> {
        let part = part.to_owned();
        self.look(move |reader| async move { reader.find(&part).await }).await
    }

    async fn leftovers(&self, wanted: Leftovers) -> Result<Vec<RunRow>, StoreError> {
        self.look(move |reader| async move {
            // Also what a process left that died meanwhile.
            reader.remove_expired().await?;
            reader.leftovers(wanted).await
        })
        .await
    }

    async fn spending(&self, query: &SpendingQuery) -> Result<Vec<Spending>, StoreError> {
        let query = query.clone();
        self.look(move |reader| async move { reader.spending(&query).await }).await
    }

    async fn ledger(&self, run: RunId) -> Result<Vec<LedgerRow>, StoreError> {
        self.look(move |reader| async move { reader.ledger(run).await }).await
    }

    async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        self.look(|reader| async move { reader.workers().await }).await
    }

    async fn flaws(&self) -> Result<Vec<Flaw>, StoreError> {
        self.look(|reader| async move { reader.flaws().await }).await
    }

    async fn orphans(&self) -> Result<Vec<String>, StoreError> {
        self.look(|reader| async move { reader.names(sql::ORPHANS).await }).await
    }

    async fn strangers(&self) -> Result<Vec<String>, StoreError> {
        self.look(|reader| async move { reader.names(sql::STRANGERS).await }).await
    }

    fn refusal(&self) -> Option<StoreError> {
        None
    }
}

#[async_trait]
impl Outbox for PostgresStore {
    async fn take_due(
        &self,
        hook: &str,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.change(Change::Take { hook: hook.to_owned(), limit, lease }).await.map(listed)
    }

    async fn settle(
        &self,
        delivery: &Delivery,
        settlement: Settlement,
        note: &str,
    ) -> Result<Settled, StoreError> {
        let Delivery { id, attempts, .. } = delivery;
        let (id, attempts, note) = (id.clone(), *attempts, note.to_owned());
        let settle = Change::Settle { id, attempts, settlement, note };
        self.change(settle).await.map(Changed::settled)
    }

    async fn revive(&self, which: &Revival) -> Result<Vec<Delivery>, StoreError> {
        self.change(Change::Revive(which.clone())).await.map(listed)
    }

    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        let filter = filter.clone();
        self.look(move |reader| async move { reader.deliveries(&filter).await }).await
    }

    async fn next_due(&self, hook: &str) -> Result<Option<Duration>, StoreError> {
        let hook = hook.to_owned();
        self.look(move |reader| async move { reader.next_due(&hook).await }).await
    }
}

/// Waits for claimed runs, and releases them if the caller goes away first.
struct Claiming<'a> {
    answer: oneshot::Receiver<Result<Vec<Claimed>, StoreError>>,
    requests: &'a mpsc::Sender<Request>,
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        // The writer releases runs whose answer arrives later.
        self.answer.close();
        if let Ok(Ok(claimed)) = self.answer.try_recv() {
            // If the queue is full, the runs are released when this worker ends.
            let _ = self.requests.try_send(Request::GiveBack { claimed });
        }
    }
}
