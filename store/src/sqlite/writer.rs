//! The one writer. It takes what waits, decides in memory, writes it with a handful of
//! statements in one transaction, and answers everyone after the commit.
//!
//! Rows of runs are kept in memory between groups. That is sound because `PRAGMA data_version`,
//! read inside the transaction, tells when another process has written: then they are dropped.

use super::codec::{bind_event, bind_run, run_row};
use super::hub::Hub;
use super::presence::Presence;
use super::reader::worker_row;
use super::reserve::SpaceReserve;
use super::{Options, engine_error};
use crate::append::{Append, Appended, Guard, Reserve};
use crate::row::{RunRow, StoredEvent};
use crate::sql::{self, Shape};
use crate::{Claimed, StoreError, Wanted};
use posse_protocol::{Event, RunId, SCHEMA_VERSION, Seq};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Row};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Request {
    Append { batch: Vec<Append>, reply: Reply<Vec<Appended>> },
    Claim { wanted: Wanted, reply: Reply<Vec<Claimed>> },
    Renew { reply: Reply<()> },
    Damage { run: RunId, reason: String },
    Close { reply: Reply<()> },
}

/// What is answered once the group is committed.
enum Answer {
    Appended {
        reply: Reply<Vec<Appended>>,
        result: Result<Vec<Appended>, StoreError>,
        /// The batch once more, if it may use the reserve.
        spare: Option<Vec<Append>>,
    },
    Claimed(Reply<Vec<Claimed>>, Result<Vec<Claimed>, StoreError>),
    Renewed(Reply<()>),
}

/// Requests in one commit, at most.
const GROUP: usize = 1_024;
/// Rows kept between groups, at most.
const CACHE: usize = 65_536;
/// Rows of one INSERT: statements are prepared for powers of two up to this.
const ROWS: usize = 64;

pub(super) struct Writer {
    connection: SqliteConnection,
    path: String,
    presence: Arc<Presence>,
    hub: Arc<Hub>,
    reserve: SpaceReserve,
    poll: Duration,
    rows: HashMap<RunId, RunRow>,
    data_version: i64,
    registered: bool,
    /// Runs of workers nobody knows have been freed.
    swept: bool,
    /// Another process has written since watchers were last told.
    outside: bool,
    full: bool,
}

/// What one group changes.
#[derive(Default)]
struct Group {
    events: Vec<StoredEvent>,
    /// Runs whose rows changed since they were last written.
    dirty: BTreeSet<RunId>,
    /// Runs whose rows changed.
    touched: BTreeSet<RunId>,
    keys: HashMap<String, RunId>,
    freed: bool,
}

impl Writer {
    pub(super) fn new(
        connection: SqliteConnection,
        options: &Options,
        presence: Arc<Presence>,
        hub: Arc<Hub>,
    ) -> Self {
        let reserve = SpaceReserve::new(&options.path, options.reserve_bytes);
        Writer {
            connection,
            path: options.path.display().to_string(),
            presence,
            hub,
            reserve,
            poll: options.poll,
            rows: HashMap::new(),
            data_version: 0,
            registered: false,
            swept: false,
            outside: false,
            full: false,
        }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Request>) {
        // Kept from the first moment on; if there is no room even for it, the disk is full.
        self.full = self.reserve.fill().is_err();
        let mut group = Vec::with_capacity(GROUP);
        loop {
            match tokio::time::timeout(self.poll, inbox.recv_many(&mut group, GROUP)).await {
                Err(_idle) => self.look_outside().await,
                Ok(0) => break,
                Ok(_) => {
                    if let Some(closed) = self.serve(std::mem::take(&mut group)).await {
                        inbox.close();
                        let _ = closed.send(Ok(()));
                        break;
                    }
                }
            }
            self.tell_of_outside().await;
        }
        self.depart().await;
    }

    /// Serves a group of requests. Returns the reply to a request to close, if there was one.
    async fn serve(&mut self, requests: Vec<Request>) -> Option<Reply<()>> {
        let mut closing = None;
        let mut urgent = Vec::new();
        let mut work = Vec::new();
        let full = self.full && !self.regain();
        for request in requests {
            match request {
                Request::Close { reply } => closing = Some(reply),
                Request::Append { batch, reply } if uses_reserve(&batch) => {
                    urgent.push(Request::Append { batch, reply });
                }
                Request::Renew { reply } if full => {
                    // Nobody can take over either: there is no space for that.
                    let _ = reply.send(Ok(()));
                }
                other if full => refuse(other, &StoreError::Full),
                other => work.push(other),
            }
        }
        if full {
            self.reserve.release();
        } else {
            work.append(&mut urgent);
        }
        if !work.is_empty() {
            self.commit(work).await;
        }
        if !urgent.is_empty() {
            self.commit(urgent).await;
        }
        closing
    }

