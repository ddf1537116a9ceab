//! Reads, concurrently with the writer. Each log that is read is checked against its hashes.

use super::calendar::Calendar;
use super::codec::{Statement, worker_row};
use super::deliveries;
use super::engine_error;
use super::presence::{Presence, WorkerRow};
use super::text::bare;
use crate::engine::introduced;
use crate::engine::{
    self, FOUND, LIST, Request, as_they_stand, bind_leftovers, bind_selection, bind_spending,
    bundle_row, event_row, follow, found, head_row, is_a_piece, is_erased, ledger_row, name_days,
    spending_row, tail_row, to_sql,
};
use crate::selection;
use crate::spending::{Spending, SpendingQuery};
use crate::sql;
use crate::{
    Bundle, Delivery, DeliveryFilter, Filter, LedgerRow, Leftovers, RunRow, StoreError,
    StoredEvent, Worker, WorkerAbout, chain,
};
use posse_protocol::{Record, RunId, Seq, WorkerId};
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteLockingMode, SqlitePool, SqlitePoolOptions,
};
use sqlx::{AssertSqlSafe, Transaction};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

pub(super) struct Reader {
    pool: SqlitePool,
    path: String,
    presence: Arc<Presence>,
    calendar: Calendar,
    /// To tell the writer about damage.
    requests: mpsc::Sender<Request>,
}

/// The number of connections for reading.
const READERS: u32 = 4;
/// How long a read waits for a connection.
const PATIENCE: Duration = Duration::from_secs(300);

/// A pool of at most this many connections. Waiting is better than failing, and the file does not
/// go away.
fn connections(most: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(most)
        .acquire_timeout(PATIENCE)
        .test_before_acquire(false)
}

impl Reader {
    pub(super) fn new(
        options: SqliteConnectOptions,
        path: String,
        presence: Arc<Presence>,
        calendar: Calendar,
        requests: mpsc::Sender<Request>,
    ) -> Self {
        let pool = connections(READERS)
            .connect_lazy_with(options.read_only(true).create_if_missing(false));
        Reader { pool, path, presence, calendar, requests }
    }

    /// A reader with exclusive access, which needs no file for the shared index, because there is
    /// no space for one. While it is open, no other process can use the database.
    pub(super) fn alone(
        options: SqliteConnectOptions,
        path: String,
        presence: Arc<Presence>,
        calendar: Calendar,
        requests: mpsc::Sender<Request>,
    ) -> Self {
        let options = options.locking_mode(SqliteLockingMode::Exclusive).create_if_missing(false);
        let pool = connections(1).connect_lazy_with(options.pragma("query_only", "1"));
        Reader { pool, path, presence, calendar, requests }
    }

    /// A reader of a file that nobody can change.
    pub(super) fn of_media(
        options: SqliteConnectOptions,
        path: String,
        presence: Arc<Presence>,
        calendar: Calendar,
        requests: mpsc::Sender<Request>,
    ) -> Self {
        let pool = connections(READERS).connect_lazy_with(options);
        Reader { pool, path, presence, calendar, requests }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    pub(super) fn worker(&self) -> WorkerId {
        self.presence.worker
    }

    pub(super) fn lease(&self) -> Option<u64> {
        self.presence.lease_number()
    }

    pub(super) fn lease_length(&self) -> Duration {
        self.presence.lease
    }

    pub(super) fn introduce(&self, about: &WorkerAbout) {
        self.presence.introduction.set(about);
    }

    /// The condition for the runs that this worker takes.
    pub(super) fn condition(&self) -> Arc<str> {
        self.presence.introduction.condition()
    }

    /// Returns the living workers that have introduced themselves.
    pub(super) async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let engine = |error| engine_error(error, self.path());
        let fallen = self.fallen();
        let rows = sqlx::query(sql::WORKERS).fetch_all(&self.pool).await.map_err(engine)?;
        let rows = rows.iter().filter_map(worker_row);
        let living = rows.filter(|row| self.presence.lives(row, &fallen));
        let full = self.presence.lease_end();
        let worker = |row: WorkerRow| {
            let silent_ms = full.saturating_sub(row.lease_until);
            Some(Worker { id: row.id, about: introduced(&row.about)?, silent_ms })
        };
        Ok(living.filter_map(worker).collect())
    }

