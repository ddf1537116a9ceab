//! The writer of this process. It takes all waiting requests, performs them in one transaction, and
//! answers them after the commit. Other processes have their own writers.

use super::bell::Bell;
use super::transactor::{Done, Failure, Transactor};
use crate::engine::{Hub, Request, Work};
use crate::{Claimed, StoreError};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The most requests in one commit.
const GROUP: usize = 1_024;
/// The most requests in one commit while at most a thousand wait: see the writer of SQLite.
const SMALL_GROUP: usize = 128;
/// With more waiting requests, one commit takes one part in this many.
const PART: usize = 8;

pub(super) struct Writer {
    pub(super) transactor: Transactor,
    pub(super) hub: Arc<Hub>,
    pub(super) bell: Arc<Bell>,
}

impl Writer {
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Request>) {
        let mut group = Vec::with_capacity(SMALL_GROUP);
        let mut served = 0;
        loop {
            let limit = (inbox.len() / PART).clamp(SMALL_GROUP, GROUP);
            let received = inbox.recv_many(&mut group, limit).await;
            // If several tasks send requests, let them do so first.
            if received > 0 && received.max(served) > 1 {
                tokio::task::yield_now().await;
                while group.len() < limit
                    && let Ok(request) = inbox.try_recv()
                {
                    group.push(request);
                }
            }
            let closing = received == 0 || group.iter().any(|it| matches!(it, Request::Close));
            served = group.len();
            self.serve(group.drain(..).collect()).await;
            if closing {
                // Requests that still wait get `Closed` when the channel is dropped.
                break;
            }
        }
        self.transactor.depart().await;
        self.bell.ring(&[], true);
        self.transactor.close().await;
    }

    async fn serve(&mut self, mut work: Work) {
        let claims = std::mem::take(&mut work.claims);
        let deliveries = std::mem::take(&mut work.deliveries);
        self.commit(work).await;
        for claim in claims {
            let unheard = self.claim(Work { claims: vec![claim], ..Work::default() }).await;
            if !unheard.is_empty() {
                self.commit(Work::giving_back(unheard)).await;
            }
        }
        for (change, reply) in deliveries {
            // If the caller has gone, the taken deliveries are due again when their lease ends.
            let _ = reply.send(self.transactor.deliver(&change).await);
        }
    }

    /// Performs the appends, erasures, damage marks and renewals, and answers them.
    async fn commit(&mut self, work: Work) {
        if work.is_empty() {
            return;
        }
        match self.transactor.transact(&work).await {
            Ok(done) => _ = self.conclude(work, done),
            // A request that the server cannot perform must not affect the others.
            Err(Failure::Someone(_)) if work.len() > 1 => {
                for single in work.apart() {
                    match self.transactor.transact(&single).await {
                        Ok(done) => _ = self.conclude(single, done),
                        Err(Failure::Everyone(error) | Failure::Someone(error)) => {
                            single.refuse(&error);
                        }
                    }
                }
            }
            Err(Failure::Everyone(error) | Failure::Someone(error)) => work.refuse(&error),
        }
    }

    /// Performs a claim. Returns claims whose callers have gone.
    async fn claim(&mut self, work: Work) -> Vec<Claimed> {
        let Some((wanted, _)) = work.claims.first() else { return Vec::new() };
        match self.transactor.claim(wanted).await {
            Ok(done) => self.conclude(work, done),
            Err(error) => {
                work.refuse(&error);
                Vec::new()
            }
        }
    }

    /// Notifies watchers before it answers, so a caller with an answer can rely on that. Other
    /// processes are notified soon.
    fn conclude(&self, work: Work, done: Done) -> Vec<Claimed> {
        self.hub.keep(work.stored(&done.answers));
        self.bell.ring(&done.tails, done.freed);
        self.hub.moved(done.tails);
        if done.freed {
            self.hub.wake();
        }
        work.answer(done.answers)
    }
}

/// The error of a closed store.
pub(super) fn closed<T>(_: T) -> StoreError {
    StoreError::Closed
}