    /// Ends the state of a full disk when there is space again.
    fn regain(&mut self) -> bool {
        if self.reserve.space_is_back() && self.reserve.fill().is_ok() {
            self.full = false;
        }
        !self.full
    }

    /// Serves requests in one transaction and answers after it.
    async fn commit(&mut self, requests: Vec<Request>) {
        let mut retry = Vec::new();
        let outcome = self.transact(requests, &mut retry).await;
        match outcome {
            Ok((group, answers)) => {
                fail::fail_point!("store.commit.after");
                self.publish(group);
                for answer in answers {
                    answer.send(None);
                }
            }
            Err((error, answers)) => {
                self.rows.clear();
                self.full |= matches!(error, StoreError::Full);
                for answer in answers {
                    answer.send(Some(error.clone()));
                }
                if !retry.is_empty() {
                    self.reserve.release();
                    self.commit_urgent(retry).await;
                }
            }
        }
    }

    /// Stores, from the reserve, what stops runs, after the disk turned out to be full.
    async fn commit_urgent(&mut self, requests: Vec<Request>) {
        match self.transact(requests, &mut Vec::new()).await {
            Ok((group, answers)) => {
                self.publish(group);
                answers.into_iter().for_each(|answer| answer.send(None));
            }
            Err((error, answers)) => {
                self.rows.clear();
                answers.into_iter().for_each(|answer| answer.send(Some(error.clone())));
            }
        }
    }

    /// Does everything up to and with COMMIT. What may use the reserve is handed back in
    /// `retry` when the disk is full.
    async fn transact(
        &mut self,
        requests: Vec<Request>,
        retry: &mut Vec<Request>,
    ) -> Result<(Group, Vec<Answer>), (StoreError, Vec<Answer>)> {
        let mut group = Group::default();
        let mut answers = Vec::with_capacity(requests.len());
        let result = self.transact_in(requests, &mut group, &mut answers).await;
        let Err(error) = result else { return Ok((group, answers)) };
        // The connection may stand inside a failed transaction.
        let _ = sqlx::query("ROLLBACK").execute(&mut self.connection).await;
        if !matches!(error, StoreError::Full) || self.full {
            return Err((error, answers));
        }
        let mut rest = Vec::new();
        for answer in answers {
            match answer {
                Answer::Appended { reply, result: Ok(_), spare: Some(batch) } => {
                    retry.push(Request::Append { batch, reply });
                }
                answer => rest.push(answer),
            }
        }
        Err((error, rest))
    }

    async fn transact_in(
        &mut self,
        requests: Vec<Request>,
        group: &mut Group,
        answers: &mut Vec<Answer>,
    ) -> Result<(), StoreError> {
        // Refusals are answered even if the rest fails; so every request gets its answer first.
        let mut damages = Vec::new();
        let begun = self.begin(&requests, group).await;
        for request in requests {
            match request {
                Request::Append { batch, reply } => {
                    let spare = uses_reserve(&batch).then(|| batch.clone());
                    let result = match &begun {
                        Ok(()) => self.admit(batch, group),
                        Err(error) => Err(error.clone()),
                    };
                    answers.push(Answer::Appended { reply, result, spare });
                }
                Request::Claim { wanted, reply } => {
                    let result = match &begun {
                        Ok(()) => self.claim(&wanted, group).await,
                        Err(error) => Err(error.clone()),
                    };
                    answers.push(Answer::Claimed(reply, result));
                }
                Request::Renew { reply } => answers.push(Answer::Renewed(reply)),
                Request::Damage { run, reason } => damages.push((run, reason)),
                Request::Close { .. } => {}
            }
        }
        begun?;
        for (run, reason) in damages {
            self.mark_damaged(run, reason).await?;
        }
        if answers.iter().any(|answer| matches!(answer, Answer::Renewed(_))) {
            self.renew().await?;
        }
        self.write(group).await?;
        fail::fail_point!("store.commit.before");
        self.execute("COMMIT").await
    }

