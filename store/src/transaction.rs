//! A transaction without an engine: which rows it reads, what it decides, and what it writes.
//!
//! An engine begins a transaction and reads the rows that [`Loading`] names, round by round, into
//! [`Rows`]. [`Changes`] decides on all requests in memory. Then the engine writes the changes. No
//! function here waits. So an engine can read many rows in one round trip, decide on many requests
//! at once, and keep rows for the next transaction if it knows that no other process has written.
//!
//! The engine must make sure that nobody else changes the rows meanwhile: by a lock on the database
//! (SQLite), or by locks on the rows, taken in the order of their ids (PostgreSQL).

use crate::admission::Admitted;
use crate::append::{Append, Appended, Draft, Guard};
use crate::budget::Accounts;
use crate::bundle::BundleHead;
use crate::chain::StoredEvent;
use crate::copy::{Brought, RunCopy};
use crate::delivery::Delivery;
use crate::error::StoreError;
use crate::queue::Claimed;
use crate::row::{Columns, RunRow};
use crate::spending::ModelCall;
use posse_protocol::{Event, RunId, Seq, Status, WorkerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub use crate::budget::Rows;

/// The worker and the time of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The worker of the store that handles the request.
    pub worker: WorkerId,
    /// The time on the clock of the store: milliseconds since 1970.
    pub at: u64,
}

/// What an engine must read before [`Changes`] can decide on requests: the rows of their runs, the
/// accounts that these runs draw on, and the keys of new runs.
#[derive(Debug, Default)]
pub struct Loading {
    keys: BTreeSet<String>,
    /// Runs of which only the row is needed.
    alone: Vec<RunId>,
    /// Runs whose accounts are needed too.
    drawing: Vec<RunId>,
    /// Runs of `drawing` that the last round asked for.
    asked: Vec<RunId>,
    /// Runs of `drawing` that were visited.
    seen: HashSet<RunId>,
}

impl Loading {
    /// Returns what is needed to decide on these requests.
    pub fn of<'a>(
        drafts: impl IntoIterator<Item = &'a Draft>,
        erasures: impl IntoIterator<Item = RunId>,
    ) -> Self {
        let mut loading = Loading::default();
        for append in drafts.into_iter().map(|draft| &draft.append) {
            loading.keys.extend(key_of(append).map(str::to_owned));
            match append.events.first() {
                // The event names the account, so the row is not needed first.
                Some(Event::RunStarted(started)) => {
                    let account = started.parent.as_ref().and_then(|parent| parent.account);
                    loading.alone.push(append.run);
                    loading.drawing.extend(account);
                }
                _ => loading.drawing.push(append.run),
            }
        }
        loading.alone.extend(erasures);
        loading
    }

    /// Adds what is needed to show this copy.
    pub fn add_copy(&mut self, copy: &RunCopy) {
        self.alone.push(copy.row().id);
        self.keys.extend(copy.row().about.key.clone());
    }

    /// The keys whose runs must be looked up.
    pub fn keys(&self) -> &BTreeSet<String> {
        &self.keys
    }

    /// Returns the runs whose rows to read next, given the known `rows`. If there are none, all
    /// existing rows are known. The number of rounds is at most the depth of the tree.
    pub fn next(&mut self, rows: &Rows) -> BTreeSet<RunId> {
        let alone = std::mem::take(&mut self.alone).into_iter();
        let mut missing: BTreeSet<RunId> = alone.filter(|run| !rows.contains_key(run)).collect();
        // A run that was asked for and is still unknown does not exist.
        let found = std::mem::take(&mut self.asked).into_iter().filter_map(|run| rows.get(&run));
        self.drawing.extend(found.filter_map(|row| row.funds.account));
        while let Some(run) = self.drawing.pop() {
            if !self.seen.insert(run) {
                continue;
            }
            match rows.get(&run) {
                Some(row) => self.drawing.extend(row.funds.account),
                None => self.asked.push(run),
            }
        }
        missing.extend(&self.asked);
        missing
    }
}

/// The changes of a transaction so far. The changed rows themselves are in the [`Rows`] that each
/// method takes.
#[derive(Debug, Default)]
pub struct Changes {
    /// The events to store.
    pub events: Vec<StoredEvent>,
    /// The model calls that these events settle, for the ledger.
    pub calls: Vec<ModelCall>,
    /// The deliveries to store.
    pub deliveries: Vec<Delivery>,
    /// The bundles that count from now on, each in place of the earlier one of its run. Their data is
    /// stored.
    pub bundles: BTreeMap<RunId, BundleHead>,
    /// The runs whose hidden logs are shown from now on.
    pub shown: BTreeSet<RunId>,
    /// The runs whose rows changed since they were last written, and the changed columns. The
    /// engine clears this when it has written the rows.
    pub rows: BTreeMap<RunId, Columns>,
    /// True if a run may have become claimable.
    pub freed: bool,
    /// The known keys in use.
    keys: HashMap<String, RunId>,
    /// The bundles whose data is stored, by their hashes.
    data: HashSet<(RunId, String)>,
    /// The ends of hidden logs that this worker brings.
    hidden: HashMap<RunId, (Seq, String)>,
}

