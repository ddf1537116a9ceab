//! The rules for appends: [`RunRow::admit`]. A pure function, so all stores apply the same rules.

use crate::append::{Append, Draft, Guard, Ownership};
use crate::budget::{Before, Entry};
use crate::chain::{self, StoredEvent};
use crate::error::StoreError;
use crate::row::RunRow;
use crate::spending::ModelCall;
use posse_protocol::{Event, SCHEMA_VERSION, Sender, Seq, WorkerId};
use std::sync::Arc;

/// The result of an append.
pub(crate) struct Admitted {
    /// The new row.
    pub(crate) row: Box<RunRow>,
    /// The events to store.
    pub(crate) events: Vec<StoredEvent>,
    /// The model calls that these events settle.
    pub(crate) settles: Vec<ModelCall>,
    /// The changes to the accounts that the run draws on.
    pub(crate) entries: Vec<Entry>,
}

impl Admitted {
    fn nothing(row: Box<RunRow>) -> Self {
        Admitted { row, events: Vec::new(), settles: Vec::new(), entries: Vec::new() }
    }
}

impl RunRow {
    /// Decides whether `append` is allowed, given the stored `row` of the run. Returns the new row,
    /// the events to store, and the changes to the accounts that the run draws on.
    pub(crate) fn admit(
        row: Option<&RunRow>,
        draft: &Draft,
        worker: WorkerId,
        at: u64,
    ) -> Result<Admitted, StoreError> {
        let append = &draft.append;
        let run = append.run;
        let mut next = match (&append.guard, row) {
            (Guard::Create(_), Some(_)) => return Err(StoreError::Exists(run)),
            (Guard::Create(_), None) => {
                if !matches!(append.events.first(), Some(Event::RunStarted(_))) {
                    return Err(StoreError::Misplaced("a log begins with run_started"));
                }
                Box::new(RunRow::new(run, at))
            }
            (_, None) => return Err(StoreError::NotFound(run)),
            (_, Some(row)) => Box::new(row.clone()),
        };
        if next.log.version > SCHEMA_VERSION {
            return Err(StoreError::Newer(format!(
                "run {run} was written by a newer version of posse; update posse to continue it"
            )));
        }
        if append.guard == Guard::Open {
            next.check_open(append)?;
            return Ok(Admitted::nothing(next));
        }
        if let Some(reason) = &next.log.damaged {
            return Err(StoreError::Damaged {
                run,
                seq: next.log.last_seq,
                reason: reason.clone(),
            });
        }
        if next.log.erased {
            return Err(StoreError::Erased(run));
        }
        if let Guard::Owner { epoch, .. } = append.guard
            && (next.work.owner != Some(worker) || next.work.epoch != epoch)
        {
            return Err(StoreError::NotOwner(run));
        }
        if append.guard.last().is_some_and(|last| last != next.log.last_seq) {
            return Err(StoreError::Moved { run, last: next.log.last_seq });
        }
        let mut stored = Vec::with_capacity(append.events.len());
        let (mut settles, mut entries) = (Vec::new(), Vec::new());
        for (event, body) in append.events.iter().zip(&draft.bodies) {
            if matches!(append.guard, Guard::Anyone { .. }) && !is_open_to_anyone(event) {
                return Err(StoreError::NotOwner(run));
            }
            next.check_place(event)?;
            let before = Before::of(&next);
            settles.extend(ModelCall::settled(&next, event, next.log.last_seq.next(), at));
            stored.push(next.push(event, body.clone(), at));
            if next.funds.account.is_some() || next.funds.budget.is_some() {
                entries.extend(before.entries(event, &next));
            }
        }
        match append.guard {
            Guard::Create(then) | Guard::Owner { then, .. } => next.hand_over(then, worker, at),
            Guard::Anyone { .. } | Guard::Open => {}
        }
        if next.state.outcome.is_some() || next.state.archived {
            (next.work.owner, next.work.runnable) = (None, false);
        }
        Ok(Admitted { row: next, events: stored, settles, entries })
    }

    /// Decides whether the log of the run, which must end at `last`, may be removed. Returns the
    /// new row, which keeps the position and the hash of the last event.
    pub(crate) fn erase(&self, last: Seq) -> Result<RunRow, StoreError> {
        let run = self.id;
        let log = &self.log;
        if log.version > SCHEMA_VERSION {
            return Err(StoreError::Newer(format!(
                "run {run} was written by a newer version of posse; update posse to remove its log"
            )));
        }
        match &log.damaged {
            Some(reason) => {
                Err(StoreError::Damaged { run, seq: log.last_seq, reason: reason.clone() })
            }
            None if log.erased => Err(StoreError::Erased(run)),
            None if self.state.outcome.is_none() => Err(StoreError::Unfinished(run)),
            None if log.last_seq != last => Err(StoreError::Moved { run, last: log.last_seq }),
            None => {
                let mut row = self.clone();
                (row.state.archived, row.log.erased) = (true, true);
                Ok(row)
            }
        }
    }

