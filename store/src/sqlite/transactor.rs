//! The writing connection and its cache of rows. It executes one transaction at a time, decides in
//! memory ([`crate::transaction`]), and writes with a few statements.
//!
//! Rows of runs are cached between transactions. `PRAGMA data_version`, read inside the
//! transaction, tells whether another process has written. If so, the cache is cleared.

mod stage;
mod write;

use super::checkpoint;
use super::codec::{Statement, worker_row};
use super::deliveries;
use super::engine_error;
use super::files::DatabaseFiles;
use super::migrate::Connected;
use super::presence::Presence;
use super::text::{Texts, Then, bare};
use crate::engine::{Answers, Work, bind_head, run_row, to_sql};
use crate::row::{NO_PROGRESS, RunRow};
use crate::sql::{self, Shape};
use crate::stage::EVENTS_AT_ONCE;
use crate::transaction::{Changes, Loading, Rows, Stamp};
use crate::{Claimed, StoreError, Wanted};
use posse_protocol::{RunId, SCHEMA_VERSION, Seq, WorkerId};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Begins a transaction and tells whether another process has written, in one round trip.
const BEGIN: &str = "BEGIN IMMEDIATE; PRAGMA data_version";
/// The most rows in the cache.
const CACHE: usize = 65_536;
/// The most rows of one statement. Statements are prepared for powers of two up to this.
const ROWS: usize = 64;

pub(super) struct Transactor {
    connection: SqliteConnection,
    place: DatabaseFiles,
    path: String,
    presence: Arc<Presence>,
    rows: Rows,
    data_version: i64,
    registered: bool,
    /// The new end of the lease, once this transaction is committed.
    renewed: Option<u64>,
    /// True if another process has written and watchers do not know yet.
    outside: bool,
    /// When this worker last kept what it has staged, in steady milliseconds.
    kept_at: u64,
    texts: Texts,
}

/// The result of a transaction.
pub(super) struct Done {
    pub(super) answers: Answers,
    /// The last positions of the changed logs.
    pub(super) tails: Vec<(RunId, Seq)>,
    /// True if a run may have become claimable.
    pub(super) freed: bool,
}

/// Why a transaction changed nothing.
pub(super) enum Failure {
    /// It could not begin, so no request caused this.
    ToBegin(StoreError),
    /// A statement in it failed.
    Inside(StoreError),
}

/// The state of one transaction.
#[derive(Default)]
struct Group {
    answers: Answers,
    /// Decisions that are not written yet.
    changes: Changes,
    /// Runs whose rows were written.
    touched: BTreeSet<RunId>,
    /// Workers that were found dead.
    dead: Vec<WorkerId>,
}

impl Transactor {
    /// Takes over the connection. Later writes of other processes are detected.
    pub(super) fn new(
        connected: Connected,
        place: DatabaseFiles,
        path: String,
        presence: Arc<Presence>,
    ) -> Self {
        let Connected { connection, data_version } = connected;
        Transactor {
            connection,
            place,
            path,
            presence,
            rows: Rows::new(),
            data_version,
            registered: false,
            renewed: None,
            outside: false,
            kept_at: 0,
            texts: Texts::default(),
        }
    }

    /// Performs all of `work`, each request as if it were alone, or nothing.
    pub(super) async fn transact(&mut self, work: &Work) -> Result<Done, Failure> {
        self.begin().await.map_err(Failure::ToBegin)?;
        fail::fail_point!("store.begin.after");
        let mut group = Group::default();
        if let Err(error) = self.perform(work, &mut group).await {
            // The engine may have rolled back already.
            let _ = self.execute("ROLLBACK").await;
            self.forget();
            return Err(Failure::Inside(error));
        }
        fail::fail_point!("store.commit.after");
        if let Some(until) = self.renewed.take() {
            self.presence.renewed(until);
        }
        Ok(self.conclude(group))
    }

