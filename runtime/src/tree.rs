//! A run and everything below it, watched as one.

use crate::error::Error;
use crate::feed::Update;
use crate::handle::{Events, RunHandle};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use posse_protocol::{Event, RunId, Seq};
use posse_store::{Filter, Kin, RunRow};
use std::collections::HashMap;

/// What happens to a run and to all that it starts, as it happens.
///
/// Each run's events come in order and exactly once; deltas come of the run at the top only.
pub struct TreeEvents {
    top: RunHandle,
    streams: FuturesUnordered<BoxFuture<'static, Next>>,
    /// The last event that was delivered of each run.
    delivered: HashMap<RunId, Watched>,
}

struct Watched {
    last: Seq,
    /// Its stream has come to its end; a message may reopen the run.
    ended: bool,
}

struct Next {
    run: RunId,
    update: Option<Result<Update, Error>>,
    rest: Events,
}

fn next(run: RunId, mut events: Events) -> BoxFuture<'static, Next> {
    Box::pin(async move {
        let update = events.next().await;
        Next { run, update, rest: events }
    })
}

impl RunHandle {
    /// What happens to the run from after `after` on, and to all that it starts from there on. What
    /// it started before is watched when it is [included](TreeEvents::include).
    pub fn tree_events(&self, after: Seq) -> TreeEvents {
        TreeEvents::new(self.clone(), self.events(after), after)
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
    /// The tree below `top`, whose own `events` are those after `after`.
    pub fn new(top: RunHandle, events: Events, after: Seq) -> Self {
        let streams = FuturesUnordered::new();
        streams.push(next(top.id(), events));
        let delivered = HashMap::from([(top.id(), Watched { last: after, ended: false })]);
        TreeEvents { top, streams, delivered }
    }

    /// The next update and the run it is about; `None` once the end of the run at the top has been
    /// delivered.
    pub async fn next(&mut self) -> Option<Result<(RunId, Update), Error>> {
        loop {
            let Next { run, update, rest } = self.streams.next().await?;
            let Some(update) = update else {
                if run == self.top.id() {
                    return None;
                }
                if let Some(watched) = self.delivered.get_mut(&run) {
                    watched.ended = true;
                }
                continue;
            };
            if let Ok(Update::Event(record)) = &update {
                if let Some(watched) = self.delivered.get_mut(&run) {
                    watched.last = record.seq;
                }
                if let Event::ChildStarted(child) = &record.event {
                    self.include(child.run, Seq::ZERO);
                }
            }
            // One whose log cannot be read is not asked again.
            if update.is_ok() || run == self.top.id() {
                self.streams.push(next(run, rest));
            }
            return Some(update.map(|update| (run, update)));
        }
    }

    /// Watches `run` too, which stands below the one at the top: from where it was last seen, or
    /// from after `after` on. Those that are started meanwhile need not be named.
    pub fn include(&mut self, run: RunId, after: Seq) {
        let after = match self.delivered.get(&run) {
            Some(watched) if !watched.ended => return,
            Some(watched) => watched.last,
            None => after,
        };
        self.delivered.insert(run, Watched { last: after, ended: false });
        let child = RunHandle { run, inner: self.top.inner.clone() };
        self.streams.push(next(run, child.stored_events(after)));
    }
}
