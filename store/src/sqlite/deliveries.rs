//! The table of deliveries: stored with their events, taken, settled, brought back, listed.

use super::SqliteStore;
use super::codec::{Statement, number, small, to_sql};
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
        let seal = delivery.seal();
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
            .bind(seal)
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
    changed.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    Ok(Changed::Deliveries(changed))
}

/// Stores what has changed of `delivery`, and its seal.
async fn save(connection: &mut SqliteConnection, delivery: &Delivery) -> Result<(), Error> {
    sqlx::query(sql::DELIVERY_CHANGE)
        .bind(delivery.state.name())
        .bind(i64::from(delivery.attempts))
        .bind(to_sql(delivery.due_at))
        .bind(delivery.note.clone())
        .bind(delivery.data.clone())
        .bind(delivery.seal())
        .bind(delivery.id.clone())
        .execute(connection)
        .await
        .map(|_| ())
}

/// Gives up a delivery that was changed behind the store's back, if it was.
async fn condemn(connection: &mut SqliteConnection, delivery: &Delivery) -> Result<bool, Error> {
    let Some(note) = delivery.condemned() else { return Ok(false) };
    sqlx::query(sql::DELIVERY_CONDEMN)
        .bind(note)
        .bind(delivery.id.clone())
        .bind(delivery.run.to_string())
        .bind(to_sql(delivery.seq.0))
        .bind(delivery.hook.clone())
        .execute(connection)
        .await
        .map(|_| true)
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
    let mut query = sqlx::query(AssertSqlSafe(bare(&sql::deliveries(filter))));
    if let Some(id) = &filter.id {
        query = query.bind(id.clone());
    }
    if let Some(run) = filter.run {
        query = query.bind(run.to_string());
    }
    if let Some(state) = filter.state {
        query = query.bind(state.name());
    }
    query.bind(to_sql(limit as u64))
}

/// What `filter` selects, at most `limit`.
pub(super) async fn list(
    pool: &SqlitePool,
    filter: &DeliveryFilter,
    limit: usize,
) -> Result<Vec<Delivery>, Error> {
    let rows = listing(filter, limit).fetch_all(pool).await?;
    Ok(rows.iter().map(delivery_row).collect())
}

/// Those that tell of runs that nobody knows.
pub(super) async fn of_nobody(pool: &SqlitePool) -> Result<Vec<Delivery>, Error> {
    let rows = sqlx::query(sql::DELIVERIES_OF_NOBODY).fetch_all(pool).await?;
    Ok(rows.iter().map(delivery_row).collect())
}

/// When the next delivery to `hook` is due.
pub(super) async fn next(pool: &SqlitePool, hook: &str) -> Result<Option<u64>, Error> {
    let next: Option<i64> =
        sqlx::query_scalar(sql::DELIVERY_NEXT).bind(hook).fetch_one(pool).await?;
    Ok(next.map(|at| u64::try_from(at).unwrap_or_default()))
}

/// A delivery. One that cannot be read is a damaged one, so that it does not hide the others.
fn delivery_row(row: &SqliteRow) -> Delivery {
    decode(row).unwrap_or_else(|error| Delivery {
        id: row.try_get(0).unwrap_or_default(),
        run: row
            .try_get::<String, _>(1)
            .ok()
            .and_then(|run| run.parse().ok())
            .unwrap_or(RunId::from_u128(0)),
        seq: Seq(number(row, 2).unwrap_or_default()),
        hook: row.try_get(3).unwrap_or_default(),
        kind: row.try_get(4).unwrap_or_default(),
        data: String::new(),
        state: state(row).unwrap_or(DeliveryState::Dead),
        attempts: small(row, 7).unwrap_or_default(),
        due_at: number(row, 8).unwrap_or_default(),
        created_at: number(row, 9).unwrap_or_default(),
        note: row.try_get(10).unwrap_or_default(),
        damaged: Some(format!("what is stored of it cannot be read: {error}")),
    })
}

fn state(row: &SqliteRow) -> Result<DeliveryState, Error> {
    let state: String = row.try_get(6)?;
    let known = DeliveryState::ALL.into_iter().find(|known| known.name() == state);
    known.ok_or_else(|| Error::Decode(format!("a delivery is `{state}`").into()))
}

fn decode(row: &SqliteRow) -> Result<Delivery, Error> {
    let written: String = row.try_get(1)?;
    let run: RunId = written.parse().map_err(|error| Error::Decode(Box::new(error)))?;
    if written != run.to_string() {
        return Err(Error::Decode(format!("no run is written like `{written}`").into()));
    }
    let mut delivery = Delivery {
        id: row.try_get(0)?,
        run,
        seq: Seq(number(row, 2)?),
        hook: row.try_get(3)?,
        kind: row.try_get(4)?,
        data: row.try_get(5)?,
        state: state(row)?,
        attempts: small(row, 7)?,
        due_at: number(row, 8)?,
        created_at: number(row, 9)?,
        note: row.try_get(10)?,
        damaged: None,
    };
    let seal: String = row.try_get(11)?;
    // One of an earlier version has none until it changes.
    if !seal.is_empty() && seal != delivery.seal() {
        delivery.damaged = Some("what is stored of it was changed".to_owned());
    }
    Ok(delivery)
}
