//! Reading beside the writer. Every log that is read is checked against its hashes.

use super::codec::run_row;
use super::presence::{Presence, WorkerRow};
use super::writer::Request;
use super::{Worker, engine_error};
use crate::sql::{self, Shape};
use crate::{Filter, RunRow, StoreError, Unfinished, chain};
use posse_protocol::{Record, RunId, Seq};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Row};
use std::sync::Arc;
use tokio::sync::mpsc;

pub(super) struct Reader {
    pool: SqlitePool,
    path: String,
    presence: Arc<Presence>,
    /// To tell the writer about damage.
    requests: mpsc::Sender<Request>,
}

/// Readers beside each other.
const READERS: u32 = 4;

impl Reader {
    pub(super) fn new(
        options: SqliteConnectOptions,
        path: String,
        presence: Arc<Presence>,
        requests: mpsc::Sender<Request>,
    ) -> Self {
        let pool = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_lazy_with(options.read_only(true).create_if_missing(false));
        Reader { pool, path, presence, requests }
    }

    pub(super) async fn read(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let result = self.read_checked(run, after, limit).await;
        if let Err(StoreError::Damaged { run, reason, .. }) = &result {
            let mark = Request::Damage { run: *run, reason: reason.clone() };
            // A writer that is gone marks nothing; whoever reads next finds the damage again.
            let _ = self.requests.send(mark).await;
        }
        result
    }

    async fn read_checked(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let engine = |error| engine_error(error, &self.path);
        // One snapshot for the tail and the events.
        let mut snapshot = self.pool.begin().await.map_err(engine)?;
        let tail = sqlx::query(sql::TAIL)
            .bind(run.to_string())
            .fetch_optional(&mut *snapshot)
            .await
            .map_err(engine)?
            .ok_or(StoreError::NotFound(run))?;
        let last_seq = Seq(tail.try_get::<i64, _>(0).map_err(engine)? as u64);
        let last_hash: String = tail.try_get(1).map_err(engine)?;
        // The event before the first wanted one is read for its hash.
        let from = after.0.max(1);
        let rows = sqlx::query(sql::EVENTS_AFTER)
            .bind(run.to_string())
            .bind(from as i64)
            .bind(limit.saturating_add(1).min(i64::MAX as usize) as i64)
            .fetch_all(&mut *snapshot)
            .await
            .map_err(engine)?;
        snapshot.rollback().await.map_err(engine)?;

        let damaged = |seq: Seq, reason: String| StoreError::Damaged { run, seq, reason };
        let mut records = Vec::with_capacity(rows.len());
        let mut expected = Seq(from);
        let mut hash = chain::seed(run);
        for row in rows {
            let seq = Seq(row.try_get::<i64, _>(0).map_err(engine)? as u64);
            if seq != expected {
                return Err(damaged(expected, format!("event {expected} is missing")));
            }
            expected = seq.next();
            let stored: String = row.try_get(4).map_err(engine)?;
            if seq == after {
                hash = stored;
                continue;
            }
            let at = row.try_get::<i64, _>(1).map_err(engine)? as u64;
            let version = row.try_get::<i64, _>(2).map_err(engine)? as u32;
            let body: &str = row.try_get(3).map_err(engine)?;
            hash = chain::link(&hash, seq, at, version, body);
            if hash != stored {
                return Err(damaged(seq, format!("event {seq} was changed")));
            }
            if records.len() < limit {
                records.push(Record::decode(run, seq, at, version, body)?);
            }
        }
        let reached = Seq(expected.0 - 1);
        if records.len() < limit && (reached < last_seq || reached == last_seq && hash != last_hash)
        {
            let reason = match reached < last_seq {
                true => format!("event {expected} is missing"),
                false => format!("event {reached} was changed"),
            };
            return Err(damaged(expected.min(last_seq), reason));
        }
        Ok(records)
    }

    pub(super) async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        let engine = |error| engine_error(error, &self.path);
        let shape = Shape {
            ids: usize::from(filter.id.is_some()),
            workspace: filter.workspace.is_some(),
            before: filter.before.is_some(),
            unfinished: filter.unfinished == Unfinished::Only,
        };
        let text = sql::list(shape);
        let mut query = sqlx::query(AssertSqlSafe(text));
        for text in [filter.id.map(|id| id.to_string()), filter.workspace.clone()] {
            if let Some(text) = text {
                query = query.bind(text);
            }
        }
        if let Some(before) = filter.before {
            query = query.bind(before.to_string());
        }
        let limit = if filter.limit == 0 { 100 } else { filter.limit };
        let rows = query.bind(limit as i64).fetch_all(&self.pool).await.map_err(engine)?;
        let workers = self.workers().await?;
        let living = self.presence.living(&workers);
        rows.iter()
            .map(|row| {
                let mut row = run_row(row).map_err(engine)?;
                let alive = |owner: Worker| living.get(&owner).copied().unwrap_or(false);
                row.status = row.status_given(row.owner.is_some_and(alive));
                Ok(row)
            })
            .collect()
    }

    async fn workers(&self) -> Result<Vec<WorkerRow>, StoreError> {
        let engine = |error| engine_error(error, &self.path);
        let rows = sqlx::query(sql::WORKERS).fetch_all(&self.pool).await.map_err(engine)?;
        rows.iter().map(worker_row).collect::<Result<_, _>>().map_err(engine)
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

pub(super) fn worker_row(row: &sqlx::sqlite::SqliteRow) -> Result<WorkerRow, sqlx::Error> {
    let id: String = row.try_get(0)?;
    Ok(WorkerRow {
        id: id.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        boot: row.try_get(1)?,
        lease_until: row.try_get::<i64, _>(2)? as u64,
    })
}
