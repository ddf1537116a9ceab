//! A store in memory, for tests. Its content is lost when the last handle is dropped.
//!
//! It follows the same rules as the other stores and passes the same tests, except those about
//! damage. It shows what a store must do itself: keep the rows unchanged while a transaction
//! decides, find them, know which workers are alive, and notify watchers. It uses only public items
//! of this crate, as a store of a host must: `tests/it/memory.rs` compiles it outside of the crate.

mod hub;
mod look;
mod state;

use crate::transaction::{Changes, Stamp};
use crate::{
    Append, Appended, Brought, Bundle, Claimed, Claims, Clock, Delivery, DeliveryFilter,
    DeliveryState, Draft, Filter, Flaw, Inspection, LedgerRow, Leftovers, Logs, Look, MachineClock,
    Outbox, Piece, Queue, Revival, RunCopy, RunRow, Scrub, Settled, Settlement, Spending,
    SpendingQuery, Store, StoreError, StoredEvent, Tail, Wanted, Worker, WorkerAbout, check_log,
};
use async_trait::async_trait;
use hub::Hub;
use parking_lot::{Mutex, MutexGuard};
use posse_protocol::{Record, RunId, SCHEMA_VERSION, Seq, WorkerId};
use state::State;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The default length of a list of deliveries.
const LIST: usize = 100;
/// The most runs that a search by a part of the id returns.
const FOUND: usize = 1_000;

/// The content, which all open stores share.
#[derive(Clone)]
pub struct Memory(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    lease: Duration,
    scrub: Option<Arc<dyn Scrub>>,
}

impl Memory {
    /// Creates an empty memory with the clock of the machine.
    pub fn new() -> Self {
        Memory::with(Arc::new(MachineClock::new()), Duration::from_secs(10), None)
    }

    /// Creates an empty memory. A silent worker keeps its runs for `lease`, and `scrub` removes
    /// secrets before they are stored.
    pub fn with(clock: Arc<dyn Clock>, lease: Duration, scrub: Option<Arc<dyn Scrub>>) -> Self {
        let state = Mutex::default();
        Memory(Arc::new(Shared { state, clock, lease, scrub }))
    }

    /// Opens a store with a new worker.
    pub fn open(&self) -> MemoryStore {
        let (worker, hub) = (WorkerId::new(), Arc::new(Hub::default()));
        self.lock().hubs.insert(worker, hub.clone());
        let (until, lapses) = (AtomicU64::new(0), AtomicU64::new(0));
        let closed = AtomicBool::new(false);
        let scrub = self.0.scrub.clone();
        MemoryStore { memory: self.clone(), worker, hub, until, lapses, closed, scrub }
    }

    /// Opens a store like [`Memory::open`]. `scrub`, if given, replaces that of the memory.
    pub fn open_scrubbing(&self, scrub: Option<Arc<dyn Scrub>>) -> MemoryStore {
        let mut store = self.open();
        store.scrub = scrub.or(store.scrub.take());
        store
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

/// A store in memory. If it is dropped before it is closed, its worker counts as dead, and others
/// can claim its runs at once.
pub struct MemoryStore {
    memory: Memory,
    worker: WorkerId,
    hub: Arc<Hub>,
    /// The end of the lease, in steady milliseconds.
    until: AtomicU64,
    /// How often the lease had ended before it was renewed.
    lapses: AtomicU64,
    closed: AtomicBool,
    /// Removes secrets before they are stored.
    scrub: Option<Arc<dyn Scrub>>,
}

/// Whether to renew a lease that holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renew {
    Always,
    IfUnknown,
}

impl MemoryStore {
    /// Creates a store with its own memory and the clock of the machine.
    pub fn new() -> Self {
        Memory::new().open()
    }

    fn clock(&self) -> &dyn Clock {
        &*self.memory.0.clock
    }

    /// Locks the content for reading.
    fn look(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.memory.lock();
        if self.closed.load(Ordering::SeqCst) {
            return Err(StoreError::Closed);
        }
        Ok(state)
    }

