//! Who waits for a slot, as far as this process knows, and how it comes to know. All of it is in
//! the store; a view is kept so that a slot that gets free costs no look at thousands.

use super::{Scope, Shared};
use crate::lanes::{LaneCaps, Lanes};
use posse_protocol::RunId;
use posse_store::{Look, Passed, Queue, Queued};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often news are looked at while there is somebody to execute anyway.
const NEWS: Duration = Duration::from_millis(10);

/// How often those are looked for who stand behind others that are kept back.
const PAST: Duration = Duration::from_millis(100);

/// Runs that are claimed at once, at the most.
const CLAIM: usize = 256;

pub(super) struct Line {
    lanes: Lanes,
    due: Due,
    /// More wait than are known.
    more: bool,
    /// Roots of which more wait than are known.
    cut: HashSet<RunId>,
    /// Those who came later than this are news.
    seen: u64,
    looked: Option<Instant>,
    looked_past: Option<Instant>,
}

/// What is to be looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Nothing,
    News,
    All,
}

/// A look that is to be made.
enum Wish {
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
        }
    }

    pub(super) fn has_slot(&self) -> bool {
        self.lanes.free() > 0
    }

    /// Something may have begun to wait.
    pub(super) fn hear_of_news(&mut self) {
        self.due = self.due.max(Due::News);
    }

    /// Something may wait since long that was none of this process's business.
    pub(super) fn look_at_all(&mut self) {
        self.due = Due::All;
    }

    /// Nothing can be claimed now: no more is looked for until somebody asks.
    pub(super) fn rest(&mut self) {
        (self.due, self.more) = (Due::Nothing, false);
    }

    pub(super) fn offer(&mut self, run: Queued) {
        self.lanes.offer(run);
    }

    /// `run` has shown that it does not take its process along.
    pub(super) fn clear(&mut self, run: RunId) {
        self.lanes.clear(run);
    }

    /// True when a free slot might be used.
    fn is_busy(&self) -> bool {
        self.lanes.waiting() > 0 || self.more || self.due != Due::Nothing
    }

    /// The next look that is worth its while, if any is.
    fn wish(&mut self) -> Option<Wish> {
        let is_over =
            |at: Option<Instant>, pause| at.is_none_or(|at: Instant| at.elapsed() >= pause);
        let has_next = self.lanes.has_next();
        let used_up = self.more && self.lanes.waiting() == 0;
        let wish = match self.due {
            Due::All => Wish::All,
            _ if used_up => Wish::All,
            Due::News if !has_next || is_over(self.looked, NEWS) => Wish::News(self.seen),
            _ if self.more && !has_next && is_over(self.looked_past, PAST) => {
                self.looked_past = Some(Instant::now());
                return Some(Wish::Past(self.lanes.full()));
            }
            _ => return None,
        };
        self.looked = Some(Instant::now());
        self.due = Due::Nothing;
        Some(wish)
    }

    fn take(&mut self) -> Option<RunId> {
        let run = self.lanes.take()?;
        // Nobody is to be passed over because only the first of many were known.
        if self.cut.contains(&run.root) && self.lanes.is_out_of(run.root) {
            self.due = Due::All;
        }
        Some(run.id)
    }
}

/// A run's place among those that are executed. Free again when it is dropped.
pub(super) struct Slot {
    run: RunId,
    shared: Arc<Shared>,
}

/// A run that waits for others, and whose slot they may have until this is dropped.
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
    /// A slot for a run that is new, if nobody who waits goes before it.
    pub(super) fn slot_at_once(self: &Arc<Self>, run: &Queued) -> Option<Slot> {
        let taken = self.line().lanes.take_at_once(run);
        taken.then(|| Slot { run: run.id, shared: self.clone() })
    }

    /// Those whose turn it is, with their slots.
    pub(super) fn take(self: &Arc<Self>) -> BTreeMap<RunId, Slot> {
        let mut line = self.line();
        let taken: Vec<RunId> = std::iter::from_fn(|| line.take()).take(CLAIM).collect();
        drop(line);
        taken.into_iter().map(|run| (run, Slot { run, shared: self.clone() })).collect()
    }

    /// Looks at what waits, as far as it may have changed.
    pub(super) async fn look(&self) {
        // Whoever executes nothing leaves those alone that a dead process has left: to look at what
        // waits gives them back.
        if matches!(self.recovery, Scope::None) && self.adopted().is_empty() {
            return;
        }
        loop {
            let Some(wish) = self.line().wish() else { return };
            match wish {
                Wish::All => self.look_at_everyone().await,
                Wish::News(since) => {
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
                Wish::Past(passed) => {
                    let look = Look::Past { workspace: self.folder(), passed };
                    let Ok(queue) = self.store.queue(&look).await else { return };
                    self.note(queue);
                }
            }
        }
    }

    /// Looks at all that is this process's to execute.
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
            // A store that fails now is asked again soon.
            let Ok(mut queue) = self.store.queue(&look).await else { return };
            more |= queue.more;
            cut.extend(std::mem::take(&mut queue.cut));
            // Of two looks the first says from when on there is news.
            until.get_or_insert(queue.until);
            self.note(queue);
        }
        let mut line = self.line();
        (line.more, line.cut) = (more, cut);
        line.seen = until.unwrap_or(line.seen);
    }

    /// Keeps in mind those of `queue` that are this process's to execute.
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
