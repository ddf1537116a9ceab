//! Reading beside the writer. Every log that is read is checked against its hashes.

use super::codec::{event_row, run_row, tail_row, to_sql, worker_row};
use super::engine_error;
use super::presence::Presence;
use super::text::bare;
use super::work::Request;
use crate::sql::{self, Family, Shape};
use crate::{Filter, Kin, RunRow, StoreError, Unfinished, chain};
use posse_protocol::{Record, RunId, Seq};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

pub(super) struct Reader {
    pool: SqlitePool,
    path: String,
    presence: Arc<Presence>,
    /// To tell the writer about damage.
    requests: mpsc::Sender<Request>,
}

/// Readers beside each other.
const READERS: u32 = 4;
/// How long a reader waits for its turn.
const PATIENCE: Duration = Duration::from_secs(300);
/// Runs in a list whose length nobody set.
const LIST: usize = 100;

impl Reader {
    pub(super) fn new(
        options: SqliteConnectOptions,
        path: String,
        presence: Arc<Presence>,
        requests: mpsc::Sender<Request>,
    ) -> Self {
        let pool = SqlitePoolOptions::new()
            .max_connections(READERS)
            // To wait is better than to fail, and the file does not go away.
            .acquire_timeout(PATIENCE)
            .test_before_acquire(false)
            .connect_lazy_with(options.read_only(true).create_if_missing(false));
        Reader { pool, path, presence, requests }
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
            // What cannot be marked now is found again by whoever reads next.
            if self.requests.send(mark).await.is_ok() {
                let _ = marked.await;
            }
        }
        result
    }

    /// What the log says, and what is already known to be wrong with it.
    async fn read_checked(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<(Result<Vec<Record>, StoreError>, Option<String>), StoreError> {
        let engine = |error| engine_error(error, &self.path);
        // One snapshot for the tail and the events.
        let mut snapshot = self.pool.begin().await.map_err(engine)?;
        let tail = sqlx::query(sql::TAIL)
            .bind(run.to_string())
            .fetch_optional(&mut *snapshot)
            .await
            .map_err(engine)?
            .ok_or(StoreError::NotFound(run))?;
        // The event before the first wanted one is read for its hash.
        let rows = sqlx::query(sql::EVENTS_FROM)
            .bind(run.to_string())
            .bind(to_sql(after.0.max(1)))
            .bind(to_sql(limit.saturating_add(1) as u64))
            .fetch_all(&mut *snapshot)
            .await
            .map_err(engine)?;
        snapshot.rollback().await.map_err(engine)?;
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
        let shape = Shape {
            ids: usize::from(filter.id.is_some()),
            workspace: filter.workspace.is_some(),
            kin: match filter.kin {
                Kin::All => None,
                Kin::Roots => Some(Family::Roots),
                Kin::ChildrenOf(_) => Some(Family::Children),
                Kin::TreeOf(_) => Some(Family::Tree),
            },
            before: filter.before.is_some(),
            unfinished: filter.unfinished == Unfinished::Only,
            gathering: filter.unfinished == Unfinished::Gathering,
        };
        let mut query = sqlx::query(AssertSqlSafe(bare(&sql::list(shape))));
        let texts = [
            filter.id.map(|id| id.to_string()),
            filter.workspace.clone(),
            match filter.kin {
                Kin::ChildrenOf(run) | Kin::TreeOf(run) => Some(run.to_string()),
                Kin::All | Kin::Roots => None,
            },
            filter.before.map(|id| id.to_string()),
        ];
        for text in texts.into_iter().flatten() {
            query = query.bind(text);
        }
        let limit = if filter.limit == 0 { LIST } else { filter.limit };
        // One snapshot for the runs and the workers that own them.
        let mut snapshot = self.pool.begin().await.map_err(engine)?;
        let query = query.bind(to_sql(limit as u64));
        let rows = query.fetch_all(&mut *snapshot).await.map_err(engine)?;
        let workers = sqlx::query(sql::WORKERS).fetch_all(&mut *snapshot).await.map_err(engine)?;
        snapshot.rollback().await.map_err(engine)?;
        let living = self.presence.living(workers.iter().filter_map(worker_row));
        let status = |mut row: RunRow| {
            row.status = row.status_given(row.owner.is_some_and(|owner| living.contains(&owner)));
            row
        };
        Ok(rows.iter().filter_map(run_row).map(status).collect())
    }

    pub(super) async fn orphans(&self) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query_scalar(sql::ORPHANS).fetch_all(&self.pool).await;
        rows.map_err(|error| engine_error(error, &self.path))
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}
