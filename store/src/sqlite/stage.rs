//! Stages what an append or a copy shows, and removes what nobody needs, in small transactions of the
//! one writer. Other requests go between them.

use super::SqliteStore;
use crate::append::Draft;
use crate::bundle::BundleHead;
use crate::engine::{Request, Staging, show};
use crate::stage::TRIES;
use crate::{Appended, Bundle, Reserve, StoreError, StoredEvent};
use posse_protocol::{RunId, Seq};
use std::path::Path;
use tokio::sync::{mpsc, oneshot};

impl SqliteStore {
    /// Stages the bundles of a batch, and appends it.
    pub(super) async fn append_with_bundles(
        &self,
        batch: Vec<Draft>,
    ) -> Result<Vec<Appended>, StoreError> {
        let batch = &batch;
        let stage = || async move {
            for Draft { append, bundle, .. } in batch {
                if let (Some(bundle), Some(head)) = (&append.bundle, bundle) {
                    self.stage_bundle(append.run, bundle, head, append.reserve).await?;
                }
            }
            Ok(())
        };
        let append = || self.ask(|reply| Request::Append { batch: batch.clone(), reply });
        let appended = show(stage, append).await;
        // The bundles before.
        self.remove_soon();
        appended
    }

    /// Stores the parts of a bundle that are not there.
    pub(super) async fn stage_bundle(
        &self,
        run: RunId,
        bundle: &Bundle,
        head: &BundleHead,
        reserve: Reserve,
    ) -> Result<(), StoreError> {
        if head.bytes == 0 {
            return Ok(());
        }
        let sha256 = head.sha256.clone();
        let stored =
            self.look(move |reader| async move { reader.parts(run, sha256).await }).await?;
        let missing = (1..=head.parts()).filter(|part| !stored.contains(part));
        let missing: Vec<u64> = missing.collect();
        if missing.len() > 1 && !self.has_room_for(head.bytes) {
            return Err(StoreError::Full);
        }
        let mut parts: Vec<Option<_>> =
            missing.into_iter().map(|part| bundle.part(run, part)).collect();
        if parts.is_empty() {
            // What is there may expire soon.
            parts.push(None);
        }
        for part in parts {
            let sha256 = head.sha256.clone();
            let staging = Staging::Bundle { run, sha256, part, reserve };
            if let Err(error) = self.ask(|reply| Request::Stage { staging, reply }).await {
                self.give_up(run, head.sha256.clone()).await;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns whether the disk has room for a bundle in the write-ahead log and in the file. What is
    /// stored makes the file larger for good, even if the rest does not fit.
    fn has_room_for(&self, bytes: usize) -> bool {
        let folder = Path::new(self.reader.path()).parent();
        let space = folder.and_then(|folder| rustix::fs::statvfs(folder).ok());
        let in_base64 = (bytes as u64).div_ceil(3).saturating_mul(4);
        space.is_none_or(|it| it.f_bavail.saturating_mul(it.f_frsize) / 2 > in_base64)
    }

    /// Removes what was staged of a bundle that does not fit on the disk.
    async fn give_up(&self, run: RunId, sha256: String) {
        let staging = Staging::GiveUpBundle { run, sha256 };
        // While the disk is full, this fails. Then it is removed when it expires.
        let _ = self.ask(|reply| Request::Stage { staging, reply }).await;
        self.remove_soon();
    }

    /// Stores the next events of a log that arrives. What an earlier attempt left is removed first.
    pub(super) async fn stage_events(
        &self,
        run: RunId,
        events: Vec<StoredEvent>,
    ) -> Result<(), StoreError> {
        let begins = events.first().is_some_and(|event| event.seq == Seq(1));
        let mut tries = 0;
        loop {
            let staging = Staging::Events { run, events: events.clone() };
            if self.ask(|reply| Request::Stage { staging, reply }).await? {
                return Ok(());
            }
            tries += 1;
            if !begins || tries == TRIES {
                return Err(StoreError::Unstaged(run));
            }
            let give_up = |reply| Request::Stage { staging: Staging::GiveUpLog { run }, reply };
            while self.ask(give_up).await? {}
        }
    }

    /// Removes what has expired, a little at a time.
    pub(super) async fn remove_expired(&self) -> Result<(), StoreError> {
        // Most of the time there is nothing, and a look is one read.
        if self.look(|reader| async move { reader.has_expired().await }).await? {
            remove_expired(self.requests.clone()).await?;
        }
        Ok(())
    }

    /// Begins to remove what has expired.
    pub(super) fn remove_soon(&self) {
        self.removal.begin(&self.tasks, remove_expired(self.requests.clone()));
    }
}

async fn remove_expired(requests: mpsc::Sender<Request>) -> Result<(), StoreError> {
    loop {
        let (reply, answer) = oneshot::channel();
        let staging = Staging::RemoveExpired;
        let asked = requests.send(Request::Stage { staging, reply }).await;
        asked.map_err(|_| StoreError::Closed)?;
        if !answer.await.map_err(|_| StoreError::Closed)?? {
            return Ok(());
        }
    }
}
