//! A run and everything below it, watched as one.

use crate::error::Error;
use crate::feed::Update;
use crate::handle::{Events, RunHandle};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use futures_util::{Stream, stream};
use posse_protocol::{CallId, Event, Record, RunId, Seq};
use posse_store::{Filter, Kin, RunRow, StoreError, Unfinished};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use tokio::sync::watch;

/// What happens to a run and to all that it starts, as it happens.
///
/// Each run's events come in order and exactly once; the end of a run comes before the result that
/// it is to whoever waits for it. Deltas come of the run at the top only. Holds nothing of the store
/// while nobody waits for it, however many runs there are: whoever reads besides finds it free.
pub struct TreeEvents {
    top: RunHandle,
    /// What happens to the run at the top.
    events: Events,
    /// The last event that was read of each run below.
    read: HashMap<RunId, Seq>,
    /// Calls that runs below will answer, and which.
    calls: HashMap<(RunId, CallId), RunId>,
    /// Hears which logs below move.
    moves: FuturesUnordered<BoxFuture<'static, Below>>,
    /// Runs below whose logs may hold more than was read, those that moved first first.
    unread: VecDeque<Below>,
    /// What is delivered next.
    ready: VecDeque<Record>,
    /// The end of the run at the top is next, and all is known that comes before it.
    ending: bool,
    /// The runtime is shut down, and that was told.
    over: bool,
}

impl fmt::Debug for TreeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeEvents").field("events", &self.events).finish_non_exhaustive()
    }
}

/// A run below, and where its log ends.
struct Below {
    run: RunId,
    tail: watch::Receiver<Seq>,
}

/// Events, or runs, of one page.
const PAGE: usize = 256;

/// Waits for the log of a run to move.
fn moved(mut below: Below) -> BoxFuture<'static, Below> {
    Box::pin(async move {
        if below.tail.changed().await.is_err() {
            // The store is closed: nothing moves any more. The events of the run at the top say so.
            std::future::pending::<()>().await;
        }
        below
    })
}

/// A page of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Only runs newer than this one, the last of the page before.
    pub after: Option<RunId>,
    /// At most this many, and at least one.
    pub limit: usize,
}

impl RunHandle {
    /// What happens to the run from after `after` on, and to all that it starts from there on. What
    /// it started before is watched when it is [included](TreeEvents::include).
    pub fn tree_events(&self, after: Seq) -> TreeEvents {
        TreeEvents::new(self.clone(), self.events(after))
    }

    /// The run and all that stand below it, the oldest first.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn tree(&self) -> Result<Vec<RunRow>, Error> {
        let own = self.row().await?;
        // Most runs have no children, and stand in trees of thousands.
        if own.family.parent.is_some() && !self.has_children().await? {
            return Ok(vec![own]);
        }
        let filter = Filter {
            kin: Kin::TreeOf(own.family.root),
            limit: usize::MAX >> 1,
            ..Filter::default()
        };
        let mut rows = self.inner.store.list(&filter).await?;
        rows.sort_by_key(|row| row.id);
        let mut family = std::collections::HashSet::from([self.run]);
        rows.retain(|row| {
            let inside = row.family.parent.is_some_and(|parent| family.contains(&parent));
            row.id == self.run || inside && family.insert(row.id)
        });
        Ok(rows)
    }

    async fn has_children(&self) -> Result<bool, Error> {
        let kin = Kin::ChildrenOf(self.run);
        let child = Filter { kin, limit: 1, ..Filter::default() };
        Ok(!self.inner.store.list(&child).await?.is_empty())
    }

    /// The runs below this one that have not ended, in no order. Costs little where few have not,
    /// however large the tree is.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn unfinished_below(&self) -> Result<Vec<RunRow>, Error> {
        self.some_unfinished_below(usize::MAX >> 1).await
    }

    /// True when a run below this one has not ended and can: damaged ones never end.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn has_unfinished_below(&self) -> Result<bool, Error> {
        let can_end = |row: &RunRow| row.log.damaged.is_none();
        // Itself may be one of the two.
        let some = self.some_unfinished_below(2).await?;
        if some.is_empty() || some.iter().any(can_end) {
            return Ok(!some.is_empty());
        }
        Ok(self.unfinished_below().await?.iter().any(can_end))
    }

    async fn some_unfinished_below(&self, limit: usize) -> Result<Vec<RunRow>, Error> {
        let own = self.row().await?;
        if own.family.parent.is_some() {
            let mut rows = self.tree().await?;
            rows.retain(|row| row.id != self.run && row.state.outcome.is_none());
            return Ok(rows);
        }
        let (kin, unfinished) = (Kin::TreeOf(self.run), Unfinished::Only);
        let open = Filter { kin, unfinished, limit, ..Filter::default() };
        let mut rows = self.inner.store.list(&open).await?;
        rows.retain(|row| row.id != self.run);
        Ok(rows)
    }

    /// A page of [`RunHandle::tree`], in the same order. Where it holds as many as were asked for
    /// there may be more, after its last.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn tree_page(&self, page: Page) -> Result<Vec<RunRow>, Error> {
        let own = self.row().await?;
        let limit = page.limit.max(1);
        let mut lineage = Lineage(HashMap::from([(own.id, true)]));
        let mut after = page.after.map_or(own.id, |after| after.max(own.id));
        let mut rows = Vec::new();
        if page.after.is_none_or(|after| after < own.id) {
            rows.push(own.clone());
        }
        while rows.len() < limit {
            let kin = Kin::TreeOf(own.family.root);
            let next = Filter { kin, after: Some(after), limit: PAGE, ..Filter::default() };
            let some = self.inner.store.list(&next).await?;
            let Some(last) = some.last() else { break };
            after = last.id;
            for row in some {
                // None but a root has a tree of its own.
                if own.family.root == own.id || lineage.holds(self, &row).await? {
                    rows.push(row);
                }
            }
        }
        rows.truncate(limit);
        Ok(rows)
    }
}

