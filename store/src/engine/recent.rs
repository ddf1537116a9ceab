//! A cache of events that this process has just stored, for watchers that follow their runs.
//! Without it, a client that watches a thousand runs would read and check events that were just
//! written.
//!
//! Events that are not in the cache are read from the database.

use posse_protocol::{Event, Record, RunId, SCHEMA_VERSION, Seq};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most bytes of all cached events, in their stored form.
pub(crate) const MOST_BYTES: usize = 32 << 20;

/// Events that were stored together.
pub(crate) struct Stored {
    pub(crate) first: Seq,
    pub(crate) at: u64,
    pub(crate) events: Arc<[Event]>,
    /// Their size in the database.
    pub(crate) bytes: usize,
}

impl Stored {
    fn last(&self) -> Seq {
        Seq(self.first.0 + self.events.len() as u64 - 1)
    }
}

/// The last events of one run, without gaps.
#[derive(Default)]
pub(crate) struct Recent {
    stored: VecDeque<Stored>,
    bytes: usize,
}

impl Recent {
    /// Their size in the database.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, stored: Stored) {
        if stored.events.is_empty() {
            return;
        }
        let follows = self.stored.back().is_none_or(|last| last.last().next() == stored.first);
        if !follows {
            self.clear();
        }
        self.bytes += stored.bytes;
        self.stored.push_back(stored);
    }

    pub(crate) fn clear(&mut self) {
        *self = Recent::default();
    }

    /// Returns at most `limit` events after `after`, if they are cached. Drops the events before
    /// them, because a watcher that follows a run does not go back.
    pub(crate) fn read(&mut self, run: RunId, after: Seq, limit: usize) -> Option<Vec<Record>> {
        while let Some(read) = self.stored.pop_front_if(|stored| stored.last() <= after) {
            self.bytes -= read.bytes;
        }
        let first = self.stored.front()?.first;
        if first > after.next() {
            return None;
        }
        let record = |seq: Seq, at: u64, event: &Event| Record {
            run,
            seq,
            at,
            version: SCHEMA_VERSION,
            event: event.clone(),
            extra: posse_protocol::Extra::default(),
        };
        let all = self.stored.iter().flat_map(|stored| {
            let seqs = (stored.first.0..).map(Seq);
            seqs.zip(stored.events.iter()).map(|(seq, event)| record(seq, stored.at, event))
        });
        Some(all.skip_while(|record| record.seq <= after).take(limit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::Archived;

    fn stored(first: u64, count: usize) -> Stored {
        let events = vec![Event::Archived(Archived::default()); count].into();
        Stored { first: Seq(first), at: 7, events, bytes: 10 * count }
    }

    fn seqs(recent: &mut Recent, after: u64, limit: usize) -> Option<Vec<u64>> {
        let run = RunId::from_u128(1);
        let read = recent.read(run, Seq(after), limit);
        read.map(|records| records.iter().map(|record| record.seq.0).collect())
    }

    #[test]
    fn what_follows_is_read_and_what_was_read_is_forgotten() {
        let mut recent = Recent::default();
        assert_eq!(seqs(&mut recent, 0, 9), None);
        recent.push(stored(1, 2));
        recent.push(stored(3, 1));
        recent.push(stored(4, 0));
        assert_eq!(seqs(&mut recent, 0, 9), Some(vec![1, 2, 3]));
        assert_eq!(seqs(&mut recent, 1, 1), Some(vec![2]));
        assert_eq!(recent.bytes(), 30);
        assert_eq!(seqs(&mut recent, 2, 9), Some(vec![3]));
        assert_eq!(recent.bytes(), 10);
        assert_eq!(seqs(&mut recent, 0, 9), None, "the beginning is gone");
        assert_eq!(seqs(&mut recent, 3, 9), None);
        assert_eq!(recent.bytes(), 0);
    }

    #[test]
    fn nothing_is_skipped_where_another_process_has_written() {
        let mut recent = Recent::default();
        recent.push(stored(1, 2));
        recent.push(stored(5, 1));
        assert_eq!(seqs(&mut recent, 2, 9), None, "3 and 4 are not here");
        assert_eq!(seqs(&mut recent, 4, 9), Some(vec![5]));
    }
}
