//! A run and all its subagents, watched as one stream.

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

/// The events of a run and all its subagents, as they happen.
///
/// The events of each run arrive in order and exactly once. The end of a child arrives before its result in the run
/// that waits for it. Deltas come only from the run at the top. Between calls, the stream holds no resource of the
/// store, however many runs there are, so other readers are not blocked.
pub struct TreeEvents {
    top: RunHandle,
    /// The events of the run at the top.
    events: Events,
    /// The position of the last event read, for each subagent.
    read: HashMap<RunId, Seq>,
    /// Calls that a subagent will answer, with the subagent.
    calls: HashMap<(RunId, CallId), RunId>,
    /// Waits for logs of subagents to grow.
    moves: FuturesUnordered<BoxFuture<'static, Below>>,
    /// Subagents whose logs may have unread events, in the order in which they grew.
    unread: VecDeque<Below>,
    /// The events to deliver next.
    ready: VecDeque<Record>,
    /// The end of the run at the top is next, and everything that comes before it is known.
    ending: bool,
    /// The runtime has shut down, and the stream has reported it.
    over: bool,
}

impl fmt::Debug for TreeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeEvents").field("events", &self.events).finish_non_exhaustive()
    }
}

/// A subagent, and where its log ends.
struct Below {
    run: RunId,
    tail: watch::Receiver<Seq>,
}

/// The most events, or runs, on one page.
const PAGE: usize = 256;

/// Waits until the log of a run grows.
fn moved(mut below: Below) -> BoxFuture<'static, Below> {
    Box::pin(async move {
        if below.tail.changed().await.is_err() {
            // The store is closed, so nothing changes any more. The events of the run at the top report that.
            std::future::pending::<()>().await;
        }
        below
    })
}

/// A page of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Only runs newer than this one, which is the last of the previous page.
    pub after: Option<RunId>,
    /// At most this many, and at least one.
    pub limit: usize,
}

impl RunHandle {
    /// Returns the events of the run after `after`, and those of subagents that it starts from there on. To watch an
    /// earlier subagent, [include](TreeEvents::include) it.
    pub fn tree_events(&self, after: Seq) -> TreeEvents {
        TreeEvents::new(self.clone(), self.events(after))
    }

    /// Returns the run and all its subagents, oldest first.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn tree(&self) -> Result<Vec<RunRow>, Error> {
        let own = self.row().await?;
        // Most runs have no children, and are in trees of thousands of runs.
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

    /// Returns the unfinished subagents of this run, in no order. It is cheap if there are few, however large the tree
    /// is.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn unfinished_below(&self) -> Result<Vec<RunRow>, Error> {
        let own = self.row().await?;
        if own.family.parent.is_some() {
            let mut rows = self.tree().await?;
            rows.retain(|row| row.id != self.run && row.state.outcome.is_none());
            return Ok(rows);
        }
        let (kin, unfinished) = (Kin::TreeOf(self.run), Unfinished::Only);
        let open = Filter { kin, unfinished, limit: usize::MAX >> 1, ..Filter::default() };
        let mut rows = self.inner.store.list(&open).await?;
        rows.retain(|row| row.id != self.run);
        Ok(rows)
    }

    /// Returns a page of [`RunHandle::tree`], in the same order. If the page is full, there may be more runs after its
    /// last.
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
                // Only a root has a tree of its own.
                if own.family.root == own.id || lineage.holds(self, &row).await? {
                    rows.push(row);
                }
            }
        }
        rows.truncate(limit);
        Ok(rows)
    }
}

/// Which runs are known to be subagents of a run, and which are known not to be.
struct Lineage(HashMap<RunId, bool>);

impl Lineage {
    /// True when `row` is a subagent of the run. Climbs from parent to parent, until one is known.
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
    /// Watches the tree below `top`. `events` are the events of `top`, from the position where the watch begins.
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

    /// Returns this as a stream.
    pub fn stream(self) -> impl Stream<Item = Result<(RunId, Update), Error>> + Send {
        stream::unfold(self, async |mut events| Some((events.next().await?, events)))
    }

    /// Returns the next update and its run; `None` after the end of the run at the top, or after an error about it. The
    /// future may be dropped while it waits: nothing is lost. If the log of a subagent cannot be read, the stream
    /// returns an error and leaves that subagent out; the others continue.
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
                    // First deliver the stored events of subagents.
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

    /// Returns the subagent whose log must be read before the ready events are delivered.
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

    /// Notes all logs of subagents that have grown by now. Returns the run whose log to read first.
    fn hear_all(&mut self) -> Option<RunId> {
        while let Some(Some(below)) = self.moves.next().now_or_never() {
            self.hear(below);
        }
        self.first_unread()
    }

    fn first_unread(&self) -> Option<RunId> {
        self.unread.front().map(|below| below.run)
    }

    /// Reads the next events of `run` and puts them before the ready ones.
    async fn read_first(&mut self, run: RunId) -> Result<(), Error> {
        // Borrow only these fields: `moves` cannot be shared between threads.
        let records = page(&self.top, &self.read, Some(run)).await;
        self.insert(run, records)
    }

    /// Puts the events read from `run` before the ready ones. A log that cannot be read is not tried again.
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

    /// Takes the events read from the first unread log.
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

    /// Notes that the log of a subagent has grown; it may have been read meanwhile.
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

    /// Also watches `run`, a subagent of the run at the top, after the position `after`. Subagents that start during
    /// the watch are included by themselves.
    pub fn include(&mut self, run: RunId, after: Seq) {
        if self.read.contains_key(&run) {
            return;
        }
        self.read.insert(run, after);
        // Watch first and read then, so that no event is missed.
        self.unread.push_back(Below { run, tail: self.top.inner.store.watch(run) });
    }
}

/// Returns the next events in the log of `run`.
async fn page(
    top: &RunHandle,
    read: &HashMap<RunId, Seq>,
    run: Option<RunId>,
) -> Result<Vec<Record>, StoreError> {
    let Some(run) = run else { return Ok(Vec::new()) };
    let after = read.get(&run).copied().unwrap_or(Seq::ZERO);
    top.inner.store.read(run, after, PAGE).await
}
