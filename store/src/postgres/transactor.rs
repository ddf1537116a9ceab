//! The writing connection. A transaction locks rows and decides in memory ([`crate::transaction`]).
//!
//! Several processes write at once. A transaction first locks all rows that a decision depends on,
//! always in the same order: rows of workers, then rows of runs, each by id. It caches nothing for
//! the next transaction.

mod claim;
mod dead;
mod deliver;
mod staged;

use super::link::{DatabaseName, Link, Replies, Trouble};
use super::message::{Message, Text};
use super::statements::{self as pg, Begin};
use crate::StoreError;
use crate::clock::Clock;
use crate::engine::Introduction;
use crate::engine::{
    Answers, Bind, Cells, Lease, Work, bind_call, bind_delivery, bind_event, bind_head,
    bind_moving, bind_run, run_row, to_sql,
};
use crate::row::{Columns, RunRow};
use crate::sql;
use crate::stage::EVENTS_AT_ONCE;
use crate::transaction::{Changes, Loading, Rows, Stamp};
use posse_protocol::{RunId, Seq, WorkerId};
use sqlx::postgres::PgRow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long to retry when the server cannot be reached, or when other transactions conflict.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to retry a group after a conflict. Then each request is tried alone.
const TRIES: u32 = 6;
/// The most rows of one statement.
const ROWS: usize = 256;

/// This worker and its lease.
pub(super) struct Presence {
    pub(super) worker: WorkerId,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) lease: Duration,
    pub(super) held: Lease,
    pub(super) introduction: Introduction,
}

impl Presence {
    /// The number of the lease, from memory: see [`crate::Claims::lease`].
    pub(super) fn lease_number(&self) -> Option<u64> {
        self.held.number(self.clock.steady_ms())
    }

    /// The condition for the runs that this worker takes.
    pub(super) fn condition(&self) -> Arc<str> {
        self.introduction.condition()
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX / 4)
    }
}

pub(super) struct Transactor {
    link: Link,
    begin: Arc<Begin>,
    presence: Arc<Presence>,
    /// True if this worker has a row, unless others have removed it as dead since.
    registered: bool,
    /// The number of the last transaction with changes, committed or not.
    number: i64,
}

/// The result of a transaction.
#[derive(Default)]
pub(super) struct Done {
    pub(super) answers: Answers,
    /// The last positions of the changed logs.
    pub(super) tails: Vec<(RunId, Seq)>,
    /// True if a run may have become claimable.
    pub(super) freed: bool,
}

/// Why a transaction changed nothing.
pub(super) enum Failure {
    /// No request caused it.
    Everyone(StoreError),
    /// One of the requests may have caused it. Try each alone.
    Someone(StoreError),
}

/// How a transaction ended.
enum End {
    /// It was committed.
    Stored,
    /// It was rolled back.
    Undone,
}

/// A limit for retries.
struct Patience {
    until: Instant,
    tries: u32,
}

impl Patience {
    fn new() -> Self {
        Patience { until: Instant::now() + PATIENCE, tries: 0 }
    }

    /// Waits for a random time, longer with each call. Returns false when the limit is reached.
    async fn wait(&mut self) -> bool {
        self.tries += 1;
        if Instant::now() >= self.until {
            return false;
        }
        // The nanoseconds serve as a random number: a second conflict becomes unlikely.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let chance = now.map_or(0, |now| now.subsec_nanos() / 64);
        let most_us = 1_000_u64 << self.tries.min(8);
        sleep(Duration::from_micros(500 + u64::from(chance) % most_us)).await;
        true
    }
}

impl Transactor {
    pub(super) fn new(link: Link, begin: Arc<Begin>, presence: Arc<Presence>) -> Self {
        Transactor { link, begin, presence, registered: false, number: 0 }
    }

    fn place(&self) -> &DatabaseName {
        self.link.place()
    }

    /// Performs the appends, erasures, damage marks and renewals in `work`, each request as if it
    /// were alone, or nothing.
    pub(super) async fn transact(&mut self, work: &Work) -> Result<Done, Failure> {
        let mut patience = Patience::new();
        loop {
            match self.attempt(work).await {
                Ok(done) => return Ok(done),
                Err(Trouble::Refused(error)) => return Err(Failure::Someone(error)),
                Err(Trouble::Again(reason)) => {
                    let together = work.len() > 1 && patience.tries >= TRIES;
                    if together || !patience.wait().await {
                        return Err(Failure::Someone(self.place().unusable(reason)));
                    }
                }
                Err(Trouble::Lost(reason)) => {
                    if !patience.wait().await {
                        return Err(Failure::Everyone(self.place().unusable(reason)));
                    }
                }
            }
        }
    }