    /// Clears the cache, which may differ from the database.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
        (self.registered, self.renewed) = (false, None);
    }

    async fn perform(&mut self, work: &Work, group: &mut Group) -> Result<(), StoreError> {
        self.register(work).await?;
        for (run, reason, _) in &work.damages {
            self.mark_damaged(*run, reason).await?;
        }
        for (staging, _) in &work.stagings {
            let staged = self.stage(staging).await?;
            group.answers.staged.push(staged);
        }
        self.load(work, group).await?;
        for (run, last, _) in &work.erasures {
            let result = self.erase(*run, *last, group).await?;
            group.answers.erased.push(result);
        }
        for (tree, _) in &work.trees {
            let result = group.changes.bring(&mut self.rows, tree);
            group.answers.brought.push(result);
        }
        for (batch, _) in &work.appends {
            let at = self.presence.clock().wall_ms();
            let stamp = Stamp { worker: self.presence.worker, at };
            let result = group.changes.admit(&mut self.rows, batch, stamp);
            group.answers.appended.push(result);
        }
        self.deliver(work, group).await?;
        self.show_staged(group).await?;
        if work.claims.is_empty() {
            about_to_commit();
            return self.write(group, Then::Commit).await;
        }
        self.write(group, Then::GoOn).await?;
        self.free_runs_of_the_dead(group).await?;
        for (wanted, _) in &work.claims {
            let claimed = self.claim(wanted, work.only_to_stop, group).await?;
            group.answers.claimed.push(claimed);
        }
        about_to_commit();
        self.execute("COMMIT").await
    }

    /// Stores the deliveries of the new events, and performs requests about deliveries.
    async fn deliver(&mut self, work: &Work, group: &mut Group) -> Result<(), StoreError> {
        let now = self.presence.clock().wall_ms();
        let connection = &mut self.connection;
        let done =
            deliveries::store(connection, std::mem::take(&mut group.changes.deliveries)).await;
        done.map_err(|error| engine_error(error, &self.path))?;
        for (change, _) in &work.deliveries {
            let changed = deliveries::change(connection, change, now).await;
            let changed = changed.map_err(|error| engine_error(error, &self.path))?;
            group.answers.deliveries.push(changed);
        }
        Ok(())
    }

    /// Shows the bundles that count now, each in place of the earlier one of its run, and the logs that
    /// have arrived.
    async fn show_staged(&mut self, group: &mut Group) -> Result<(), StoreError> {
        for run in std::mem::take(&mut group.changes.shown) {
            self.run(sqlx::query(sql::stage::LOG_SHOW).bind(run.to_string())).await?;
        }
        for (run, head) in std::mem::take(&mut group.changes.bundles) {
            self.run(sqlx::query(sql::stage::BUNDLE_RETIRE).bind(run.to_string())).await?;
            self.run(bind_head(sqlx::query(sql::stage::BUNDLE_SHOW), run, &head)).await?;
        }
        Ok(())
    }

    /// Returns true if the files of the database are still in place.
    pub(super) fn is_kept(&self) -> bool {
        self.place.is_kept()
    }

    /// Begins a transaction, and clears the cache if another process has written.
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.place.check()?;
        let begun = sqlx::query(BEGIN);
        let row = begun.fetch_one(&mut self.connection).await;
        let version = row.and_then(|row| row.try_get(0)).map_err(|error| self.engine(error))?;
        self.notice(version);
        // Check again: a process may have replaced the file before this one got the lock.
        if let Err(error) = self.place.check() {
            let _ = self.execute("ROLLBACK").await;
            return Err(error);
        }
        Ok(())
    }

    /// Clears the cache if another process has written.
    async fn notice_others(&mut self) -> Result<(), StoreError> {
        let row = sqlx::query("PRAGMA data_version").fetch_one(&mut self.connection).await;
        let version = row.and_then(|row| row.try_get(0)).map_err(|error| self.engine(error))?;
        self.notice(version);
        Ok(())
    }

    fn notice(&mut self, version: i64) {
        if version != self.data_version {
            self.forget();
            self.outside = true;
            self.data_version = version;
        }
    }

    /// Writes the row of this worker: at first, to renew its lease, and when another worker may
    /// have removed it as dead.
    async fn register(&mut self, work: &Work) -> Result<(), StoreError> {
        if self.registered && work.renewals.is_empty() {
            return Ok(());
        }
        let until = self.presence.lease_end();
        sqlx::query(sql::WORKER_SAVE)
            .bind(self.presence.worker.to_string())
            .bind(self.presence.boot().to_owned())
            .bind(until as i64)
            .bind(self.presence.introduction.text())
            .execute(&mut self.connection)
            .await
            .map_err(|error| self.engine(error))?;
        self.registered = true;
        self.renewed = Some(until);
        fail::fail_point!("store.renew");
        Ok(())
    }

    /// Reads the rows and keys that the requests need and the cache does not have.
    async fn load(&mut self, work: &Work, group: &mut Group) -> Result<(), StoreError> {
        let drafts = work.appends.iter().flat_map(|(batch, _)| batch);
        let mut loading = Loading::of(drafts, work.erasures.iter().map(|(run, _, _)| *run));
        let copies = || work.trees.iter().flat_map(|(tree, _)| tree);
        copies().for_each(|copy| loading.add_copy(copy));
        loop {
            let missing = loading.next(&self.rows);
            if missing.is_empty() {
                break;
            }
            let missing = missing.iter().map(RunId::to_string).collect();
            let found = self.select(sql::runs_by_id, missing).await?;
            let found = found.iter().filter_map(run_row);
            self.rows.extend(found.map(|row| (row.id, Box::new(row))));
        }
        for row in self.select(sql::runs_by_key, loading.keys().clone()).await? {
            let key: String = row.try_get(0).map_err(|error| self.engine(error))?;
            let run: String = row.try_get(1).map_err(|error| self.engine(error))?;
            if let Ok(run) = run.parse() {
                group.changes.know_key(key, run);
            }
        }
        self.load_staged(work, &mut group.changes).await
    }

    /// Selects rows for all texts in `wanted`, with as many statements as needed.
    async fn select(
        &mut self,
        text: fn(usize) -> String,
        wanted: BTreeSet<String>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let mut found = Vec::new();
        let mut wanted = wanted.into_iter();
        while wanted.len() > 0 {
            let count = piece(wanted.len());
            let mut query = sqlx::query(AssertSqlSafe(bare(&text(count))));
            for one in wanted.by_ref().take(count) {
                query = query.bind(one);
            }
            found.extend(query.fetch_all(&mut self.connection).await.map_err(|e| self.engine(e))?);
        }
        Ok(found)
    }

    /// Removes the log of a run, or returns why not.
    async fn erase(
        &mut self,
        run: RunId,
        last: Seq,
        group: &mut Group,
    ) -> Result<Result<(), StoreError>, StoreError> {
        if let Err(refusal) = group.changes.erase(&mut self.rows, run, last) {
            return Ok(Err(refusal));
        }
        let name = run.to_string();
        self.run(match last.0 > EVENTS_AT_ONCE {
            true => sqlx::query(sql::stage::LOG_HIDE).bind(name).bind(to_sql(last.0)),
            false => sqlx::query(sql::ERASE).bind(name),
        })
        .await?;
        self.run(sqlx::query(sql::stage::BUNDLE_RETIRE).bind(run.to_string())).await?;
        fail::fail_point!("store.erase.deleted");
        Ok(Ok(()))
    }

    /// Claims runs for this worker. All earlier decisions must be written first.
    async fn claim(
        &mut self,
        wanted: &Wanted,
        only_to_stop: bool,
        group: &mut Group,
    ) -> Result<Vec<Claimed>, StoreError> {
        let mut found: Vec<RunRow> = Vec::new();
        let mut rest = wanted.runs.as_slice();
        loop {
            let (now, later) = rest.split_at(piece(rest.len()).min(rest.len()));
            let rows = self.claimable(wanted, now, only_to_stop).await?;
            found.extend(rows.iter().filter_map(run_row));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        let worker = self.presence.worker;
        let taken = group.changes.claim(&mut self.rows, found, wanted.limit, worker);
        for (run, reason) in &taken.damaged {
            self.mark_damaged(*run, reason).await?;
        }
        self.write(group, Then::GoOn).await?;
        fail::fail_point!("store.claim.written");
        Ok(taken.claimed)
    }

    async fn claimable(
        &mut self,
        wanted: &Wanted,
        runs: &[RunId],
        only_to_stop: bool,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let workspace = wanted.workspace.is_some();
        let again = wanted.again.then_some(self.presence.worker);
        let shape = Shape { ids: runs.len(), workspace, only_to_stop, again };
        let mut query = sqlx::query(AssertSqlSafe(bare(&sql::claimable(
            shape,
            &self.presence.introduction.condition(),
        ))));
        query = query.bind(i64::from(SCHEMA_VERSION));
        for run in runs {
            query = query.bind(run.to_string());
        }
        if let Some(workspace) = &wanted.workspace {
            query = query.bind(workspace.clone());
        }
        let query = query.bind(i64::try_from(wanted.limit).unwrap_or(i64::MAX));
        query.fetch_all(&mut self.connection).await.map_err(|error| self.engine(error))
    }

    /// Queues runs of dead workers again. All earlier decisions must be written first.
    async fn free_runs_of_the_dead(&mut self, group: &mut Group) -> Result<(), StoreError> {
        let (living, dead) = self.workers().await?;
        let fallen = self.presence.fallen();
        for worker in &dead {
            // A worker that still holds its lock was only silent, and not killed by its run.
            if fallen.contains(worker) {
                self.count_deaths(*worker).await?;
            }
            self.delete_worker(*worker).await?;
        }
        if !dead.is_empty() {
            self.execute(sql::DISOWN).await?;
            fail::fail_point!("store.dead.freed");
            group.changes.free(&mut self.rows, &living);
            group.dead = dead;
        }
        Ok(())
    }

    /// Returns the living and the dead workers.
    async fn workers(&mut self) -> Result<(HashSet<WorkerId>, Vec<WorkerId>), StoreError> {
        let rows = sqlx::query(sql::WORKERS).fetch_all(&mut self.connection).await;
        let (mut living, mut dead) = (HashSet::new(), Vec::new());
        let rows = rows.map_err(|error| self.engine(error))?;
        let fallen = self.presence.fallen();
        for worker in rows.iter().filter_map(worker_row) {
            if self.presence.lives(&worker, &fallen) {
                living.insert(worker.id);
            } else {
                dead.push(worker.id);
            }
        }
        Ok((living, dead))
    }

    /// Returns true if a run was asked to stop and no living worker executes it.
    pub(super) async fn someone_is_to_stop(&mut self) -> bool {
        // On an error, the caller answers that the disk is full.
        let Ok((living, _)) = self.workers().await else { return false };
        let rows = sqlx::query(sql::TO_STOP).fetch_all(&mut self.connection).await;
        let is_free = |row: &SqliteRow| {
            let owner = row.try_get::<Option<String>, _>(0).ok().flatten();
            owner.is_none_or(|owner| !owner.parse().is_ok_and(|owner| living.contains(&owner)))
        };
        rows.is_ok_and(|rows| rows.iter().any(is_free))
    }

    /// Returns true if there is a dead worker, whose runs may be claimed.
    pub(super) async fn someone_died(&mut self) -> bool {
        // The next claim meets and reports an error.
        self.workers().await.is_ok_and(|(_, dead)| !dead.is_empty())
    }

    /// Counts a death for all runs of `worker`.
    async fn count_deaths(&mut self, worker: WorkerId) -> Result<(), StoreError> {
        let query = sqlx::query(sql::DIED).bind(to_sql(NO_PROGRESS)).bind(worker.to_string());
        let result = query.execute(&mut self.connection).await;
        result.map(|_| ()).map_err(|error| self.engine(error))
    }

    async fn delete_worker(&mut self, worker: WorkerId) -> Result<(), StoreError> {
        let query = sqlx::query(sql::WORKER_DELETE).bind(worker.to_string());
        let result = query.execute(&mut self.connection).await;
        result.map(|_| ()).map_err(|error| self.engine(error))
    }

    async fn mark_damaged(&mut self, run: RunId, reason: &str) -> Result<(), StoreError> {
        self.rows.remove(&run);
        let query = sqlx::query(sql::MARK_DAMAGED).bind(reason.to_owned()).bind(run.to_string());
        let result = query.execute(&mut self.connection).await;
        result.map(|_| ()).map_err(|error| self.engine(error))
    }

    /// After the commit: returns the answers and what watchers must know, and cleans the cache.
    fn conclude(&mut self, group: Group) -> Done {
        let tail = |run: &RunId| self.rows.get(run).map(|row| (*run, row.log.last_seq));
        let tails = group.touched.iter().filter_map(tail).collect();
        for worker in group.dead {
            self.presence.bury(worker);
        }
        // Drop runs without an owner. Runs with an owner are written again soon.
        for run in &group.touched {
            if self.rows.get(run).is_some_and(|row| row.work.owner.is_none()) {
                self.rows.remove(run);
            }
        }
        if self.rows.len() > CACHE {
            self.rows.clear();
        }
        Done { answers: group.answers, tails, freed: group.changes.freed }
    }

    /// Returns the last positions of the `watched` runs, if another process has written since the
    /// last call.
    pub(super) async fn moved_outside(
        &mut self,
        watched: impl FnOnce() -> Vec<RunId>,
    ) -> Result<Option<Vec<(RunId, Seq)>>, StoreError> {
        self.notice_others().await?;
        if !self.outside {
            return Ok(None);
        }
        let runs = watched().iter().map(RunId::to_string).collect();
        let rows = self.select(sql::tails, runs).await?;
        self.outside = false;
        let tail = |row: &SqliteRow| {
            let id: String = row.try_get(0).ok()?;
            let last: i64 = row.try_get(1).ok()?;
            Some((id.parse().ok()?, Seq(u64::try_from(last).ok()?)))
        };
        Ok(Some(rows.iter().filter_map(tail).collect()))
    }

    /// Returns the size of the database in bytes, including the write-ahead log.
    pub(super) async fn bytes(&mut self) -> Option<u64> {
        checkpoint::bytes(&mut self.connection).await.ok()
    }

    /// Moves the write-ahead log into the file and truncates it, unless a reader prevents that.
    pub(super) async fn cut_log_off(&mut self) {
        // On an error there is no more space than before, and the writer tries again later.
        let _ = checkpoint::cut_off(&mut self.connection).await;
    }

    /// Releases all claims and closes. If that cannot be written, others see the released lock.
    pub(super) async fn depart(mut self) {
        fail::fail_point!("store.depart.begun");
        let departed = match self.begin().await {
            Ok(()) => self.strike_out().await,
            Err(error) => Err(error),
        };
        self.presence.leave();
        fail::fail_point!("store.depart.left");
        if departed.is_ok() {
            self.presence.bury(self.presence.worker);
        }
        let _ = self.connection.close().await;
    }

    async fn strike_out(&mut self) -> Result<(), StoreError> {
        self.delete_worker(self.presence.worker).await?;
        self.execute(sql::DISOWN).await?;
        self.execute("COMMIT").await
    }

    /// Executes a statement. Returns the number of changed rows.
    async fn run(&mut self, statement: Statement<'_>) -> Result<u64, StoreError> {
        let result = statement.execute(&mut self.connection).await;
        result.map(|done| done.rows_affected()).map_err(|error| self.engine(error))
    }

    async fn execute(&mut self, statement: &'static str) -> Result<(), StoreError> {
        let result = sqlx::query(statement).execute(&mut self.connection).await;
        result.map(|_| ()).map_err(|error| self.engine(error))
    }

    fn engine(&self, error: sqlx::Error) -> StoreError {
        engine_error(error, &self.path)
    }
}

fn about_to_commit() {
    fail::fail_point!("store.commit.before");
}

/// Returns how many rows the next statement takes: a power of two, to prepare few statements.
fn piece(left: usize) -> usize {
    let mut size = ROWS;
    while size > left.max(1) {
        size /= 2;
    }
    size
}
