//! The tables of the store.

use super::hub::Hub;
use super::is_known;
use crate::transaction::{Changes, Loading, Rows};
use crate::{
    Bundle, BundleHead, Delivery, Draft, ModelCall, RunRow, StoreError, StoredEvent, WorkerAbout,
};
use posse_protocol::{RunId, Seq, WorkerId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

struct HiddenLog {
    owner: WorkerId,
    events: Vec<StoredEvent>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) rows: Rows,
    pub(super) events: HashMap<RunId, Vec<StoredEvent>>,
    /// In the order in which they were settled.
    pub(super) calls: Vec<ModelCall>,
    pub(super) deliveries: BTreeMap<String, Delivery>,
    pub(super) bundles: HashMap<RunId, Arc<Bundle>>,
    /// Bundles that do not count yet, by their hashes, and when they expire.
    staged: HashMap<(RunId, String), (Arc<Bundle>, u64)>,
    /// Logs that arrive from another store.
    hidden: HashMap<RunId, HiddenLog>,
    /// When the logs expire that a worker brings, and their bundles.
    kept: HashMap<WorkerId, u64>,
    pub(super) keys: HashMap<String, RunId>,
    /// The end of the lease of each worker; `None` for a worker that died.
    workers: HashMap<WorkerId, Option<u64>>,
    /// What workers said about themselves.
    pub(super) introduced: HashMap<WorkerId, WorkerAbout>,
    pub(super) hubs: HashMap<WorkerId, Arc<Hub>>,
}

impl State {
    /// Returns the events of `run` from `first` on.
    pub(super) fn events_from(&self, run: RunId, first: Seq) -> &[StoredEvent] {
        let events = self.events.get(&run).map_or(&[][..], Vec::as_slice);
        let before = usize::try_from(first.0.saturating_sub(1)).unwrap_or(usize::MAX);
        &events[before.min(events.len())..]
    }

    /// Runs that have something to do and no owner.
    pub(super) fn ready(&self) -> impl Iterator<Item = &RunRow> {
        let rows = self.rows.values().map(|row| &**row);
        rows.filter(|row| row.work.runnable && row.work.owner.is_none() && !row.state.paused)
    }

    /// Returns the runs that a worker can claim: runs that this version can execute and nobody owns, or `owner` owns.
    pub(super) fn claimable(&self, owner: Option<WorkerId>) -> impl Iterator<Item = &RunRow> {
        let rows = self.rows.values().map(|row| &**row);
        let is_free = move |row: &&RunRow| row.work.owner.is_none_or(|it| Some(it) == owner);
        let has_work = |row: &&RunRow| row.work.runnable && !row.state.paused;
        rows.filter(is_free).filter(has_work).filter(|row| is_known(row))
    }

    /// Passes the known keys of `drafts` to `changes`.
    pub(super) fn tell_keys(&self, drafts: &[Draft], changes: &mut Changes) {
        for key in Loading::of(drafts, []).keys() {
            if let Some(run) = self.keys.get(key) {
                changes.know_key(key.clone(), *run);
            }
        }
    }

    /// Stores the changes of a transaction and notifies watchers. The rows are changed already.
    pub(super) fn store(&mut self, changes: Changes) {
        for event in changes.events {
            self.events.entry(event.run).or_default().push(event);
        }
        self.calls.extend(changes.calls);
        for run in changes.shown {
            let log = self.hidden.remove(&run).map(|log| log.events);
            self.events.insert(run, log.unwrap_or_default());
        }
        for (run, head) in changes.bundles {
            let staged = self.staged.remove(&(run, head.sha256));
            let data = staged.map_or_else(|| Arc::new([]) as Arc<[u8]>, |(it, _)| it.data.clone());
            self.bundles.insert(run, Arc::new(Bundle { about: head.about, data }));
        }
        for delivery in changes.deliveries {
            self.deliveries.entry(delivery.id.clone()).or_insert(delivery);
        }
        for row in changes.rows.keys().filter_map(|run| self.rows.get(run)) {
            self.keys.extend(row.about.key.clone().map(|key| (key, row.id)));
            self.hubs.values().for_each(|hub| hub.moved(row.id, row.log.last_seq));
        }
        if changes.freed {
            self.wake();
        }
    }

    pub(super) fn stage_bundle(&mut self, run: RunId, bundle: Option<Arc<Bundle>>, expires: u64) {
        if let Some(bundle) = bundle {
            self.staged.insert((run, bundle.sha256()), (bundle, expires));
        }
    }

