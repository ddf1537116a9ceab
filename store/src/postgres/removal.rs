//! Removes what nobody can read any more, a little at a time: the events of long logs, bundles that
//! were replaced, and what was staged and never shown.
//!
//! The transaction that erases a run locks its row and the accounts above it, and the writer of
//! this process waits for it. So it deletes only short logs itself. It hides a long log, and from then
//! on nobody can read it. The rest is done here, on a connection for reading, in short transactions
//! that lock no row of a run. If a process dies meanwhile, the next one that looks for leftovers
//! continues.

use super::link::read;
use super::message::{Message, Text};
use super::reader::Reader;
use super::statements::{self as pg, Begin};
use crate::engine::Bind;
use crate::stage::{EVENTS_AT_ONCE, PARTS_AT_ONCE};
use crate::{StoreError, sql};
use posse_protocol::RunId;

impl Reader {
    /// Removes everything that has expired and that other processes do not work on.
    pub(super) async fn remove_expired(&self) -> Result<(), StoreError> {
        // Most of the time there is nothing, and a look is one statement.
        while self.has_expired().await? && self.remove_some().await? {}
        Ok(())
    }

    async fn has_expired(&self) -> Result<bool, StoreError> {
        const NOW: &str = "(SELECT posse_now())";
        let look = Text::new(sql::stage::EXPIRED).expression(NOW).expression(NOW);
        Ok(!self.ask(&[look.finish()]).await?.rows(0).is_empty())
    }

    /// Removes some of it. Returns false if there is nothing left that it could remove.
    async fn remove_some(&self) -> Result<bool, StoreError> {
        let of_bundle = |text: &str| Text::new(text).expression(pg::BUNDLE).expression(pg::DATA);
        let message = || {
            let mut message = Message::default();
            message.begin(&self.begin.writing, Begin::WRITING);
            let log = message.say(&pg::choose_log(EVENTS_AT_ONCE));
            shorten_log(&mut message);
            let bundle = message.say(&pg::choose_bundle());
            let remove = of_bundle(sql::stage::PARTS_REMOVE);
            let remove = remove.expression(pg::BUNDLE).expression(pg::DATA);
            message.add(remove.number(PARTS_AT_ONCE));
            message.add(of_bundle(sql::stage::BUNDLE_REMOVE));
            message.say("COMMIT");
            (message, [log, bundle])
        };
        // If the answer is lost and the message is sent again, it removes the next ones.
        let chosen = message().1;
        let replies = read(&self.pool, &self.place, &self.contact, || message().0).await?;
        Ok(chosen.into_iter().any(|at| !replies.rows(at).is_empty()))
    }

    /// Removes a log that arrives, and nothing else.
    pub(super) async fn give_up_log(&self, run: RunId) -> Result<(), StoreError> {
        let give_up = Text::new(sql::stage::LOG_GIVE_UP).text(run.to_string());
        self.write(|| vec![give_up.clone()]).await?;
        let choose = Text::new(&pg::choose_given_up(EVENTS_AT_ONCE)).text(run.to_string());
        let message = || {
            let mut message = Message::default();
            message.begin(&self.begin.writing, Begin::WRITING);
            message.add(choose.clone());
            shorten_log(&mut message);
            message.say("COMMIT");
            message
        };
        while !read(&self.pool, &self.place, &self.contact, message)
            .await?
            .rows(Begin::WRITING)
            .is_empty()
        {}
        Ok(())
    }
}

/// Removes the last events of the chosen log, and the log if there are no others.
fn shorten_log(message: &mut Message) {
    let remove = Text::new(sql::stage::EVENTS_REMOVE).expression(pg::LOG);
    message.add(remove.expression(pg::LEFT).expression(pg::LOG));
    let shorten = Text::new(sql::stage::LOG_SHORTEN).expression(pg::LEFT);
    message.add(shorten.expression(pg::LOG));
    message.add(Text::new(sql::stage::LOG_REMOVE).expression(pg::LOG));
}
