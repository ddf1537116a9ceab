//! Checking what is stored: every log against its hashes, every row against its log.

use crate::error::Error;
use crate::runtime::Runtime;
use posse_protocol::Seq;
use posse_store::{Projection, RunRow, StoreError};

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
    /// The first event that was changed or is missing; `None` when it is the row.
    pub event: Option<Seq>,
    /// In words for people.
    pub reason: String,
}

/// Events that are read at once.
const PAGE: usize = 1_000;

impl Runtime {
    /// Reads the whole log of a run, checked against its hashes, and compares `row` with it.
    ///
    /// # Errors
    /// When the store fails, or the log was written by a newer version.
    pub async fn verify(&self, row: &RunRow) -> Result<Verified, Error> {
        if row.erased {
            // There is nothing left to check it by, as was asked for.
            return Ok(Verified { events: 0, damage: None });
        }
        let mut log = Projection::new(row.id);
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
            let ours = page.iter().take_while(|record| record.seq <= row.last_seq);
            ours.for_each(|record| log.apply(record));
            match page.last() {
                Some(last) if last.seq < row.last_seq => seen = last.seq,
                last => {
                    seen = last.map_or(seen, |last| last.seq.min(row.last_seq));
                    break;
                }
            }
        }
        let differs = || {
            let column = log.difference(row)?;
            Some(format!("its row does not fit its log: `{column}` was changed"))
        };
        let reason = row.damaged.clone().or_else(differs);
        let damage = reason.map(|reason| Damage { event: None, reason });
        Ok(Verified { events: seen.0, damage })
    }

    /// The runs of which there are events and no row, by the names they are stored under: someone
    /// deleted it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn orphans(&self) -> Result<Vec<String>, Error> {
        Ok(self.inner.store.orphans().await?)
    }
}
