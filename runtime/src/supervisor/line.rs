//! The queue of runs that wait for a slot, as far as this process knows it. The store has the whole
//! queue; this partial copy saves a query over thousands of runs whenever a slot becomes free.

use super::{Again, Scope, Shared};
use crate::lanes::{LaneCaps, Lanes};
use posse_protocol::RunId;
use posse_store::{Look, Passed, Queue, Queued};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often this process queries new runs while it knows others to execute.
const NEWS: Duration = Duration::from_millis(10);

/// How often this process queries the runs behind those that a lane holds back.
const PAST: Duration = Duration::from_millis(100);

/// The most runs in one claim.
const CLAIM: usize = 256;

pub(super) struct Line {
    lanes: Lanes,
    due: Due,
    /// More runs wait than are known.
    more: bool,
    /// Roots with more waiting runs than are known.
    cut: HashSet<RunId>,
    /// The time of the newest known entry. Later entries are news.
    seen: u64,
    looked: Option<Instant>,
    looked_past: Option<Instant>,
    /// Runs that this process cannot execute, or not now.
    of_others: HashMap<RunId, Passing>,
}

/// How long this process leaves a run to others.
#[derive(Clone, Copy)]
struct Passing {
    /// How often it has tried.
    tries: u32,
    /// When it tries again.
    until: Instant,
}

/// How long this process waits after it could not execute a run, and then three times as long each time.
const WAIT: Duration = Duration::from_secs(5);

/// How long it waits if it will hardly ever have what a run needs.
const NEVER: Duration = Duration::from_secs(24 * 3_600);

/// The longest wait otherwise. What a run lacks here may come back at any time.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The query that is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Nothing,
    News,
    All,
}

/// The next query to make.
enum NextQuery {
    All,
    News(u64),
    Past(Passed),
}

impl Line {
    pub(super) fn new(slots: usize, caps: LaneCaps) -> Self {
        Line {
            lanes: Lanes::new(slots, caps),
            due: Due::All,
            more: false,
            cut: HashSet::new(),
            seen: 0,
            looked: None,
            looked_past: None,
            of_others: HashMap::new(),
        }
    }

    pub(super) fn has_slot(&self) -> bool {
        self.lanes.free() > 0
    }

    /// Notes that new runs may wait.
    pub(super) fn hear_of_news(&mut self) {
        self.due = self.due.max(Due::News);
    }

    /// Notes that older runs may wait that this process did not have to execute before.
    pub(super) fn look_at_all(&mut self) {
        self.due = Due::All;
    }

    /// Notes that nothing can be claimed now. The process makes no more queries until an event
    /// calls for one.
    pub(super) fn rest(&mut self) {
        (self.due, self.more) = (Due::Nothing, false);
    }

    pub(super) fn offer(&mut self, run: Queued) {
        let is_left = |passing: &Passing| Instant::now() < passing.until;
        // Ending a run that was asked to stop needs nothing that may be missing here.
        if run.stopping || !self.of_others.get(&run.id).is_some_and(is_left) {
            self.lanes.offer(run);
        }
    }

    /// Notes that this process cannot execute `run`.
    pub(super) fn leave_to_others(&mut self, run: RunId, again: Again) {
        let now = Instant::now();
        // Others may have executed the runs that this process has not tried for a while.
        self.of_others.retain(|_, passing| now < passing.until + 2 * LONGEST_WAIT);
        let tries = self.of_others.get(&run).map_or(0, |passing| passing.tries);
        let wait = match again {
            Again::Later => WAIT.saturating_mul(3_u32.saturating_pow(tries)).min(LONGEST_WAIT),
            Again::Never => NEVER,
        };
        self.of_others.insert(run, Passing { tries: tries + 1, until: now + wait });
    }

    /// Notes that this process has executed `run`.
    pub(super) fn executed(&mut self, run: RunId) {
        self.of_others.remove(&run);
    }

    /// Notes that `run` no longer counts as one that may kill its process.
    pub(super) fn clear(&mut self, run: RunId) {
        self.lanes.clear(run);
    }

    /// True when a free slot might be used.
    fn is_busy(&self) -> bool {
        self.lanes.waiting() > 0 || self.more || self.due != Due::Nothing
    }

    /// Returns the next query that is worthwhile, if there is one.
    fn wish(&mut self) -> Option<NextQuery> {
        let is_over =
            |at: Option<Instant>, pause| at.is_none_or(|at: Instant| at.elapsed() >= pause);
        let has_next = self.lanes.has_next();
        let used_up = self.more && self.lanes.waiting() == 0;
        let wish = match self.due {
            Due::All => NextQuery::All,
            _ if used_up => NextQuery::All,
            Due::News if !has_next || is_over(self.looked, NEWS) => NextQuery::News(self.seen),
            _ if self.more && !has_next && is_over(self.looked_past, PAST) => {
                self.looked_past = Some(Instant::now());
                return Some(NextQuery::Past(self.lanes.full()));
            }
            _ => return None,
        };
        self.looked = Some(Instant::now());
        self.due = Due::Nothing;
        Some(wish)
    }

