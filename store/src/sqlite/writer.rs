//! The one writer. It takes everything that waits, has it done in one transaction, and answers
//! everyone after the commit.
//!
//! It owns what happens when the disk is full: only what stops runs is stored then, in space
//! kept back for it, until there is room again. A run that was told to stop and that nobody
//! executes is claimed then too, so that it comes to its end. Where the write-ahead log is what
//! fills the disk, it is brought into the file and cut off.

use super::checkpoint::Checkpoints;
use super::ledger::{Done, Failure, Ledger};
use super::reserve::{Shrinking, SpaceReserve};
use crate::engine::{Claims, Hub, Request, Work};
use crate::{Claimed, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Requests in one commit, at most.
const GROUP: usize = 1_024;
/// The same when fewer than some thousand wait. Runs whose requests are stored go on while those of
/// others are: were a thousand answered together, they would first all wait for the writer and then
/// all for a processor.
const SMALL_GROUP: usize = 64;
/// Which part of those that wait goes into one commit.
const PART: usize = 16;

pub(super) struct Writer {
    ledger: Ledger,
    hub: Arc<Hub>,
    reserve: SpaceReserve,
    poll: Duration,
    full: bool,
    /// When it was last tried in vain to cut the write-ahead log off.
    in_vain: Option<Instant>,
    checkpoints: Checkpoints,
}

/// How soon it is tried again to cut the write-ahead log off: whoever reads may be in the way.
const SHRINK_AGAIN: Duration = Duration::from_secs(1);

/// Stands in the writer's place where the database can only be read: refuses everything, for this
/// reason.
pub(super) async fn refuse(mut inbox: mpsc::Receiver<Request>, why: StoreError) {
    let mut group = Vec::with_capacity(SMALL_GROUP);
    while inbox.recv_many(&mut group, SMALL_GROUP).await > 0 {
        let closing = group.iter().any(|it| matches!(it, Request::Close));
        group.drain(..).collect::<Work>().refuse(&why);
        if closing {
            return;
        }
    }
}

impl Writer {
    pub(super) fn new(
        ledger: Ledger,
        reserve: SpaceReserve,
        poll: Duration,
        hub: Arc<Hub>,
        checkpoints: Checkpoints,
    ) -> Self {
        // Kept from the first moment on; if there is no room even for it, the disk is full.
        let full = !reserve.take();
        fail::fail_point!("store.reserve.taken");
        let poll = poll.max(Duration::from_millis(1));
        Writer { ledger, hub, reserve, poll, full, in_vain: None, checkpoints }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Request>) {
        let mut group = Vec::with_capacity(GROUP);
        // How many there were the last time.
        let mut served = 0;
        self.ledger.get_ready().await;
        // What others do is looked at after a while: whoever opens a store has something to do first.
        let mut ticks = interval_at(Instant::now() + self.poll, self.poll);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let limit = (inbox.len() / PART).clamp(SMALL_GROUP, GROUP);
            // Receiving loses nothing when a tick comes first.
            let received = tokio::select! {
                _ = ticks.tick() => {
                    self.look_outside().await;
                    continue;
                }
                received = inbox.recv_many(&mut group, limit) => received,
            };
            // Where several are at work, whoever is about to ask may do so first: a commit for many
            // costs little more than one for few.
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
            self.checkpoints.served(served);
            if closing {
                // Whoever still waits in the queue is told by the loss of the channel.
                break;
            }
        }
        self.ledger.depart().await;
    }

    async fn serve(&mut self, work: Work) {
        if work.is_empty() {
            return;
        }
        let unheard = self.commit(work).await;
        if !unheard.is_empty() {
            self.commit(Work::giving_back(unheard)).await;
        }
    }

    /// Does the work and answers for it. Returns claims that nobody heard of.
    async fn commit(&mut self, work: Work) -> Vec<Claimed> {
        if self.full && !self.regain().await {
            return self.commit_urgent(work).await;
        }
        match self.ledger.transact(&work).await {
            Ok(done) => self.conclude(work, done),
            Err(Failure::ToBegin(StoreError::Full) | Failure::Inside(StoreError::Full)) => {
                self.full = true;
                // Where the write-ahead log is what fills the disk, there is room at once.
                if self.regain().await {
                    return self.commit_single(work).await;
                }
                self.commit_urgent(work).await
            }
            // One request that the engine cannot serve takes no neighbour with it.
            Err(Failure::Inside(_)) if work.len() > 1 => {
                let mut unheard = Vec::new();
                for single in work.apart() {
                    unheard.extend(self.commit_single(single).await);
                }
                unheard
            }
            Err(Failure::ToBegin(error) | Failure::Inside(error)) => {
                work.refuse(&error);
                Vec::new()
            }
        }
    }

    /// Stores, from the reserve, what stops runs; the rest is refused.
    async fn commit_urgent(&mut self, work: Work) -> Vec<Claimed> {
        let to_stop = !work.claims.is_empty() && self.ledger.someone_is_to_stop().await;
        let urgent = work.keep_urgent(if to_stop { Claims::ToStop } else { Claims::None });
        if urgent.is_empty() {
            return Vec::new();
        }
        self.reserve.release();
        self.commit_single(urgent).await
    }

    async fn commit_single(&mut self, work: Work) -> Vec<Claimed> {
        match self.ledger.transact(&work).await {
            Ok(done) => self.conclude(work, done),
            Err(Failure::ToBegin(error) | Failure::Inside(error)) => {
                self.full |= matches!(error, StoreError::Full);
                work.refuse(&error);
                Vec::new()
            }
        }
    }

    /// Tells watchers, then those who asked: whoever has an answer finds watchers told.
    fn conclude(&self, work: Work, done: Done) -> Vec<Claimed> {
        self.hub.keep(work.stored(&done.answers));
        self.hub.moved(done.tails);
        if done.freed {
            self.hub.wake();
        }
        work.answer(done.answers)
    }

    /// Ends the state of a full disk when there is space again, or can be made.
    async fn regain(&mut self) -> bool {
        if !self.reserve.has_room() {
            self.cut_log_off().await;
        }
        if self.reserve.has_room() && self.reserve.take() {
            self.full = false;
            // The lease could not be renewed meanwhile: the next transaction does.
            self.ledger.forget();
        }
        !self.full
    }

    /// Brings the write-ahead log into the file and cuts it off, if that makes enough room. It may
    /// take the space that is kept back to do so.
    async fn cut_log_off(&mut self) {
        if self.in_vain.is_some_and(|at| at.elapsed() < SHRINK_AGAIN) {
            return;
        }
        let Some(whole) = self.ledger.bytes().await else { return };
        match self.reserve.shrinking(whole) {
            Shrinking::Useless => return,
            Shrinking::Free => {}
            Shrinking::Reserve => self.reserve.release(),
        }
        self.ledger.cut_log_off().await;
        self.reserve.restore();
        self.in_vain = (!self.reserve.has_room()).then(Instant::now);
    }

    /// Looks for what changed without a request: space, other processes' writes, their deaths.
    async fn look_outside(&mut self) {
        if !self.ledger.is_kept() {
            // Whoever waits for something to move looks, and is told why nothing does.
            return self.hub.close();
        }
        if self.full && self.regain().await {
            self.commit(Work::default()).await;
            self.hub.wake();
        }
        // Nothing to do about an error here: the next transaction meets it, and reports it.
        if let Ok(Some(tails)) = self.ledger.moved_outside(|| self.hub.watched()).await {
            self.hub.moved(tails);
            self.hub.wake();
        }
        if !self.full && self.ledger.someone_died().await {
            self.hub.wake();
        }
    }
}
