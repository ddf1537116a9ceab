//! The table of deliveries: stored with their events, taken, settled, brought back, listed.

use super::SqliteStore;
use super::codec::{number, small, to_sql};
use super::text::bare;
use super::work::Request;
use crate::delivery::{
    Delivery, DeliveryFilter, DeliveryState, Outbox, Revival, Settled, Settlement,
};
use crate::error::StoreError;
use crate::sql;
use async_trait::async_trait;
use posse_protocol::{RunId, Seq};
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Error, Row};
use std::time::Duration;

/// What the writer is asked to do with deliveries.
pub(super) enum Change {
    Take { hook: String, limit: usize, lease: Duration },
    Settle { id: String, attempts: u32, settlement: Settlement, note: String },
    Revive(Revival),
}

/// The deliveries that were changed: taken or brought back, or as many as were settled.
pub(super) enum Changed {
    Deliveries(Vec<Delivery>),
    Settled(Settled),
}

#[async_trait]
impl Outbox for SqliteStore {
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
        match self.change(Change::Settle { id, attempts, settlement, note }).await? {
            Changed::Settled(settled) => Ok(settled),
            Changed::Deliveries(_) => Ok(Settled::TooLate),
        }
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

impl SqliteStore {
    async fn change(&self, change: Change) -> Result<Changed, StoreError> {
        self.ask(|reply| Request::Deliveries { change, reply }).await
    }
}

fn listed(changed: Changed) -> Vec<Delivery> {
    match changed {
        Changed::Deliveries(deliveries) => deliveries,
        Changed::Settled(_) => Vec::new(),
    }
}

/// Stores new deliveries, inside the transaction that stores their events.
pub(super) async fn store(
    connection: &mut SqliteConnection,
    deliveries: Vec<Delivery>,
) -> Result<(), Error> {
    for delivery in deliveries {
        sqlx::query(sql::DELIVERY_INSERT)
            .bind(delivery.id)
            .bind(delivery.run.to_string())
            .bind(to_sql(delivery.seq.0))
            .bind(delivery.hook)
            .bind(delivery.kind)
            .bind(delivery.data)
            .bind(delivery.state.name())
            .bind(i64::from(delivery.attempts))
            .bind(to_sql(delivery.due_at))
            .bind(to_sql(delivery.created_at))
            .bind(delivery.note)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Does what is asked, inside a transaction that begins at `now`.
pub(super) async fn change(
    connection: &mut SqliteConnection,
    change: &Change,
    now: u64,
) -> Result<Changed, Error> {
    let after = |wait: Duration| {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        to_sql(now.saturating_add(wait))
    };
    let rows = match change {
        Change::Take { hook, limit, lease } => {
            sqlx::query(sql::DELIVERIES_TAKE)
                .bind(after(*lease))
                .bind(hook.as_str())
                .bind(to_sql(now))
                .bind(to_sql(*limit as u64))
                .fetch_all(connection)
                .await?
        }
        Change::Settle { id, attempts, settlement, note } => {
            let (state, wait, data) = match settlement {
                Settlement::Delivered => (DeliveryState::Delivered, Duration::ZERO, Some("")),
                Settlement::Again(wait) => (DeliveryState::Due, *wait, None),
                Settlement::Dead => (DeliveryState::Dead, Duration::ZERO, None),
            };
            let done = sqlx::query(sql::DELIVERY_SETTLE)
                .bind(state.name())
                .bind(after(wait))
                .bind(note.as_str())
                .bind(data)
                .bind(id.as_str())
                .bind(i64::from(*attempts))
                .execute(connection)
                .await?;
            let noted = done.rows_affected() > 0;
            return Ok(Changed::Settled(if noted { Settled::Noted } else { Settled::TooLate }));
        }
        Change::Revive(Revival::One(id)) => {
            let query = sqlx::query(sql::DELIVERY_REVIVE).bind(to_sql(now)).bind(id.as_str());
            query.fetch_all(connection).await?
        }
        Change::Revive(Revival::All) => {
            sqlx::query(sql::DELIVERIES_REVIVE).bind(to_sql(now)).fetch_all(connection).await?
        }
    };
    let mut changed = rows.iter().map(delivery_row).collect::<Result<Vec<_>, _>>()?;
    changed.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    Ok(Changed::Deliveries(changed))
}

/// What `filter` selects, at most `limit`.
pub(super) async fn list(
    pool: &SqlitePool,
    filter: &DeliveryFilter,
    limit: usize,
) -> Result<Vec<Delivery>, Error> {
    let mut query = sqlx::query(AssertSqlSafe(bare(&sql::deliveries(filter))));
    if let Some(id) = &filter.id {
        query = query.bind(id.clone());
    }
    if let Some(state) = filter.state {
        query = query.bind(state.name());
    }
    let rows = query.bind(to_sql(limit as u64)).fetch_all(pool).await?;
    rows.iter().map(delivery_row).collect()
}

/// When the next delivery to `hook` is due.
pub(super) async fn next(pool: &SqlitePool, hook: &str) -> Result<Option<u64>, Error> {
    let next: Option<i64> =
        sqlx::query_scalar(sql::DELIVERY_NEXT).bind(hook).fetch_one(pool).await?;
    Ok(next.map(|at| u64::try_from(at).unwrap_or_default()))
}

fn delivery_row(row: &SqliteRow) -> Result<Delivery, Error> {
    let state: String = row.try_get(6)?;
    let known = DeliveryState::ALL.into_iter().find(|known| known.name() == state);
    let run: String = row.try_get(1)?;
    let run: RunId = run.parse().map_err(|error| Error::Decode(Box::new(error)))?;
    Ok(Delivery {
        id: row.try_get(0)?,
        run,
        seq: Seq(number(row, 2)?),
        hook: row.try_get(3)?,
        kind: row.try_get(4)?,
        data: row.try_get(5)?,
        state: known.ok_or_else(|| Error::Decode(format!("a delivery is `{state}`").into()))?,
        attempts: small(row, 7)?,
        due_at: number(row, 8)?,
        created_at: number(row, 9)?,
        note: row.try_get(10)?,
    })
}
