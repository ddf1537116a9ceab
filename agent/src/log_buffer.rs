//! The working state of the loop: the transcript, the events not yet stored, and the clock.
//!
//! The loop folds each event at once and stores them together just before the next effect, so that
//! a turn takes two commits, not five. An event is stored before its effect starts and before it is shown.

use crate::step::{Bounds, wall_near_ms};
use crate::transcript::Transcript;
use crate::{Allowance, Claim, Expect, Journal, JournalError};
use posse_protocol::{CallId, Event, Extra, Seq, Share, TimePassed, ToolFinished};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long work may take to stop after it was cancelled.
const GRACE: Duration = Duration::from_secs(3);

pub(crate) struct LogBuffer<'a> {
    journal: &'a dyn Journal,
    pub(crate) transcript: Transcript,
    /// Events that are folded and not stored.
    queued: Vec<Event>,
    /// Calls with a provisional answer in `queued`. A real answer from another process wins.
    stood_in: Vec<CallId>,
    /// The last event known to be stored.
    stored: Seq,
    opened: Instant,
    worked_before_ms: u64,
}

/// The number of cancel requests so far.
pub(crate) type Interrupts = u32;

/// Whether the budget covered a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draw {
    /// The budget covered it; the events are stored.
    Taken,
    /// The budget has only this much left. Nothing was drawn.
    Refused(Share),
}

/// How watched work ended.
pub(crate) enum Watched<T> {
    /// It returned, possibly after it was cancelled.
    Ended(T),
    /// It did not stop after it was cancelled, and was dropped.
    Dropped,
}

impl<'a> LogBuffer<'a> {
    pub(crate) async fn open(journal: &'a dyn Journal) -> Result<Self, JournalError> {
        let records = journal.read_after(Seq::ZERO).await?;
        let transcript = Transcript::of(&records);
        Ok(LogBuffer {
            journal,
            stored: transcript.seq(),
            worked_before_ms: transcript.worked_ms(),
            transcript,
            queued: Vec::new(),
            stood_in: Vec::new(),
            opened: Instant::now(),
        })
    }

    /// Time at work so far, in milliseconds.
    pub(crate) fn worked_ms(&self) -> u64 {
        self.worked_before_ms + self.opened.elapsed().as_millis() as u64
    }

    /// Whether this process still owns the run. Callers check it right before an effect.
    pub(crate) fn claim(&self) -> Claim {
        self.journal.claim()
    }

    /// The number of cancel requests so far.
    pub(crate) fn interrupts(&self) -> Interrupts {
        self.transcript.phase.interrupts
    }

    /// Folds `event` and queues it for the next [`LogBuffer::store`].
    pub(crate) fn note(&mut self, event: Event) {
        let provisional = Seq(self.stored.0 + self.queued.len() as u64 + 1);
        self.transcript.apply(provisional, &event);
        self.queued.push(event);
    }

    /// Notes a provisional answer to a call that another process may also answer. It is stored only
    /// if the log has no answer yet, so that each call has one answer in the log.
    pub(crate) fn stand_in(&mut self, answer: ToolFinished) {
        self.stood_in.push(answer.call.clone());
        self.note(Event::ToolFinished(answer));
    }

    /// True when an event was noted and is not stored.
    pub(crate) fn has_unstored(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Stores the queued events. Afterwards the transcript equals the fold of the log.
    pub(crate) async fn store(&mut self) -> Result<(), JournalError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        if !self.stood_in.is_empty() {
            return self.store_giving_way().await;
        }
        let events = std::mem::take(&mut self.queued);
        let count = events.len() as u64;
        let placed = events.iter().any(is_placed);
        let first = self.journal.record(events, Expect::Any).await?;
        let last = Seq(first.0 + count - 1);
        if first == self.stored.next() {
            self.stored = last;
            return Ok(());
        }
        if placed {
            return self.reread().await;
        }
        // Other processes' events before these do not change how these fold.
        for record in self.journal.read_after(self.stored).await? {
            if record.seq < first || record.seq > last {
                self.transcript.apply(record.seq, &record.event);
            }
            self.stored = record.seq;
        }
        self.transcript.reached(last);
        Ok(())
    }

    /// How much the run may still draw from budgets.
    pub(crate) async fn allowance(&self) -> Result<Allowance, JournalError> {
        self.journal.allowance().await
    }

    /// Stores the queued events and `draws`, which draw on budgets, if the budgets cover them.
    pub(crate) async fn draw(&mut self, draws: Vec<Event>) -> Result<Draw, JournalError> {
        if !self.stood_in.is_empty() {
            self.store().await?;
        }
        let noted = self.queued.clone();
        draws.into_iter().for_each(|event| self.note(event));
        match self.store().await {
            Err(JournalError::OverBudget(share)) => {
                self.queued = noted;
                self.store().await?;
                self.reread().await?;
                Ok(Draw::Refused(share))
            }
            stored => stored.map(|()| Draw::Taken),
        }
    }

