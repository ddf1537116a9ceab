//! The store for one machine: an SQLite file in WAL mode, one writer with group commit, and
//! concurrent readers.

mod calendar;
mod checkpoint;
mod codec;
mod deliveries;
mod files;
mod header;
mod inspect;
mod media;
mod mend;
mod migrate;
mod ownership;
mod presence;
mod queue;
mod reader;
mod reserve;
mod stage;
mod text;
mod transactor;
mod wal;
mod writer;

use crate::Scrub;
use crate::append::Draft;
use crate::clock::{Clock, MachineClock};
use crate::engine::{Hub, Removal, Reply, Request};
use crate::sql::SCHEMA;
use crate::{
    Append, Appended, Brought, Bundle, Claimed, Claims, DatabaseStatus, Filter, Flaw, Inspection,
    LedgerRow, Leftovers, Logs, Look, Piece, Queue, Reserve, RunCopy, RunRow, Spending,
    SpendingQuery, Store, StoreError, StoredEvent, Wanted, Worker, WorkerAbout,
};
use async_trait::async_trait;
use calendar::Calendar;
use files::DatabaseFiles;
pub use mend::{Mended, rebuild, restore};
use posse_protocol::{Record, RunId, Seq, WorkerId};
use presence::{OpenProcesses, Presence};
use queue::{Dead, QueueResult};
use reader::Reader;
use reserve::SpaceReserve;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use transactor::Transactor;
use writer::Writer;

/// How to open a database.
#[derive(Clone)]
pub struct Options {
    /// The database file. If it does not exist, it is created, readable by its owner only.
    pub path: PathBuf,
    /// What an append survives.
    pub durability: Durability,
    /// How long a silent worker keeps its runs.
    pub lease: Duration,
    /// The space reserved for appends that stop runs when the disk is full, in bytes.
    pub reserve_bytes: u64,
    /// How often the store looks for changes by other processes.
    pub poll: Duration,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Removes secrets before they are stored.
    pub scrub: Option<Arc<dyn Scrub>>,
}

/// What an acknowledged append survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// A loss of power.
    Power,
    /// The death of the process.
    Process,
}

impl Options {
    /// The default options for the database at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Options {
            path: path.into(),
            durability: Durability::Power,
            lease: Duration::from_secs(10),
            reserve_bytes: 1 << 20,
            poll: Duration::from_millis(100),
            clock: Arc::new(MachineClock::new()),
            scrub: None,
        }
    }
}

/// A store in an SQLite file.
pub struct SqliteStore {
    requests: mpsc::Sender<Request>,
    reader: Arc<Reader>,
    hub: Arc<Hub>,
    tasks: TaskTracker,
    scrub: Option<Arc<dyn Scrub>>,
    place: DatabaseFiles,
    /// What the database had lost when it was opened. The store can then only be read.
    lost: Option<String>,
    removal: Removal,
}

/// A database that is being opened. Dropping this cancels it.
pub struct Opening(JoinHandle<Result<SqliteStore, StoreError>>);

