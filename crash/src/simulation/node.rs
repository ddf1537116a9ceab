//! The store: applies transactions one at a time, through the transaction without an engine that the
//! real stores use. Its tables survive a restart, its open transactions do not.

use posse_protocol::{Record, RunId, Seq, WorkerId};
use posse_store::transaction::{Changes, Loading, Rows, Stamp};
use posse_store::{
    Append, Appended, Columns, Draft, Guard, RunRow, StoreError, StoredEvent, Tail, check_log,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// The time of the store when a simulation begins: milliseconds since 1970.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// What a transaction is to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    /// The store decides on each batch alone.
    pub(super) batches: Vec<Vec<Append>>,
    /// Renew the lease of the worker.
    pub(super) renews: bool,
    pub(super) claims: Option<Wanted>,
}

/// Which runs to claim.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// At most this many.
    pub(super) limit: usize,
    /// Set after a claim whose answer was lost: the runs that the worker executes. The claim then
    /// takes other runs of the worker once more. The real worker names the runs of the lost claim.
    pub(super) again: Option<BTreeSet<RunId>>,
}

/// The result of a transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    /// False if the store did not know the worker, or no longer.
    pub(super) known: bool,
    /// True if the transaction wrote the lease of the worker.
    pub(super) renewed: bool,
    pub(super) appended: Vec<Result<Vec<Appended>, StoreError>>,
    pub(super) claimed: Vec<Taken>,
}

/// A run that was claimed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) run: RunId,
    pub(super) epoch: u64,
    /// The last event before the claim.
    pub(super) last: Seq,
}

/// How a transaction stands.
#[derive(Clone, Debug)]
pub(super) enum Became {
    UnderWay,
    Stored(Rc<Reply>),
    Undone,
}

/// A worker as the store sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) number: u32,
    pub(super) id: WorkerId,
}

/// A mistake of the store, which tests plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests plant mistakes"))]
pub(super) enum Mistake {
    /// It does not know which transactions it has stored.
    ForgetsNumbers,
    /// It accepts the appends of workers that have lost the run.
    AcceptsTheStale,
    /// It never ends a lease.
    KeepsTheDead,
}

type Place = (Reverse<i32>, u64, RunId);

#[derive(Default)]
pub(super) struct Node {
    rows: HashMap<RunId, RunRow>,
    logs: BTreeMap<RunId, Vec<StoredEvent>>,
    keys: HashMap<String, RunId>,
    /// The runs that can be claimed, in their order.
    ready: BTreeSet<Place>,
    /// The runs of each worker.
    owned: HashMap<WorkerId, BTreeSet<RunId>>,
    /// The end of the lease of each worker.
    leases: BTreeMap<u32, (WorkerId, u64)>,
    /// The number of the last transaction of each worker, and its result. The real client keeps the
    /// result itself: it decides before it sends the commit.
    commits: HashMap<u32, (u64, Rc<Reply>)>,
    /// The open transactions, with their sessions.
    open: BTreeMap<u64, u64>,
    transactions: u64,
    pub(super) mistake: Option<Mistake>,
    /// How far its clock is ahead.
    pub(super) ahead_ms: u64,
    /// Runs that have not ended.
    pub(super) unfinished: usize,
    /// How often a lease was over.
    pub(super) lapses: u64,
    /// How often runs changed hands because a lease was over.
    pub(super) takeovers: u64,
    /// Refused appends of workers that no longer own the run.
    pub(super) fenced: u64,
}

impl Node {
    fn now_ms(&self, at: u64) -> u64 {
        EPOCH_MS + at / 1_000 + self.ahead_ms
    }

    /// Begins a transaction of a session.
    pub(super) fn begin(&mut self, session: u64) -> u64 {
        self.transactions += 1;
        self.open.insert(self.transactions, session);
        self.transactions
    }

    /// Rolls back what a broken session left open.
    pub(super) fn end_session(&mut self, session: u64) {
        self.open.retain(|_, of| *of != session);
    }

    /// Loses everything that is not committed.
    pub(super) fn restart(&mut self) {
        self.open.clear();
    }

