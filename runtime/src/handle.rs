//! A handle to a run: its events as they arrive, and its outcome.

use crate::error::Error;
use crate::feed::Update;
use crate::runtime::{Inner, Runtime};
use futures_util::{Stream, stream};
use posse_protocol::{Delta, Event, Outcome, Record, RunId, Seq};
use posse_store::{Filter, RunRow, StoreError, Wanted};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// A handle to a run. Dropping it does not affect the run.
#[derive(Clone)]
pub struct RunHandle {
    pub(crate) run: RunId,
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunHandle").field(&self.run).finish()
    }
}

/// How many events a page has.
const PAGE: usize = 256;
/// How soon a handle notices that another process has ended the run.
const ELSEWHERE: Duration = Duration::from_secs(1);
/// How soon a handle notices that a run of another process is at rest, which does not change its log.
const SETTLING: Duration = Duration::from_millis(250);
/// The same for a run that this process executes: needed only if another process takes it over.
const TAKEN_OVER: Duration = Duration::from_secs(10);

impl Runtime {
    /// Returns a handle to a run.
    pub fn handle(&self, run: RunId) -> RunHandle {
        RunHandle { run, inner: self.inner.clone() }
    }

    /// Returns an error if nothing can be stored now, for example on read-only media. Then no run can continue.
    ///
    /// # Errors
    /// Why nothing can be stored.
    pub async fn check_can_work(&self) -> Result<(), Error> {
        // An empty claim takes the same path as a real one.
        let nothing = Wanted { limit: 0, ..Wanted::default() };
        self.inner.store.claim(&nothing).await?;
        Ok(())
    }

    /// Continues an unfinished run that no process executes.
    pub fn resume(&self, run: RunId) -> RunHandle {
        self.inner.supervisor.adopt(run);
        self.handle(run)
    }
}

impl RunHandle {
    /// Returns the id of the run.
    pub fn id(&self) -> RunId {
        self.run
    }

    /// Returns what happens to the run after `after`: stored events in order, each exactly once, and
    /// deltas if this process executes the run. After the end of the run there is nothing, unless it
    /// is reopened.
    pub fn events(&self, after: Seq) -> Events {
        let deltas = Some(self.inner.feed.subscribe(self.run));
        Events { deltas, ..self.stored_events(after) }
    }

    /// Returns the stored events after `after`, without deltas.
    pub(crate) fn stored_events(&self, after: Seq) -> Events {
        Events {
            inner: self.inner.clone(),
            run: self.run,
            after,
            page: VecDeque::new(),
            tail: self.inner.store.watch(self.run),
            deltas: None,
            held: None,
            unread: true,
            ended: false,
            looked: false,
            failed: false,
        }
    }

    /// Waits for the run to end. A session ends only when it is cancelled, fails
    /// or reaches a limit.
    ///
    /// # Errors
    /// When there is no such run, the store fails, or the runtime is shut down before the run has ended.
    pub async fn outcome(&self) -> Result<Outcome, Error> {
        let mut ended = self.inner.active.wait_for_end(self.run);
        let mut tail = self.inner.store.watch(self.run);
        loop {
            // The end may have come just before this call started to wait for it.
            let left = self.inner.active.wait_for_leave(self.run);
            tail.mark_unchanged();
            let here = self.inner.active.contains(self.run);
            if !here && let Some(outcome) = self.outcome_now().await? {
                return Ok(outcome);
            }
            let elsewhere = async {
                if tail.changed().await.is_err() {
                    // The store sends no more updates. It is closed, or the read returns its error.
                    return self.outcome_now().await?.map(Some).ok_or(Error::ShuttingDown);
                }
                tokio::time::sleep(if here { TAKEN_OVER } else { ELSEWHERE }).await;
                Ok::<Option<Outcome>, Error>(None)
            };
            tokio::select! {
                // If the outcome arrives here, it need not be read from the store.
                biased;
                outcome = &mut ended => {
                    if let Ok(outcome) = outcome {
                        return Ok(outcome);
                    }
                    ended = self.inner.active.wait_for_end(self.run);
                }
                _ = left => {}
                moved = elsewhere => {
                    if let Some(outcome) = moved? {
                        return Ok(outcome);
                    }
                }
            }
        }
    }

    /// Waits until the run has nothing to do and no process executes it: it has ended, waits for an
    /// event, or is paused. A session is at rest after each answer. Returns the row of the run then;
    /// [`RunHandle::events`] may not have delivered its last events yet.
    ///
    /// A run that has something to do and that no process executes is not at rest: resume it first.
    ///
    /// # Errors
    /// When there is no such run, it is damaged, the store fails, or the runtime is shut down.
    pub async fn at_rest(&self) -> Result<RunRow, Error> {
        loop {
            let left = self.inner.active.wait_for_leave(self.run);
            let here = self.inner.active.contains(self.run);
            if !here {
                let row = self.row().await?;
                if row.work.owner.is_none() && (!row.work.runnable || row.state.paused) {
                    return Ok(row);
                }
            }
            tokio::select! {
                _ = left => {}
                () = tokio::time::sleep(if here { TAKEN_OVER } else { SETTLING }) => {}
            }
        }
    }

    /// Returns the epoch of this process's claim, while it executes the run. If the row of the run has
    /// a later epoch, another process has taken over the run.
    pub fn executed_here(&self) -> Option<u64> {
        self.inner.active.epoch(self.run)
    }

