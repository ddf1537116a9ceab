//! One transaction without an engine: which rows it needs, what it decides, what is to be written.
//!
//! An engine begins a transaction and reads what [`Loading`] names, round by round, into [`Rows`]. It
//! has [`Changes`] decide on everything that is asked, in memory, and writes what stands there then.
//! Nothing here waits, so that an engine is free to ask for many rows in one round trip, to decide for
//! many at once, and to keep rows for the next transaction if it knows that nobody else has
//! written.
//!
//! What an engine must see to is that nobody changes the rows in between: by a lock on the whole (as
//! SQLite has), or by locking the rows that it reads in the order of their ids (as PostgreSQL has).

use crate::admission::Admitted;
use crate::append::{Append, Appended, Draft, Guard};
use crate::budget::Accounts;
use crate::chain::StoredEvent;
use crate::delivery::Delivery;
use crate::error::StoreError;
use crate::queue::Claimed;
use crate::row::{Columns, RunRow};
use crate::spending::ModelCall;
use posse_protocol::{Event, RunId, Seq, Status, WorkerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub use crate::budget::Rows;

/// Who makes an append, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The worker of the store that is asked.
    pub worker: WorkerId,
    /// What time it is on the store's clock: milliseconds since 1970.
    pub at: u64,
}

/// What must be read before it can be decided on requests: the rows of the runs they speak of, the
/// accounts that those draw on, and the keys that new runs want.
#[derive(Debug, Default)]
pub struct Loading {
    keys: BTreeSet<String>,
    /// Those of which nothing but the row is needed.
    alone: Vec<RunId>,
    /// Those whose accounts are needed too.
    drawing: Vec<RunId>,
    /// Those of them that were asked for the last time.
    asked: Vec<RunId>,
    /// Those of them that were looked at.
    seen: HashSet<RunId>,
}

impl Loading {
    /// What it takes to decide on these.
    pub fn of<'a>(
        drafts: impl IntoIterator<Item = &'a Draft>,
        erasures: impl IntoIterator<Item = RunId>,
    ) -> Self {
        let mut loading = Loading::default();
        for append in drafts.into_iter().map(|draft| &draft.append) {
            loading.keys.extend(key_of(append).map(str::to_owned));
            match append.events.first() {
                // What it draws on is known before it has a row.
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

    /// The keys of which must be known whose they are.
    pub fn keys(&self) -> &BTreeSet<String> {
        &self.keys
    }

    /// The runs whose rows are to be read next, where `rows` are known. When there are none, all are
    /// there that exist. A tree is a handful of levels deep, and as many rounds are needed at most.
    pub fn next(&mut self, rows: &Rows) -> BTreeSet<RunId> {
        let alone = std::mem::take(&mut self.alone).into_iter();
        let mut missing: BTreeSet<RunId> = alone.filter(|run| !rows.contains_key(run)).collect();
        // One that was asked for and is still not known does not exist.
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

/// What a transaction changes, as far as it has decided. The rows themselves are changed where they
/// are, among the [`Rows`] that it is given each time.
#[derive(Debug, Default)]
pub struct Changes {
    /// Events to store.
    pub events: Vec<StoredEvent>,
    /// The model calls that they settle, for the ledger.
    pub calls: Vec<ModelCall>,
    /// What is to be told of them.
    pub deliveries: Vec<Delivery>,
    /// Runs whose rows changed since they were last written, and which columns of them. Whoever writes
    /// them clears this.
    pub rows: BTreeMap<RunId, Columns>,
    /// Some run may have become claimable.
    pub freed: bool,
    /// Keys in use, as far as the requests ask.
    keys: HashMap<String, RunId>,
}

/// What came of a claim.
#[derive(Debug, Default)]
pub struct Taken {
    /// What was claimed.
    pub claimed: Vec<Claimed>,
    /// What could not be, because its row cannot be read: it is to be marked as damaged.
    pub damaged: Vec<(RunId, String)>,
}

impl Changes {
    /// Notes whose a key is that [`Loading::keys`] asked for.
    pub fn know_key(&mut self, key: String, run: RunId) {
        self.keys.insert(key, run);
    }

    /// Decides on one batch: all of it, or a refusal that leaves its neighbours alone.
    ///
    /// # Errors
    /// Says why not. Nothing has changed then.
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
        Ok(answers)
    }

    /// Decides whether the log of `run` may be removed that ends at `last`. Whoever is told that it may
    /// deletes its events. What is appended in the same transaction comes afterwards, and finds it
    /// removed.
    ///
    /// # Errors
    /// Says why not. Nothing has changed then.
    pub fn erase(&mut self, rows: &mut Rows, run: RunId, last: Seq) -> Result<(), StoreError> {
        let row = rows.get(&run).ok_or(StoreError::NotFound(run))?.erase(last)?;
        self.changed(run, Columns::All);
        rows.insert(run, Box::new(row));
        Ok(())
    }

    /// Takes for `worker` at most `limit` of the runs `found` that can be claimed, which may be named
    /// twice: those of a higher priority first, then the longest waiting. They are as they are stored:
    /// what was decided before has been written.
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

    /// The workers that are not among the `living` have died, and what they owned was queued again: it
    /// is forgotten here, and is read anew.
    pub fn free(&mut self, rows: &mut Rows, living: &HashSet<WorkerId>) {
        rows.retain(|_, row| row.work.owner.is_none_or(|owner| living.contains(&owner)));
        self.freed = true;
    }

    /// Notes that these columns of a row are to be written.
    fn changed(&mut self, run: RunId, columns: Columns) {
        let noted = self.rows.entry(run).or_insert(columns);
        if columns == Columns::All {
            *noted = columns;
        }
    }
}

/// The key that `append` would take.
fn key_of(append: &Append) -> Option<&str> {
    match (append.guard, append.events.first()) {
        (Guard::Create(_), Some(Event::RunStarted(started))) => started.key.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