/// The result of a claim.
#[derive(Debug, Default)]
pub struct Taken {
    /// The claimed runs.
    pub claimed: Vec<Claimed>,
    /// The runs whose rows cannot be read. The engine must mark them as damaged.
    pub damaged: Vec<(RunId, String)>,
}

impl Changes {
    /// Records that `run` has a key of [`Loading::keys`].
    pub fn know_key(&mut self, key: String, run: RunId) {
        self.keys.insert(key, run);
    }

    /// Records that all data of a bundle of `run` is stored, and stays until the end of the
    /// transaction.
    pub fn know_data(&mut self, run: RunId, sha256: String) {
        self.data.insert((run, sha256));
    }

    /// Records the end of a hidden log that this worker brings. Nobody else changes it until the end
    /// of the transaction.
    pub fn know_log(&mut self, run: RunId, last: Seq, hash: String) {
        self.hidden.insert(run, (last, hash));
    }

    fn has_data(&self, run: RunId, bundle: &BundleHead) -> Result<(), StoreError> {
        let is_there = bundle.bytes == 0 || self.data.contains(&(run, bundle.sha256.clone()));
        is_there.then_some(()).ok_or(StoreError::Unstaged(run))
    }

    /// Decides on one batch as a whole. A refusal does not affect other batches.
    ///
    /// # Errors
    /// Why the batch is refused. Nothing has changed then.
    pub fn admit(
        &mut self,
        rows: &mut Rows,
        batch: &[Draft],
        stamp: Stamp,
    ) -> Result<Vec<Appended>, StoreError> {
        let Stamp { worker, at } = stamp;
        let mut next = Rows::new();
        let mut keys: HashMap<String, RunId> = HashMap::new();
        let (mut events, mut calls, mut deliveries) = (Vec::new(), Vec::new(), Vec::new());
        let mut bundles = BTreeMap::new();
        let mut answers = Vec::with_capacity(batch.len());
        for draft in batch {
            let append = &draft.append;
            if let Some(key) = key_of(append) {
                if let Some(run) = self.keys.get(key).or_else(|| keys.get(key)) {
                    return Err(StoreError::KeyTaken { key: key.to_owned(), run: *run });
                }
                keys.insert(key.to_owned(), append.run);
            }
            let row = next.get(&append.run).or_else(|| rows.get(&append.run));
            let before = row.map_or(Seq::ZERO, |row| row.log.last_seq);
            let admitted = RunRow::admit(row.map(|row| &**row), draft, worker, at)?;
            let Admitted { row, events: mut stored, mut settles, entries } = admitted;
            if stored.is_empty() && !append.outbox.is_empty() {
                return Err(StoreError::Misplaced("a notice of no event"));
            }
            deliveries
                .extend(append.outbox.iter().map(|it| it.delivery(row.id, row.log.last_seq, at)));
            if let Some(bundle) = &draft.bundle {
                if !matches!(append.guard, Guard::Create(_) | Guard::Owner { .. }) {
                    return Err(StoreError::Misplaced("a bundle of one who does not own the run"));
                }
                self.has_data(append.run, bundle)?;
                bundles.insert(append.run, bundle.clone());
            }
            let (first, last, epoch) = (before.next(), row.log.last_seq, row.work.epoch);
            answers.push(Appended { first, last, epoch, at });
            events.append(&mut stored);
            calls.append(&mut settles);
            if append.guard != Guard::Open {
                next.insert(row.id, row);
            }
            for entry in entries {
                let mut accounts = Accounts { stored: rows, changed: &mut next };
                accounts.enter(append.run, entry)?;
            }
        }
        for (run, row) in next {
            self.freed |= row.work.runnable && row.work.owner.is_none();
            let moved = rows.get(&run).is_some_and(|before| row.has_only_moved_since(before));
            self.changed(run, if moved { Columns::Moving } else { Columns::All });
            rows.insert(run, row);
        }
        self.keys.extend(keys);
        self.events.append(&mut events);
        self.calls.append(&mut calls);
        self.deliveries.append(&mut deliveries);
        self.bundles.append(&mut bundles);
        Ok(answers)
    }

