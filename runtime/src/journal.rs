//! A run's log as its owner sees it, on top of the store.

use crate::active::Stopping;
use crate::announcement::{Announcement, RunSummary};
use crate::announcement::{request, stopped_by};
use crate::budget::Purse;
use crate::feed::Feed;
use crate::stall::Pulse;
use crate::webhooks::Hooks;
use crate::worktree::{self, Worktrees};
use async_trait::async_trait;
use posse_agent::{Allowance, Claim, Expect, Journal, JournalError};
use posse_protocol::{
    CancelScope, Delta, Event, Extra, Record, RunFinished, RunId, SCHEMA_VERSION, Seq, Share,
    Worktree,
};
use posse_store::{
    Append, Filter, Guard, Kin, Notice, Ownership, Reserve, Store, StoreError, Unfinished,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How often an append is tried again while the disk is full.
const FULL_RETRY: Duration = Duration::from_millis(500);

pub(crate) struct RunJournal {
    store: Arc<dyn Store>,
    run: RunId,
    epoch: u64,
    tail: watch::Receiver<Seq>,
    stopping: Stopping,
    /// The log of a run that is not stored yet, so that it need not be read.
    fresh: Mutex<Option<Vec<Record>>>,
    birth: Mutex<Option<FirstEvents>>,
    /// What goes by, counted: whom to tell of the end, and what it took.
    account: Mutex<RunSummary>,
    purse: Purse,
    /// Who outside is told of the end.
    hooks: Arc<Hooks>,
    /// Told whatever is stored.
    pulse: Arc<Pulse>,
    feed: Arc<Feed>,
    /// One more than where the log ended when it was last told that it cannot be written.
    held: AtomicU64,
    /// The lease of this worker when the run was last known to be its own.
    owned: Arc<Mutex<Option<u64>>>,
    /// The worktree that is the run's own.
    worktree: Mutex<Option<(Worktrees, Worktree)>>,
}

/// A run that is not stored yet: it is made together with the first thing it does, in one commit.
pub(crate) struct FirstEvents {
    pub(crate) events: Vec<Event>,
    /// What is stored in the same commit.
    pub(crate) beside: Vec<Append>,
    /// Hears that the run is stored, or why it is not.
    pub(crate) told: oneshot::Sender<Result<(), StoreError>>,
}

/// What is stored together with the end of a run.
#[derive(Default)]
struct WithEnd {
    announcement: Option<Announcement>,
    /// Requests to stop, to those below.
    requests: Vec<Append>,
    reserve: Reserve,
}

impl WithEnd {
    fn appends(&self) -> impl Iterator<Item = Append> {
        let announcement = self.announcement.as_ref().and_then(Announcement::append);
        let announcement = announcement.map(|append| Append { reserve: self.reserve, ..append });
        announcement.into_iter().chain(self.requests.iter().cloned())
    }

    fn is_empty(&self) -> bool {
        self.announcement.is_none() && self.requests.is_empty()
    }

    /// Leaves out whoever cannot be told any more, which `error` says, and tells somebody else of
    /// the end in its place. Returns false if that is not what is wrong.
    fn skip_unreachable(&mut self, error: &StoreError) -> bool {
        let addressee = self.announcement.as_ref().and_then(Announcement::addressee);
        if addressee.is_some_and(|run| is_unreachable(run, error)) {
            self.announcement.as_mut().into_iter().for_each(Announcement::pass_on);
            return true;
        }
        let before = self.requests.len();
        self.requests.retain(|told| !is_unreachable(told.run, error));
        self.requests.len() < before
    }
}

/// The epoch of a run whose first owner is the one who made it.
pub(crate) const FIRST_EPOCH: u64 = 1;

impl RunJournal {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        run: RunId,
        epoch: u64,
        stopping: Stopping,
        hooks: Arc<Hooks>,
        pulse: Arc<Pulse>,
        feed: Arc<Feed>,
    ) -> Self {
        let tail = store.watch(run);
        let (fresh, birth, account) = (Mutex::default(), Mutex::default(), Mutex::default());
        let purse = Purse::default();
        let worktree = Mutex::default();
        RunJournal {
            store,
            run,
            epoch,
            tail,
            stopping,
            fresh,
            birth,
            account,
            purse,
            hooks,
            pulse,
            feed,
            held: AtomicU64::new(0),
            owned: Arc::default(),
            worktree,
        }
    }

    /// Tells whoever follows the run that it waits because its log cannot be written: once, until
    /// something is stored.
    pub(crate) fn tell_held(&self, reason: &str) {
        let last = *self.tail.borrow();
        if self.held.swap(last.0 + 1, Ordering::Relaxed) != last.0 + 1 {
            self.feed.send(self.run, last, Delta::Held { reason: reason.to_owned() });
        }
    }

    /// The journal of a run that is yet to be stored.
    pub(crate) fn with_first_events(self, birth: FirstEvents) -> Self {
        let records = records(self.run, &birth.events);
        self.observe(&records);
        let fresh = Mutex::new(Some(records));
        RunJournal { fresh, birth: Mutex::new(Some(birth)), ..self }
    }

    /// The run works in `worktree`: when it ends, that is taken down.
    pub(crate) fn works_in(&self, worktrees: Worktrees, worktree: Worktree) {
        let mut own = self.worktree.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Some((worktrees, worktree));
    }

    fn worktree(&self) -> Option<(Worktrees, Worktree)> {
        self.worktree.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Appends `events` and says who owns the run then. What the run has changed in a worktree of
    /// its own is told with its end.
    pub(crate) async fn hand_over(
        &self,
        mut events: Vec<Event>,
        last: Option<Seq>,
        then: Ownership,
    ) -> Result<Seq, StoreError> {
        let Some(Event::RunFinished(finished)) = events.last_mut() else {
            return self.pass(events, last, then).await;
        };
        let Some((worktrees, worktree)) = self.worktree() else {
            return self.pass(events, last, then).await;
        };
        // In boxes of their own, here and below: every step is handed over, an end comes once.
        let changes = Box::pin(worktrees.changes(&worktree)).await;
        let taken = worktree::is_taken(changes.as_ref());
        finished.changes = changes.map(Box::new);
        let first = self.pass(events, last, then).await?;
        if taken {
            // What stays is found by `posse runs clean`.
            let _ = Box::pin(worktrees.remove(&worktree)).await;
        }
        Ok(first)
    }

    async fn pass(
        &self,
        events: Vec<Event>,
        last: Option<Seq>,
        then: Ownership,
    ) -> Result<Seq, StoreError> {
        let mut beside = match events.last() {
            Some(Event::RunFinished(finished)) => {
                Box::pin(self.beside_the_end(&events, finished)).await?
            }
            _ => WithEnd::default(),
        };
        let outbox = self.outbox(&events);
        let birth = self.birth.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(birth) = birth {
            let beside = beside.appends().collect();
            return self.create(birth, events, outbox, beside, then).await;
        }
        let events: Arc<[Event]> = events.into();
        if !beside.is_empty() {
            fail::fail_point!("announcement.append.before");
        }
        loop {
            let stopping = self.stopping.is_set();
            let append = Append {
                run: self.run,
                events: events.clone(),
                guard: Guard::Owner { epoch: self.epoch, last, then },
                reserve: if stopping { Reserve::Use } else { Reserve::Leave },
                outbox: outbox.clone(),
            };
            let batch = std::iter::once(append).chain(beside.appends()).collect();
            let lease = self.lease().await;
            match self.store.append(batch).await {
                Ok(appended) => {
                    self.own(lease);
                    let first = appended.first().map(|at| at.first).ok_or(StoreError::Closed)?;
                    self.count(first, &events);
                    self.posted(&outbox);
                    if !beside.is_empty() {
                        fail::fail_point!("announcement.append.after");
                    }
                    return Ok(first);
                }
                Err(error) if beside.skip_unreachable(&error) => {}
                // The run pauses until there is space, or until someone stops it.
                Err(StoreError::Full) if !stopping => {
                    self.tell_held(&StoreError::Full.to_string());
                    self.wait_for_space().await;
                    // Whether someone did; a log that cannot be read now is looked at again.
                    let _ = self.catch_up().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Stores the run with `events`, the first it records.
    async fn create(
        &self,
        birth: FirstEvents,
        events: Vec<Event>,
        outbox: Vec<Notice>,
        announced: Vec<Append>,
        then: Ownership,
    ) -> Result<Seq, StoreError> {
        let FirstEvents { events: mut all, mut beside, told } = birth;
        let first = Seq(all.len() as u64 + 1);
        self.count(first, &events);
        all.extend(events);
        beside.extend(announced);
        let made = Append { outbox: outbox.clone(), ..creation(self.run, all, then) };
        let created = store_new(&*self.store, made, beside).await;
        // Whoever asked for the run may have gone: it is stored all the same.
        match created {
            Ok(_) => {
                // This append has made the worker known, if it was its first.
                self.own(self.store.lease());
                self.posted(&outbox);
                let _ = told.send(Ok(()));
                Ok(first)
            }
            Err(error) => {
                let _ = told.send(Err(error));
                Err(StoreError::NotOwner(self.run))
            }
        }
    }

    /// The lease of this worker, before it appends something.
    async fn lease(&self) -> Option<u64> {
        let lease = self.store.lease();
        if lease.is_none() {
            // One that is over is no reason to stop, as long as nobody has claimed the run.
            let _ = self.store.renew().await;
            return self.store.lease();
        }
        lease
    }

    /// What was appended says that the run is this worker's, who had this lease before.
    fn own(&self, lease: Option<u64>) {
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = lease;
    }

    /// What the end of the run, the last of `events`, is to others: to whoever waits for it the
    /// result, and to those it has started a request to stop, unless it has come to its end by
    /// itself. All of it is stored with the end, so that nobody is left who has not heard of it.
    async fn beside_the_end(
        &self,
        events: &[Event],
        finished: &RunFinished,
    ) -> Result<WithEnd, StoreError> {
        // What stops a run must be stored even when the disk is full, with all that belongs to it.
        let reserve = if self.stopping.is_set() { Reserve::Use } else { Reserve::Leave };
        let announcement = self.announcement(events, finished).await?;
        let mut requests = Vec::new();
        if let Some(by) = stopped_by(&finished.outcome).filter(|_| self.account().may_lead()) {
            let (kin, limit) = (Kin::ChildrenOf(self.run), usize::MAX >> 1);
            let open = Filter { kin, unfinished: Unfinished::Only, limit, ..Filter::default() };
            let open = self.store.list(&open).await?.into_iter().filter(|row| !row.state.stopping);
            requests.extend(open.map(|row| Append { reserve, ..request(row.id, &by) }));
        }
        Ok(WithEnd { announcement, requests, reserve })
    }

    /// The end of the run, the last of `events`, on its way to whoever is to hear of it.
    async fn announcement(
        &self,
        events: &[Event],
        finished: &RunFinished,
    ) -> Result<Option<Announcement>, StoreError> {
        self.catch_up().await?;
        let mut account = self.account().clone();
        let mut seq = account.seen();
        for event in &events[..events.len() - 1] {
            seq = seq.next();
            account.observe(seq, event);
        }
        Ok(account.announcement(self.run, finished))
    }

    /// What those outside are told of the end of the run, if it is the last of `events`: stored
    /// with it. All before it must have been counted.
    fn outbox(&self, events: &[Event]) -> Vec<Notice> {
        let Some((Event::RunFinished(finished), before)) = events.split_last() else {
            return Vec::new();
        };
        if self.hooks.is_empty() {
            return Vec::new();
        }
        let mut account = self.account().clone();
        for event in before {
            account.observe(account.seen().next(), event);
        }
        self.hooks.notices(self.run, &account, finished)
    }

    fn posted(&self, outbox: &[Notice]) {
        if !outbox.is_empty() {
            self.hooks.posted();
        }
    }

    /// Counts what others appended and this journal has not seen go by.
    async fn catch_up(&self) -> Result<(), StoreError> {
        let seen = self.account().seen();
        if self.is_unborn() || self.tail() <= seen {
            return Ok(());
        }
        let records = self.store.read(self.run, seen, usize::MAX).await?;
        self.observe(&records);
        Ok(())
    }

    fn observe(&self, records: &[Record]) {
        // Whoever asks the run to stop may do so from another process.
        let last = records.iter().rev().find_map(|record| match &record.event {
            Event::CancelRequested(request) if request.scope == CancelScope::Run => Some(true),
            Event::RunFinished(_) => Some(false),
            _ => None,
        });
        if last == Some(true) {
            self.stopping.set();
        }
        let mut account = self.account();
        for record in records {
            self.purse.observe(&record.event);
            account.observe(record.seq, &record.event);
        }
    }

    fn count(&self, first: Seq, events: &[Event]) {
        self.pulse.stored(Seq((first.0 + events.len() as u64).saturating_sub(1)));
        let mut account = self.account();
        for (event, seq) in events.iter().zip(first.0..) {
            account.observe(Seq(seq), event);
        }
    }

    fn account(&self) -> MutexGuard<'_, RunSummary> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run is not stored yet.
    pub(crate) fn is_unborn(&self) -> bool {
        self.birth.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether somebody waits for the end of the run, as far as its log has been read.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.account().waits().is_some()
    }

    /// What may still be drawn of budgets.
    async fn drawable(&self) -> Result<Allowance, StoreError> {
        // Whoever starts the run need not wait until it may draw something.
        if self.is_unborn() {
            self.hand_over(Vec::new(), None, Ownership::Mine).await?;
        }
        self.purse.allowance(&*self.store, self.run).await
    }

    async fn wait_for_space(&self) {
        let mut tail = self.tail.clone();
        tail.mark_unchanged();
        tokio::select! {
            () = tokio::time::sleep(FULL_RETRY) => {}
            _ = tail.changed() => {}
        }
    }

    fn take_fresh(&self) -> Option<Vec<Record>> {
        let records = self.fresh.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let known = records.last().map_or(Seq::ZERO, |record| record.seq);
        (self.tail() <= known).then_some(records)
    }
}

#[async_trait]
impl Journal for RunJournal {
    async fn record(&self, events: Vec<Event>, expect: Expect) -> Result<Seq, JournalError> {
        let last = match expect {
            Expect::Any => None,
            Expect::Last(seq) => Some(seq),
        };
        fail::fail_point!("journal.record.before");
        let first = self.hand_over(events, last, Ownership::Mine).await.map_err(journal_error)?;
        fail::fail_point!("journal.record.after");
        Ok(first)
    }

    async fn read_after(&self, seq: Seq) -> Result<Vec<Record>, JournalError> {
        if seq == Seq::ZERO
            && let Some(records) = self.take_fresh()
        {
            return Ok(records);
        }
        let records = self.store.read(self.run, seq, usize::MAX).await.map_err(journal_error)?;
        self.observe(&records);
        Ok(records)
    }

    fn tail(&self) -> Seq {
        *self.tail.borrow()
    }

    async fn changed(&self, seq: Seq) {
        let mut tail = self.tail.clone();
        // An error means that the store is gone: the next append says so.
        if tail.wait_for(|tail| *tail > seq).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn claim(&self) -> Claim {
        let (store, owned) = (self.store.clone(), self.owned.clone());
        Claim::new(move || {
            let owned = *owned.lock().unwrap_or_else(PoisonError::into_inner);
            owned.is_some() && owned == store.lease()
        })
    }

    async fn allowance(&self) -> Result<Allowance, JournalError> {
        if !self.purse.is_limited() {
            return Ok(Allowance::default());
        }
        // In a box of its own: this is asked before every step, and most runs draw on nothing.
        Box::pin(self.drawable()).await.map_err(journal_error)
    }
}

/// Stores a new run. Returns when: milliseconds since 1970.
pub(crate) async fn create(
    store: &dyn Store,
    run: RunId,
    events: Vec<Event>,
    beside: Vec<Append>,
    then: Ownership,
) -> Result<u64, StoreError> {
    store_new(store, creation(run, events, then), beside).await
}

fn creation(run: RunId, events: Vec<Event>, then: Ownership) -> Append {
    let (events, guard) = (events.into(), Guard::Create(then));
    Append { run, events, guard, reserve: Reserve::Leave, outbox: Vec::new() }
}

async fn store_new(
    store: &dyn Store,
    created: Append,
    beside: Vec<Append>,
) -> Result<u64, StoreError> {
    let batch = std::iter::once(created).chain(beside).collect();
    fail::fail_point!("run.create.before");
    let stored = store.append(batch).await?;
    fail::fail_point!("run.create.after");
    Ok(stored.first().map_or(0, |appended| appended.at))
}

/// True when `other` cannot be told anything any more, which `error` says. Then an end is stored
/// without.
fn is_unreachable(other: RunId, error: &StoreError) -> bool {
    match error {
        StoreError::Finished(run) | StoreError::Archived(run) | StoreError::NotFound(run) => {
            *run == other
        }
        StoreError::Damaged { run, .. } => *run == other,
        // The child's own log is of this version: it has been read.
        StoreError::Newer(_) => true,
        _ => false,
    }
}

/// `events` as the beginning of a log.
fn records(run: RunId, events: &[Event]) -> Vec<Record> {
    let numbered = events.iter().cloned().zip(1..);
    let version = SCHEMA_VERSION;
    numbered
        .map(|(event, seq)| {
            let extra = Extra::default();
            Record { run, seq: Seq(seq), at: 0, version, event, extra }
        })
        .collect()
}

fn journal_error(error: StoreError) -> JournalError {
    match error {
        StoreError::Moved { .. } => JournalError::Moved,
        StoreError::OverBudget { holder, limit, left, held, .. } => {
            JournalError::OverBudget(Share { limit, holder, left, held })
        }
        StoreError::NotOwner(_) | StoreError::Closed => JournalError::NotOwner,
        StoreError::Damaged { .. } | StoreError::Newer(_) => {
            JournalError::Damaged(error.to_string())
        }
        other => JournalError::Failed(other.to_string()),
    }
}