    /// Returns the place of the run in the queue; see [`crate::Runtime::position`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn position(&self) -> Result<Option<u64>, Error> {
        Ok(self.inner.store.places(&[self.run]).await?.remove(&self.run))
    }

    /// Returns the row of the run.
    ///
    /// # Errors
    /// When there is no such run, it is damaged, or the store fails.
    pub async fn row(&self) -> Result<RunRow, Error> {
        let filter = Filter { id: Some(self.run), limit: 1, ..Filter::default() };
        let row = self.inner.store.list(&filter).await?.pop();
        let row = row.ok_or(Error::Store(StoreError::NotFound(self.run)))?;
        match row.log.damaged {
            None => Ok(row),
            Some(reason) => {
                let (run, seq) = (self.run, row.log.last_seq);
                Err(Error::Store(StoreError::Damaged { run, seq, reason }))
            }
        }
    }

    async fn outcome_now(&self) -> Result<Option<Outcome>, Error> {
        let row = self.row().await?;
        if row.state.outcome.is_none() {
            return Ok(None);
        }
        // After the end, the log may have an archive event and messages that are only recorded, but rarely many.
        let mut back = 2;
        loop {
            let after = Seq(row.log.last_seq.0.saturating_sub(back));
            let records = self.inner.store.read(self.run, after, usize::MAX).await?;
            let outcome = records.into_iter().rev().find_map(|record| match record.event {
                Event::RunFinished(finished) => Some(finished.outcome),
                _ => None,
            });
            if outcome.is_some() || after == Seq::ZERO {
                return Ok(outcome);
            }
            back = back.saturating_mul(8);
        }
    }
}

/// The state of a run whose log has no unread events.
enum Known {
    /// It has not ended, so more events will come.
    Open,
    /// It has ended.
    Ended,
    /// The log has unread events by now.
    Moved,
}

/// The events and deltas of a run, as they happen.
pub struct Events {
    inner: Arc<Inner>,
    run: RunId,
    after: Seq,
    page: VecDeque<Record>,
    tail: watch::Receiver<Seq>,
    deltas: Option<broadcast::Receiver<(Seq, Delta)>>,
    /// A delta, and the position up to which events must be delivered before it.
    held: Option<(Seq, Delta)>,
    /// True when the log may have more events than were delivered.
    unread: bool,
    ended: bool,
    /// True when it is known whether the run has ended at this position of its log.
    looked: bool,
    /// True when an error was delivered. Nothing comes after it.
    failed: bool,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("run", &self.run)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

impl Events {
    /// Returns the same as a stream.
    pub fn stream(self) -> impl Stream<Item = Result<Update, Error>> + Send {
        stream::unfold(self, async |mut events| Some((events.next().await?, events)))
    }

    /// Returns the next update, or `None` after the end of the run or after an error. To continue
    /// after an error, get new [events](RunHandle::events) from the last position.
    ///
    /// Deltas are in order with events: after the events stored before them, and before the events
    /// stored after them.
    pub async fn next(&mut self) -> Option<Result<Update, Error>> {
        if self.failed {
            return None;
        }
        let update = self.update().await;
        self.failed = matches!(update, Some(Err(_)));
        update
    }

    async fn update(&mut self) -> Option<Result<Update, Error>> {
        loop {
            self.take_delta();
            if let Some((_, delta)) = self.held.take_if(|(tail, _)| *tail <= self.after) {
                return Some(Ok(Update::Delta(delta)));
            }
            if let Some(record) = self.page.pop_front() {
                return Some(Ok(self.deliver(record)));
            }
            if self.unread || *self.tail.borrow_and_update() > self.after {
                match self.inner.store.read(self.run, self.after, PAGE).await {
                    Ok(records) => {
                        self.unread = records.len() == PAGE;
                        self.page.extend(records);
                    }
                    Err(error) => return Some(Err(error.into())),
                }
                if !self.page.is_empty() {
                    continue;
                }
            }
            if self.ended {
                return None;
            }
            match self.look().await {
                Ok(Known::Open) => self.quiet().await,
                Ok(Known::Ended) => self.ended = true,
                Ok(Known::Moved) => self.unread = true,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Checks once whether the run has ended, if no delivered event says so. A reader that starts after the end gets no
    /// event that would say it.
    async fn look(&mut self) -> Result<Known, Error> {
        if self.looked {
            return Ok(Known::Open);
        }
        let run = RunHandle { run: self.run, inner: self.inner.clone() };
        let row = run.row().await?;
        if row.log.last_seq > self.after {
            return Ok(Known::Moved);
        }
        self.looked = true;
        Ok(if row.state.outcome.is_some() { Known::Ended } else { Known::Open })
    }

    fn deliver(&mut self, record: Record) -> Update {
        self.after = record.seq;
        self.looked = true;
        self.ended = match &record.event {
            Event::RunFinished(_) | Event::Archived(_) => true,
            // Such a message does not reopen the run.
            Event::MessageReceived(received) => self.ended && received.is_only_recorded(),
            _ => false,
        };
        Update::Event(Box::new(record))
    }

    /// Takes the next available delta, if none is held.
    fn take_delta(&mut self) {
        while self.held.is_none()
            && let Some(deltas) = &mut self.deltas
        {
            match deltas.try_recv() {
                Ok(delta) => self.held = Some(delta),
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(broadcast::error::TryRecvError::Empty) => return,
                Err(broadcast::error::TryRecvError::Closed) => self.deltas = None,
            }
        }
    }

    /// Waits until an event is stored or a delta arrives.
    async fn quiet(&mut self) {
        let Some(deltas) = self.deltas.as_mut().filter(|_| self.held.is_none()) else {
            // An error means that the store is gone; the next read says so.
            let _ = self.tail.changed().await;
            self.unread = true;
            return;
        };
        tokio::select! {
            _ = self.tail.changed() => self.unread = true,
            delta = deltas.recv() => match delta {
                Ok(delta) => self.held = Some(delta),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => self.deltas = None,
            },
        }
    }
}
