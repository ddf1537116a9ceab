//! A run's log as its owner sees it, on top of the store.

use crate::active::Stopping;
use async_trait::async_trait;
use posse_agent::{Expect, Journal, JournalError};
use posse_protocol::{Event, Record, RunId, Seq};
use posse_store::{Append, Guard, Ownership, Reserve, Store, StoreError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How often an append is tried again while the disk is full.
const FULL_RETRY: Duration = Duration::from_millis(500);

pub(crate) struct RunJournal {
    store: Arc<dyn Store>,
    run: RunId,
    epoch: u64,
    tail: watch::Receiver<Seq>,
    stopping: Stopping,
    /// The log of a run that was only just made, so that it need not be read.
    fresh: Mutex<Option<Vec<Record>>>,
}

impl RunJournal {
    pub(crate) fn new(store: Arc<dyn Store>, run: RunId, epoch: u64, stopping: Stopping) -> Self {
        let tail = store.watch(run);
        RunJournal { store, run, epoch, tail, stopping, fresh: Mutex::default() }
    }

    pub(crate) fn with_fresh(self, records: Vec<Record>) -> Self {
        RunJournal { fresh: Mutex::new(Some(records)), ..self }
    }

    /// Appends `events` and says who owns the run then.
    pub(crate) async fn hand_over(
        &self,
        events: Vec<Event>,
        last: Option<Seq>,
        then: Ownership,
    ) -> Result<Seq, StoreError> {
        loop {
            let stopping = self.stopping.is_set();
            let append = Append {
                run: self.run,
                events: events.clone(),
                guard: Guard::Owner { epoch: self.epoch, last, then },
                reserve: if stopping { Reserve::Use } else { Reserve::Leave },
            };
            match self.store.append(vec![append]).await {
                Ok(appended) => {
                    return appended.first().map(|at| at.first).ok_or(StoreError::Closed);
                }
                // The run pauses until there is space, or until someone stops it.
                Err(StoreError::Full) if !stopping => self.wait_for_space().await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn wait_for_space(&self) {
        let mut tail = self.tail.clone();
        tail.mark_unchanged();
        tokio::select! {
            () = tokio::time::sleep(FULL_RETRY) => {}
            _ = tail.changed() => {}
        }
    }

    fn take_fresh(&self) -> Option<Vec<Record>> {
        let records = self.fresh.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let known = records.last().map_or(Seq::ZERO, |record| record.seq);
        (self.tail() <= known).then_some(records)
    }
}

#[async_trait]
impl Journal for RunJournal {
    async fn record(&self, events: Vec<Event>, expect: Expect) -> Result<Seq, JournalError> {
        let last = match expect {
            Expect::Any => None,
            Expect::Last(seq) => Some(seq),
        };
        fail::fail_point!("journal.record.before");
        let first = self.hand_over(events, last, Ownership::Mine).await.map_err(journal_error)?;
        fail::fail_point!("journal.record.after");
        Ok(first)
    }

    async fn read_after(&self, seq: Seq) -> Result<Vec<Record>, JournalError> {
        if seq == Seq::ZERO
            && let Some(records) = self.take_fresh()
        {
            return Ok(records);
        }
        self.store.read(self.run, seq, usize::MAX).await.map_err(journal_error)
    }

    fn tail(&self) -> Seq {
        *self.tail.borrow()
    }

    async fn changed(&self, seq: Seq) {
        let mut tail = self.tail.clone();
        // An error means that the store is gone: the next append says so.
        if tail.wait_for(|tail| *tail > seq).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn journal_error(error: StoreError) -> JournalError {
    match error {
        StoreError::Moved { .. } => JournalError::Moved,
        StoreError::NotOwner(_) | StoreError::Closed => JournalError::NotOwner,
        StoreError::Damaged { .. } | StoreError::Newer(_) => {
            JournalError::Damaged(error.to_string())
        }
        other => JournalError::Failed(other.to_string()),
    }
}
