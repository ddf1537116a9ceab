//! The hash chain of a log, and the check of stored events against it.

use crate::error::StoreError;
use posse_protocol::{Record, RunId, SCHEMA_VERSION, Seq, hex};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// An event as it is stored.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// The run that it belongs to.
    pub run: RunId,
    /// Its position in the log.
    pub seq: Seq,
    /// When it was stored: milliseconds since 1970.
    pub at: u64,
    /// The schema version of its body.
    pub version: u32,
    /// The event as JSON, unchanged: the hash covers these bytes.
    pub body: Arc<str>,
    /// The hash of this event and all events before it.
    pub hash: String,
}

/// Returns the hash before the first event: that of the run id, so logs cannot be swapped.
pub(crate) fn seed(run: RunId) -> String {
    hex(&Sha256::digest(run.to_string().as_bytes()))
}

/// Returns the hash of an event, given the hash of the event before it.
pub(crate) fn link(before: &str, seq: Seq, at: u64, version: u32, body: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(before.as_bytes());
    digest.update(seq.0.to_be_bytes());
    digest.update(at.to_be_bytes());
    digest.update(version.to_be_bytes());
    digest.update(body.as_bytes());
    hex(&digest.finalize())
}

/// The end of a log, according to the row of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The position of the last event.
    pub seq: Seq,
    /// The hash of the last event.
    pub hash: String,
    /// The newest schema version in the log.
    pub version: u32,
}

/// Checks a page of the log of `run`: at most `limit` events after `after`.
///
/// Unless `after` is zero, `rows` begins with the event at `after`, for its hash. A row is `None`
/// if its columns do not hold valid values.
///
/// # Errors
/// Names the first event that was changed, is missing, or was added.
pub fn check(
    run: RunId,
    after: Seq,
    limit: usize,
    tail: &Tail,
    rows: impl IntoIterator<Item = Option<StoredEvent>>,
) -> Result<Vec<Record>, StoreError> {
    let damaged = |seq: Seq, what: &str| {
        Err(StoreError::Damaged { run, seq, reason: format!("event {seq} {what}") })
    };
    if after > tail.seq {
        return Ok(Vec::new());
    }
    let mut records = Vec::new();
    let mut expected = if after == Seq::ZERO { Seq(1) } else { after };
    let mut hash = seed(run);
    let read = limit.saturating_add(usize::from(after > Seq::ZERO));
    for row in rows.into_iter().take(read) {
        let Some(row) = row else { return damaged(expected, "was changed") };
        if row.seq != expected {
            return damaged(expected, "is missing");
        }
        if row.seq > tail.seq {
            return damaged(row.seq, "was added");
        }
        expected = row.seq.next();
        if row.seq == after {
            hash = row.hash;
            continue;
        }
        // The row of the run has the newest version in the log.
        if row.version > tail.version {
            return damaged(row.seq, "was changed");
        }
        // A newer version may compute hashes differently. `decode` refuses such an event.
        let judged = row.version <= SCHEMA_VERSION;
        if judged && link(&hash, row.seq, row.at, row.version, &row.body) != row.hash {
            return damaged(row.seq, "was changed");
        }
        records.push(Record::decode(run, row.seq, row.at, row.version, &row.body)?);
        hash = row.hash;
    }
    let reached = Seq(expected.0 - 1);
    if reached == tail.seq && hash != tail.hash {
        return damaged(reached, "was changed");
    }
    if reached < tail.seq && records.len() < limit {
        return damaged(expected, "is missing");
    }
    Ok(records)
}