    /// Stores the queued events, without answers to calls that another process has answered meanwhile.
    async fn store_giving_way(&mut self) -> Result<(), JournalError> {
        let mut last = self.stored;
        while !self.queued.is_empty() {
            match self.journal.record(self.queued.clone(), Expect::Last(last)).await {
                Err(JournalError::Moved) => {}
                stored => {
                    stored?;
                    break;
                }
            }
            for record in self.journal.read_after(last).await? {
                last = record.seq;
                if let Event::ToolFinished(answer) = &record.event {
                    self.queued.retain(|event| !answers(event, &answer.call));
                }
            }
        }
        self.stood_in.clear();
        if last == self.stored {
            self.stored = Seq(last.0 + self.queued.len() as u64);
            self.queued.clear();
            return Ok(());
        }
        self.queued.clear();
        self.reread().await
    }

    /// Removes the provisional answers.
    pub(crate) fn withdraw(&mut self) {
        for call in std::mem::take(&mut self.stood_in) {
            self.queued.retain(|event| !answers(event, &call));
        }
    }

    /// Stores the queued events and `last`, if no other process has appended anything. Returns
    /// whether it did.
    pub(crate) async fn conclude(&mut self, last: Event) -> Result<bool, JournalError> {
        let mut events = self.queued.clone();
        events.push(last);
        match self.journal.record(events, Expect::Last(self.stored)).await {
            Ok(_) => Ok(true),
            Err(JournalError::Moved) => {
                self.withdraw();
                self.store().await?;
                self.reread().await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Folds the events that other processes appended.
    pub(crate) async fn sync(&mut self) -> Result<(), JournalError> {
        if self.journal.tail() <= self.stored {
            return Ok(());
        }
        if !self.stood_in.is_empty() {
            // The new events may be the real answers, so the loop has to decide again.
            self.withdraw();
            self.store().await?;
            return self.reread().await;
        }
        if !self.queued.is_empty() {
            return self.store().await;
        }
        for record in self.journal.read_after(self.stored).await? {
            self.transcript.apply(record.seq, &record.event);
            self.stored = record.seq;
        }
        Ok(())
    }

    /// Folds the whole log again, because other processes' events are between our own.
    async fn reread(&mut self) -> Result<(), JournalError> {
        let records = self.journal.read_after(Seq::ZERO).await?;
        self.transcript = Transcript::of(&records);
        self.stored = self.transcript.seq();
        Ok(())
    }

    /// Waits for `work`. Cancels it through `token` when a cancel request arrives or the time is
    /// up, and drops it if it does not stop within `GRACE`.
    pub(crate) async fn watch<T>(
        &mut self,
        bounds: &Bounds,
        token: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> Result<Watched<T>, JournalError> {
        self.watch_unless(bounds, token, work, |_| false).await
    }

    /// Like [`LogBuffer::watch`] for a plain wait, which a pause of the run also cancels.
    pub(crate) async fn watch_wait<T>(
        &mut self,
        bounds: &Bounds,
        token: &CancellationToken,
        wait: impl Future<Output = T>,
    ) -> Result<Watched<T>, JournalError> {
        self.watch_unless(bounds, token, wait, |transcript| transcript.phase.paused).await
    }

    async fn watch_unless<T>(
        &mut self,
        bounds: &Bounds,
        token: &CancellationToken,
        work: impl Future<Output = T>,
        is_over: fn(&Transcript) -> bool,
    ) -> Result<Watched<T>, JournalError> {
        let mut work = pin!(work);
        let interrupts = self.transcript.phase.interrupts;
        let mut give_up: Option<Instant> = None;
        loop {
            let alarm = match give_up {
                Some(at) => Some(at),
                None => self.next_alarm(bounds),
            };
            let journal = self.journal;
            let stored = self.stored;
            tokio::select! {
                biased;
                result = &mut work => return Ok(Watched::Ended(result)),
                () = journal.changed(stored), if give_up.is_none() => self.sync().await?,
                () = at(alarm), if alarm.is_some() => {
                    if give_up.is_some() {
                        return Ok(Watched::Dropped);
                    }
                    let worked_ms = self.worked_ms();
                    self.note(Event::TimePassed(TimePassed { worked_ms, quiet: false, extra: Extra::default() }));
                }
            }
            let limit = self.transcript.wall_ms(&bounds.limits);
            let late = limit.is_some_and(|limit| self.transcript.leg_ms() >= limit);
            let interrupted = self.transcript.phase.interrupts > interrupts;
            if give_up.is_none() && (late || interrupted || is_over(&self.transcript)) {
                token.cancel();
                give_up = Some(Instant::now() + GRACE);
            }
        }
    }

    /// The next time limit: when its end is near, or when it is reached.
    fn next_alarm(&self, bounds: &Bounds) -> Option<Instant> {
        let limit = self.transcript.wall_ms(&bounds.limits)?;
        let worked = self.transcript.leg_ms();
        let threshold = [wall_near_ms(limit), limit].into_iter().find(|at| worked < *at)?;
        let due = self.transcript.leg_began_ms() + threshold;
        Some(self.opened + Duration::from_millis(due.saturating_sub(self.worked_before_ms)))
    }
}

/// True when `event` is an answer to `call`.
fn answers(event: &Event, call: &CallId) -> bool {
    matches!(event, Event::ToolFinished(answer) if answer.call == *call)
}

/// True when the exact position of `event` in the log matters to the fold.
fn is_placed(event: &Event) -> bool {
    !matches!(event, Event::ToolStarted(_) | Event::ToolPending(_) | Event::TimePassed(_))
}

async fn at(alarm: Option<Instant>) {
    match alarm {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