    fn take(&mut self) -> Option<RunId> {
        let run = self.lanes.take()?;
        // The copy may hold only the first runs of this root. Query again, so that the others are
        // not passed over.
        if self.cut.contains(&run.root) && self.lanes.is_out_of(run.root) {
            self.due = Due::All;
        }
        Some(run.id)
    }
}

/// The slot of a run. Dropping it frees the slot.
pub(super) struct Slot {
    run: RunId,
    shared: Arc<Shared>,
}

/// A lent slot: its run waits for other runs, which may use the slot until this is dropped.
pub(crate) struct Lent {
    run: Queued,
    shared: Arc<Shared>,
}

impl Lent {
    pub(super) fn new(run: Queued, shared: Arc<Shared>) -> Self {
        let mut line = shared.line();
        line.lanes.leave(run.id);
        if line.is_busy() {
            shared.nudge.notify_one();
        }
        drop(line);
        Lent { run, shared }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.shared.line().lanes.come_back(&self.run);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut line = self.shared.line();
        line.lanes.leave(self.run);
        if line.is_busy() {
            self.shared.nudge.notify_one();
        }
    }
}

impl Shared {
    /// Returns a slot for a new run, if no waiting run comes first.
    pub(super) fn slot_at_once(self: &Arc<Self>, run: &Queued) -> Option<Slot> {
        let taken = self.line().lanes.take_at_once(run);
        taken.then(|| Slot { run: run.id, shared: self.clone() })
    }

    /// Returns the runs that come next, with their slots.
    pub(super) fn take(self: &Arc<Self>) -> BTreeMap<RunId, Slot> {
        let mut line = self.line();
        let taken: Vec<RunId> = std::iter::from_fn(|| line.take()).take(CLAIM).collect();
        drop(line);
        taken.into_iter().map(|run| (run, Slot { run, shared: self.clone() })).collect()
    }

    /// Queries the part of the queue that may have changed.
    pub(super) async fn look(&self) {
        // The query also frees runs of dead processes. A process that executes nothing leaves them
        // alone.
        if matches!(self.recovery, Scope::None) && self.adopted().is_empty() {
            return;
        }
        loop {
            let Some(wish) = self.line().wish() else { return };
            match wish {
                NextQuery::All => self.look_at_everyone().await,
                NextQuery::News(since) => {
                    let Ok(queue) = self.store.queue(&Look::Since(since)).await else { return };
                    let mut line = self.line();
                    if queue.freed || queue.more && queue.until <= since {
                        line.look_at_all();
                    } else if queue.more {
                        line.hear_of_news();
                        line.looked = None;
                    }
                    line.seen = queue.until;
                    drop(line);
                    self.note(queue);
                }
                NextQuery::Past(passed) => {
                    let look = Look::Past { workspace: self.folder(), passed };
                    let Ok(queue) = self.store.queue(&look).await else { return };
                    self.note(queue);
                }
            }
        }
    }

    /// Queries all runs that this process may execute.
    async fn look_at_everyone(&self) {
        let (mut more, mut cut, mut until) = (false, HashSet::new(), None);
        let mut looks = Vec::new();
        if !matches!(self.recovery, Scope::None) {
            looks.push(Look::Ahead { workspace: self.folder() });
        }
        let adopted: Vec<RunId> = self.adopted().keys().copied().collect();
        if !adopted.is_empty() {
            looks.push(Look::Of(adopted));
        }
        for look in looks {
            // The store failed. The next round tries again.
            let Ok(mut queue) = self.store.queue(&look).await else { return };
            more |= queue.more;
            cut.extend(std::mem::take(&mut queue.cut));
            // Of two queries, the time of the first counts: entries after it are news.
            until.get_or_insert(queue.until);
            self.note(queue);
        }
        let mut line = self.line();
        (line.more, line.cut) = (more, cut);
        line.seen = until.unwrap_or(line.seen);
    }

    /// Adds the runs of `queue` that this process may execute.
    fn note(&self, queue: Queue) {
        let mine: Vec<Queued> = match &self.recovery {
            Scope::All => queue.runs,
            scope => {
                let adopted = self.adopted();
                let is_here = |run: &Queued| match scope {
                    Scope::Folder(folder) => run.workspace == *folder,
                    Scope::All | Scope::None => false,
                };
                let is_mine = |run: &Queued| adopted.contains_key(&run.id) || is_here(run);
                queue.runs.into_iter().filter(is_mine).collect()
            }
        };
        let mut line = self.line();
        mine.into_iter().for_each(|run| line.offer(run));
    }

    fn folder(&self) -> Option<String> {
        match &self.recovery {
            Scope::Folder(folder) => Some(folder.clone()),
            Scope::All | Scope::None => None,
        }
    }
}