    /// Decides whether the log of `run`, which must end at `last`, may be removed. If it may, the
    /// engine hides or deletes the events and the bundle. A later append in the same transaction finds the
    /// log removed.
    ///
    /// # Errors
    /// Why the log may not be removed. Nothing has changed then.
    pub fn erase(&mut self, rows: &mut Rows, run: RunId, last: Seq) -> Result<(), StoreError> {
        let row = rows.get(&run).ok_or(StoreError::NotFound(run))?.erase(last)?;
        self.bundles.remove(&run);
        self.changed(run, Columns::All);
        rows.insert(run, Box::new(row));
        Ok(())
    }

    /// Decides whether to show the copies of the runs of a tree, all or none. Their logs and bundles
    /// are stored.
    ///
    /// # Errors
    /// If a run exists with another log, another run has its key, or something of it is not stored.
    /// Nothing has changed then.
    pub fn bring(&mut self, rows: &mut Rows, tree: &[RunCopy]) -> Result<Vec<Brought>, StoreError> {
        let end = |row: &RunRow| (row.log.last_seq, row.log.last_hash.clone(), row.log.erased);
        let mut keys: HashMap<String, RunId> = HashMap::new();
        let mut brought = Vec::with_capacity(tree.len());
        for copy in tree {
            let row = copy.row();
            if let Some(present) = rows.get(&row.id) {
                if end(present) != end(row) {
                    return Err(StoreError::Exists(row.id));
                }
                brought.push(Brought::Present);
                continue;
            }
            if let Some(key) = &row.about.key {
                let taken = keys.insert(key.clone(), row.id);
                if let Some(run) = taken.or_else(|| self.keys.get(key).copied()) {
                    return Err(StoreError::KeyTaken { key: key.clone(), run });
                }
            }
            let (last, hash, erased) = end(row);
            if !erased && self.hidden.get(&row.id) != Some(&(last, hash)) {
                return Err(StoreError::Unstaged(row.id));
            }
            copy.bundle().map_or(Ok(()), |bundle| self.has_data(row.id, bundle))?;
            brought.push(Brought::Stored);
        }
        for (copy, _) in tree.iter().zip(&brought).filter(|(_, it)| **it == Brought::Stored) {
            let row = copy.row();
            self.calls.extend_from_slice(&copy.calls);
            self.deliveries.extend_from_slice(&copy.deliveries);
            self.bundles.extend(copy.bundle().map(|bundle| (row.id, bundle.clone())));
            self.shown.insert(row.id);
            self.freed |= row.work.runnable;
            self.changed(row.id, Columns::All);
            rows.insert(row.id, Box::new(row.clone()));
        }
        self.keys.extend(keys);
        Ok(brought)
    }

    /// Claims at most `limit` of the runs in `found` for `worker`. Runs with a higher priority come
    /// first, then runs that have waited longest. `found` may contain duplicates. Its rows must be
    /// the stored ones, so write earlier changes first.
    pub fn claim(
        &mut self,
        rows: &mut Rows,
        mut found: Vec<RunRow>,
        limit: usize,
        worker: WorkerId,
    ) -> Taken {
        found.sort_by_key(|row| (Reverse(row.work.priority), row.work.ready_at, row.id));
        found.dedup_by_key(|row| row.id);
        let mut taken = Taken::default();
        for mut row in found {
            if let Some(reason) = row.log.damaged {
                rows.remove(&row.id);
                taken.damaged.push((row.id, reason));
                continue;
            }
            if taken.claimed.len() == limit {
                break;
            }
            row.work.owner = Some(worker);
            row.work.epoch += 1;
            row.family.awaits = 0;
            row.status = Status::Running;
            self.changed(row.id, Columns::All);
            rows.insert(row.id, Box::new(row.clone()));
            taken.claimed.push(Claimed { epoch: row.work.epoch, row });
        }
        taken
    }

    /// Removes the rows of dead workers, those not in `living`, from `rows`. Their runs were queued
    /// again in the database, so the rows must be read again.
    pub fn free(&mut self, rows: &mut Rows, living: &HashSet<WorkerId>) {
        rows.retain(|_, row| row.work.owner.is_none_or(|owner| living.contains(&owner)));
        self.freed = true;
    }

    /// Records that these columns of a row must be written.
    fn changed(&mut self, run: RunId, columns: Columns) {
        let noted = self.rows.entry(run).or_insert(columns);
        if columns == Columns::All {
            *noted = columns;
        }
    }
}

/// Returns the key that `append` would take.
fn key_of(append: &Append) -> Option<&str> {
    match (append.guard, append.events.first()) {
        (Guard::Create(_), Some(Event::RunStarted(started))) => started.key.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