    /// Stages the next events of a log. The first event begins again.
    pub(super) fn stage_events(
        &mut self,
        run: RunId,
        events: Vec<StoredEvent>,
        owner: WorkerId,
        expires: u64,
    ) -> Result<(), StoreError> {
        if self.rows.contains_key(&run) {
            return Err(StoreError::Exists(run));
        }
        self.kept.insert(owner, expires);
        let first = events.first().map_or(Seq(1), |event| event.seq);
        if first == Seq(1) {
            self.hidden.insert(run, HiddenLog { owner, events });
            return Ok(());
        }
        let log = self.hidden.get_mut(&run).filter(|log| {
            log.owner == owner && log.events.last().is_some_and(|last| last.seq.next() == first)
        });
        let log = log.ok_or(StoreError::Unstaged(run))?;
        log.events.extend(events);
        Ok(())
    }

    /// Tells `changes` whether the data of a bundle is there.
    pub(super) fn tell_data(&self, run: RunId, bundle: Option<&BundleHead>, changes: &mut Changes) {
        if let Some(head) = bundle
            && self.staged.contains_key(&(run, head.sha256.clone()))
        {
            changes.know_data(run, head.sha256.clone());
        }
    }

    /// Tells `changes` the end of a log that `owner` brings.
    pub(super) fn tell_log(&self, run: RunId, owner: WorkerId, changes: &mut Changes) {
        let log = self.hidden.get(&run).filter(|log| log.owner == owner);
        if let Some(last) = log.and_then(|log| log.events.last()) {
            changes.know_log(run, last.seq, last.hash.clone());
        }
    }

    /// Removes what was staged and has expired.
    pub(super) fn remove_expired(&mut self, now_ms: u64) {
        self.kept.retain(|_, expires| *expires >= now_ms);
        self.hidden.retain(|_, log| self.kept.contains_key(&log.owner));
        let is_kept = |run: &RunId| self.hidden.contains_key(run);
        self.staged.retain(|(run, _), (_, expires)| *expires >= now_ms || is_kept(run));
    }

    pub(super) fn wake(&self) {
        self.hubs.values().for_each(|hub| hub.wake());
    }

    pub(super) fn knows(&self, worker: WorkerId) -> bool {
        self.workers.contains_key(&worker)
    }

    pub(super) fn renew(&mut self, worker: WorkerId, until: u64) {
        self.workers.insert(worker, Some(until));
    }

    /// Returns whether `worker` is alive. A worker always sees itself as alive.
    pub(super) fn lives(&self, worker: WorkerId, asking: WorkerId, steady_ms: u64) -> bool {
        let until = self.workers.get(&worker).copied().flatten();
        worker == asking || until.is_some_and(|until| until >= steady_ms)
    }

    /// Marks a worker as dead: it is gone and did not close its store.
    pub(super) fn fell(&mut self, worker: WorkerId) {
        self.hubs.remove(&worker);
        if let Some(lease) = self.workers.get_mut(&worker) {
            *lease = None;
        }
    }

    /// Removes a worker and releases its runs.
    pub(super) fn depart(&mut self, worker: WorkerId) {
        self.hubs.remove(&worker);
        self.workers.remove(&worker);
        self.disown(&HashSet::from([worker]));
    }

    /// Queues the runs of dead workers again. Returns true if there was a dead worker.
    pub(super) fn free_the_dead(&mut self, asking: WorkerId, steady_ms: u64) -> bool {
        let dead: HashSet<WorkerId> = self
            .workers
            .keys()
            .copied()
            .filter(|worker| !self.lives(*worker, asking, steady_ms))
            .collect();
        for worker in &dead {
            // A silent worker, unlike a dead one, was not killed by its run.
            if self.workers.remove(worker) == Some(None) {
                let owned = self.rows.values_mut().filter(|row| row.work.owner == Some(*worker));
                owned.for_each(|row| row.count_death());
            }
        }
        self.disown(&dead);
        !dead.is_empty()
    }

    /// Returns the end of the lease of a worker that has not died.
    pub(super) fn lease_of(&self, worker: WorkerId) -> Option<u64> {
        self.workers.get(&worker).copied().flatten()
    }

    fn disown(&mut self, workers: &HashSet<WorkerId>) {
        for row in self.rows.values_mut() {
            row.work.owner = row.work.owner.filter(|owner| !workers.contains(owner));
        }
    }
}
