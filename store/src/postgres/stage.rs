//! Stages what an append or a copy shows: in small transactions on the connections for reading, so that
//! the writer goes on meanwhile, and no lease runs out on a slow line.

use super::link::{A_MOMENT, Replies, read};
use super::message::{Message, Text};
use super::reader::Reader;
use super::statements::{self as pg, Begin};
use crate::append::Draft;
use crate::bundle::{BundleHead, BundleRow};
use crate::engine::{Bind, bind_event, bind_part, bundle_row, head_row, number, to_sql};
use crate::stage::{KEEP_EACH_MS, KEPT_FOR_MS, TRIES};
use crate::{Bundle, StoreError, StoredEvent, sql};
use posse_protocol::{RunId, Seq};
use sqlx::postgres::PgRow;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use tokio::time::sleep;

/// The replies, without those of the statements that begin the transaction.
pub(super) struct Written(Replies);

impl Written {
    fn rows(&self, statement: usize) -> &[PgRow] {
        self.0.rows(Begin::WRITING + statement)
    }
}

/// When a piece expires that is staged now.
fn expires() -> String {
    format!("posse_now() + {KEPT_FOR_MS}")
}

impl Reader {
    /// Stages the bundles of a batch.
    pub(super) async fn stage_bundles(&self, batch: &[Draft]) -> Result<(), StoreError> {
        for Draft { append, bundle, .. } in batch {
            if let (Some(bundle), Some(head)) = (&append.bundle, bundle) {
                self.stage_bundle(append.run, bundle, head).await?;
            }
        }
        Ok(())
    }

