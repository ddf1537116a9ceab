//! The table of deliveries.

use super::SqliteStore;
use super::codec::Statement;
use super::text::bare;
use crate::delivery::{
    Delivery, DeliveryFilter, DeliveryState, Outbox, Revival, Settled, Settlement,
};
use crate::engine::{
    self, Change, Changed, Request, bind_condemned, bind_delivery, bind_saved, delivery_row,
    listed, to_sql,
};
use crate::error::StoreError;
use crate::sql;
use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{AssertSqlSafe, Error};
use std::time::Duration;

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

impl SqliteStore {
    async fn change(&self, change: Change) -> Result<Changed, StoreError> {
        self.ask(|reply| Request::Deliveries { change, reply }).await
    }
}

/// Stores new deliveries in the transaction that stores their events.
pub(super) async fn store(
    connection: &mut SqliteConnection,
    deliveries: Vec<Delivery>,
) -> Result<(), Error> {
    for delivery in deliveries {
        let insert = bind_delivery(sqlx::query(sql::DELIVERY_INSERT), delivery);
        insert.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Performs a request in a transaction that began at `now`.
pub(super) async fn change(
    connection: &mut SqliteConnection,
    change: &Change,
    now: u64,
) -> Result<Changed, Error> {
    let mut changed = Vec::new();
    match change {
        Change::Take { hook, limit, lease } => {
            let due = sqlx::query(sql::DELIVERIES_DUE)
                .bind(hook.as_str())
                .bind(to_sql(now))
                .bind(to_sql(*limit as u64))
                .fetch_all(&mut *connection)
                .await?;
            for due in due.iter().map(delivery_row) {
                if condemn(connection, &due).await? {
                    continue;
                }
                let taken = due.taken(now, *lease);
                save(connection, &taken).await?;
                changed.push(taken);
            }
        }
        Change::Settle { id, attempts, settlement, note } => {
            for found in by(connection, Some(id), None).await? {
                let damaged = found.condemned().map(|_| found.clone());
                let Some(settled) = found.settled(*attempts, *settlement, note, now) else {
                    continue;
                };
                match damaged {
                    Some(damaged) => _ = condemn(connection, &damaged).await?,
                    None => {
                        save(connection, &settled).await?;
                        return Ok(Changed::Settled(Settled::Noted));
                    }
                }
            }
            return Ok(Changed::Settled(Settled::TooLate));
        }
        Change::Revive(which) => {
            let id = match which {
                Revival::One(id) => Some(id),
                Revival::All => None,
            };
            let dead = by(connection, id, Some(DeliveryState::Dead)).await?;
            for back in dead.into_iter().filter_map(|dead| dead.revived(now)) {
                save(connection, &back).await?;
                changed.push(back);
            }
        }
    }
    Ok(Changed::in_order(changed))
}

/// Writes the changed columns of `delivery` and its seal.
async fn save(connection: &mut SqliteConnection, delivery: &Delivery) -> Result<(), Error> {
    let change = bind_saved(sqlx::query(sql::DELIVERY_CHANGE), delivery);
    change.execute(connection).await.map(|_| ())
}

/// Marks a delivery as dead if another program changed it, and returns true then.
async fn condemn(connection: &mut SqliteConnection, delivery: &Delivery) -> Result<bool, Error> {
    let Some(note) = delivery.condemned() else { return Ok(false) };
    let give_up = bind_condemned(sqlx::query(sql::DELIVERY_CONDEMN), delivery, note);
    give_up.execute(connection).await.map(|_| true)
}

async fn by(
    connection: &mut SqliteConnection,
    id: Option<&String>,
    state: Option<DeliveryState>,
) -> Result<Vec<Delivery>, Error> {
    let filter = DeliveryFilter { id: id.cloned(), state, ..DeliveryFilter::default() };
    let rows = listing(&filter, usize::MAX).fetch_all(connection).await?;
    Ok(rows.iter().map(delivery_row).collect())
}

fn listing(filter: &DeliveryFilter, limit: usize) -> Statement<'static> {
    let query = sqlx::query(AssertSqlSafe(bare(&sql::deliveries(filter))));
    engine::listing(query, filter, limit)
}

/// Returns at most `limit` deliveries that `filter` selects.
pub(super) async fn list(
    pool: &SqlitePool,
    filter: &DeliveryFilter,
    limit: usize,
) -> Result<Vec<Delivery>, Error> {
    let rows = listing(filter, limit).fetch_all(pool).await?;
    Ok(rows.iter().map(delivery_row).collect())
}

/// Returns deliveries about runs without a row.
pub(super) async fn of_nobody(pool: &SqlitePool) -> Result<Vec<Delivery>, Error> {
    let rows = sqlx::query(sql::DELIVERIES_OF_NOBODY).fetch_all(pool).await?;
    Ok(rows.iter().map(delivery_row).collect())
}

/// Returns when the next delivery to `hook` is due.
pub(super) async fn next(pool: &SqlitePool, hook: &str) -> Result<Option<u64>, Error> {
    let next: Option<i64> =
        sqlx::query_scalar(sql::DELIVERY_NEXT).bind(hook).fetch_one(pool).await?;
    Ok(next.map(|at| u64::try_from(at).unwrap_or_default()))
}