    /// The time in milliseconds since 1970, by the clock that stamps events.
    pub(super) fn now_ms(&self) -> u64 {
        self.presence.clock().wall_ms()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }

    /// Returns true if the database has the schema of this version.
    pub(super) async fn has_schema(&self) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar::<_, i64>("PRAGMA user_version").fetch_one(&self.pool).await;
        let found = found.map_err(|error| engine_error(error, &self.path))?;
        Ok(found == sql::SCHEMA.version())
    }

    /// Removes this worker, for a store without a writer.
    pub(super) fn leave(&self) {
        self.presence.leave();
        self.presence.bury(self.presence.worker);
    }

    /// Call this before you take a snapshot: see [`Presence::fallen`].
    pub(super) fn fallen(&self) -> HashSet<WorkerId> {
        self.presence.fallen()
    }

    pub(super) fn lives(&self, worker: &WorkerRow, fallen: &HashSet<WorkerId>) -> bool {
        self.presence.lives(worker, fallen)
    }

    /// Begins a snapshot for several statements.
    pub(super) async fn begin(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.pool.begin().await.map_err(|error| engine_error(error, &self.path))
    }

    pub(super) async fn read(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let (result, known) = self.read_checked(run, after, limit).await?;
        if let (Err(StoreError::Damaged { reason, .. }), None) = (&result, known) {
            let (reply, marked) = oneshot::channel();
            let mark = Request::Damage { run, reason: reason.clone(), reply };
            // If the run cannot be marked now, the next read finds the damage again.
            if self.requests.send(mark).await.is_ok() {
                let _ = marked.await;
            }
        }
        result
    }

    /// Returns events as they are stored, and none of a hidden log.
    pub(super) async fn stored(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Option<StoredEvent>>, StoreError> {
        let engine = |error| engine_error(error, &self.path);
        let mut snapshot = self.begin().await?;
        let hidden = statement(sql::stage::LOG_HIDDEN).bind(run.to_string());
        if hidden.fetch_optional(&mut *snapshot).await.map_err(engine)?.is_some() {
            return Ok(Vec::new());
        }
        let rows = sqlx::query(sql::EVENTS_FROM)
            .bind(run.to_string())
            .bind(to_sql(after.next().0))
            .bind(to_sql(limit as u64))
            .fetch_all(&mut *snapshot)
            .await
            .map_err(engine)?;
        snapshot.rollback().await.map_err(engine)?;
        Ok(rows.iter().map(|row| event_row(run, row)).collect())
    }

    /// Returns the events of the log, or its damage, and the damage that was known before.
    async fn read_checked(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<(Result<Vec<Record>, StoreError>, Option<String>), StoreError> {
        let engine = |error| engine_error(error, &self.path);
        // One snapshot for the tail and the events.
        let mut snapshot = self.begin().await?;
        let tail = sqlx::query(sql::TAIL)
            .bind(run.to_string())
            .fetch_optional(&mut *snapshot)
            .await
            .map_err(engine)?
            .ok_or(StoreError::NotFound(run))?;
        // Read one event before the first wanted one, for its hash.
        let rows = sqlx::query(sql::EVENTS_FROM)
            .bind(run.to_string())
            .bind(to_sql(after.0.max(1)))
            .bind(to_sql(limit.saturating_add(1) as u64))
            .fetch_all(&mut *snapshot)
            .await
            .map_err(engine);
        snapshot.rollback().await.map_err(engine)?;
        if is_erased(&tail) {
            return Err(StoreError::Erased(run));
        }
        let rows = match rows {
            // Unreadable pages of this log say nothing about other logs.
            Err(StoreError::Corrupt { reason, .. }) => {
                let reason = format!("its events cannot be read: {reason}");
                return Ok((Err(StoreError::Damaged { run, seq: after.next(), reason }), None));
            }
            rows => rows?,
        };
        let (tail, known) = match tail_row(&tail) {
            Ok(tail) => tail,
            Err(error) => {
                let reason = format!("its row cannot be read: {error}");
                return Ok((Err(StoreError::Damaged { run, seq: after.next(), reason }), None));
            }
        };
        let events = rows.iter().map(|row| event_row(run, row));
        Ok((chain::check(run, after, limit, &tail, events), known))
    }

    pub(super) async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        let engine = |error| engine_error(error, &self.path);
        let fallen = self.fallen();
        // One snapshot for the runs and the workers that own them.
        let mut snapshot = self.pool.begin().await.map_err(engine)?;
        let workers = sqlx::query(sql::WORKERS).fetch_all(&mut *snapshot).await.map_err(engine)?;
        let living = self.presence.living(workers.iter().filter_map(worker_row), &fallen);
        let workers: Vec<String> = living.iter().map(ToString::to_string).collect();
        let query = bind_selection(statement, selection::select(filter, &workers));
        let rows = query.fetch_all(&mut *snapshot).await.map_err(engine)?;
        snapshot.rollback().await.map_err(engine)?;
        let mut rows = as_they_stand(&rows, &living);
        follow(&mut rows, filter);
        Ok(rows)
    }

    /// Finds runs whose ids begin or end with `part`, or else have it near the end, newest first.
    pub(super) async fn find(&self, part: &str) -> Result<Vec<RunRow>, StoreError> {
        let Some(ending) = engine::ending(part) else { return Ok(Vec::new()) };
        let greatest = format!("{part:z<26}");
        let begins = statement(&sql::runs_by_beginning()).bind(part.to_owned()).bind(greatest);
        let begin = self.standing(begins.bind(FOUND)).await?;
        let ends = statement(&sql::runs_by_ending()).bind(ending.to_owned()).bind(FOUND);
        let found = found(part, begin, self.standing(ends).await?);
        if !found.is_empty() || !is_a_piece(part) {
            return Ok(found);
        }
        let holds = statement(&sql::runs_by_piece());
        self.standing(holds.bind(format!("%{part}%")).bind(FOUND)).await
    }

    /// Returns ended runs to archive, or whose logs to remove.
    pub(super) async fn leftovers(&self, wanted: Leftovers) -> Result<Vec<RunRow>, StoreError> {
        let long = u64::try_from(wanted.ended_for.as_millis()).unwrap_or(u64::MAX);
        let newest = sqlx::query_scalar(sql::NEWEST).fetch_optional(&self.pool).await;
        let newest: Option<i64> = newest.map_err(|error| engine_error(error, &self.path))?;
        let newest = || newest.and_then(|at| u64::try_from(at).ok());
        let latest = self.calendar.now_ms(newest).saturating_sub(long);
        let query = statement(&sql::leftovers(wanted.which));
        self.standing(bind_leftovers(query, latest, wanted.limit)).await
    }

    /// Returns the sums of `query`.
    pub(super) async fn spending(
        &self,
        query: &SpendingQuery,
    ) -> Result<Vec<Spending>, StoreError> {
        let engine = |error| engine_error(error, &self.path);
        let statement = bind_spending(statement, query);
        let rows = statement.fetch_all(&self.pool).await.map_err(engine)?;
        let mut sums =
            rows.iter().map(spending_row).collect::<Result<Vec<_>, _>>().map_err(engine)?;
        name_days(query.by, &mut sums);
        Ok(sums)
    }

    /// Returns the rows of `run` in the ledger.
    pub(super) async fn ledger(&self, run: RunId) -> Result<Vec<LedgerRow>, StoreError> {
        let statement = statement(&sql::calls_of_a_run());
        let rows = statement.bind(run.to_string()).fetch_all(&self.pool).await;
        let rows = rows.map_err(|error| engine_error(error, &self.path))?;
        Ok(rows.iter().map(ledger_row).collect())
    }

    /// Returns the checked bundle of a run.
    pub(super) async fn bundle(&self, run: RunId) -> Result<Option<Bundle>, StoreError> {
        let engine = |error| engine_error(error, &self.path);
        let mut snapshot = self.begin().await?;
        let head = statement(sql::stage::BUNDLE).bind(run.to_string());
        let head = head.fetch_optional(&mut *snapshot).await.map_err(engine)?;
        let Some(head) = head else { return Ok(None) };
        let (sha256, head) = head_row(&head).map_err(engine)?;
        let parts = statement(sql::stage::PARTS).bind(run.to_string()).bind(sha256);
        let parts = parts.bind(0_i64).bind(i64::MAX).fetch_all(&mut *snapshot).await;
        let parts = parts.map_err(engine)?;
        snapshot.rollback().await.map_err(engine)?;
        let rows = std::iter::once(Ok(head)).chain(parts.iter().map(bundle_row));
        let rows = rows.collect::<Result<Vec<_>, _>>().map_err(engine)?;
        Bundle::read(run, &rows)
    }

    /// Returns the numbers of the stored parts of a bundle.
    pub(super) async fn parts(
        &self,
        run: RunId,
        sha256: String,
    ) -> Result<HashSet<u64>, StoreError> {
        let parts = sqlx::query_scalar::<_, i64>(AssertSqlSafe(bare(sql::stage::STORED_PARTS)));
        let parts = parts.bind(run.to_string()).bind(sha256).fetch_all(&self.pool).await;
        let parts = parts.map_err(|error| engine_error(error, &self.path))?;
        Ok(parts.into_iter().filter_map(|part| u64::try_from(part).ok()).collect())
    }

    /// Returns whether something is to be removed.
    pub(super) async fn has_expired(&self) -> Result<bool, StoreError> {
        let now = to_sql(self.now_ms());
        let found = statement(sql::stage::EXPIRED).bind(now).bind(now);
        let found = found.fetch_optional(&self.pool).await;
        found.map(|row| row.is_some()).map_err(|error| engine_error(error, &self.path))
    }

    pub(super) async fn strangers(&self) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query_scalar(sql::STRANGERS).fetch_all(&self.pool).await;
        rows.map_err(|error| engine_error(error, &self.path))
    }

    /// Returns the runs that `query` selects, with their status.
    async fn standing(&self, query: Statement<'_>) -> Result<Vec<RunRow>, StoreError> {
        let engine = |error| engine_error(error, &self.path);
        let fallen = self.fallen();
        // One snapshot for the runs and the workers that own them.
        let mut snapshot = self.pool.begin().await.map_err(engine)?;
        let rows = query.fetch_all(&mut *snapshot).await.map_err(engine)?;
        let workers = sqlx::query(sql::WORKERS).fetch_all(&mut *snapshot).await.map_err(engine)?;
        snapshot.rollback().await.map_err(engine)?;
        let living = self.presence.living(workers.iter().filter_map(worker_row), &fallen);
        Ok(as_they_stand(&rows, &living))
    }

    pub(super) async fn deliveries(
        &self,
        filter: &DeliveryFilter,
    ) -> Result<Vec<Delivery>, StoreError> {
        let limit = if filter.limit == 0 { LIST } else { filter.limit };
        let listed = deliveries::list(&self.pool, filter, limit).await;
        listed.map_err(|error| engine_error(error, &self.path))
    }

    pub(super) async fn next_due(&self, hook: &str) -> Result<Option<Duration>, StoreError> {
        let next = deliveries::next(&self.pool, hook).await;
        let next = next.map_err(|error| engine_error(error, &self.path))?;
        let now = self.now_ms();
        Ok(next.map(|at| Duration::from_millis(at.saturating_sub(now))))
    }

    pub(super) async fn orphans(&self) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query_scalar(sql::ORPHANS).fetch_all(&self.pool).await;
        rows.map_err(|error| engine_error(error, &self.path))
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

fn statement(text: &str) -> Statement<'static> {
    sqlx::query(AssertSqlSafe(bare(text)))
}