/// Which runs are known to stand below one, and which are known not to.
struct Lineage(HashMap<RunId, bool>);

impl Lineage {
    /// Whether `row` stands below the run. Climbs from parent to parent, to the first that is known.
    async fn holds(&mut self, from: &RunHandle, row: &RunRow) -> Result<bool, Error> {
        let (mut path, mut above) = (vec![row.id], row.family.parent);
        let holds = loop {
            // A parent is older than its children.
            let Some(run) = above.filter(|run| *run >= from.run) else { break false };
            if let Some(known) = self.0.get(&run) {
                break *known;
            }
            path.push(run);
            let parent = Filter { id: Some(run), limit: 1, ..Filter::default() };
            above = from.inner.store.list(&parent).await?.pop().and_then(|row| row.family.parent);
        };
        self.0.extend(path.into_iter().map(|run| (run, holds)));
        Ok(holds)
    }
}

impl TreeEvents {
    /// The tree below `top`, whose own `events` are those from where it is to be watched.
    pub fn new(top: RunHandle, events: Events) -> Self {
        TreeEvents {
            top,
            events,
            read: HashMap::new(),
            calls: HashMap::new(),
            moves: FuturesUnordered::new(),
            unread: VecDeque::new(),
            ready: VecDeque::new(),
            ending: false,
            over: false,
        }
    }

    /// The same as a stream.
    pub fn stream(self) -> impl Stream<Item = Result<(RunId, Update), Error>> + Send {
        stream::unfold(self, async |mut events| Some((events.next().await?, events)))
    }

    /// The next update and the run it is about; `None` once the end of the run at the top has been
    /// delivered, or an error about it. May be dropped while it waits: nothing is lost. A run below whose
    /// log cannot be read is told as an error and left out; the others go on.
    pub async fn next(&mut self) -> Option<Result<(RunId, Update), Error>> {
        if self.over {
            return None;
        }
        let update = self.update().await;
        self.over = matches!(update, Some(Err(Error::ShuttingDown)));
        update
    }

    async fn update(&mut self) -> Option<Result<(RunId, Update), Error>> {
        loop {
            if let Some(run) = self.comes_first() {
                if let Err(error) = self.read_first(run).await {
                    return Some(Err(error));
                }
                continue;
            }
            if let Some(record) = self.ready.pop_front() {
                let is_end = matches!(record.event, Event::RunFinished(_));
                self.ending &= !(is_end && record.run == self.top.id());
                self.learn(&record);
                return Some(Ok((record.run, Update::Event(Box::new(record)))));
            }
            let next = self.unread.front_mut().map(|below| {
                below.tail.mark_unchanged();
                below.run
            });
            tokio::select! {
                update = self.events.next() => match update {
                    Some(Ok(Update::Event(record))) => self.ready.push_back(*record),
                    // What is there of those below is told before.
                    None => match self.hear_all() {
                        None => return None,
                        Some(run) => if let Err(error) = self.read_first(run).await {
                            return Some(Err(error));
                        },
                    },
                    other => {
                        let top = self.top.id();
                        return other.map(|update| update.map(|update| (top, update)));
                    }
                },
                records = page(&self.top, &self.read, next), if next.is_some() => {
                    if let Err(error) = self.take(records) {
                        return Some(Err(error));
                    }
                }
                Some(below) = self.moves.next() => self.hear(below),
            }
        }
    }

