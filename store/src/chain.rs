//! The hash that ties each event to all before it in its run, and the check of what was read.

use crate::error::StoreError;
use posse_protocol::{Record, RunId, SCHEMA_VERSION, Seq, hex};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// An event as it is stored.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// Of which run.
    pub run: RunId,
    /// Its place in the log.
    pub seq: Seq,
    /// When it was stored: milliseconds since 1970.
    pub at: u64,
    /// The form that its body has.
    pub version: u32,
    /// The event itself, as JSON. Stored to the letter: its hash is made of it.
    pub body: Arc<str>,
    /// Ties it to all before it.
    pub hash: String,
}

/// What stands before the first event: the run's own id, so that logs cannot be swapped.
pub(crate) fn seed(run: RunId) -> String {
    hex(&Sha256::digest(run.to_string().as_bytes()))
}

/// The hash of an event, given the hash before it.
pub(crate) fn link(before: &str, seq: Seq, at: u64, version: u32, body: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(before.as_bytes());
    digest.update(seq.0.to_be_bytes());
    digest.update(at.to_be_bytes());
    digest.update(version.to_be_bytes());
    digest.update(body.as_bytes());
    hex(&digest.finalize())
}

/// What the row of a run says about the end of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Its last event.
    pub seq: Seq,
    /// The hash of that.
    pub hash: String,
    /// The newest stored form in it.
    pub version: u32,
}

/// Checks a page of `run`'s log, at most `limit` events after `after`.
///
/// `rows` begins with the event at `after` itself, for its hash, unless that is zero. A row is
/// `None` when its columns do not hold what they should.
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
        // The row of the run names the newest form in its log.
        if row.version > tail.version {
            return damaged(row.seq, "was changed");
        }
        // A newer form may be tied differently: it is refused by `decode`, not judged here.
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