impl Opening {
    /// Waits until the store is open.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn opened(mut self) -> Result<SqliteStore, StoreError> {
        match (&mut self.0).await {
            Ok(opened) => opened,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(StoreError::Closed),
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How long the writer waits for other processes.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most requests that wait for the writer.
const QUEUE: usize = 16_384;

impl SqliteStore {
    /// Opens or creates the database. On a disk that is too full to open it normally, and on
    /// read-only media, the store can only be read.
    ///
    /// # Errors
    /// When the file cannot be used, or a newer or a development version created it. It is left
    /// unchanged then.
    pub async fn open(options: Options) -> Result<Self, StoreError> {
        let path = options.path.display().to_string();
        let unusable = |error: std::io::Error| StoreError::Unusable {
            path: path.clone(),
            reason: error.to_string(),
        };
        files::check(&options.path)?;
        ownership::check(&options.path)?;
        match make_private(&options.path) {
            // A file that the user may not write to is refused before the file system is looked at.
            Err(error)
                if error.kind() == ErrorKind::ReadOnlyFilesystem
                    || error.kind() == ErrorKind::PermissionDenied
                        && ownership::is_fixed(&options.path) =>
            {
                return media::open(options, path).await;
            }
            made => made.map_err(unusable)?,
        }
        // Use one name for the file, whatever links lead to it and whatever the current folder is.
        let options = Options { path: options.path.canonicalize().map_err(unusable)?, ..options };
        ownership::check(&options.path)?;
        let place = DatabaseFiles::of(&options.path).map_err(unusable)?;
        let schema = header::inspect(&options.path, &path)?;
        let connect = connect_options(&options);
        if let Some(lost) = lost(&options).map_err(unusable)? {
            return SqliteStore::open_to_read(options, connect, place, &lost).await;
        }
        let reserve = SpaceReserve::new(&options.path, options.reserve_bytes);
        let mut connected = migrate::open(&connect, &path, &SCHEMA).await;
        // The engine needs some space even to read.
        if matches!(connected, Err(StoreError::Full)) {
            reserve.release();
            connected = migrate::open(&connect, &path, &SCHEMA).await;
        }
        // The write-ahead log may fill the disk. Truncate it if no process has the database open.
        if matches!(connected, Err(StoreError::Full))
            && checkpoint::cut_off_alone(&connect).await.is_ok()
        {
            connected = migrate::open(&connect, &path, &SCHEMA).await;
        }
        // Without any space, one exclusive connection can read, as it needs no shared index.
        let connected = match connected {
            Err(StoreError::Full) if schema == SCHEMA.version() => None,
            connected => Some(connected?),
        };
        let presence = Presence::announce(&options.path, options.clock.clone(), options.lease);
        let presence = Arc::new(presence.map_err(unusable)?);
        fail::fail_point!("store.presence.announced");
        let calendar = Calendar::new(&options.path, options.clock.clone());
        let Some(connected) = connected else {
            let reader = |requests| Reader::alone(connect, path, presence, calendar, requests);
            return Ok(SqliteStore::to_read(reader, StoreError::Full, place));
        };
        let hub = Arc::new(Hub::default());
        let (requests, inbox) = mpsc::channel(QUEUE);
        let tasks = TaskTracker::new();
        let scrub = options.scrub;
        let (checkpoints, beside) = checkpoint::beside(connect.clone());
        let told = requests.clone();
        let reader = Reader::new(connect, path.clone(), presence.clone(), calendar, told);
        let place = place.with_log();
        let transactor = Transactor::new(connected, place.clone(), path, presence);
        let writer = Writer::new(transactor, reserve, options.poll, hub.clone(), checkpoints);
        #[expect(clippy::disallowed_methods, reason = "ends with the writer; awaited by close")]
        tokio::spawn(tasks.track_future(beside));
        #[expect(clippy::disallowed_methods, reason = "the one writer; awaited by close")]
        tokio::spawn(tasks.track_future(writer.run(inbox)));
        tasks.close();
        let reader = Arc::new(reader);
        let removal = Removal::default();
        Ok(SqliteStore { requests, reader, hub, tasks, scrub, place, lost: None, removal })
    }

    /// Returns all paths that Posse or the engine uses for a database at `path`, whether they exist or not:
    /// the file, and what is beside it. A database with links in its path has these beside the real file.
    pub fn places(path: &Path) -> Vec<PathBuf> {
        ownership::places(path).collect()
    }

    /// Checks who else can change a database at `path` and what is beside it, and changes nothing. Check
    /// this before you open other files beside a database; the store itself checks it.
    ///
    /// # Errors
    /// When another user could decide what is there.
    pub fn check_place(path: &Path) -> Result<(), StoreError> {
        ownership::check(path)
    }

    /// Returns facts about the database file at `path`, and leaves it as it is.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    pub async fn status(path: &Path) -> Result<DatabaseStatus, StoreError> {
        let shown = path.display().to_string();
        files::check(path)?;
        ownership::check(path)?;
        let schema = match header::inspect(path, &shown) {
            Err(
                StoreError::NewerDatabase { found, .. }
                | StoreError::UnreleasedDatabase { found, .. },
            ) => found,
            found => found?,
        };
        migrate::status(path, schema).await
    }

    /// Opens a database that has lost commits. The rest can be read, and nothing is changed.
    async fn open_to_read(
        options: Options,
        connect: SqliteConnectOptions,
        place: DatabaseFiles,
        lost: &str,
    ) -> Result<Self, StoreError> {
        let path = options.path.display().to_string();
        let presence = Presence::announce(&options.path, options.clock.clone(), options.lease);
        let presence = presence.map_err(|error| StoreError::Unusable {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        let (requests, inbox) = mpsc::channel(QUEUE);
        let refusal = wal::refusal(&path, lost);
        let calendar = Calendar::new(&options.path, options.clock);
        let presence = Arc::new(presence);
        let reader = Arc::new(Reader::new(connect, path, presence, calendar, requests.clone()));
        if !reader.has_schema().await? {
            reader.close().await;
            reader.leave();
            return Err(refusal);
        }
        let (hub, tasks) = (Arc::new(Hub::default()), TaskTracker::new());
        // Nothing will be appended.
        hub.close();
        #[expect(clippy::disallowed_methods, reason = "in the writer's place; awaited by close")]
        tokio::spawn(tasks.track_future(writer::refuse(inbox, refusal)));
        tasks.close();
        let (scrub, lost) = (options.scrub, Some(lost.to_owned()));
        let removal = Removal::default();
        Ok(SqliteStore { requests, reader, hub, tasks, scrub, place, lost, removal })
    }

    /// Returns a store that can only be read, with the reader that `reader` creates. It refuses all
    /// other requests with `why`.
    fn to_read(
        reader: impl FnOnce(mpsc::Sender<Request>) -> Reader,
        why: StoreError,
        place: DatabaseFiles,
    ) -> Self {
        let (requests, inbox) = mpsc::channel(QUEUE);
        let tasks = TaskTracker::new();
        #[expect(clippy::disallowed_methods, reason = "in the writer's place; awaited by close")]
        tokio::spawn(tasks.track_future(writer::refuse(inbox, why)));
        tasks.close();
        let reader = Arc::new(reader(requests.clone()));
        SqliteStore {
            requests,
            reader,
            hub: Arc::default(),
            tasks,
            scrub: None,
            place,
            lost: None,
            removal: Removal::default(),
        }
    }

    /// Opens or creates the database in a task of its own.
    pub fn start_opening(options: Options) -> Opening {
        #[expect(clippy::disallowed_methods, reason = "awaited, or ended, by whoever opens")]
        Opening(tokio::spawn(SqliteStore::open(options)))
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

    /// Fails if the store is closed, or if its files were removed or replaced. The order matters,
    /// because a clean close removes the log.
    fn check(&self) -> Result<(), StoreError> {
        if self.reader.is_closed() {
            return Err(StoreError::Closed);
        }
        self.place.check()
    }

    async fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(make(reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

#[async_trait]
impl Logs for SqliteStore {
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
        match piece {
            Piece::Bundle(bundle) => {
                bundle.check()?;
                self.stage_bundle(run, &bundle, &bundle.head(), Reserve::Leave).await
            }
            Piece::Events(events) => self.stage_events(run, events).await,
        }
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
        self.check()?;
        Ok(self.reader.now_ms())
    }
}

#[async_trait]
impl Claims for SqliteStore {
    fn worker(&self) -> WorkerId {
        self.reader.worker()
    }

    async fn claim(&self, wanted: &Wanted) -> Result<Vec<Claimed>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let mut claiming = Claiming { answer, requests: &self.requests };
        let request = Request::Claim { wanted: wanted.clone(), reply };
        self.requests.send(request).await.map_err(|_| StoreError::Closed)?;
        (&mut claiming.answer).await.map_err(|_| StoreError::Closed)?
    }

    async fn queue(&self, look: &Look) -> Result<Queue, StoreError> {
        let look = Arc::new(look.clone());
        let again = look.clone();
        let seen = self.look(move |reader| async move { reader.queue(&look, Dead::Told).await });
        match seen.await? {
            QueueResult::Whole(queue) => Ok(queue),
            // Only the writer releases runs of dead workers, before a claim.
            QueueResult::Dead => {
                let nothing = Wanted { limit: 0, ..Wanted::default() };
                let dead = match self.claim(&nothing).await {
                    Ok(_) => Dead::Told,
                    // On a full disk it does so only if one of these runs was asked to stop.
                    Err(StoreError::Full) => Dead::PassedOver,
                    Err(error) => return Err(error),
                };
                let seen = self.look(move |reader| async move { reader.queue(&again, dead).await });
                match seen.await? {
                    QueueResult::Whole(queue) if dead == Dead::PassedOver => Ok(queue),
                    QueueResult::Whole(queue) => Ok(Queue { freed: true, ..queue }),
                    // Another worker has died meanwhile. The next query sees it.
                    QueueResult::Dead => Ok(Queue { freed: true, ..Queue::default() }),
                }
            }
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
        self.reader.lease()
    }

    fn introduce(&self, about: WorkerAbout) {
        self.reader.introduce(&about);
    }

    fn lease_length(&self) -> Duration {
        self.reader.lease_length()
    }
}

#[async_trait]
impl Inspection for SqliteStore {
    async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        let filter = filter.clone();
        self.look(move |reader| async move { reader.list(&filter).await }).await
    }

    async fn find(&self, part: &str) -> Result<Vec<RunRow>, StoreError> {
        let part = part.to_owned();
        self.look(move |reader| async move { reader.find(&part).await }).await
    }

    async fn leftovers(&self, wanted: Leftovers) -> Result<Vec<RunRow>, StoreError> {
        // A database that is full or can only be read still has leftovers.
        let _ = self.remove_expired().await;
        self.look(move |reader| async move { reader.leftovers(wanted).await }).await
    }

    async fn spending(&self, query: &SpendingQuery) -> Result<Vec<Spending>, StoreError> {
        let query = query.clone();
        self.look(move |reader| async move { reader.spending(&query).await }).await
    }

    async fn ledger(&self, run: RunId) -> Result<Vec<LedgerRow>, StoreError> {
        self.look(move |reader| async move { reader.ledger(run).await }).await
    }

    async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        self.check()?;
        self.reader.workers().await
    }

    async fn flaws(&self) -> Result<Vec<Flaw>, StoreError> {
        let lost = match &self.lost {
            Some(lost) => Some(lost.clone()),
            // If the log cannot be read, the engine reports that below.
            None => {
                wal::lost_meanwhile(self.place.database()).ok().flatten().map(|it| it.to_string())
            }
        };
        let lost = lost.map(|reason| Flaw { run: None, reason });
        let found = self.look(|reader| async move { reader.flaws().await }).await?;
        Ok(lost.into_iter().chain(found).collect())
    }

    async fn orphans(&self) -> Result<Vec<String>, StoreError> {
        self.look(|reader| async move { reader.orphans().await }).await
    }

    async fn strangers(&self) -> Result<Vec<String>, StoreError> {
        self.look(|reader| async move { reader.strangers().await }).await
    }

    fn refusal(&self) -> Option<StoreError> {
        self.lost.as_ref().map(|lost| wal::refusal(self.reader.path(), lost))
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn close(&self) {
        // Close readers first. The last connection must be able to write, so that it moves the
        // write-ahead log into the file.
        self.reader.close().await;
        // The writer may have ended already.
        let _ = self.requests.send(Request::Close).await;
        self.tasks.wait().await;
        if self.lost.is_some() {
            self.reader.leave();
        }
        // Last, because the writer notifies watchers until it ends.
        self.hub.close();
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

/// Returns what the database has lost, and writes a note of it. If other processes have it open,
/// they have checked already.
fn lost(options: &Options) -> std::io::Result<Option<String>> {
    let company = presence::company(&options.path, options.clock.boot());
    // In this order: a process writes the note before others can see it in `company`.
    if let Some(noted) = wal::noted(&options.path) {
        return Ok(Some(noted));
    }
    let looks = match (company, options.durability) {
        (OpenProcesses::Living, _) => false,
        // With this durability, a loss of power may lose commits.
        (OpenProcesses::None, Durability::Process) => false,
        (OpenProcesses::Dead, Durability::Process) | (_, Durability::Power) => true,
    };
    if !looks || options.path.metadata()?.len() == 0 {
        return Ok(None);
    }
    let Some(lost) = wal::lost_meanwhile(&options.path)? else { return Ok(None) };
    // If this fails, the next process finds the loss again, or cannot store anything either.
    let _ = wal::note(&options.path, &lost);
    Ok(Some(lost.to_string()))
}

fn connect_options(options: &Options) -> SqliteConnectOptions {
    let synchronous = match options.durability {
        Durability::Power => SqliteSynchronous::Full,
        Durability::Process => SqliteSynchronous::Normal,
    };
    SqliteConnectOptions::new()
        .filename(&options.path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .busy_timeout(PATIENCE)
        // Keep statement journals in memory, not on a disk that may be full.
        .pragma("temp_store", "memory")
        .pragma("wal_autocheckpoint", checkpoint::AT_LAST.to_string())
        .foreign_keys(false)
}

/// Creates the file and its folder, for the owner only. SQLite gives its other files the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(|_| ())
}

/// Converts an error of the engine.
fn engine_error(error: sqlx::Error, path: &str) -> StoreError {
    if matches!(error, sqlx::Error::PoolClosed) {
        return StoreError::Closed;
    }
    let code = engine_code(&error);
    let path = path.to_owned();
    let reason = error.to_string();
    // 4874 means that the shared index cannot grow because the disk is full.
    match code & 0xff {
        BUSY_CODE => StoreError::Unusable { path, reason: BUSY.to_owned() },
        13 => StoreError::Full,
        11 | 26 => StoreError::Corrupt { path, reason },
        _ if code == 4874 => StoreError::Full,
        _ => StoreError::Unusable { path, reason },
    }
}

const BUSY: &str =
    "another process has been writing to it for 30 s; wait for that process, or end it";

/// Returns the error code of the engine. Its low byte is the primary code.
fn engine_code(error: &sqlx::Error) -> i64 {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse().ok()).unwrap_or(0)
}

const BUSY_CODE: i64 = 5;
