//! A run and everything below it, watched as one.

use crate::error::Error;
use crate::feed::Update;
use crate::handle::{Events, RunHandle};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use posse_protocol::{Event, Record, RunId, Seq};
use posse_store::{Filter, Kin, RunRow, StoreError};
use std::collections::{HashMap, VecDeque};
use tokio::sync::watch;

/// What happens to a run and to all that it starts, as it happens.
///
/// Each run's events come in order and exactly once; deltas come of the run at the top only. Holds
/// nothing of the store while nobody waits for it, however many runs there are: whoever reads
/// besides finds it free.
pub struct TreeEvents {
    top: RunHandle,
    /// What happens to the run at the top.
    events: Events,
    /// Its end, kept until what was stored below before it has been delivered.
    end: Option<Update>,
    below: HashMap<RunId, Watched>,
    /// Hears which logs below move.
    moves: FuturesUnordered<BoxFuture<'static, Moved>>,
    /// Runs below whose logs may hold more than was read, those that moved first first.
    unread: VecDeque<(RunId, watch::Receiver<Seq>)>,
    /// What was read of them and not delivered.
    page: VecDeque<Record>,
}

struct Watched {
    /// The last event that was read.
    last: Seq,
    /// It has ended, and is not watched any more; another call may set it to work again.
    ended: bool,
}

struct Moved {
    run: RunId,
    tail: watch::Receiver<Seq>,
}

/// Events of one page.
const PAGE: usize = 256;

/// Waits for the log of `run` to move.
fn moved(run: RunId, mut tail: watch::Receiver<Seq>) -> BoxFuture<'static, Moved> {
    Box::pin(async move {
        if tail.changed().await.is_err() {
            // The store is closed: nothing moves any more.
            std::future::pending::<()>().await;
        }
        Moved { run, tail }
    })
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
        let filter =
            Filter { kin: Kin::TreeOf(own.root), limit: usize::MAX >> 1, ..Filter::default() };
        let mut rows = self.inner.store.list(&filter).await?;
        rows.sort_by_key(|row| row.id);
        let mut family = std::collections::HashSet::from([self.run]);
        rows.retain(|row| {
            let inside = row.parent.is_some_and(|parent| family.contains(&parent));
            row.id == self.run || inside && family.insert(row.id)
        });
        Ok(rows)
    }
}

impl TreeEvents {
    /// The tree below `top`, whose own `events` are those from where it is to be watched.
    pub fn new(top: RunHandle, events: Events) -> Self {
        TreeEvents {
            top,
            events,
            end: None,
            below: HashMap::new(),
            moves: FuturesUnordered::new(),
            unread: VecDeque::new(),
            page: VecDeque::new(),
        }
    }

    /// The next update and the run it is about; `None` once the end of the run at the top has been
    /// delivered. May be dropped while it waits: nothing is lost.
    pub async fn next(&mut self) -> Option<Result<(RunId, Update), Error>> {
        loop {
            if let Some(record) = self.page.pop_front() {
                self.include_child_of(&record);
                return Some(Ok((record.run, Update::Event(Box::new(record)))));
            }
            if self.end.is_some() {
                self.gather();
                if self.unread.is_empty() {
                    return self.end.take().map(|end| Ok((self.top.id(), end)));
                }
                if let Err(error) = self.read().await {
                    return Some(Err(error));
                }
                continue;
            }
            let reads = !self.unread.is_empty();
            let TreeEvents { top, events, moves, unread, below, .. } = self;
            tokio::select! {
                update = events.next() => match update {
                    Some(Ok(Update::Event(record))) => {
                        self.include_child_of(&record);
                        let ends = matches!(record.event, Event::RunFinished(_));
                        let update = Update::Event(record);
                        if ends {
                            self.end = Some(update);
                            continue;
                        }
                        return Some(Ok((self.top.id(), update)));
                    }
                    other => {
                        let top = self.top.id();
                        return other.map(|update| update.map(|update| (top, update)));
                    }
                },
                records = read(top, unread, below), if reads => {
                    if let Err(error) = self.take(records) {
                        return Some(Err(error));
                    }
                }
                Some(Moved { run, tail }) = moves.next() => unread.push_back((run, tail)),
            }
        }
    }

    /// Learns which logs below have moved up to now.
    fn gather(&mut self) {
        while let Some(Some(Moved { run, tail })) = self.moves.next().now_or_never() {
            self.unread.push_back((run, tail));
        }
    }

    async fn read(&mut self) -> Result<(), Error> {
        let records = read(&self.top, &mut self.unread, &self.below).await;
        self.take(records)
    }

    /// Takes over what was read of the first of the unread. One whose log cannot be read is not
    /// asked again.
    fn take(&mut self, records: Result<Vec<Record>, StoreError>) -> Result<(), Error> {
        let Some((run, tail)) = self.unread.pop_front() else { return Ok(()) };
        let records = records?;
        let Some(watched) = self.below.get_mut(&run) else { return Ok(()) };
        if let Some(last) = records.last() {
            watched.last = last.seq;
            watched.ended = matches!(last.event, Event::RunFinished(_) | Event::Archived(_));
        }
        match (records.len() == PAGE, watched.ended) {
            (true, _) => self.unread.push_back((run, tail)),
            (false, false) => self.moves.push(moved(run, tail)),
            (false, true) => {}
        }
        self.page.extend(records);
        Ok(())
    }

    fn include_child_of(&mut self, record: &Record) {
        if let Event::ChildStarted(child) = &record.event {
            self.include(child.run, Seq::ZERO);
        }
    }

    /// Watches `run` too, which stands below the one at the top: from where it was last seen, or
    /// from after `after` on. Those that are started meanwhile need not be named.
    pub fn include(&mut self, run: RunId, after: Seq) {
        let last = match self.below.get(&run) {
            Some(watched) if !watched.ended => return,
            Some(watched) => watched.last,
            None => after,
        };
        self.below.insert(run, Watched { last, ended: false });
        // Watched first and read then, so that nothing is missed.
        self.unread.push_back((run, self.top.inner.store.watch(run)));
    }
}

/// A page of the first of the unread.
async fn read(
    top: &RunHandle,
    unread: &mut VecDeque<(RunId, watch::Receiver<Seq>)>,
    below: &HashMap<RunId, Watched>,
) -> Result<Vec<Record>, StoreError> {
    let Some((run, tail)) = unread.front_mut() else { return Ok(Vec::new()) };
    tail.mark_unchanged();
    let after = below.get(run).map_or(Seq::ZERO, |watched| watched.last);
    top.inner.store.read(*run, after, PAGE).await
}
