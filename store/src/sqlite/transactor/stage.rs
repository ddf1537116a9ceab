//! Small changes that nobody sees: what is staged, and what is removed at last.

use super::Transactor;
use crate::StoreError;
use crate::bundle::BundleHead;
use crate::engine::{Staging, Work, bind_event, bind_part, to_sql};
use crate::sql::{self, stage as statements};
use crate::sqlite::text::bare;
use crate::stage::{EVENTS_AT_ONCE, KEEP_EACH_MS, KEPT_FOR_MS, PARTS_AT_ONCE};
use crate::transaction::Changes;
use crate::{RunCopy, StoredEvent};
use posse_protocol::{RunId, Seq};
use sqlx::{AssertSqlSafe, Row};

impl Transactor {
    /// Performs a request to stage or to remove something.
    pub(super) async fn stage(&mut self, staging: &Staging) -> Result<bool, StoreError> {
        match staging {
            Staging::Bundle { run, sha256, part, .. } => {
                let stage = sqlx::query(statements::BUNDLE_STAGE).bind(run.to_string());
                self.run(stage.bind(sha256.clone()).bind(self.expires())).await?;
                if let Some(part) = part {
                    let insert = sqlx::query(statements::PART_INSERT);
                    self.run(bind_part(insert, *run, sha256, part.clone())).await?;
                }
                Ok(true)
            }
            Staging::Events { run, events } => self.stage_events(*run, events).await,
            Staging::GiveUpBundle { run, sha256 } => {
                let give_up = sqlx::query(statements::BUNDLE_GIVE_UP).bind(run.to_string());
                self.run(give_up.bind(sha256.clone())).await.map(|_| true)
            }
            Staging::GiveUpLog { run } => {
                let give_up = sqlx::query_scalar(statements::LOG_GIVE_UP).bind(run.to_string());
                let last = give_up.fetch_optional(&mut self.connection).await;
                match last.map_err(|error| self.engine(error))? {
                    Some(last) => self.shorten_log(run.to_string(), last).await.map(|()| true),
                    None => Ok(false),
                }
            }
            Staging::RemoveExpired => {
                let was_there = self.remove_from_log().await?;
                Ok(self.remove_from_bundle().await? || was_there)
            }
        }
    }

    /// When a piece expires that is staged now.
    fn expires(&self) -> i64 {
        to_sql(self.now_ms()).saturating_add(KEPT_FOR_MS)
    }

    fn now_ms(&self) -> u64 {
        self.presence.clock().wall_ms()
    }

    /// Keeps the logs that this worker brings, and their bundles, now and then: it may stage a tree for
    /// longer than a piece is kept.
    async fn keep_staged(&mut self) -> Result<(), StoreError> {
        let now = self.presence.clock().steady_ms();
        if now.saturating_sub(self.kept_at) < KEEP_EACH_MS {
            return Ok(());
        }
        let (expires, owner) = (self.expires(), self.presence.worker.to_string());
        for keep in [statements::BUNDLES_KEEP, statements::LOGS_KEEP] {
            self.run(sqlx::query(keep).bind(expires).bind(owner.clone())).await?;
        }
        self.kept_at = now;
        Ok(())
    }

