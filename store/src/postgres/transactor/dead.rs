//! Removes dead workers, and this one when it ends.

use super::{Patience, Transactor};
use crate::StoreError;
use crate::engine::{Bind, Cells, to_sql};
use crate::postgres::link::Trouble;
use crate::postgres::message::{Message, Text};
use crate::postgres::statements::{self as pg, Begin};
use crate::row::NO_PROGRESS;
use crate::sql;

impl Transactor {
    /// Releases the runs of workers whose leases have ended.
    pub(super) async fn bury(&mut self) -> Result<(), StoreError> {
        let mut patience = Patience::new();
        loop {
            let tried = self.attempt_burial().await;
            if let Some(()) = self.judge(tried, &mut patience).await? {
                return Ok(());
            }
        }
    }

    async fn attempt_burial(&mut self) -> Result<(), Trouble> {
        let mut begin = Message::default();
        begin.begin(&self.begin.writing, Begin::WRITING);
        let dead = begin.say(pg::DEAD_LOCKED);
        let stamp = begin.say(pg::NOW_AND_WHO);
        let replies = self.link.send(begin).await?;
        let (_, transaction) = self.stamp(&replies, stamp)?;
        let own = self.presence.worker.to_string();
        let mut end = Message::default();
        let (mut fallen, mut dead_ids) = (Vec::new(), Vec::new());
        for row in replies.rows(dead) {
            let Ok(id) = row.text(0) else { continue };
            // This worker is alive, even if its lease has ended.
            if id == own {
                self.save_worker(&mut end);
                continue;
            }
            if row.integer(1).is_ok_and(|sessions| sessions == 0) {
                fallen.push(id.clone());
            }
            dead_ids.push(id);
        }
        for id in dead_ids {
            end.add(Text::new(sql::WORKER_DELETE).text(id));
        }
        end.say(pg::LOST_LOCKED);
        for id in fallen {
            end.add(Text::new(sql::DIED).number(to_sql(NO_PROGRESS)).text(id));
        }
        end.say(sql::DISOWN);
        end.say(pg::FREED);
        end.say(pg::UNMARK_THE_DEAD);
        self.finish(end, &transaction).await?;
        Ok(())
    }

    /// Releases all claims. If that cannot be written, they are released when the lease ends.
    pub(in crate::postgres) async fn depart(&mut self) {
        fail::fail_point!("store.depart.begun");
        let mut patience = Patience::new();
        while self.registered {
            let tried = self.attempt_departure().await;
            match self.judge(tried, &mut patience).await {
                Ok(None) => {}
                Ok(Some(())) | Err(_) => break,
            }
        }
        fail::fail_point!("store.depart.left");
    }

    async fn attempt_departure(&mut self) -> Result<(), Trouble> {
        let mut message = Message::default();
        message.begin(&self.begin.writing, Begin::WRITING);
        message.add(Text::new(sql::WORKER_DELETE).text(self.presence.worker.to_string()));
        message.add(Text::new(pg::UNMARK).text(self.presence.worker.to_string()));
        message.say(pg::LOST_LOCKED);
        message.say(sql::DISOWN);
        message.say(pg::FREED);
        message.say("COMMIT");
        // Repeating this does no harm.
        self.link.send(message).await.map(|_| ())
    }
}
