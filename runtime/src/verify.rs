//! Checks what is stored: every log against its hashes; every row, the ledger and the deliveries against the log; and
//! the database file itself.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::webhooks::mismatch;
use posse_agent::Transcript;
use posse_protocol::{Event, Record, RunId, Seq};
use posse_store::{
    CostCheck, DeliveryFilter, Filter, Flaw, Projection, RunRow, StoreError, seal_of,
};
use std::collections::HashMap;

/// The result of checking one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How many of its events are intact.
    pub events: u64,
    /// What is wrong with it.
    pub damage: Option<Damage>,
}

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first event that was changed or is missing; `None` when the row or the ledger is wrong.
    pub event: Option<Seq>,
    /// The reason, for people.
    pub reason: String,
}

/// How many events are read at once.
const PAGE: usize = 1_000;

impl Runtime {
    /// Reads the whole log of a run, checks it against its hashes, and compares it with `row`, the ledger and the
    /// deliveries to webhooks.
    ///
    /// # Errors
    /// When the store fails, or the log was written by a newer version.
    pub async fn verify(&self, row: &RunRow) -> Result<Verified, Error> {
        if row.log.erased {
            // The log was removed on request, so there is nothing to check against.
            let left = !self.inner.store.hashes(row.id, Seq::ZERO, 1).await?.is_empty();
            let reason = || "its row says that its log was removed, and events are still there";
            let damage = left.then(|| Damage { event: None, reason: reason().to_owned() });
            return Ok(Verified { events: 0, damage });
        }
        let mut children = Vec::new();
        let mut ends = HashMap::new();
        let mut log = Projection::new(row.id);
        let mut transcript = Transcript::default();
        let mut ledger = CostCheck::new(row.id, self.inner.store.ledger(row.id).await?);
        let (mut seen, mut sealed) = (Seq::ZERO, None);
        loop {
            let page = match self.read(row.id, seen, PAGE).await {
                Err(Error::Store(StoreError::Damaged { seq, reason, .. })) => {
                    let damage = Damage { event: Some(seq), reason };
                    return Ok(Verified { events: seen.0, damage: Some(damage) });
                }
                page => page?,
            };
            // The log may grow meanwhile. Events after the end in the row are not checked.
            let ours = page.iter().take_while(|record| record.seq <= row.log.last_seq);
            for record in ours {
                log.apply(record);
                seal_of(&record.event, &mut sealed);
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
            // A log that ends with a full page may have grown.
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
        // The log is intact, and so is the run; only its recorded cost is wrong.
        let miscounted = || {
            let fault = ledger.fault(row.log.last_seq)?;
            let reason = format!("the ledger does not fit its log: {fault}");
            Some(Damage { event: None, reason })
        };
        let damage = match damage.or_else(miscounted) {
            Some(damage) => Some(damage),
            None => self.mistold(row, &ends).await?,
        };
        let damage = match damage {
            Some(damage) => Some(damage),
            None => self.lost_state(row, sealed.as_deref()).await?,
        };
        Ok(Verified { events, damage })
    }

    /// Returns damage of the bundle of a run, whose log says that its hash is `sealed`.
    async fn lost_state(
        &self,
        row: &RunRow,
        sealed: Option<&str>,
    ) -> Result<Option<Damage>, Error> {
        let bundle = match self.inner.store.bundle(row.id).await {
            Err(StoreError::Damaged { reason, .. }) => {
                return Ok(Some(Damage { event: None, reason }));
            }
            bundle => bundle?,
        };
        let found = bundle.map(|bundle| bundle.sha256());
        let Some(sealed) = sealed.filter(|sealed| found.as_deref() != Some(*sealed)) else {
            return Ok(None);
        };
        // A run that went on since its row was read has another state.
        if self.row(row.id).await?.is_none_or(|now| now.log.last_seq != row.log.last_seq) {
            return Ok(None);
        }
        let reason = format!("its bundle is missing or another one; the log names {sealed}");
        Ok(Some(Damage { event: None, reason }))
    }

    /// Returns damage if a run above this one is missing.
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

    /// Returns the first delivery that differs from the log. [`Runtime::flaws`] reports deliveries that are damaged
    /// themselves.
    async fn mistold(
        &self,
        row: &RunRow,
        ends: &HashMap<Seq, Record>,
    ) -> Result<Option<Damage>, Error> {
        let of_run =
            DeliveryFilter { run: Some(row.id), limit: usize::MAX, ..DeliveryFilter::default() };
        for told in self.inner.store.deliveries(&of_run).await? {
            // Deliveries stored after `row` was read are not checked.
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

    /// Returns the first child in a log that has no row.
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

    /// Returns damage of the database that the logs of runs cannot show.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn flaws(&self) -> Result<Vec<Flaw>, Error> {
        Ok(self.inner.store.flaws().await?)
    }

    /// Returns the runs with events but without a row, by their stored ids: someone deleted the row.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn orphans(&self) -> Result<Vec<String>, Error> {
        Ok(self.inner.store.orphans().await?)
    }

    /// Returns the runs that are only in the ledger: they have neither a row nor events.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn strangers(&self) -> Result<Vec<String>, Error> {
        Ok(self.inner.store.strangers().await?)
    }
}

/// Returns the column with the number of awaited results, if a waiting run has another number of open calls: such a run
/// would wake too early, or never.
fn asleep(row: &RunRow, transcript: &Transcript) -> Option<&'static str> {
    let sleeps = row.state.outcome.is_none() && row.work.owner.is_none() && !row.work.runnable;
    let open = transcript.open_calls().count();
    (sleeps && row.family.awaits as usize != open).then_some("awaits")
}