    /// Returns the result of an attempt, or `None` to try again.
    async fn judge<T>(
        &self,
        tried: Result<T, Trouble>,
        patience: &mut Patience,
    ) -> Result<Option<T>, StoreError> {
        match tried {
            Ok(done) => Ok(Some(done)),
            Err(Trouble::Refused(error)) => Err(error),
            Err(Trouble::Again(reason) | Trouble::Lost(reason)) => match patience.wait().await {
                true => Ok(None),
                false => Err(self.place().unusable(reason)),
            },
        }
    }

    async fn attempt(&mut self, work: &Work) -> Result<Done, Trouble> {
        let mut loading = loading(work);
        let mut rows = Rows::new();
        let mut wanted = loading.next(&rows);
        wanted.extend(work.damages.iter().map(|it| it.0));
        let is_alone = wanted.is_empty();
        let mut begin = Message::default();
        let renewal = self.begin_writing(&mut begin, !work.renewals.is_empty());
        let locked = lock(&mut begin, &wanted);
        let keys = ask_for_keys(&mut begin, &loading);
        let staged = staged::ask(&mut begin, work, self.presence.worker);
        let stamp = begin.say(pg::NOW_AND_WHO);
        if is_alone {
            begin.say("COMMIT");
        }
        let replies = self.link.send(begin).await?;
        fail::fail_point!("store.begin.after");
        let (at, transaction) = self.stamp(&replies, stamp)?;
        let mut end = Message::default();
        let renewal = self.return_to_life(&replies, renewal, &mut end);
        // A renewal of the lease is one message.
        if is_alone {
            self.renewed(&renewal);
            return Ok(Done::default());
        }
        take(&mut rows, &replies, &locked);
        // The locked rows include the accounts above. Load rows that were added in between.
        loop {
            let more = loading.next(&rows);
            if more.is_empty() {
                break;
            }
            let mut message = Message::default();
            let locked = lock(&mut message, &more);
            let replies = self.link.send(message).await?;
            take(&mut rows, &replies, &locked);
        }
        let mut changes = Changes::default();
        know_keys(&mut changes, &replies, &keys);
        staged.know(&mut changes, &replies);
        let stamp = Stamp { worker: self.presence.worker, at };
        let done = decide(work, changes, rows, stamp, &mut end);
        self.finish(end, &transaction).await?;
        self.renewed(&renewal);
        Ok(done)
    }

    /// Begins a writing transaction. Writes the row of this worker if needed, or to renew the
    /// lease.
    fn begin_writing(&mut self, message: &mut Message, renews: bool) -> Renewal {
        message.begin(&self.begin.writing, Begin::WRITING);
        let begun = Text::new(&pg::begun()).text(self.presence.worker.to_string());
        let at = message.add(begun);
        if renews || !self.registered {
            return self.save_worker(message);
        }
        Renewal::Known { at }
    }

    fn save_worker(&self, message: &mut Message) -> Renewal {
        // Read the clock before sending, so that the lease holds a little longer for others than
        // for this worker.
        let until = self.presence.clock.steady_ms() + self.presence.lease.as_millis() as u64;
        let save = Text::new(pg::WORKER_SAVE)
            .text(self.presence.worker.to_string())
            .number(self.presence.lease_ms())
            .text(self.presence.introduction.text());
        Renewal::Sent { until, at: message.add(save) }
    }

    /// If others have removed this worker as dead, writes its row again in this transaction.
    fn return_to_life(
        &mut self,
        replies: &Replies,
        renewal: Renewal,
        message: &mut Message,
    ) -> Renewal {
        match renewal {
            Renewal::Known { at } if !is_one(replies.rows(at)) => {
                self.presence.held.lost();
                self.save_worker(message)
            }
            // A new row means that others had removed this worker.
            Renewal::Sent { at, .. } if self.registered => {
                if is_one(replies.rows(at)) {
                    self.presence.held.lost();
                }
                renewal
            }
            renewal => renewal,
        }
    }

    /// Records that the row of this worker is stored.
    fn renewed(&mut self, renewal: &Renewal) {
        self.registered = true;
        if let Renewal::Sent { until, .. } = renewal {
            self.presence.held.renewed(self.presence.clock.steady_ms(), *until);
        }
    }

    fn stamp(&self, replies: &Replies, at: usize) -> Result<(u64, String), Trouble> {
        let row = replies.rows(at).first().ok_or(sqlx::Error::RowNotFound);
        let read = row.and_then(|row| Ok((crate::engine::number(row, 0)?, row.text(1)?)));
        read.map_err(|error| self.place().strange(&error))
    }