    /// Checks that other runs may still be started below this one.
    fn check_open(&self, append: &Append) -> Result<(), StoreError> {
        match self {
            _ if !append.events.is_empty() => {
                Err(StoreError::Misplaced("nothing is appended to a run that is only to be open"))
            }
            row if row.state.archived => Err(StoreError::Finished(row.id)),
            // Runs that a completed run left behind may still start other runs.
            row if row.state.outcome.is_some() && !row.has_completed() => {
                Err(StoreError::Finished(row.id))
            }
            row if row.state.stopping => Err(StoreError::Stopping(row.id)),
            _ => Ok(()),
        }
    }

    /// Checks that `event` may follow. After the end, only a message, which reopens the run, and
    /// archiving may follow.
    fn check_place(&self, event: &Event) -> Result<(), StoreError> {
        if self.state.archived {
            return Err(StoreError::Archived(self.id));
        }
        let first = self.log.last_seq == Seq::ZERO;
        match event {
            Event::RunStarted(_) if !first => {
                Err(StoreError::Misplaced("run_started stands first and only there"))
            }
            // A late result of a subagent must not reopen a run that has ended.
            Event::MessageReceived(received)
                if self.state.outcome.is_some()
                    && matches!(received.from, Sender::Child(_))
                    && !received.is_only_recorded() =>
            {
                Err(StoreError::Finished(self.id))
            }
            Event::MessageReceived(_) => Ok(()),
            Event::Archived(_) if self.state.outcome.is_none() => {
                Err(StoreError::Misplaced("only a run that has ended can be archived"))
            }
            Event::Archived(_) => Ok(()),
            _ if self.state.outcome.is_some() => Err(StoreError::Finished(self.id)),
            Event::ChildStarted(_) if self.state.stopping => Err(StoreError::Stopping(self.id)),
            Event::ChildStarted(_) if self.state.paused => Err(StoreError::Paused(self.id)),
            _ => Ok(()),
        }
    }

    fn push(&mut self, event: &Event, body: Arc<str>, at: u64) -> StoredEvent {
        let seq = self.log.last_seq.next();
        let hash = chain::link(&self.log.last_hash, seq, at, SCHEMA_VERSION, &body);
        self.log.last_seq = seq;
        self.log.last_hash.clone_from(&hash);
        self.updated_at = at;
        self.log.version = self.log.version.max(SCHEMA_VERSION);
        self.project(event, at);
        StoredEvent { run: self.id, seq, at, version: SCHEMA_VERSION, body, hash }
    }

    fn hand_over(&mut self, then: Ownership, worker: WorkerId, at: u64) {
        match then {
            Ownership::Mine => {
                if self.work.owner != Some(worker) {
                    self.work.epoch += 1;
                }
                (self.work.owner, self.work.runnable) = (Some(worker), true);
            }
            Ownership::Queued => {
                (self.work.owner, self.work.runnable, self.work.ready_at) = (None, true, at);
            }
            Ownership::Waiting => {
                (self.work.owner, self.work.runnable) = (None, false);
                // A turn has ended, or the run asks a person.
                if self.family.expects == 0 {
                    self.work.deaths = 0;
                }
            }
            Ownership::Awaiting(calls) => {
                (self.work.owner, self.work.runnable, self.family.awaits) = (None, false, calls);
            }
        }
    }
}

/// Returns true for events that a process may append without owning the run.
fn is_open_to_anyone(event: &Event) -> bool {
    match event {
        Event::MessageReceived(_)
        | Event::CancelRequested(_)
        | Event::ApprovalGiven(_)
        | Event::ToolFinished(_)
        | Event::ChildStarted(_)
        | Event::Archived(_)
        | Event::Paused(_)
        | Event::Resumed(_) => true,
        Event::TimePassed(passed) => passed.quiet,
        Event::RunStarted(_)
        | Event::ModelCalled(_)
        | Event::ModelReplied(_)
        | Event::ModelFailed(_)
        | Event::ApprovalAsked(_)
        | Event::ToolStarted(_)
        | Event::ToolPending(_)
        | Event::Compacted(_)
        | Event::RunFinished(_) => false,
    }
}
