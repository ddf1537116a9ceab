//! The writer of this process. It takes everything that waits, has it done in one transaction, and
//! answers everyone after the commit. Other processes have writers of their own.

use super::bell::Bell;
use super::ledger::{Done, Failure, Ledger};
use crate::engine::{Hub, Request, Work};
use crate::{Claimed, StoreError};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Requests in one commit, at most.
const GROUP: usize = 1_024;
/// The same when fewer than some thousand wait: see the writer of SQLite.
const SMALL_GROUP: usize = 128;
/// Which part of those that wait goes into one commit.
const PART: usize = 8;

pub(super) struct Writer {
    pub(super) ledger: Ledger,
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
            // Where several are at work, whoever is about to ask may do so first.
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
                // Whoever still waits in the queue is told by the loss of the channel.
                break;
            }
        }
        self.ledger.depart().await;
        self.bell.ring(&[], true);
        self.ledger.close().await;
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
            // What was taken for someone who has gone is due again when its lease is over.
            let _ = reply.send(self.ledger.deliver(&change).await);
        }
    }

    /// Does what is appended, erased, marked and renewed, and answers for it.
    async fn commit(&mut self, work: Work) {
        if work.is_empty() {
            return;
        }
        match self.ledger.transact(&work).await {
            Ok(done) => _ = self.conclude(work, done),
            // One request that the server cannot serve takes no neighbour with it.
            Err(Failure::Someone(_)) if work.len() > 1 => {
                for single in work.apart() {
                    match self.ledger.transact(&single).await {
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

    /// Returns claims that nobody heard of.
    async fn claim(&mut self, work: Work) -> Vec<Claimed> {
        let Some((wanted, _)) = work.claims.first() else { return Vec::new() };
        match self.ledger.claim(wanted).await {
            Ok(done) => self.conclude(work, done),
            Err(error) => {
                work.refuse(&error);
                Vec::new()
            }
        }
    }

    /// Tells watchers, then those who asked: whoever has an answer finds watchers told. Others are told
    /// soon.
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

/// What a store that is closed answers.
pub(super) fn closed<T>(_: T) -> StoreError {
    StoreError::Closed
}