    /// Stores the next events of a log that this worker brings. The first event begins it. Returns
    /// false if the log does not end before them: somebody else brings it, or it was given up.
    async fn stage_events(
        &mut self,
        run: RunId,
        events: &[StoredEvent],
    ) -> Result<bool, StoreError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(true) };
        self.keep_staged().await?;
        let (name, owner) = (run.to_string(), self.presence.worker.to_string());
        let expires = self.expires();
        if first.seq == Seq(1) {
            let begin = sqlx::query(statements::LOG_BEGIN).bind(name.clone()).bind(owner.clone());
            self.run(begin.bind(expires).bind(name.clone())).await?;
        }
        let go_on = sqlx::query(statements::LOG_GO_ON).bind(to_sql(last.seq.0));
        let go_on = go_on.bind(last.hash.clone()).bind(expires);
        let go_on = go_on.bind(name).bind(owner).bind(to_sql(first.seq.0 - 1));
        if self.run(go_on).await? == 0 {
            return Ok(false);
        }
        for event in events {
            let insert = sqlx::query(AssertSqlSafe(bare(&sql::insert_events(1))));
            self.run(bind_event(insert, event.clone())).await?;
        }
        Ok(true)
    }

    /// Removes the last events of a hidden log. Returns false if there is none to remove.
    async fn remove_from_log(&mut self) -> Result<bool, StoreError> {
        let next = sqlx::query(statements::LOG_EXPIRED).bind(to_sql(self.now_ms()));
        let next = next.fetch_optional(&mut self.connection).await;
        let Some(next) = next.map_err(|error| self.engine(error))? else { return Ok(false) };
        let read = || Ok((next.try_get::<String, _>(0)?, next.try_get::<i64, _>(1)?));
        let (run, last) = read().map_err(|error| self.engine(error))?;
        self.shorten_log(run, last).await.map(|()| true)
    }

    /// Removes the last events of a hidden log, and the log if there are no others.
    async fn shorten_log(&mut self, run: String, last: i64) -> Result<(), StoreError> {
        let left = last.saturating_sub(to_sql(EVENTS_AT_ONCE));
        let remove = sqlx::query(statements::EVENTS_REMOVE).bind(run.clone()).bind(left);
        self.run(remove.bind(run.clone())).await?;
        self.run(sqlx::query(statements::LOG_SHORTEN).bind(left).bind(run.clone())).await?;
        self.run(sqlx::query(statements::LOG_REMOVE).bind(run)).await.map(|_| ())
    }

    /// Removes some parts of an expired bundle. Returns false if there is none to remove.
    async fn remove_from_bundle(&mut self) -> Result<bool, StoreError> {
        let now = to_sql(self.now_ms());
        let next = sqlx::query(statements::BUNDLE_EXPIRED).bind(now);
        let next = next.fetch_optional(&mut self.connection).await;
        let Some(next) = next.map_err(|error| self.engine(error))? else { return Ok(false) };
        let read = || Ok((next.try_get::<String, _>(0)?, next.try_get::<String, _>(1)?));
        let (run, data) = read().map_err(|error| self.engine(error))?;
        let remove = sqlx::query(statements::PARTS_REMOVE).bind(run.clone()).bind(data.clone());
        self.run(remove.bind(run.clone()).bind(data.clone()).bind(PARTS_AT_ONCE)).await?;
        let forget = sqlx::query(statements::BUNDLE_REMOVE).bind(run).bind(data);
        self.run(forget).await.map(|_| true)
    }

    /// Tells `changes` what of these requests is staged.
    pub(super) async fn load_staged(
        &mut self,
        work: &Work,
        changes: &mut Changes,
    ) -> Result<(), StoreError> {
        let drafts = work.appends.iter().flat_map(|(batch, _)| batch);
        let bundles = drafts.filter_map(|it| Some((it.append.run, it.bundle.as_ref()?)));
        let copies = || work.trees.iter().flat_map(|(tree, _)| tree);
        let copied = copies().filter_map(|it| Some((it.row().id, it.bundle()?)));
        for (run, head) in bundles.chain(copied) {
            if self.has_data(run, head).await? {
                changes.know_data(run, head.sha256.clone());
            }
        }
        for run in copies().map(|copy: &RunCopy| copy.row().id) {
            let log = sqlx::query(AssertSqlSafe(bare(&statements::logs_of(1))));
            let log = log.bind(self.presence.worker.to_string()).bind(run.to_string());
            let log = log.fetch_optional(&mut self.connection).await;
            if let Some(log) = log.map_err(|error| self.engine(error))? {
                let read = || Ok((log.try_get::<i64, _>(1)?, log.try_get::<String, _>(2)?));
                let (seq, hash) = read().map_err(|error| self.engine(error))?;
                changes.know_log(run, Seq(u64::try_from(seq).unwrap_or(0)), hash);
            }
        }
        Ok(())
    }

    /// Returns whether all data of a bundle is stored.
    async fn has_data(&mut self, run: RunId, head: &BundleHead) -> Result<bool, StoreError> {
        let count = sqlx::query_scalar::<_, i64>(statements::COUNT_PARTS).bind(run.to_string());
        let count = count.bind(head.sha256.clone()).fetch_one(&mut self.connection).await;
        Ok(count.map_err(|error| self.engine(error))? == to_sql(head.parts()))
    }
}
