//! Claims runs that no other transaction has locked.

use super::{Done, Patience, Transactor, write};
use crate::engine::{Bind, run_row};
use crate::postgres::link::{Replies, Trouble};
use crate::postgres::message::{Message, Text};
use crate::postgres::statements as pg;
use crate::row::RunRow;
use crate::sql::{self, Shape};
use crate::transaction::{Changes, Rows};
use crate::{StoreError, Wanted};
use posse_protocol::{SCHEMA_VERSION, WorkerId};
use std::collections::HashSet;

/// The most runs in one statement.
const NAMED: usize = 1_024;

impl Transactor {
    /// Claims runs for this worker, after it has released the runs of dead workers.
    pub(in crate::postgres) async fn claim(&mut self, wanted: &Wanted) -> Result<Done, StoreError> {
        let mut buried = false;
        let mut patience = Patience::new();
        loop {
            let tried = self.attempt_claim(wanted, buried).await;
            let Some(claimed) = self.judge(tried, &mut patience).await? else { continue };
            match claimed {
                Some(mut done) => {
                    done.freed |= buried;
                    return Ok(done);
                }
                None => {
                    self.bury().await?;
                    buried = true;
                }
            }
        }
    }

    /// Returns `None` if a worker has died, whose runs must be released first.
    async fn attempt_claim(
        &mut self,
        wanted: &Wanted,
        passes_over_the_dead: bool,
    ) -> Result<Option<Done>, Trouble> {
        let mut begin = Message::default();
        let renewal = self.begin_writing(&mut begin, false);
        let dead = begin.say(pg::DEAD);
        let claims = ask(&mut begin, wanted, self.presence.worker, &self.presence.condition());
        let stamp = begin.say(pg::NOW_AND_WHO);
        let replies = self.link.send(begin).await?;
        let (_, transaction) = self.stamp(&replies, stamp)?;
        let mut end = Message::default();
        if !passes_over_the_dead && !replies.rows(dead).is_empty() {
            end.say("ROLLBACK");
            self.link.send(end).await?;
            return Ok(None);
        }
        let renewal = self.return_to_life(&replies, renewal, &mut end);
        let done = self.take(found(&replies, &claims), wanted.limit, &mut end);
        self.finish(end, &transaction).await?;
        self.renewed(&renewal);
        Ok(Some(done))
    }

    fn take(&self, found: Vec<RunRow>, limit: usize, end: &mut Message) -> Done {
        let stored: HashSet<_> = found.iter().map(|row| row.id).collect();
        let (mut changes, mut rows) = (Changes::default(), Rows::new());
        let taken = changes.claim(&mut rows, found, limit, self.presence.worker);
        for (run, reason) in &taken.damaged {
            end.add(Text::new(sql::MARK_DAMAGED).text(reason.clone()).text(run.to_string()));
        }
        write(end, &mut changes, &rows, &stored);
        let mut done = Done::default();
        done.answers.claimed.push(taken.claimed);
        done
    }
}

/// Selects and locks runs that can be claimed.
fn ask(message: &mut Message, wanted: &Wanted, worker: WorkerId, condition: &str) -> Vec<usize> {
    let mut asked = Vec::new();
    let mut rest = wanted.runs.as_slice();
    loop {
        let (runs, later) = rest.split_at(rest.len().min(NAMED));
        let workspace = wanted.workspace.is_some();
        let again = wanted.again.then_some(worker);
        let shape = Shape { ids: runs.len(), workspace, only_to_stop: false, again };
        let claim = Text::new(&pg::claimable_locked(shape, condition));
        let mut claim = claim.number(i64::from(SCHEMA_VERSION));
        for run in runs {
            claim = claim.text(run.to_string());
        }
        if let Some(workspace) = &wanted.workspace {
            claim = claim.text(workspace.clone());
        }
        let limit = i64::try_from(wanted.limit).unwrap_or(i64::MAX);
        asked.push(message.add(claim.number(limit)));
        rest = later;
        if rest.is_empty() {
            return asked;
        }
    }
}

fn found(replies: &Replies, asked: &[usize]) -> Vec<RunRow> {
    asked.iter().flat_map(|at| replies.rows(*at)).filter_map(run_row).collect()
}
