//! Queries of the queue, concurrent with the writer.

use super::link::read;
use super::message::{Message, Text};
use super::reader::Reader;
use super::statements::{self as pg, Begin};
use crate::engine::{
    Bind, Cells, MOST, bind_ahead, bind_ids, bind_of_each_root, cut, number, queued_row, to_sql,
};
use crate::sql;
use crate::{Look, Passed, Queue, Queued, StoreError};
use posse_protocol::{RunId, SCHEMA_VERSION};
use sqlx::postgres::PgRow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

/// The most runs in one statement.
const NAMED: usize = 4_096;

/// The result of a query.
pub(super) enum QueueResult {
    /// The queue.
    Whole(Queue),
    /// A worker has died. Its runs belong to the queue once the writer has released them.
    Dead,
}

impl Reader {
    pub(super) async fn queue(&self, look: &Look) -> Result<QueueResult, StoreError> {
        let condition = self.presence.condition();
        let statements = asked_by(look, &condition);
        // The order matters: a run that was stamped before `now` and is not visible is in flight.
        // Each statement must see what is committed when it begins, so this is not one snapshot.
        let fixed =
            [pg::NOW.to_owned(), pg::in_flight(), pg::FREED_SO_FAR.to_owned(), pg::DEAD.to_owned()];
        let until = sql::queue_until();
        let message = || {
            let mut message = Message::default();
            message.begin(&self.begin.looking, Begin::READING);
            for statement in fixed.iter().chain([&until]).chain(&statements) {
                message.say(statement);
            }
            message.say("COMMIT");
            message
        };
        let replies = read(&self.pool, &self.place, &self.contact, message).await?;
        let rows = |statement: usize| replies.rows(Begin::READING + statement);
        if !rows(3).is_empty() {
            return Ok(QueueResult::Dead);
        }
        let latest = rows(4).first().and_then(|row| row.maybe_integer(0).ok().flatten());
        let latest = latest.and_then(|at| u64::try_from(at).ok()).unwrap_or(0);
        let bound = settled(rows(0), rows(1));
        let given_back = rows(2).first().and_then(|row| row.integer(0).ok()).unwrap_or(0);
        let freed = self.freed.swap(given_back, Ordering::SeqCst) != given_back;
        let mut runs: Vec<Queued> =
            (5..5 + statements.len()).flat_map(rows).filter_map(queued_row).collect();
        let more = runs.len() >= MOST && !matches!(look, Look::Of(_));
        let mut seen = Queue { more, until: latest.min(bound), freed, ..Queue::default() };
        match look {
            Look::Ahead { workspace } if more => {
                let known: HashSet<RunId> = runs.iter().map(|run| run.id).collect();
                let (by, workspace) = (sql::ByRoot::LateralJoin, workspace.as_deref());
                let others = bind_of_each_root(Text::new, by, workspace, &condition);
                let others = self.waiting(others.finish()).await?;
                runs.extend(others.into_iter().filter(|run| !known.contains(&run.id)));
                seen.cut = cut(&runs);
            }
            Look::Since(_) if more => {
                seen.until = runs.last().map_or(seen.until, |last| last.ready_at.min(bound));
            }
            _ => {}
        }
        Ok(QueueResult::Whole(Queue { runs, ..seen }))
    }

    async fn waiting(&self, statement: String) -> Result<Vec<Queued>, StoreError> {
        let message = || {
            let mut message = Message::default();
            message.begin(&self.begin.looking, Begin::READING);
            message.say(&statement);
            message.say("COMMIT");
            message
        };
        let replies = read(&self.pool, &self.place, &self.contact, message).await?;
        Ok(replies.rows(Begin::READING).iter().filter_map(queued_row).collect())
    }

    pub(super) async fn places(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, StoreError> {
        let mut places = HashMap::with_capacity(runs.len());
        for named in runs.chunks(NAMED) {
            let ask = bind_ids(Text::new(&sql::places(named.len())), named, named.len()).finish();
            let message = || {
                let mut message = Message::default();
                message.begin(&self.begin.looking, Begin::READING);
                message.say(&ask);
                message.say("COMMIT");
                message
            };
            let replies = read(&self.pool, &self.place, &self.contact, message).await?;
            for row in replies.rows(Begin::READING) {
                if let (Ok(Ok(run)), Ok(place)) = (row.text(0).map(|id| id.parse()), number(row, 1))
                {
                    places.insert(run, place);
                }
            }
        }
        Ok(places)
    }
}

fn asked_by(look: &Look, condition: &str) -> Vec<String> {
    match look {
        Look::Ahead { workspace } => {
            let passed = Passed::default();
            vec![bind_ahead(Text::new, workspace.as_deref(), &passed, condition).finish()]
        }
        Look::Past { workspace, passed } => {
            vec![bind_ahead(Text::new, workspace.as_deref(), passed, condition).finish()]
        }
        Look::Since(moment) => {
            let since = Text::new(&sql::queue_since(condition)).number(i64::from(SCHEMA_VERSION));
            vec![since.number(to_sql(*moment)).number(to_sql(MOST as u64)).finish()]
        }
        Look::Of(wanted) => {
            let of = |ids: &[RunId]| {
                let of = Text::new(&sql::queue_of(ids.len(), condition));
                let of = of.number(i64::from(SCHEMA_VERSION));
                bind_ids(of, ids, ids.len()).finish()
            };
            wanted.chunks(NAMED).map(of).collect()
        }
    }
}

/// Returns the time before which all stamped rows are visible.
fn settled(now: &[PgRow], in_flight: &[PgRow]) -> u64 {
    let Some(Ok(now)) = now.first().map(|row| row.integer(0)) else { return 0 };
    let begun = in_flight.iter().filter_map(|row| row.integer(0).ok());
    let earliest = begun.map(|begun| unwrapped(begun, now)).fold(now, i64::min);
    u64::try_from(earliest).unwrap_or(0)
}

/// Returns the time near `now` that equals `begun` modulo [`pg::WRAP`].
fn unwrapped(begun: i64, now: i64) -> i64 {
    let ago = (now - begun).rem_euclid(pg::WRAP);
    // A transaction that began after `now` was read stamps nothing earlier.
    if ago > pg::WRAP / 2 { now } else { now - ago }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_is_found_beside_the_present() {
        const NOW: i64 = 1_800_000_000_123;
        for (ago, expected) in [(0, 0), (1, 1), (60_000, 60_000), (-1, 0), (-5_000, 0)] {
            let begun = (NOW - ago).rem_euclid(pg::WRAP);
            assert_eq!(NOW - unwrapped(begun, NOW), expected, "{ago}");
        }
    }
}
