//! Checking what is stored: every log against its hashes, every row, what its model calls cost and what
//! webhooks are told of it against its log; and the file itself.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::webhooks::mismatch;
use posse_agent::Transcript;
use posse_protocol::{Event, Record, RunId, Seq};
use posse_store::{DeliveryFilter, Filter, Flaw, Projection, Reckoning, RunRow, StoreError};
use std::collections::HashMap;

/// What a check of one run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How many of its events are as they were stored.
    pub events: u64,
    /// What is wrong with it.
    pub damage: Option<Damage>,
}

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first event that was changed or is missing; `None` when it is the row, or the ledger.
    pub event: Option<Seq>,
    /// In words for people.
    pub reason: String,
}

/// Events that are read at once.
const PAGE: usize = 1_000;

impl Runtime {
    /// Reads the whole log of a run, checked against its hashes, and compares `row`, what the ledger
    /// has of it and what webhooks are told of it with it.
    ///
    /// # Errors
    /// When the store fails, or the log was written by a newer version.
    pub async fn verify(&self, row: &RunRow) -> Result<Verified, Error> {
        if row.log.erased {
            // There is nothing left to check it by, as was asked for.
            let left = !self.inner.store.hashes(row.id, Seq::ZERO, 1).await?.is_empty();
            let reason = || "its row says that its log was removed, and events are still there";
            let damage = left.then(|| Damage { event: None, reason: reason().to_owned() });
            return Ok(Verified { events: 0, damage });
        }
        let mut children = Vec::new();
        let mut ends = HashMap::new();
        let mut log = Projection::new(row.id);
        let mut transcript = Transcript::default();
        let mut ledger = Reckoning::new(row.id, self.inner.store.ledger(row.id).await?);
        let mut seen = Seq::ZERO;
        loop {
            let page = match self.read(row.id, seen, PAGE).await {
                Err(Error::Store(StoreError::Damaged { seq, reason, .. })) => {
                    let damage = Damage { event: Some(seq), reason };
                    return Ok(Verified { events: seen.0, damage: Some(damage) });
                }
                page => page?,
            };
            // It may grow meanwhile: what stands after the end that the row names is not its affair.
            let ours = page.iter().take_while(|record| record.seq <= row.log.last_seq);
            for record in ours {
                log.apply(record);
                ledger.apply(record);
                transcript.apply(record.seq, &record.event);
                match &record.event {
                    Event::ChildStarted(child) => children.push((record.seq, child.run)),
                    Event::RunFinished(_) => {
                        ends.insert(record.seq, record.clone());
                    }
                    _ => {}
                }
            }
            seen = page.last().map_or(seen, |last| last.seq);
            // One that ends where a page does may have been added to.
            if page.len() < PAGE {
                break;
            }
        }
        let events = seen.min(row.log.last_seq).0;
        let differs = || {
            let column = log.difference(row).or_else(|| asleep(row, &transcript))?;
            Some(format!("its row does not fit its log: `{column}` was changed"))
        };
        let reason = row.log.damaged.clone().or_else(differs);
        let damage = match reason {
            Some(reason) => Some(Damage { event: None, reason }),
            None => match self.missing(&children).await? {
                Some(damage) => Some(damage),
                None => self.bereft(row).await?,
            },
        };
        // The log is sound, and so is the run: nothing but what it is said to have cost is not.
        let miscounted = || {
            let fault = ledger.fault(row.log.last_seq)?;
            let reason = format!("the ledger does not fit its log: {fault}");
            Some(Damage { event: None, reason })
        };
        let damage = match damage.or_else(miscounted) {
            Some(damage) => Some(damage),
            None => self.mistold(row, &ends).await?,
        };
        Ok(Verified { events, damage })
    }

    /// The first of the runs above it that is not there.
    async fn bereft(&self, row: &RunRow) -> Result<Option<Damage>, Error> {
        let above = [
            ("that started it", row.family.parent),
            ("at the top of its tree", Some(row.family.root)),
        ];
        for (which, run) in above {
            let Some(run) = run.filter(|run| *run != row.id) else { continue };
            if !self.is_there(run).await? {
                let reason = format!("the run {which}, {run}, is gone");
                return Ok(Some(Damage { event: None, reason }));
            }
        }
        Ok(None)
    }

    /// The first delivery that does not tell what the log says. What is wrong with a delivery itself
    /// is among [`Runtime::flaws`].
    async fn mistold(
        &self,
        row: &RunRow,
        ends: &HashMap<Seq, Record>,
    ) -> Result<Option<Damage>, Error> {
        let of_run =
            DeliveryFilter { run: Some(row.id), limit: usize::MAX, ..DeliveryFilter::default() };
        for told in self.inner.store.deliveries(&of_run).await? {
            // What was stored after `row` was read is not its affair.
            if told.damaged.is_some() || told.seq > row.log.last_seq {
                continue;
            }
            if let Some(why) = mismatch(&told, ends.get(&told.seq)) {
                let reason = format!("the delivery {} does not fit its log: {why}", told.id);
                return Ok(Some(Damage { event: Some(told.seq), reason }));
            }
        }
        Ok(None)
    }

    /// The first of the runs that a log says were started of which there is no row.
    async fn missing(&self, children: &[(Seq, RunId)]) -> Result<Option<Damage>, Error> {
        for (seq, run) in children {
            if !self.is_there(*run).await? {
                let reason = format!("event {seq} says that run {run} was started, which is gone");
                return Ok(Some(Damage { event: Some(*seq), reason }));
            }
        }
        Ok(None)
    }

    async fn is_there(&self, run: RunId) -> Result<bool, Error> {
        let own = Filter { id: Some(run), limit: 1, ..Filter::default() };
        Ok(!self.list(&own).await?.is_empty())
    }

    /// What is wrong with the database that no log of a run can tell.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn flaws(&self) -> Result<Vec<Flaw>, Error> {
        Ok(self.inner.store.flaws().await?)
    }

    /// The runs of which there are events and no row, by the names they are stored under: someone
    /// deleted it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn orphans(&self) -> Result<Vec<String>, Error> {
        Ok(self.inner.store.orphans().await?)
    }

    /// The runs that the ledger has calls of, and of which there is nothing else: neither a row nor
    /// events.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn strangers(&self) -> Result<Vec<String>, Error> {
        Ok(self.inner.store.strangers().await?)
    }
}

/// The column that says how many results a run that sleeps waits for, if that is not how many of its
/// calls are open: it would sleep on when they have come, or wake too early.
fn asleep(row: &RunRow, transcript: &Transcript) -> Option<&'static str> {
    let sleeps = row.state.outcome.is_none() && row.work.owner.is_none() && !row.work.runnable;
    let open = transcript.open_calls().count();
    (sleeps && row.family.awaits as usize != open).then_some("awaits")
}
