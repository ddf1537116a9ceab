//! The writer. It takes all waiting requests, performs them in one transaction, and answers them
//! after the commit.
//!
//! It also handles a full disk: then it stores only appends that stop runs, in reserved space,
//! until there is room again. It lets workers claim runs that were asked to stop and that no worker
//! executes, so that they end. If the write-ahead log fills the disk, it moves the log into the
//! file and truncates it.

use super::checkpoint::Checkpoints;
use super::reserve::{Shrinking, SpaceReserve};
use super::transactor::{Done, Failure, Transactor};
use crate::engine::{Claims, Hub, Request, Work};
use crate::{Claimed, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The most requests in one commit.
const GROUP: usize = 1_024;
/// The most requests in one commit while at most a thousand wait. Runs whose requests are stored
/// can continue while the others wait. If a thousand were answered together, they would all wait
/// first for the writer and then for a processor.
const SMALL_GROUP: usize = 64;
/// With more waiting requests, one commit takes one part in this many.
const PART: usize = 16;

pub(super) struct Writer {
    transactor: Transactor,
    hub: Arc<Hub>,
    reserve: SpaceReserve,
    poll: Duration,
    full: bool,
    /// When the last attempt to truncate the write-ahead log failed.
    in_vain: Option<Instant>,
    checkpoints: Checkpoints,
}

/// How soon to try again to truncate the write-ahead log, which readers may prevent.
const SHRINK_AGAIN: Duration = Duration::from_secs(1);

/// Replaces the writer when the database can only be read: refuses all requests with `why`.
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
        transactor: Transactor,
        reserve: SpaceReserve,
        poll: Duration,
        hub: Arc<Hub>,
        checkpoints: Checkpoints,
    ) -> Self {
        // Take the reserve at the start. If there is no room even for it, the disk is full.
        let full = !reserve.take();
        fail::fail_point!("store.reserve.taken");
        let poll = poll.max(Duration::from_millis(1));
        Writer { transactor, hub, reserve, poll, full, in_vain: None, checkpoints }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Request>) {
        let mut group = Vec::with_capacity(GROUP);
        // The number of requests in the last group.
        let mut served = 0;
        self.transactor.get_ready().await;
        // Look for changes of others later: a process that opens a store has requests first.
        let mut ticks = interval_at(Instant::now() + self.poll, self.poll);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let limit = (inbox.len() / PART).clamp(SMALL_GROUP, GROUP);
            // `recv_many` is cancel safe: it loses no request when a tick comes first.
            let received = tokio::select! {
                _ = ticks.tick() => {
                    self.look_outside().await;
                    continue;
                }
                received = inbox.recv_many(&mut group, limit) => received,
            };
            // If several tasks send requests, let them do so first. A commit for many requests
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
                // Requests that still wait get `Closed` when the channel is dropped.
                break;
            }
        }
        self.transactor.depart().await;
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

    /// Performs the work and answers it. Returns claims whose callers have gone.
    async fn commit(&mut self, work: Work) -> Vec<Claimed> {
        if self.full && !self.regain().await {
            return self.commit_urgent(work).await;
        }
        match self.transactor.transact(&work).await {
            Ok(done) => self.conclude(work, done),
            Err(Failure::ToBegin(StoreError::Full) | Failure::Inside(StoreError::Full)) => {
                self.full = true;
                // If the write-ahead log filled the disk, there is room now.
                if self.regain().await {
                    return self.commit_single(work).await;
                }
                self.commit_urgent(work).await
            }
            // A request that the engine cannot perform must not affect the others.
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

    /// Stores appends that stop runs, using the reserve, and refuses the rest.
    async fn commit_urgent(&mut self, work: Work) -> Vec<Claimed> {
        let to_stop = !work.claims.is_empty() && self.transactor.someone_is_to_stop().await;
        let urgent = work.keep_urgent(if to_stop { Claims::ToStop } else { Claims::None });
        if urgent.is_empty() {
            return Vec::new();
        }
        self.reserve.release();
        self.commit_single(urgent).await
    }

    async fn commit_single(&mut self, work: Work) -> Vec<Claimed> {
        match self.transactor.transact(&work).await {
            Ok(done) => self.conclude(work, done),
            Err(Failure::ToBegin(error) | Failure::Inside(error)) => {
                self.full |= matches!(error, StoreError::Full);
                work.refuse(&error);
                Vec::new()
            }
        }
    }

    /// Notifies watchers before it answers, so a caller with an answer can rely on that.
    fn conclude(&self, work: Work, done: Done) -> Vec<Claimed> {
        self.hub.keep(work.stored(&done.answers));
        self.hub.moved(done.tails);
        if done.freed {
            self.hub.wake();
        }
        work.answer(done.answers)
    }

    /// Ends the state of a full disk if there is space again, or if space can be made.
    async fn regain(&mut self) -> bool {
        if !self.reserve.has_room() {
            self.cut_log_off().await;
        }
        if self.reserve.has_room() && self.reserve.take() {
            self.full = false;
            // The lease could not be renewed meanwhile. The next transaction renews it.
            self.transactor.forget();
        }
        !self.full
    }

    /// Moves the write-ahead log into the file and truncates it, if that makes enough room. It may
    /// release the reserve to do so.
    async fn cut_log_off(&mut self) {
        if self.in_vain.is_some_and(|at| at.elapsed() < SHRINK_AGAIN) {
            return;
        }
        let Some(whole) = self.transactor.bytes().await else { return };
        match self.reserve.shrinking(whole) {
            Shrinking::Useless => return,
            Shrinking::Free => {}
            Shrinking::Reserve => self.reserve.release(),
        }
        self.transactor.cut_log_off().await;
        self.reserve.restore();
        self.in_vain = (!self.reserve.has_room()).then(Instant::now);
    }

    /// Looks for changes without a request: free space, and writes and deaths of other processes.
    async fn look_outside(&mut self) {
        if !self.transactor.is_kept() {
            // Watchers then read and get the reason.
            return self.hub.close();
        }
        if self.full && self.regain().await {
            self.commit(Work::default()).await;
            self.hub.wake();
        }
        // The next transaction meets and reports an error.
        if let Ok(Some(tails)) = self.transactor.moved_outside(|| self.hub.watched()).await {
            self.hub.moved(tails);
            self.hub.wake();
        }
        if !self.full && self.transactor.someone_died().await {
            self.hub.wake();
        }
    }
}