    async fn begin(&mut self, requests: &[Request], group: &mut Group) -> Result<(), StoreError> {
        self.execute("BEGIN IMMEDIATE").await?;
        fail::fail_point!("store.begin.after");
        self.notice_others().await?;
        self.register().await?;
        self.load(requests, group).await
    }

    /// Drops what memory holds if another process has written since.
    async fn notice_others(&mut self) -> Result<(), StoreError> {
        let row = sqlx::query("PRAGMA data_version").fetch_one(&mut self.connection).await;
        let version: i64 = row.and_then(|row| row.try_get(0)).map_err(|e| self.engine(e))?;
        if version != self.data_version && self.data_version != 0 {
            self.rows.clear();
            self.registered = false;
            self.outside = true;
        }
        self.data_version = version;
        Ok(())
    }

    /// Makes this worker known, once, or again after someone took it for dead.
    async fn register(&mut self) -> Result<(), StoreError> {
        if self.registered {
            return Ok(());
        }
        sqlx::query(sql::WORKER_SAVE)
            .bind(self.presence.worker.to_string())
            .bind(self.presence.boot().to_owned())
            .bind(self.presence.lease_end() as i64)
            .execute(&mut self.connection)
            .await
            .map_err(|error| self.engine(error))?;
        self.registered = true;
        Ok(())
    }

    async fn renew(&mut self) -> Result<(), StoreError> {
        let renewed = sqlx::query(sql::WORKER_RENEW)
            .bind(self.presence.worker.to_string())
            .bind(self.presence.lease_end() as i64)
            .execute(&mut self.connection)
            .await
            .map_err(|error| self.engine(error))?;
        if renewed.rows_affected() == 0 {
            // Someone took this worker for dead and has its runs; it begins anew.
            self.registered = false;
            self.register().await?;
        }
        fail::fail_point!("store.renew");
        Ok(())
    }

    /// Reads the rows and keys that the requests speak of and memory does not hold.
    async fn load(&mut self, requests: &[Request], group: &mut Group) -> Result<(), StoreError> {
        let mut missing = BTreeSet::new();
        let mut keys = Vec::new();
        for append in requests.iter().flat_map(|request| match request {
            Request::Append { batch, .. } => batch.as_slice(),
            _ => &[],
        }) {
            match (append.guard, append.events.first()) {
                (Guard::Create(_), Some(Event::RunStarted(started))) => {
                    keys.extend(started.key.clone());
                }
                _ if !self.rows.contains_key(&append.run) => {
                    missing.insert(append.run);
                }
                _ => {}
            }
        }
        let missing: Vec<RunId> = missing.into_iter().collect();
        for chunk in missing.chunks(ROWS) {
            let mut query = sqlx::query(AssertSqlSafe(sql::runs_by_id(chunk.len())));
            for run in chunk {
                query = query.bind(run.to_string());
            }
            let found = query.fetch_all(&mut self.connection).await.map_err(|e| self.engine(e))?;
            for row in &found {
                let row = run_row(row).map_err(|error| self.engine(error))?;
                self.rows.insert(row.id, row);
            }
        }
        for chunk in keys.chunks(ROWS) {
            let mut query = sqlx::query(AssertSqlSafe(sql::runs_by_key(chunk.len())));
            for key in chunk {
                query = query.bind(key.clone());
            }
            let found = query.fetch_all(&mut self.connection).await.map_err(|e| self.engine(e))?;
            for row in &found {
                let (key, id): (String, String) = (row.get(0), row.get(1));
                if let Ok(id) = id.parse() {
                    group.keys.insert(key, id);
                }
            }
        }
        Ok(())
    }

