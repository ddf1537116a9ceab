//! Removes the events of long logs, a few at a time.
//!
//! The transaction that erases a run locks its row and the accounts above it, and the writer of
//! this process waits for it. So it deletes only short logs itself. For a long log it leaves a mark,
//! and from then on nobody can read the log. Its events are deleted here, on a connection for reading,
//! in short transactions that lock no row of a run. If a process dies meanwhile, the next one that
//! looks for leftovers continues.

use super::link::read;
use super::message::{Message, Text};
use super::reader::Reader;
use super::statements::{self as pg, Begin};
use crate::StoreError;
use crate::engine::{Bind, Cells};
use posse_protocol::RunId;

/// The most events that one transaction deletes.
pub(super) const AT_ONCE: u64 = 1_000;

/// Marks the events of an erased run for removal.
pub(super) fn mark(run: RunId) -> Text {
    Text::new(pg::MARK_ERASED).text(run.to_string())
}

impl Reader {
    /// Deletes the events of all erased runs that other processes do not work on.
    pub(super) async fn remove_marked(&self) -> Result<(), StoreError> {
        // Most of the time there are none, and a look is one statement.
        while self.remove_some().await? {}
        Ok(())
    }

    /// Deletes some events. Returns false if there are none left that it could delete.
    async fn remove_some(&self) -> Result<bool, StoreError> {
        let message = || {
            let mut message = Message::default();
            message.begin(&self.begin.writing, Begin::WRITING);
            message.say(&pg::remove_events(AT_ONCE));
            message.say(pg::UNMARK_ERASED);
            message.say("COMMIT");
            message
        };
        let looked = self.ask(&[pg::MARKED_ERASED.to_owned()]).await?;
        if looked.rows(0).is_empty() {
            return Ok(false);
        }
        // If the answer is lost and the message is sent again, it deletes the next events.
        let replies = read(&self.pool, &self.place, message).await?;
        let chosen = replies.rows(Begin::WRITING).first();
        Ok(chosen.is_some_and(|row| row.integer(0).is_ok_and(|chosen| chosen > 0)))
    }
}
