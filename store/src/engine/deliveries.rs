//! Requests about deliveries, and their rows.

use super::cells::{Bind, Cells, number, small, to_sql};
use crate::delivery::{Delivery, DeliveryFilter, DeliveryState, Revival, Settled, Settlement};
use posse_protocol::{RunId, Seq};
use sqlx::Error;
use std::time::Duration;

/// A request to the writer about deliveries.
pub(crate) enum Change {
    Take { hook: String, limit: usize, lease: Duration },
    Settle { id: String, attempts: u32, settlement: Settlement, note: String },
    Revive(Revival),
}

/// The answer: the taken or revived deliveries, or whether the result was recorded.
pub(crate) enum Changed {
    Deliveries(Vec<Delivery>),
    Settled(Settled),
}

impl Changed {
    /// Returns these deliveries, those of the earliest events first.
    pub(crate) fn in_order(mut deliveries: Vec<Delivery>) -> Self {
        deliveries
            .sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Changed::Deliveries(deliveries)
    }

    pub(crate) fn settled(self) -> Settled {
        match self {
            Changed::Settled(settled) => settled,
            Changed::Deliveries(_) => Settled::TooLate,
        }
    }
}

pub(crate) fn listed(changed: Changed) -> Vec<Delivery> {
    match changed {
        Changed::Deliveries(deliveries) => deliveries,
        Changed::Settled(_) => Vec::new(),
    }
}

/// Binds the values of [`crate::sql::DELIVERY_INSERT`].
pub(crate) fn bind_delivery<B: Bind>(query: B, delivery: Delivery) -> B {
    let seal = delivery.seal();
    query
        .text(delivery.id)
        .text(delivery.run.to_string())
        .number(to_sql(delivery.seq.0))
        .text(delivery.hook)
        .text(delivery.kind)
        .text(delivery.data)
        .text(delivery.state.name())
        .number(i64::from(delivery.attempts))
        .number(to_sql(delivery.due_at))
        .number(to_sql(delivery.created_at))
        .text(delivery.note)
        .text(seal)
}

/// Binds the values of [`crate::sql::DELIVERY_CHANGE`].
pub(crate) fn bind_saved<B: Bind>(query: B, delivery: &Delivery) -> B {
    query
        .text(delivery.state.name())
        .number(i64::from(delivery.attempts))
        .number(to_sql(delivery.due_at))
        .text(delivery.note.clone())
        .text(delivery.data.clone())
        .text(delivery.seal())
        .text(delivery.id.clone())
}

/// Binds the values of [`crate::sql::DELIVERY_CONDEMN`].
pub(crate) fn bind_condemned<B: Bind>(query: B, delivery: &Delivery, note: String) -> B {
    query
        .text(note)
        .text(delivery.id.clone())
        .text(delivery.run.to_string())
        .number(to_sql(delivery.seq.0))
        .text(delivery.hook.clone())
}

/// Binds the values of [`crate::sql::deliveries`].
pub(crate) fn listing<B: Bind>(mut query: B, filter: &DeliveryFilter, limit: usize) -> B {
    if let Some(id) = &filter.id {
        query = query.text(id.clone());
    }
    if let Some(run) = filter.run {
        query = query.text(run.to_string());
    }
    if let Some(state) = filter.state {
        query = query.text(state.name());
    }
    query.number(to_sql(limit as u64))
}

/// Decodes a delivery. One that cannot be read is damaged, so it does not hide the others.
pub(crate) fn delivery_row(row: &impl Cells) -> Delivery {
    decode(row).unwrap_or_else(|error| Delivery {
        id: row.text(0).unwrap_or_default(),
        run: row.text(1).ok().and_then(|run| run.parse().ok()).unwrap_or(RunId::from_u128(0)),
        seq: Seq(number(row, 2).unwrap_or_default()),
        hook: row.text(3).unwrap_or_default(),
        kind: row.text(4).unwrap_or_default(),
        data: String::new(),
        state: state(row).unwrap_or(DeliveryState::Dead),
        attempts: small(row, 7).unwrap_or_default(),
        due_at: number(row, 8).unwrap_or_default(),
        created_at: number(row, 9).unwrap_or_default(),
        note: row.text(10).unwrap_or_default(),
        damaged: Some(format!("what is stored of it cannot be read: {error}")),
    })
}

fn state(row: &impl Cells) -> Result<DeliveryState, Error> {
    let state = row.text(6)?;
    let known = DeliveryState::ALL.into_iter().find(|known| known.name() == state);
    known.ok_or_else(|| Error::Decode(format!("a delivery is `{state}`").into()))
}

fn decode(row: &impl Cells) -> Result<Delivery, Error> {
    let written = row.text(1)?;
    let run: RunId = written.parse().map_err(|error| Error::Decode(Box::new(error)))?;
    if written != run.to_string() {
        return Err(Error::Decode(format!("no run is written like `{written}`").into()));
    }
    let mut delivery = Delivery {
        id: row.text(0)?,
        run,
        seq: Seq(number(row, 2)?),
        hook: row.text(3)?,
        kind: row.text(4)?,
        data: row.text(5)?,
        state: state(row)?,
        attempts: small(row, 7)?,
        due_at: number(row, 8)?,
        created_at: number(row, 9)?,
        note: row.text(10)?,
        damaged: None,
    };
    if row.text(11)? != delivery.seal() {
        delivery.damaged = Some("what is stored of it was changed".to_owned());
    }
    Ok(delivery)
}
