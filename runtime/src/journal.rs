//! A run's log as its owner sees it, on top of the store.

mod state;

pub(crate) use state::InCheckout;

use crate::active::Stopping;
use crate::announcement::{Announcement, RunSummary};
use crate::announcement::{request, stopped_by};
use crate::budget::BudgetCheck;
use crate::feed::Feed;
use crate::stall::Pulse;
use crate::webhooks::Hooks;
use crate::worktree::{self, Worktrees};
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use posse_agent::{Allowance, Claim, Expect, Journal, JournalError};
use posse_protocol::{
    CancelScope, Changes, Delta, Event, Extra, Outcome, Record, RunFinished, RunId, SCHEMA_VERSION,
    Seq, Share, Worktree,
};
use posse_store::{
    Append, Bundle, Filter, Guard, Kin, Notice, Ownership, Reserve, Store, StoreError, Unfinished,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How often an append is retried while the disk is full.
const FULL_RETRY: Duration = Duration::from_millis(500);

pub(crate) struct RunJournal {
    store: Arc<dyn Store>,
    run: RunId,
    epoch: u64,
    tail: watch::Receiver<Seq>,
    stopping: Stopping,
    /// The log of a run that is not stored yet, so that it is not read from the store.
    fresh: Mutex<Option<Vec<Record>>>,
    birth: Mutex<Option<FirstEvents>>,
    /// A summary of the events so far: who gets the result, and what the run used.
    account: Mutex<RunSummary>,
    budget_check: BudgetCheck,
    /// The webhooks to notify of the end.
    hooks: Arc<Hooks>,
    /// Notified of everything that is stored.
    pulse: Arc<Pulse>,
    feed: Arc<Feed>,
    /// One more than the last position when followers last learned that the log cannot be written.
    held: AtomicU64,
    /// The lease of this worker when it last certainly had the claim to the run.
    owned: Arc<Mutex<Option<u64>>>,
    /// The worktree or the checkout of the run.
    workplace: Mutex<Option<Workplace>>,
}

/// Where a run works, if that is to be collected and removed.
#[derive(Clone)]
enum Workplace {
    Worktree(Worktrees, Worktree),
    Checkout(InCheckout),
    /// The checkout could not be made. The store has these changes of the run.
    Unmade(Changes),
}

/// The first events of an unstored run. They are stored with its first step, in one commit.
pub(crate) struct FirstEvents {
    pub(crate) events: Vec<Event>,
    /// Appends to other runs in the same commit.
    pub(crate) beside: Vec<Append>,
    /// The state of the checkout with which the run begins.
    pub(crate) bundle: Option<Arc<Bundle>>,
    /// Receives the result of storing the run.
    pub(crate) told: oneshot::Sender<Result<(), StoreError>>,
}

/// Appends that are stored together with the end of a run.
#[derive(Default)]
struct WithEnd {
    announcement: Option<Announcement>,
    /// Requests to the children to stop.
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

    /// Drops the addressee that cannot be reached according to `error`; an announcement goes to the
    /// next addressee. Returns false if `error` has another cause.
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

/// The epoch of a run whose first owner is the worker that created it.
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
        let budget_check = BudgetCheck::default();
        let workplace = Mutex::default();
        RunJournal {
            store,
            run,
            epoch,
            tail,
            stopping,
            fresh,
            birth,
            account,
            budget_check,
            hooks,
            pulse,
            feed,
            held: AtomicU64::new(0),
            owned: Arc::default(),
            workplace,
        }
    }

    /// Tells followers that the run waits because its log cannot be written: once, until something
    /// is stored.
    pub(crate) fn tell_held(&self, reason: &str) {
        let last = *self.tail.borrow();
        if self.held.swap(last.0 + 1, Ordering::Relaxed) != last.0 + 1 {
            self.feed.send(self.run, last, Delta::Held { reason: reason.to_owned() });
        }
    }

    /// The journal of a run that is not stored yet.
    pub(crate) fn with_first_events(self, birth: FirstEvents) -> Self {
        let records = records(self.run, &birth.events);
        self.observe(&records);
        let fresh = Mutex::new(Some(records));
        RunJournal { fresh, birth: Mutex::new(Some(birth)), ..self }
    }

    /// Sets the worktree of the run, which is removed when the run ends.
    pub(crate) fn works_in(&self, worktrees: Worktrees, worktree: Worktree) {
        self.set_workplace(Workplace::Worktree(worktrees, worktree));
    }

    /// Sets the checkout of the run. Its state is stored with the steps, and it is removed when the run ends.
    pub(crate) fn works_in_checkout(&self, checkout: InCheckout) {
        self.set_workplace(Workplace::Checkout(checkout));
    }

    /// Returns the checkout of the run, once it was set.
    pub(crate) fn checkout(&self) -> Option<InCheckout> {
        match self.workplace() {
            Some(Workplace::Checkout(checkout)) => Some(checkout),
            _ => None,
        }
    }

    /// Notes that the checkout of the run could not be made, and which of its changes the store has.
    pub(crate) fn works_nowhere(&self, stored: Option<Changes>) {
        if let Some(stored) = stored {
            self.set_workplace(Workplace::Unmade(stored));
        }
    }

    fn set_workplace(&self, workplace: Workplace) {
        *self.workplace.lock() = Some(workplace);
    }

    fn workplace(&self) -> Option<Workplace> {
        self.workplace.lock().clone()
    }

    /// Appends `events` and sets who owns the run then. The end of a run also says what the run has
    /// changed in its worktree.
    pub(crate) async fn hand_over(
        &self,
        mut events: Vec<Event>,
        last: Option<Seq>,
        then: Ownership,
    ) -> Result<Seq, StoreError> {
        let workplace = match self.workplace() {
            // Boxed, here and below: every step goes through this function, but an end comes only once.
            Some(Workplace::Checkout(place)) => {
                return Box::pin(self.pass_with_state(events, last, then, place)).await;
            }
            Some(Workplace::Worktree(worktrees, worktree)) => Some((worktrees, worktree)),
            Some(Workplace::Unmade(stored)) => {
                if let Some(Event::RunFinished(finished)) = events.last_mut() {
                    finished.changes = Some(Box::new(stored));
                }
                None
            }
            None => None,
        };
        let (Some(Event::RunFinished(finished)), Some((worktrees, worktree))) =
            (events.last_mut(), workplace)
        else {
            return self.pass(events, last, then, None).await;
        };
        let changes = Box::pin(worktrees.changes(&worktree)).await;
        let taken = worktree::is_taken(changes.as_ref());
        finished.changes = changes.map(Box::new);
        let first = self.pass(events, last, then, None).await?;
        if taken {
            // If this fails, `posse runs clean` finds the worktree.
            let _ = Box::pin(worktrees.remove(&worktree)).await;
        }
        Ok(first)
    }

    async fn pass(
        &self,
        events: Vec<Event>,
        last: Option<Seq>,
        then: Ownership,
        bundle: Option<Arc<Bundle>>,
    ) -> Result<Seq, StoreError> {
        let mut beside = match events.last() {
            Some(Event::RunFinished(finished)) => {
                Box::pin(self.beside_the_end(&events, finished)).await?
            }
            _ => WithEnd::default(),
        };
        let outbox = self.outbox(&events);
        let birth = self.birth.lock().take();
        if let Some(birth) = birth {
            let beside = beside.appends().collect();
            return self.create(birth, events, outbox, beside, bundle, then).await;
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
                bundle: bundle.clone(),
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
                // The run pauses until there is space, or until it is cancelled.
                Err(StoreError::Full) if !stopping => {
                    self.tell_held(&StoreError::Full.to_string());
                    self.wait_for_space().await;
                    // Reads whether it was cancelled. The next pass repeats a read that fails.
                    let _ = self.catch_up().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Stores the run with `events`, its first step.
    async fn create(
        &self,
        birth: FirstEvents,
        events: Vec<Event>,
        outbox: Vec<Notice>,
        announced: Vec<Append>,
        bundle: Option<Arc<Bundle>>,
        then: Ownership,
    ) -> Result<Seq, StoreError> {
        let FirstEvents { events: mut all, mut beside, bundle: begins_with, told } = birth;
        let bundle = bundle.or(begins_with);
        let first = Seq(all.len() as u64 + 1);
        self.count(first, &events);
        all.extend(events);
        beside.extend(announced);
        let made = Append { outbox: outbox.clone(), bundle, ..creation(self.run, all, then) };
        let created = store_new(&*self.store, made, beside).await;
        // The caller may be gone. The run is stored all the same.
        match created {
            Ok(_) => {
                // If this was the first append of the worker, the worker has a lease now.
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

    /// The lease of this worker before an append.
    async fn lease(&self) -> Option<u64> {
        let lease = self.store.lease();
        if lease.is_none() {
            // An expired lease is no reason to stop while no other worker has claimed the run.
            let _ = self.store.renew().await;
            return self.store.lease();
        }
        lease
    }

    /// Notes that an append succeeded while this worker had this lease: the run is its own.
    fn own(&self, lease: Option<u64>) {
        *self.owned.lock() = lease;
    }

    /// What is appended to other runs with the end of the run, the last of `events`: the result for
    /// its caller, and, unless the run completed, requests to its children to stop. All of it is
    /// stored in one commit with the end, so that a crash cannot lose it.
    async fn beside_the_end(
        &self,
        events: &[Event],
        finished: &RunFinished,
    ) -> Result<WithEnd, StoreError> {
        // The end of a cancelled run is stored even if the disk is full, with its other appends.
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

    /// The announcement of the end of the run, the last of `events`, if a caller wants it.
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
        let mut announcement = account.announcement(self.run, finished);
        if matches!(finished.outcome, Outcome::Cancelled { .. })
            && let Some(announcement) = &mut announcement
            && let Some(parent) = announcement.addressee()
            && self.is_session(parent).await?
        {
            announcement.wake_nobody();
        }
        Ok(announcement)
    }

    async fn is_session(&self, run: RunId) -> Result<bool, StoreError> {
        let rows = self.store.list(&Filter { id: Some(run), ..Filter::default() }).await?;
        Ok(rows.first().is_some_and(|row| row.about.session))
    }

    /// The notices to webhooks, if the last of `events` is the end of the run. They are stored with
    /// it. All events before `events` must have been counted.
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

    /// Counts events that others appended and this journal has not seen.
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
        // The request to stop may come from another process.
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
            self.budget_check.observe(&record.event);
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
        self.account.lock()
    }

    /// True when the run is not stored yet.
    pub(crate) fn is_unborn(&self) -> bool {
        self.birth.lock().is_some()
    }

    /// True when a call waits for the end of the run, as far as its log has been read.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.account().waits().is_some()
    }

    /// What the run may still draw from budgets.
    async fn drawable(&self) -> Result<Allowance, StoreError> {
        // The caller that starts the run need not wait until the run may draw from a budget.
        if self.is_unborn() {
            self.hand_over(Vec::new(), None, Ownership::Mine).await?;
        }
        self.budget_check.allowance(&*self.store, self.run).await
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
        let records = self.fresh.lock().take()?;
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
            let owned = *owned.lock();
            owned.is_some() && owned == store.lease()
        })
    }

    async fn allowance(&self) -> Result<Allowance, JournalError> {
        if !self.budget_check.is_limited() {
            return Ok(Allowance::default());
        }
        // Boxed: this is called before every step, and most runs have no budget.
        Box::pin(self.drawable()).await.map_err(journal_error)
    }
}

/// Stores a new run. Returns the time, in milliseconds since 1970.
pub(crate) async fn create(
    store: &dyn Store,
    run: RunId,
    events: Vec<Event>,
    beside: Vec<Append>,
    bundle: Option<Arc<Bundle>>,
    then: Ownership,
) -> Result<u64, StoreError> {
    store_new(store, Append { bundle, ..creation(run, events, then) }, beside).await
}

fn creation(run: RunId, events: Vec<Event>, then: Ownership) -> Append {
    let (events, guard) = (events.into(), Guard::Create(then));
    Append { run, events, guard, reserve: Reserve::Leave, outbox: Vec::new(), bundle: None }
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

/// True when `error` says that the run `other` cannot be reached any more. The end is then stored
/// without it.
fn is_unreachable(other: RunId, error: &StoreError) -> bool {
    match error {
        StoreError::Finished(run) | StoreError::Archived(run) | StoreError::NotFound(run) => {
            *run == other
        }
        StoreError::Damaged { run, .. } => *run == other,
        // The log of this run has been read, so it is not the newer one.
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
        StoreError::Unstorable { .. } => JournalError::Unstorable(error.to_string()),
        other => JournalError::Failed(other.to_string()),
    }
}