    /// Sends the rest of a transaction and commits it. If the answer is lost, finds out the result.
    async fn finish(&mut self, mut end: Message, transaction: &str) -> Result<(), Trouble> {
        if end.statements() == 0 {
            end.say("COMMIT");
            return self.link.send(end).await.map(|_| ());
        }
        self.number += 1;
        let worker = self.presence.worker.to_string();
        end.add(Text::new(pg::MARK).text(worker).number(self.number));
        end.say("COMMIT");
        fail::fail_point!("store.commit.before");
        let sent = self.link.send(end).await;
        fail::fail_point!("store.commit.after");
        let lost = match sent {
            Ok(_) => return Ok(()),
            Err(Trouble::Lost(reason)) => reason,
            Err(trouble) => return Err(trouble),
        };
        match self.became(transaction).await? {
            End::Stored => Ok(()),
            End::Undone => Err(Trouble::Lost(lost)),
        }
    }

    /// Returns how the last transaction ended, after its answer was lost. When it is no longer in
    /// progress, it was committed if its number is stored.
    async fn became(&mut self, transaction: &str) -> Result<End, Trouble> {
        let mut patience = Patience::new();
        let mut last = "its end is not known".to_owned();
        loop {
            let mut ask = Message::default();
            ask.begin(&self.begin.writing, Begin::WRITING);
            // In this order: if the transaction has ended now, the next statement sees its result.
            let under_way = ask.add(Text::new(pg::UNDER_WAY).text(transaction.to_owned()));
            let marked = Text::new(pg::MARKED).text(self.presence.worker.to_string());
            let marked = ask.add(marked);
            ask.say("COMMIT");
            match self.link.send(ask).await {
                Ok(replies) => {
                    let status = replies.rows(under_way).first();
                    let status = status.and_then(|row| row.maybe_text(0).ok().flatten());
                    // The server may take a while to notice the lost connection.
                    if status.as_deref() != Some("in progress") {
                        let number = replies.rows(marked).first();
                        let number = number.and_then(|row| row.integer(0).ok());
                        let is_stored = number == Some(self.number);
                        return Ok(if is_stored { End::Stored } else { End::Undone });
                    }
                }
                Err(Trouble::Lost(reason) | Trouble::Again(reason)) => last = reason,
                Err(refused) => return Err(refused),
            }
            if !patience.wait().await {
                let reason = format!(
                    "the connection broke while something was stored, and whether it was is not \
                     known: {last}"
                );
                return Err(Trouble::Refused(self.place().unusable(reason)));
            }
        }
    }

    pub(super) async fn close(self) {
        self.link.close().await;
    }
}

fn is_one(rows: &[PgRow]) -> bool {
    rows.first().is_some_and(|row| row.integer(0).is_ok_and(|number| number == 1))
}

/// How a transaction makes sure that this worker has a row.
enum Renewal {
    /// It wrote the row, with a lease until then.
    Sent { until: u64, at: usize },
    /// It checked the row.
    Known { at: usize },
}

/// Decides on all requests, and adds the statements that write the changes.
fn decide(
    work: &Work,
    mut changes: Changes,
    mut rows: Rows,
    stamp: Stamp,
    end: &mut Message,
) -> Done {
    let stored: HashSet<RunId> = rows.keys().copied().collect();
    let mut done = Done::default();
    for (run, reason, _) in &work.damages {
        end.add(Text::new(sql::MARK_DAMAGED).text(reason.clone()).text(run.to_string()));
        // A later append in the same transaction must see the damage.
        if let Some(row) = rows.get_mut(run) {
            row.log.damaged = Some(reason.clone());
        }
    }
    for (run, last, _) in &work.erasures {
        let erased = changes.erase(&mut rows, *run, *last);
        if erased.is_ok() {
            end.add(match last.0 > EVENTS_AT_ONCE {
                true => {
                    Text::new(sql::stage::LOG_HIDE).text(run.to_string()).number(to_sql(last.0))
                }
                false => Text::new(sql::ERASE).text(run.to_string()),
            });
            end.add(Text::new(sql::stage::BUNDLE_RETIRE).text(run.to_string()));
        }
        done.answers.erased.push(erased);
    }
    for (tree, _) in &work.trees {
        done.answers.brought.push(changes.bring(&mut rows, tree));
    }
    for (batch, _) in &work.appends {
        done.answers.appended.push(changes.admit(&mut rows, batch, stamp));
    }
    let tail = |run: &RunId| rows.get(run).map(|row| (*run, row.log.last_seq));
    done.tails = changes.rows.keys().filter_map(tail).collect();
    done.freed = changes.freed;
    write(end, &mut changes, &rows, &stored);
    done
}