    /// Answers the question about a transaction whose answer was lost.
    pub(super) fn became(&self, who: Who, transaction: u64, number: u64) -> Became {
        if self.open.contains_key(&transaction) {
            return Became::UnderWay;
        }
        match self.commits.get(&who.number) {
            _ if self.mistake == Some(Mistake::ForgetsNumbers) => Became::Undone,
            Some((stored, reply)) if *stored == number => Became::Stored(reply.clone()),
            _ => Became::Undone,
        }
    }

    /// Performs and commits a transaction, unless it is no longer open.
    pub(super) fn commit(
        &mut self,
        who: Who,
        transaction: u64,
        number: u64,
        work: &Work,
        (at, lease_ms): (u64, u64),
    ) -> Option<Rc<Reply>> {
        self.open.remove(&transaction)?;
        let now = self.now_ms(at);
        let known = self.leases.contains_key(&who.number);
        let renewed = work.renews || !known;
        if renewed {
            self.leases.insert(who.number, (who.id, now + lease_ms));
        }
        let mut reply = Reply { known, renewed, ..Reply::default() };
        for batch in &work.batches {
            let stamp = Stamp { worker: who.id, at: now };
            let answer = self.append(batch, stamp);
            self.fenced += u64::from(matches!(answer, Err(StoreError::NotOwner(_))));
            reply.appended.push(answer);
        }
        if let Some(wanted) = &work.claims {
            self.bury(who, now);
            reply.claimed = self.claim(who, wanted);
        }
        let reply = Rc::new(reply);
        self.commits.insert(who.number, (number, reply.clone()));
        Some(reply)
    }

    fn append(&mut self, batch: &[Append], stamp: Stamp) -> Result<Vec<Appended>, StoreError> {
        let drafts: Vec<Draft> = batch
            .iter()
            .map(|append| Draft::new(append.clone(), None))
            .collect::<Result<_, _>>()?;
        let (drafts, stamp) = match self.mistake {
            Some(Mistake::AcceptsTheStale) => self.as_its_owner(drafts, stamp),
            _ => (drafts, stamp),
        };
        let mut loading = Loading::of(&drafts, []);
        let (mut rows, mut changes) = (Rows::new(), Changes::default());
        loop {
            let wanted = loading.next(&rows);
            if wanted.is_empty() {
                break;
            }
            let found = wanted.iter().filter_map(|run| Some((*run, self.rows.get(run)?)));
            rows.extend(found.map(|(run, row)| (run, Box::new(row.clone()))).collect::<Vec<_>>());
        }
        for key in loading.keys() {
            if let Some(run) = self.keys.get(key) {
                changes.know_key(key.clone(), *run);
            }
        }
        let answers = changes.admit(&mut rows, &drafts, stamp)?;
        self.write(changes, rows);
        Ok(answers)
    }

    /// Returns the appends of a stale owner as those of the present one.
    fn as_its_owner(&self, mut drafts: Vec<Draft>, mut stamp: Stamp) -> (Vec<Draft>, Stamp) {
        for draft in &mut drafts {
            if let Guard::Owner { epoch, .. } = &mut draft.append.guard
                && let Some(row) = self.rows.get(&draft.append.run)
                && let Some(owner) = row.work.owner
            {
                (*epoch, stamp.worker) = (row.work.epoch, owner);
            }
        }
        (drafts, stamp)
    }

    fn claim(&mut self, who: Who, wanted: &Wanted) -> Vec<Taken> {
        let owned = self.owned.get(&who.id).into_iter().flatten();
        let unknown =
            |run: &&RunId| wanted.again.as_ref().is_some_and(|known| !known.contains(run));
        let ready = self.ready.iter().take(wanted.limit).map(|(.., run)| run);
        let found = owned.filter(unknown).chain(ready);
        let found: Vec<RunRow> = found.filter_map(|run| self.rows.get(run).cloned()).collect();
        let (mut rows, mut changes) = (Rows::new(), Changes::default());
        let limit = found.len();
        let taken = changes.claim(&mut rows, found, limit, who.id);
        self.write(changes, rows);
        let claimed = taken.claimed.into_iter();
        claimed
            .map(|it| Taken { run: it.row.id, epoch: it.epoch, last: it.row.log.last_seq })
            .collect()
    }

