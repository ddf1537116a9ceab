//! Takes, settles and revives deliveries, each in a transaction of its own.

use super::{Patience, Transactor};
use crate::StoreError;
use crate::delivery::{Delivery, DeliveryFilter, DeliveryState, Revival, Settled};
use crate::engine::{
    Bind, Change, Changed, bind_condemned, bind_saved, delivery_row, listing, to_sql,
};
use crate::postgres::link::Trouble;
use crate::postgres::message::{Message, Text};
use crate::postgres::statements::{self as pg, Begin};
use crate::sql;

impl Transactor {
    pub(in crate::postgres) async fn deliver(
        &mut self,
        change: &Change,
    ) -> Result<Changed, StoreError> {
        let mut patience = Patience::new();
        loop {
            let tried = self.attempt_delivery(change).await;
            if let Some(changed) = self.judge(tried, &mut patience).await? {
                return Ok(changed);
            }
        }
    }

    async fn attempt_delivery(&mut self, change: &Change) -> Result<Changed, Trouble> {
        let mut begin = Message::default();
        begin.begin(&self.begin.writing, Begin::WRITING);
        let stamp = begin.say(pg::NOW_AND_WHO);
        let found = match change {
            Change::Take { hook, limit, .. } => {
                // Skip what another sender takes at the same time. The time is that of the server.
                let due = Text::new(sql::DELIVERIES_DUE).text(hook.clone());
                let due = due.expression("(SELECT posse_now())").number(to_sql(*limit as u64));
                begin.say(&format!("{} FOR UPDATE SKIP LOCKED", due.finish()))
            }
            Change::Settle { id, .. } => {
                begin.say(&locked(&DeliveryFilter { id: Some(id.clone()), ..Default::default() }))
            }
            Change::Revive(which) => {
                let id = match which {
                    Revival::One(id) => Some(id.clone()),
                    Revival::All => None,
                };
                let state = Some(DeliveryState::Dead);
                begin.say(&locked(&DeliveryFilter { id, state, ..Default::default() }))
            }
        };
        let replies = self.link.send(begin).await?;
        let (now, transaction) = self.stamp(&replies, stamp)?;
        let found = replies.rows(found).iter().map(delivery_row);
        let mut end = Message::default();
        let mut changed = Vec::new();
        let mut settled = Settled::TooLate;
        for delivery in found {
            match change {
                Change::Take { lease, .. } => {
                    if !condemn(&mut end, &delivery) {
                        changed.push(save(&mut end, delivery.taken(now, *lease)));
                    }
                }
                Change::Settle { attempts, settlement, note, .. } => {
                    let before = delivery.clone();
                    let Some(after) = delivery.settled(*attempts, *settlement, note, now) else {
                        continue;
                    };
                    if !condemn(&mut end, &before) {
                        save(&mut end, after);
                        settled = Settled::Noted;
                    }
                }
                Change::Revive(_) => {
                    if let Some(back) = delivery.revived(now) {
                        changed.push(save(&mut end, back));
                    }
                }
            }
        }
        self.finish(end, &transaction).await?;
        Ok(match change {
            Change::Settle { .. } => Changed::Settled(settled),
            Change::Take { .. } | Change::Revive(_) => Changed::in_order(changed),
        })
    }
}

/// Returns the statement that selects and locks deliveries.
fn locked(filter: &DeliveryFilter) -> String {
    let listed = listing(Text::new(&sql::deliveries(filter)), filter, usize::MAX).finish();
    format!("{listed} FOR UPDATE")
}

/// Writes the changed columns of `delivery`.
fn save(message: &mut Message, delivery: Delivery) -> Delivery {
    message.add(bind_saved(Text::new(sql::DELIVERY_CHANGE), &delivery));
    delivery
}

/// Marks a delivery as dead if another program changed it, and returns true then.
fn condemn(message: &mut Message, delivery: &Delivery) -> bool {
    let Some(note) = delivery.condemned() else { return false };
    message.add(bind_condemned(Text::new(sql::DELIVERY_CONDEMN), delivery, note));
    true
}