    /// Decides on one batch: all of it, or a refusal that leaves its neighbours alone.
    fn admit(
        &mut self,
        batch: Vec<Append>,
        group: &mut Group,
    ) -> Result<Vec<Appended>, StoreError> {
        let at = self.presence.clock().wall_ms();
        let worker = self.presence.worker;
        let mut next: HashMap<RunId, RunRow> = HashMap::new();
        let mut events = Vec::new();
        let mut answers = Vec::with_capacity(batch.len());
        let mut keys = Vec::new();
        for append in &batch {
            if let (Guard::Create(_), Some(Event::RunStarted(started))) =
                (append.guard, append.events.first())
                && let Some(key) = &started.key
            {
                if let Some(run) = group.keys.get(key) {
                    return Err(StoreError::KeyTaken { key: key.clone(), run: *run });
                }
                keys.push((key.clone(), append.run));
            }
            let row = next.get(&append.run).or_else(|| self.rows.get(&append.run));
            let before = row.map_or(Seq::ZERO, |row| row.last_seq);
            let (row, mut stored) = RunRow::admit(row, append, worker, at)?;
            answers.push(Appended { first: before.next(), last: row.last_seq, epoch: row.epoch });
            events.append(&mut stored);
            next.insert(row.id, row);
        }
        for (run, row) in next {
            group.freed |= row.runnable && row.owner.is_none();
            group.dirty.insert(run);
            self.rows.insert(run, row);
        }
        group.keys.extend(keys);
        group.events.append(&mut events);
        Ok(answers)
    }

    async fn claim(
        &mut self,
        wanted: &Wanted,
        group: &mut Group,
    ) -> Result<Vec<Claimed>, StoreError> {
        // What the group has decided so far must be seen by the query.
        self.write(group).await?;
        self.free_runs_of_the_dead(group).await?;
        let shape = Shape {
            ids: wanted.runs.len(),
            workspace: wanted.workspace.is_some(),
            ..Shape::default()
        };
        let mut query = sqlx::query(AssertSqlSafe(sql::claimable(shape)));
        query = query.bind(i64::from(SCHEMA_VERSION));
        for run in &wanted.runs {
            query = query.bind(run.to_string());
        }
        if let Some(workspace) = &wanted.workspace {
            query = query.bind(workspace.clone());
        }
        let query = query.bind(wanted.limit as i64);
        let found = query.fetch_all(&mut self.connection).await.map_err(|e| self.engine(e))?;
        let mut claimed = Vec::with_capacity(found.len());
        for row in &found {
            let mut row = run_row(row).map_err(|error| self.engine(error))?;
            row.owner = Some(self.presence.worker);
            row.epoch += 1;
            group.dirty.insert(row.id);
            self.rows.insert(row.id, row.clone());
            claimed.push(Claimed { epoch: row.epoch, row });
        }
        self.write(group).await?;
        fail::fail_point!("store.claim.written");
        Ok(claimed)
    }

    /// Queues again what dead workers owned.
    async fn free_runs_of_the_dead(&mut self, group: &mut Group) -> Result<(), StoreError> {
        if !std::mem::replace(&mut self.swept, true) {
            self.execute(sql::DISOWN_UNKNOWN).await?;
        }
        let rows = sqlx::query(sql::WORKERS).fetch_all(&mut self.connection).await;
        for row in rows.map_err(|error| self.engine(error))? {
            let worker = worker_row(&row).map_err(|error| self.engine(error))?;
            if self.presence.lives(&worker) {
                continue;
            }
            for statement in [sql::DISOWN, sql::WORKER_DELETE] {
                sqlx::query(statement)
                    .bind(worker.id.to_string())
                    .execute(&mut self.connection)
                    .await
                    .map_err(|error| self.engine(error))?;
            }
            self.presence.forget(worker.id);
            self.rows.retain(|_, row| row.owner != Some(worker.id));
            group.freed = true;
        }
        Ok(())
    }

    async fn mark_damaged(&mut self, run: RunId, reason: String) -> Result<(), StoreError> {
        self.rows.remove(&run);
        sqlx::query(sql::MARK_DAMAGED)
            .bind(run.to_string())
            .bind(reason)
            .execute(&mut self.connection)
            .await
            .map(|_| ())
            .map_err(|error| self.engine(error))
    }