    /// Stores the parts of a bundle that are not there, each in a transaction of its own.
    pub(super) async fn stage_bundle(
        &self,
        run: RunId,
        bundle: &Bundle,
        head: &BundleHead,
    ) -> Result<(), StoreError> {
        if head.bytes == 0 {
            return Ok(());
        }
        let stored = Text::new(sql::stage::STORED_PARTS).text(run.to_string());
        let asked = self.ask(&[stored.text(head.sha256.clone()).finish()]).await?;
        let stored: HashSet<u64> =
            asked.rows(0).iter().filter_map(|row| number(row, 0).ok()).collect();
        if stored.len() as u64 == head.parts() {
            // What is there may expire soon.
            let keep = Text::new(sql::stage::BUNDLE_STAGE).text(run.to_string());
            let keep = keep.text(head.sha256.clone()).expression(&expires());
            self.write(|| vec![keep.clone()]).await?;
        }
        for part in (1..=head.parts()).filter(|part| !stored.contains(part)) {
            let Some(row) = bundle.part(run, part) else { continue };
            if let Err(error) = self.stage_part(run, &head.sha256, row).await {
                let give_up = Text::new(sql::stage::BUNDLE_GIVE_UP).text(run.to_string());
                // If this fails, it is removed when it expires.
                let _ = self.write(|| vec![give_up.clone().text(head.sha256.clone())]).await;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Executes statements in a transaction of their own. They may be executed twice if a connection
    /// is lost. Returns the rows of each.
    pub(super) async fn write(
        &self,
        statements: impl Fn() -> Vec<Text>,
    ) -> Result<Written, StoreError> {
        let message = || {
            let mut message = Message::default();
            message.begin(&self.begin.writing, Begin::WRITING);
            for statement in statements() {
                message.add(statement);
            }
            message.say("COMMIT");
            message
        };
        read(&self.pool, &self.place, &self.contact, message).await.map(Written)
    }

    async fn stage_part(&self, run: RunId, sha256: &str, row: BundleRow) -> Result<(), StoreError> {
        let statements = || {
            let stage = Text::new(sql::stage::BUNDLE_STAGE).text(run.to_string());
            let insert = Text::new(sql::stage::PART_INSERT);
            vec![
                stage.text(sha256.to_owned()).expression(&expires()),
                bind_part(insert, run, sha256, row.clone()),
            ]
        };
        self.write(statements).await.map(|_| ())
    }

    /// Stores the next events of a log that arrives. What an earlier attempt left is removed first.
    pub(super) async fn stage_events(
        &self,
        run: RunId,
        events: &[StoredEvent],
    ) -> Result<(), StoreError> {
        self.keep_staged().await?;
        let mut tries = 0;
        while !self.try_events(run, events).await? {
            tries += 1;
            if events.first().is_none_or(|event| event.seq > Seq(1)) || tries == TRIES {
                return Err(StoreError::Unstaged(run));
            }
            self.give_up_log(run).await?;
            if tries > 1 {
                // Somebody else has begun it meanwhile.
                sleep(A_MOMENT * tries).await;
            }
        }
        Ok(())
    }

    /// Keeps the logs that this worker brings, and their bundles, now and then: it may stage a tree for
    /// longer than a piece is kept.
    async fn keep_staged(&self) -> Result<(), StoreError> {
        let now = self.presence.clock.steady_ms();
        if now.saturating_sub(self.kept_at.load(Ordering::SeqCst)) < KEEP_EACH_MS {
            return Ok(());
        }
        let keep = |text: &str| {
            Text::new(text).expression(&expires()).text(self.presence.worker.to_string())
        };
        self.write(|| vec![keep(sql::stage::BUNDLES_KEEP), keep(sql::stage::LOGS_KEEP)]).await?;
        self.kept_at.store(now, Ordering::SeqCst);
        Ok(())
    }

    /// Returns false if the log does not end before these events: somebody else brings it, or it was
    /// given up.
    async fn try_events(&self, run: RunId, events: &[StoredEvent]) -> Result<bool, StoreError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(true) };
        let owner = || self.presence.worker.to_string();
        let ends = |text: Text| {
            let text = text.text(run.to_string()).text(owner()).number(to_sql(last.seq.0));
            text.text(last.hash.clone())
        };
        let statements = || {
            let mut statements = Vec::new();
            if first.seq == Seq(1) {
                let begin = Text::new(sql::stage::LOG_BEGIN).text(run.to_string()).text(owner());
                statements.push(begin.expression(&expires()).text(run.to_string()));
                let undo = Text::new(pg::LOG_TOO_LATE).text(run.to_string()).text(owner());
                statements.push(undo.text(run.to_string()));
            }
            let go_on =
                Text::new(sql::stage::LOG_GO_ON).number(to_sql(last.seq.0)).text(last.hash.clone());
            let go_on = go_on.expression(&expires()).text(run.to_string()).text(owner());
            statements.push(go_on.number(to_sql(first.seq.0 - 1)));
            let insert = Text::new(&pg::insert_hidden(events.len()));
            let insert = events.iter().cloned().fold(insert, bind_event);
            statements.push(ends(insert).text(run.to_string()));
            statements.push(ends(Text::new(pg::LOG_ENDS)));
            statements
        };
        let before = if first.seq == Seq(1) { 2 } else { 0 };
        Ok(!self.write(statements).await?.rows(before + 2).is_empty())
    }

    /// Returns the checked bundle of a run. It is read a part at a time, since the answer to one message
    /// must come in time on a slow line.
    pub(super) async fn bundle(&self, run: RunId) -> Result<Option<Bundle>, StoreError> {
        let mut head = self.head(run).await?;
        while let Some((sha256, row)) = head {
            let mut rows = vec![row];
            loop {
                let parts = Text::new(sql::stage::PARTS).text(run.to_string());
                let parts = parts.text(sha256.clone()).number(rows.len() as i64 - 1).number(1);
                let asked = self.ask(&[parts.finish()]).await?;
                let Some(part) = asked.rows(0).first() else { break };
                rows.push(bundle_row(part).map_err(|error| self.strange(error))?);
            }
            let read = Bundle::read(run, &rows);
            // Another one may have come in its place meanwhile.
            head = self.head(run).await?;
            let is_same = head.as_ref().is_some_and(|(_, now)| rows.first() == Some(now));
            if read.is_ok() || is_same {
                return read;
            }
        }
        Ok(None)
    }

    /// Returns the hash of the data of the bundle of a run, and its head.
    async fn head(&self, run: RunId) -> Result<Option<(String, BundleRow)>, StoreError> {
        let asked =
            self.ask(&[Text::new(sql::stage::BUNDLE).text(run.to_string()).finish()]).await?;
        let head = asked.rows(0).first().map(head_row).transpose();
        head.map_err(|error| self.strange(error))
    }
}