fn loading(work: &Work) -> Loading {
    let drafts = work.appends.iter().flat_map(|(batch, _)| batch);
    let mut loading = Loading::of(drafts, work.erasures.iter().map(|it| it.0));
    let copies = work.trees.iter().flat_map(|(tree, _)| tree);
    copies.for_each(|copy| loading.add_copy(copy));
    loading
}

/// Looks up the keys of new runs.
fn ask_for_keys(message: &mut Message, loading: &Loading) -> Vec<usize> {
    let keys: Vec<&String> = loading.keys().iter().collect();
    let mut asked = Vec::new();
    for keys in keys.chunks(ROWS) {
        let ask = Text::new(&sql::runs_by_key(keys.len()));
        asked.push(message.add(keys.iter().fold(ask, |ask, key| ask.text((*key).clone()))));
    }
    asked
}

fn know_keys(changes: &mut Changes, replies: &Replies, asked: &[usize]) {
    for row in asked.iter().flat_map(|at| replies.rows(*at)) {
        let (Ok(key), Ok(run)) = (row.text(0), row.text(1)) else { continue };
        if let Ok(run) = run.parse() {
            changes.know_key(key, run);
        }
    }
}

/// Locks runs and the accounts above them, in one statement: several would change the order.
fn lock(message: &mut Message, runs: &BTreeSet<RunId>) -> Option<usize> {
    if runs.is_empty() {
        return None;
    }
    let lock = Text::new(&pg::lock_runs(runs.len()));
    Some(message.add(runs.iter().fold(lock, |lock, run| lock.text(run.to_string()))))
}

fn take(rows: &mut Rows, replies: &Replies, locked: &Option<usize>) {
    let found = locked.iter().flat_map(|at| replies.rows(*at)).filter_map(run_row);
    rows.extend(found.map(|row| (row.id, Box::new(row))));
}

/// Adds the statements that write the changes, each for many rows. `stored` are the existing runs.
fn write(message: &mut Message, changes: &mut Changes, rows: &Rows, stored: &HashSet<RunId>) {
    for events in chunks(std::mem::take(&mut changes.events)) {
        let insert = Text::new(&sql::insert_events(events.len()));
        message.add(events.into_iter().fold(insert, bind_event));
    }
    for calls in chunks(std::mem::take(&mut changes.calls)) {
        let insert = Text::new(&sql::insert_calls(calls.len()));
        message.add(calls.into_iter().fold(insert, bind_call));
    }
    let changed = std::mem::take(&mut changes.rows);
    let (mut new, mut all, mut moving): (Vec<&RunRow>, Vec<&RunRow>, Vec<&RunRow>) =
        Default::default();
    for (run, columns) in &changed {
        let Some(row) = rows.get(run) else { continue };
        match columns {
            _ if !stored.contains(run) => new.push(row),
            Columns::All => all.push(row),
            Columns::Moving => moving.push(row),
        }
    }
    for rows in new.chunks(ROWS) {
        let insert = Text::new(&sql::insert_runs(rows.len()));
        message.add(rows.iter().fold(insert, |insert, row| bind_run(insert, row)));
    }
    for rows in all.chunks(ROWS) {
        let change = Text::new(&sql::change_runs(rows.len()));
        message.add(rows.iter().fold(change, |change, row| bind_run(change, row)));
    }
    for rows in moving.chunks(ROWS) {
        let change = Text::new(&sql::save_runs(rows.len(), Columns::Moving));
        message.add(rows.iter().fold(change, |change, row| bind_moving(change, row)));
    }
    for delivery in std::mem::take(&mut changes.deliveries) {
        message.add(bind_delivery(Text::new(sql::DELIVERY_INSERT), delivery));
    }
    for run in std::mem::take(&mut changes.shown) {
        message.add(Text::new(sql::stage::LOG_SHOW).text(run.to_string()));
    }
    for (run, head) in std::mem::take(&mut changes.bundles) {
        message.add(Text::new(sql::stage::BUNDLE_RETIRE).text(run.to_string()));
        message.add(bind_head(Text::new(sql::stage::BUNDLE_SHOW), run, &head));
    }
}

fn chunks<T>(mut all: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    std::iter::from_fn(move || {
        let rest = all.split_off(all.len().min(ROWS));
        let chunk = std::mem::replace(&mut all, rest);
        (!chunk.is_empty()).then_some(chunk)
    })
}