    /// The run below whose log must be read before what is ready is delivered.
    fn comes_first(&mut self) -> Option<RunId> {
        let record = self.ready.front()?;
        match &record.event {
            Event::ToolFinished(finished) => {
                self.calls.get(&(record.run, finished.call.clone())).copied()
            }
            Event::RunFinished(_) if record.run == self.top.id() => {
                match std::mem::replace(&mut self.ending, true) {
                    false => self.hear_all(),
                    true => self.first_unread(),
                }
            }
            _ => None,
        }
    }

    /// Hears of all that has moved below by now. Returns the run whose log is to be read first.
    fn hear_all(&mut self) -> Option<RunId> {
        while let Some(Some(below)) = self.moves.next().now_or_never() {
            self.hear(below);
        }
        self.first_unread()
    }

    fn first_unread(&self) -> Option<RunId> {
        self.unread.front().map(|below| below.run)
    }

    /// Reads what comes next of `run`, before what is ready is delivered.
    async fn read_first(&mut self, run: RunId) -> Result<(), Error> {
        // Parts of it, and never the whole: what hears of moves cannot be shared between threads.
        let records = page(&self.top, &self.read, Some(run)).await;
        self.insert(run, records)
    }

    /// Puts what was read of `run` before what is ready. One whose log cannot be read is not asked
    /// again.
    fn insert(
        &mut self,
        run: RunId,
        records: Result<Vec<Record>, StoreError>,
    ) -> Result<(), Error> {
        let is_all = records.as_ref().map_or(true, |records| records.len() < PAGE);
        if is_all {
            if let Some(Record { run, event: Event::ToolFinished(finished), .. }) =
                self.ready.front()
            {
                self.calls.remove(&(*run, finished.call.clone()));
            }
            if let Some(below) = self.unread.pop_front_if(|below| below.run == run) {
                self.moves.push(moved(below));
            }
        }
        let records = records?;
        if let Some(last) = records.last() {
            self.read.insert(run, last.seq);
        }
        for record in records.into_iter().rev() {
            self.ready.push_front(record);
        }
        Ok(())
    }

    /// Takes over what was read of the first of the unread.
    fn take(&mut self, records: Result<Vec<Record>, StoreError>) -> Result<(), Error> {
        let Some(below) = self.unread.pop_front() else { return Ok(()) };
        let records = records?;
        if let Some(last) = records.last() {
            self.read.insert(below.run, last.seq);
        }
        match records.len() == PAGE {
            true => self.unread.push_back(below),
            false => self.moves.push(moved(below)),
        }
        self.ready.extend(records);
        Ok(())
    }

    /// The log of a run below has moved; it may have been read meanwhile.
    fn hear(&mut self, mut below: Below) {
        let read = self.read.get(&below.run).copied().unwrap_or(Seq::ZERO);
        let end = *below.tail.borrow_and_update();
        match end > read {
            true => self.unread.push_back(below),
            false => self.moves.push(moved(below)),
        }
    }

    fn learn(&mut self, record: &Record) {
        if let Event::ChildStarted(child) = &record.event {
            self.include(child.run, Seq::ZERO);
            if let Some(call) = &child.call {
                self.calls.insert((record.run, call.clone()), child.run);
            }
        }
    }

    /// Watches `run` too, which stands below the one at the top, from after `after` on. Those that
    /// are started meanwhile need not be named.
    pub fn include(&mut self, run: RunId, after: Seq) {
        if self.read.contains_key(&run) {
            return;
        }
        self.read.insert(run, after);
        // Watched first and read then, so that nothing is missed.
        self.unread.push_back(Below { run, tail: self.top.inner.store.watch(run) });
    }
}

/// What comes next in the log of `run`.
async fn page(
    top: &RunHandle,
    read: &HashMap<RunId, Seq>,
    run: Option<RunId>,
) -> Result<Vec<Record>, StoreError> {
    let Some(run) = run else { return Ok(Vec::new()) };
    let after = read.get(&run).copied().unwrap_or(Seq::ZERO);
    top.inner.store.read(run, after, PAGE).await
}