    /// Releases the runs of workers whose leases are over. The worker that asks is alive.
    fn bury(&mut self, asking: Who, now: u64) {
        if self.mistake == Some(Mistake::KeepsTheDead) {
            return;
        }
        let dead: Vec<(u32, WorkerId)> = self
            .leases
            .iter()
            .filter(|(number, (_, until))| **number != asking.number && *until < now)
            .map(|(number, (id, _))| (*number, *id))
            .collect();
        for (number, id) in dead {
            self.leases.remove(&number);
            self.lapses += 1;
            for run in self.owned.remove(&id).unwrap_or_default() {
                let Some(mut row) = self.rows.get(&run).cloned() else { continue };
                row.work.owner = None;
                row.count_death();
                self.takeovers += 1;
                self.put(row);
            }
        }
    }

    /// Writes what a transaction changed, and of a row only the columns that it names.
    fn write(&mut self, changes: Changes, rows: Rows) {
        for event in changes.events {
            self.logs.entry(event.run).or_default().push(event);
        }
        for (run, columns) in changes.rows {
            let Some(row) = rows.get(&run) else { continue };
            let stored = self.rows.get(&run);
            let next = match (columns, stored) {
                (Columns::All, _) | (_, None) => (**row).clone(),
                (Columns::Moving, Some(stored)) => moved(stored, row),
            };
            if stored.is_none() {
                self.keys.extend(next.about.key.clone().map(|key| (key, run)));
            }
            self.put(next);
        }
    }

    /// Stores a row, and keeps the indexes.
    fn put(&mut self, row: RunRow) {
        let place = |row: &RunRow| (Reverse(row.work.priority), row.work.ready_at, row.id);
        let can_be_claimed =
            |row: &RunRow| row.work.runnable && row.work.owner.is_none() && !row.state.paused;
        let is_open = usize::from(row.state.outcome.is_none());
        if can_be_claimed(&row) {
            self.ready.insert(place(&row));
        }
        if let Some(owner) = row.work.owner {
            self.owned.entry(owner).or_default().insert(row.id);
        }
        self.unfinished += is_open;
        let Some(before) = self.rows.insert(row.id, row) else { return };
        let row = &self.rows[&before.id];
        self.unfinished -= usize::from(before.state.outcome.is_none());
        if can_be_claimed(&before) && !(can_be_claimed(row) && place(row) == place(&before)) {
            self.ready.remove(&place(&before));
        }
        if let Some(owner) = before.work.owner.filter(|owner| row.work.owner != Some(*owner))
            && let Some(owned) = self.owned.get_mut(&owner)
        {
            owned.remove(&before.id);
        }
    }

    /// Reads the log of `run` after `after`, and checks its hashes.
    pub(super) fn read(&self, run: RunId, after: Seq) -> Result<Vec<Record>, StoreError> {
        let row = self.rows.get(&run).ok_or(StoreError::NotFound(run))?;
        let (seq, hash) = (row.log.last_seq, row.log.last_hash.clone());
        let tail = Tail { seq, hash, version: row.log.version };
        let log = self.logs.get(&run).map_or(&[][..], Vec::as_slice);
        let first = usize::try_from(after.0.saturating_sub(1)).unwrap_or(usize::MAX);
        let page = log.get(first..).unwrap_or_default().iter().cloned().map(Some);
        check_log(run, after, usize::MAX - 1, &tail, page)
    }

    /// Returns all logs, for the checker.
    pub(super) fn logs(&self) -> &BTreeMap<RunId, Vec<StoredEvent>> {
        &self.logs
    }

    /// Says how an unfinished run stands, for the report of a failure.
    pub(super) fn standing(&self, run: RunId) -> String {
        let Some(row) = self.rows.get(&run) else { return "it has no row".to_owned() };
        format!("{:?}, {:?}", row.work, row.family)
    }
}

/// Returns `stored` with the columns of `row` that change with every step.
fn moved(stored: &RunRow, row: &RunRow) -> RunRow {
    let mut next = stored.clone();
    next.updated_at = row.updated_at;
    next.log.last_seq = row.log.last_seq;
    next.log.last_hash.clone_from(&row.log.last_hash);
    next.spending = row.spending.clone();
    (next.funds.drawn, next.funds.held) = (row.funds.drawn, row.funds.held);
    next.status = row.status;
    next
}