    /// Locks the content for writing, and registers this worker.
    fn change(&self, renew: Renew) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.look()?;
        if renew == Renew::Always || !state.knows(self.worker) {
            let until = self.clock().steady_ms() + self.memory.0.lease.as_millis() as u64;
            state.renew(self.worker, until);
            if self.lease().is_none() {
                self.lapses.fetch_add(1, Ordering::SeqCst);
            }
            self.until.fetch_max(until, Ordering::SeqCst);
        }
        Ok(state)
    }

    /// When a piece expires that is staged now.
    fn expires(&self) -> u64 {
        self.clock().wall_ms() + Piece::KEPT_FOR.as_millis() as u64
    }

    fn stands(&self, state: &State, row: &RunRow) -> RunRow {
        let steady_ms = self.clock().steady_ms();
        let lives = row.work.owner.is_some_and(|owner| state.lives(owner, self.worker, steady_ms));
        RunRow { status: row.status_given(lives), ..row.clone() }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        if !self.closed.load(Ordering::SeqCst) {
            let mut state = self.memory.lock();
            state.fell(self.worker);
            state.wake();
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn close(&self) {
        let mut state = self.memory.lock();
        if !self.closed.swap(true, Ordering::SeqCst) {
            state.depart(self.worker);
            state.wake();
            self.hub.close();
        }
    }
}

#[async_trait]
impl Logs for MemoryStore {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<Appended>, StoreError> {
        let scrub = self.scrub.as_deref();
        let drafts: Vec<Draft> =
            batch.into_iter().map(|append| Draft::new(append, scrub)).collect::<Result<_, _>>()?;
        let mut state = self.change(Renew::IfUnknown)?;
        let stamp = Stamp { worker: self.worker, at: self.clock().wall_ms() };
        let mut changes = Changes::default();
        state.tell_keys(&drafts, &mut changes);
        for draft in &drafts {
            let (run, bundle) = (draft.append.run, &draft.append.bundle);
            state.stage_bundle(run, bundle.clone(), self.expires());
            state.tell_data(run, draft.bundle.as_ref(), &mut changes);
        }
        let answers = changes.admit(&mut state.rows, &drafts, stamp)?;
        state.store(changes);
        Ok(answers)
    }

    async fn read(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Record>, StoreError> {
        let state = self.look()?;
        let row = state.rows.get(&run).ok_or(StoreError::NotFound(run))?;
        if row.log.erased {
            return Err(StoreError::Erased(run));
        }
        let tail = Tail {
            seq: row.log.last_seq,
            hash: row.log.last_hash.clone(),
            version: row.log.version,
        };
        let events = state.events_from(run, Seq(after.0.max(1)));
        let page = events.iter().take(limit.saturating_add(1)).cloned().map(Some);
        check_log(run, after, limit, &tail, page)
    }

    async fn stored(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Option<StoredEvent>>, StoreError> {
        let state = self.look()?;
        let events = state.events_from(run, after.next());
        Ok(events.iter().take(limit).cloned().map(Some).collect())
    }

    async fn stage(&self, run: RunId, piece: Piece) -> Result<(), StoreError> {
        let mut state = self.change(Renew::IfUnknown)?;
        let expires = self.expires();
        match piece {
            Piece::Bundle(bundle) => state.stage_bundle(run, Some(bundle), expires),
            Piece::Events(events) => state.stage_events(run, events, self.worker, expires)?,
        }
        Ok(())
    }

    async fn bring(&self, tree: Vec<RunCopy>) -> Result<Vec<Brought>, StoreError> {
        let mut state = self.change(Renew::IfUnknown)?;
        let mut changes = Changes::default();
        for copy in &tree {
            let run = copy.row().id;
            if let Some(key) = &copy.row().about.key
                && let Some(run) = state.keys.get(key)
            {
                changes.know_key(key.clone(), *run);
            }
            state.tell_data(run, copy.bundle(), &mut changes);
            state.tell_log(run, self.worker, &mut changes);
        }
        let brought = changes.bring(&mut state.rows, &tree)?;
        state.store(changes);
        Ok(brought)
    }

    async fn bundle(&self, run: RunId) -> Result<Option<Bundle>, StoreError> {
        Ok(self.look()?.bundles.get(&run).map(|bundle| Bundle::clone(bundle)))
    }

    fn watch(&self, run: RunId) -> watch::Receiver<Seq> {
        self.hub.watch(run)
    }

    async fn erase(&self, run: RunId, last: Seq) -> Result<(), StoreError> {
        let mut state = self.change(Renew::IfUnknown)?;
        let mut changes = Changes::default();
        changes.erase(&mut state.rows, run, last)?;
        state.events.remove(&run);
        state.bundles.remove(&run);
        state.store(changes);
        Ok(())
    }

    async fn now(&self) -> Result<u64, StoreError> {
        self.look().map(|_| self.clock().wall_ms())
    }
}

#[async_trait]
impl Claims for MemoryStore {
    fn worker(&self) -> WorkerId {
        self.worker
    }

    async fn claim(&self, wanted: &Wanted) -> Result<Vec<Claimed>, StoreError> {
        let mut state = self.change(Renew::IfUnknown)?;
        if state.free_the_dead(self.worker, self.clock().steady_ms()) {
            state.wake();
        }
        let named: std::collections::HashSet<RunId> = wanted.runs.iter().copied().collect();
        let about = state.introduced.get(&self.worker).cloned();
        let is_wanted = |row: &&RunRow| {
            about.as_ref().is_none_or(|about| about.takes(row))
                && (named.is_empty() || named.contains(&row.id))
                && wanted.workspace.as_ref().is_none_or(|folder| *folder == row.about.workspace)
        };
        let own = wanted.again.then_some(self.worker);
        let found = state.claimable(own).filter(is_wanted).cloned().collect();
        let mut changes = Changes::default();
        let taken = changes.claim(&mut state.rows, found, wanted.limit, self.worker);
        state.store(changes);
        Ok(taken.claimed)
    }

    async fn queue(&self, look: &Look) -> Result<Queue, StoreError> {
        let mut state = self.look()?;
        let freed = state.free_the_dead(self.worker, self.clock().steady_ms());
        if freed {
            state.wake();
        }
        Ok(Queue { freed, ..look::queue(&state, look, self.worker) })
    }

    async fn places(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, StoreError> {
        let state = self.look()?;
        let places: HashMap<RunId, u64> =
            look::in_line(state.ready()).iter().map(|row| row.id).zip(1..).collect();
        Ok(runs.iter().filter_map(|run| Some((*run, *places.get(run)?))).collect())
    }

    fn ready(&self) -> watch::Receiver<u64> {
        self.hub.ready()
    }

    async fn renew(&self) -> Result<(), StoreError> {
        self.change(Renew::Always).map(|_| ())
    }

    fn lease(&self) -> Option<u64> {
        let number = self.lapses.load(Ordering::SeqCst);
        (self.clock().steady_ms() <= self.until.load(Ordering::SeqCst)).then_some(number)
    }

    fn introduce(&self, about: WorkerAbout) {
        if let Ok(mut state) = self.look() {
            state.introduced.insert(self.worker, about);
        }
    }

    fn lease_length(&self) -> Duration {
        self.memory.0.lease
    }
}

#[async_trait]
impl Inspection for MemoryStore {
    async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        let state = self.look()?;
        let rows = state.rows.values().map(|row| self.stands(&state, row));
        Ok(look::listed(&state, filter, rows))
    }

    async fn find(&self, part: &str) -> Result<Vec<RunRow>, StoreError> {
        let state = self.look()?;
        let mut found = look::found(&state, part);
        found.truncate(FOUND);
        Ok(found.into_iter().map(|row| self.stands(&state, row)).collect())
    }

    async fn leftovers(&self, wanted: Leftovers) -> Result<Vec<RunRow>, StoreError> {
        let mut state = self.look()?;
        state.remove_expired(self.clock().wall_ms());
        let found = look::leftovers(&state, wanted, self.clock().wall_ms());
        Ok(found.into_iter().map(|row| self.stands(&state, row)).collect())
    }

    async fn spending(&self, query: &SpendingQuery) -> Result<Vec<Spending>, StoreError> {
        Ok(look::spending(&*self.look()?, query))
    }

    async fn ledger(&self, run: RunId) -> Result<Vec<LedgerRow>, StoreError> {
        let state = self.look()?;
        let calls = state.calls.iter().filter(|call| call.run == run);
        Ok(calls.map(|call| call.written()).collect())
    }

    async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let state = self.look()?;
        let (now, lease) = (self.clock().steady_ms(), self.memory.0.lease.as_millis() as u64);
        let living = state.introduced.iter().filter_map(|(id, about)| {
            let until = state.lease_of(*id).filter(|until| *until >= now)?;
            let silent_ms = (now + lease).saturating_sub(until);
            Some(Worker { id: *id, about: about.clone(), silent_ms })
        });
        Ok(living.collect())
    }

    async fn flaws(&self) -> Result<Vec<Flaw>, StoreError> {
        self.look().map(|_| Vec::new())
    }

    async fn orphans(&self) -> Result<Vec<String>, StoreError> {
        self.look().map(|_| Vec::new())
    }

    async fn strangers(&self) -> Result<Vec<String>, StoreError> {
        self.look().map(|_| Vec::new())
    }

    fn refusal(&self) -> Option<StoreError> {
        None
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn take_due(
        &self,
        hook: &str,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Delivery>, StoreError> {
        let mut state = self.change(Renew::IfUnknown)?;
        let now = self.clock().wall_ms();
        let is_due = |it: &&mut Delivery| {
            it.state == DeliveryState::Due && it.hook == hook && it.due_at <= now
        };
        let mut due: Vec<&mut Delivery> = state.deliveries.values_mut().filter(is_due).collect();
        due.sort_by(|one, other| (one.due_at, &one.id).cmp(&(other.due_at, &other.id)));
        let take = |delivery: &mut Delivery| {
            *delivery = delivery.clone().taken(now, lease);
            delivery.clone()
        };
        let mut taken: Vec<Delivery> = due.into_iter().take(limit).map(take).collect();
        taken.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(taken)
    }

    async fn settle(
        &self,
        delivery: &Delivery,
        settlement: Settlement,
        note: &str,
    ) -> Result<Settled, StoreError> {
        let mut state = self.change(Renew::IfUnknown)?;
        let now = self.clock().wall_ms();
        let Some(known) = state.deliveries.get_mut(&delivery.id) else {
            return Ok(Settled::TooLate);
        };
        match known.clone().settled(delivery.attempts, settlement, note, now) {
            None => Ok(Settled::TooLate),
            Some(settled) => {
                *known = settled;
                Ok(Settled::Noted)
            }
        }
    }

    async fn revive(&self, which: &Revival) -> Result<Vec<Delivery>, StoreError> {
        let mut state = self.change(Renew::IfUnknown)?;
        let now = self.clock().wall_ms();
        let mut back = Vec::new();
        for delivery in state.deliveries.values_mut() {
            let is_meant = match which {
                Revival::One(id) => delivery.id == *id,
                Revival::All => true,
            };
            if is_meant && let Some(revived) = delivery.clone().revived(now) {
                delivery.clone_from(&revived);
                back.push(revived);
            }
        }
        back.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(back)
    }

    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        let state = self.look()?;
        let is_meant = |it: &&Delivery| {
            filter.id.as_ref().is_none_or(|id| *id == it.id)
                && filter.run.is_none_or(|run| run == it.run)
                && filter.state.is_none_or(|state| state == it.state)
        };
        let mut found: Vec<Delivery> =
            state.deliveries.values().filter(is_meant).cloned().collect();
        found.sort_by(|one, other| (other.created_at, &one.id).cmp(&(one.created_at, &other.id)));
        found.truncate(if filter.limit == 0 { LIST } else { filter.limit });
        Ok(found)
    }

    async fn next_due(&self, hook: &str) -> Result<Option<Duration>, StoreError> {
        let state = self.look()?;
        let is_due = |it: &&Delivery| it.state == DeliveryState::Due && it.hook == hook;
        let next = state.deliveries.values().filter(is_due).map(|it| it.due_at).min();
        let now = self.clock().wall_ms();
        Ok(next.map(|at| Duration::from_millis(at.saturating_sub(now))))
    }
}

/// Returns true for a run that this version may execute.
fn is_known(row: &RunRow) -> bool {
    row.log.version <= SCHEMA_VERSION && row.log.damaged.is_none()
}
