//! Queries of the queue, concurrent with the writer.

use super::codec::worker_row;
use super::engine_error;
use super::reader::Reader;
use super::text::bare;
use crate::engine::{
    MOST, bind_ahead, bind_ids, bind_of_each_root, cut, queued_row, room_for, to_sql,
};
use crate::sql;
use crate::{Look, Passed, Queue, Queued, StoreError};
use posse_protocol::{RunId, SCHEMA_VERSION};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use sqlx::{AssertSqlSafe, Row};
use std::collections::{HashMap, HashSet};

/// The result of a query.
pub(super) enum QueueResult {
    /// The queue.
    Whole(Queue),
    /// A worker has died. Its runs belong to the queue once the writer has released them.
    Dead,
}

/// What a query does about dead workers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dead {
    /// It returns [`QueueResult::Dead`].
    Told,
    /// It returns the queue without their runs.
    PassedOver,
}

type Statement = Query<'static, Sqlite, SqliteArguments>;

impl Reader {
    pub(super) async fn queue(&self, look: &Look, dead: Dead) -> Result<QueueResult, StoreError> {
        let engine = |error| engine_error(error, self.path());
        let fallen = self.fallen();
        let mut snapshot = self.begin().await?;
        let workers = sqlx::query(sql::WORKERS).fetch_all(&mut *snapshot).await.map_err(engine)?;
        let all_live = || {
            let mut workers = workers.iter().filter_map(worker_row);
            workers.all(|worker| self.lives(&worker, &fallen))
        };
        if dead == Dead::Told && !all_live() {
            return Ok(QueueResult::Dead);
        }
        let queue = glance(&mut snapshot, look, &self.condition()).await.map_err(engine)?;
        snapshot.rollback().await.map_err(engine)?;
        Ok(QueueResult::Whole(queue))
    }

    pub(super) async fn places(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, StoreError> {
        let engine = |error| engine_error(error, self.path());
        let mut places = HashMap::with_capacity(runs.len());
        let mut snapshot = self.begin().await?;
        for (statement, ids) in pieces(runs, sql::places) {
            let query = bind_ids(query(&statement), ids, room_for(ids.len()).1);
            for row in query.fetch_all(&mut *snapshot).await.map_err(engine)? {
                let id: String = row.try_get(0).map_err(engine)?;
                let place: i64 = row.try_get(1).map_err(engine)?;
                if let (Ok(id), Ok(place)) = (id.parse(), u64::try_from(place)) {
                    places.insert(id, place);
                }
            }
        }
        snapshot.rollback().await.map_err(engine)?;
        Ok(places)
    }
}

async fn glance(
    from: &mut SqliteConnection,
    look: &Look,
    condition: &str,
) -> Result<Queue, sqlx::Error> {
    let latest = sqlx::query(AssertSqlSafe(sql::queue_until())).fetch_one(&mut *from).await?;
    let latest = latest.try_get::<Option<i64>, _>(0)?.and_then(|at| u64::try_from(at).ok());
    let until = latest.unwrap_or(0);
    let seen = match look {
        Look::Ahead { workspace } => {
            let first = bind_ahead(query, workspace.as_deref(), &Passed::default(), condition);
            let mut runs = fetch(from, first).await?;
            let more = runs.len() >= MOST;
            if more {
                let known: HashSet<RunId> = runs.iter().map(|run| run.id).collect();
                let (by, workspace) = (sql::ByRoot::Condition, workspace.as_deref());
                let others = bind_of_each_root(query, by, workspace, condition);
                let others = fetch(from, others).await?;
                runs.extend(others.into_iter().filter(|run| !known.contains(&run.id)));
            }
            let cut = if more { cut(&runs) } else { HashSet::new() };
            Queue { runs, more, cut, ..Queue::default() }
        }
        Look::Past { workspace, passed } => {
            let runs = bind_ahead(query, workspace.as_deref(), passed, condition);
            let runs = fetch(from, runs).await?;
            Queue { more: runs.len() >= MOST, runs, ..Queue::default() }
        }
        Look::Since(moment) => {
            let since = query(&sql::queue_since(condition))
                .bind(i64::from(SCHEMA_VERSION))
                .bind(to_sql(*moment))
                .bind(to_sql(MOST as u64));
            let runs = fetch(from, since).await?;
            let more = runs.len() >= MOST;
            let until = runs.last().filter(|_| more).map_or(until, |last| last.ready_at);
            return Ok(Queue { runs, more, until, ..Queue::default() });
        }
        Look::Of(wanted) => {
            let mut runs = Vec::new();
            for (statement, ids) in pieces(wanted, |count| sql::queue_of(count, condition)) {
                let of = query(&statement).bind(i64::from(SCHEMA_VERSION));
                runs.extend(fetch(from, bind_ids(of, ids, room_for(ids.len()).1)).await?);
            }
            Queue { runs, ..Queue::default() }
        }
    };
    Ok(Queue { until, ..seen })
}

fn query(statement: &str) -> Statement {
    sqlx::query(AssertSqlSafe(bare(statement)))
}

async fn fetch(from: &mut SqliteConnection, query: Statement) -> Result<Vec<Queued>, sqlx::Error> {
    Ok(query.fetch_all(from).await?.iter().filter_map(queued_row).collect())
}

/// Splits `runs` into pieces, each with its statement.
fn pieces<'a>(
    runs: &'a [RunId],
    statement: impl Fn(usize) -> String + 'a,
) -> impl Iterator<Item = (String, &'a [RunId])> + 'a {
    let mut rest = runs;
    std::iter::from_fn(move || {
        let (taken, room) = room_for(rest.len());
        let (now, later) = rest.split_at(taken);
        rest = later;
        (room > 0).then(|| (statement(room), now))
    })
}