    /// Writes what the group has decided so far.
    async fn write(&mut self, group: &mut Group) -> Result<(), StoreError> {
        let mut events = std::mem::take(&mut group.events).into_iter().peekable();
        while events.peek().is_some() {
            let count = chunk(events.len());
            let mut query = sqlx::query(AssertSqlSafe(sql::insert_events(count)));
            for event in events.by_ref().take(count) {
                query = bind_event(query, event);
            }
            query.execute(&mut self.connection).await.map_err(|error| self.engine(error))?;
            fail::fail_point!("store.events.written");
        }
        let rows: Vec<&RunRow> = group.dirty.iter().filter_map(|run| self.rows.get(run)).collect();
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(chunk(rest.len()));
            let mut query = sqlx::query(AssertSqlSafe(sql::save_runs(now.len())));
            for row in now {
                query = bind_run(query, row);
            }
            let result = query.execute(&mut self.connection).await;
            result.map_err(|error| engine_error(error, &self.path))?;
            fail::fail_point!("store.runs.written");
            rest = later;
        }
        group.touched.append(&mut group.dirty);
        Ok(())
    }

    /// Tells watchers what moved, after the commit.
    fn publish(&mut self, group: Group) {
        let tails: Vec<(RunId, Seq)> = group
            .touched
            .iter()
            .filter_map(|run| self.rows.get(run).map(|row| (*run, row.last_seq)))
            .collect();
        self.hub.moved(tails);
        if group.freed {
            self.hub.wake();
        }
        // What is at rest is forgotten; what this worker owns is written to again soon.
        for run in &group.touched {
            if self.rows.get(run).is_some_and(|row| row.owner.is_none()) {
                self.rows.remove(run);
            }
        }
        if self.rows.len() > CACHE {
            self.rows.clear();
        }
    }

    /// Looks for what other processes have written while this one is idle.
    async fn look_outside(&mut self) {
        if self.full {
            self.regain();
        }
        // Nothing to do about an error here: the next write meets it, and reports it.
        let _ = self.notice_others().await;
    }

    /// Tells watchers in this process what other processes have written.
    async fn tell_of_outside(&mut self) {
        if !std::mem::take(&mut self.outside) {
            return;
        }
        self.hub.wake();
        for chunk in self.hub.watched().chunks(ROWS) {
            let mut query = sqlx::query(AssertSqlSafe(sql::tails(chunk.len())));
            for run in chunk {
                query = query.bind(run.to_string());
            }
            let Ok(found) = query.fetch_all(&mut self.connection).await else { return };
            self.hub.moved(found.iter().filter_map(|row| {
                let id: String = row.try_get(0).ok()?;
                let last: i64 = row.try_get(1).ok()?;
                Some((id.parse().ok()?, Seq(last as u64)))
            }));
        }
    }

    /// Gives up every claim. What cannot be written is freed by the lock that the kernel drops.
    async fn depart(mut self) {
        if self.registered {
            for statement in [sql::DISOWN, sql::WORKER_DELETE] {
                let worker = self.presence.worker.to_string();
                let _ = sqlx::query(statement).bind(worker).execute(&mut self.connection).await;
            }
        }
        self.presence.forget(self.presence.worker);
        let _ = self.connection.close().await;
    }

    async fn execute(&mut self, statement: &'static str) -> Result<(), StoreError> {
        let result = sqlx::query(statement).execute(&mut self.connection).await;
        result.map(|_| ()).map_err(|error| self.engine(error))
    }

    fn engine(&self, error: sqlx::Error) -> StoreError {
        engine_error(error, &self.path)
    }
}

impl Answer {
    /// Sends it, or `failure` in place of a success.
    fn send(self, failure: Option<StoreError>) {
        // Whoever no longer waits for the answer does not need it.
        match self {
            Answer::Appended { reply, result, .. } => {
                let _ = reply.send(failure.map_or(result, Err));
            }
            Answer::Claimed(reply, result) => {
                let _ = reply.send(failure.map_or(result, Err));
            }
            Answer::Renewed(reply) => {
                let _ = reply.send(failure.map_or(Ok(()), Err));
            }
        }
    }
}

fn uses_reserve(batch: &[Append]) -> bool {
    batch.iter().any(|append| append.reserve == Reserve::Use)
}

fn refuse(request: Request, error: &StoreError) {
    match request {
        Request::Append { reply, .. } => {
            let _ = reply.send(Err(error.clone()));
        }
        Request::Claim { reply, .. } => {
            let _ = reply.send(Err(error.clone()));
        }
        Request::Renew { reply } | Request::Close { reply } => {
            let _ = reply.send(Err(error.clone()));
        }
        Request::Damage { .. } => {}
    }
}

/// How many of `left` rows the next statement takes: a power of two, so that few are prepared.
fn chunk(left: usize) -> usize {
    let mut size = ROWS;
    while size > left {
        size /= 2;
    }
    size.max(1)
}
