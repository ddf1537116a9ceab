//! Reads, concurrently with the writer. Each query is one message on one of a few connections. Each
//! log that is read is checked against its hashes.

use super::contact::Contact;
use super::link::{DatabaseName, Replies, read};
use super::message::{Message, Text};
use super::statements::{self as pg, Begin};
use super::transactor::Presence;
use crate::engine::{
    Bind, Cells, FOUND, LIST, Request, as_they_stand, bind_leftovers, bind_selection,
    bind_spending, delivery_row, ending, event_row, follow, found, introduced, is_a_piece,
    is_erased, ledger_row, listing, name_days, number, spending_row, tail_row, to_sql,
};
use crate::{
    Delivery, DeliveryFilter, Filter, Flaw, LedgerRow, Leftovers, RunRow, Spending, SpendingQuery,
    StoreError, StoredEvent, Worker, chain, selection, sql,
};
use posse_protocol::{Record, RunId, Seq, WorkerId};
use sqlx::postgres::PgPool;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

pub(super) struct Reader {
    pub(super) pool: PgPool,
    pub(super) place: DatabaseName,
    pub(super) contact: Contact,
    pub(super) begin: Arc<Begin>,
    pub(super) presence: Arc<Presence>,
    /// To tell the writer about damage.
    pub(super) requests: mpsc::Sender<Request>,
    /// The value of the counter `freed` at the last query of the queue.
    pub(super) freed: AtomicI64,
    /// When this worker last kept what it has staged, in steady milliseconds.
    pub(super) kept_at: AtomicU64,
}

impl Reader {
    /// Executes `statements` in one snapshot. Their rows are in this order.
    pub(super) async fn ask(&self, statements: &[String]) -> Result<Asked, StoreError> {
        let message = || {
            let mut message = Message::default();
            message.begin(&self.begin.reading, Begin::READING);
            for statement in statements {
                message.say(statement);
            }
            message.say("COMMIT");
            message
        };
        read(&self.pool, &self.place, &self.contact, message).await.map(Asked)
    }

    pub(super) fn strange(&self, error: sqlx::Error) -> StoreError {
        self.place.unusable(error.to_string())
    }

    pub(super) async fn read(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let (result, known) = self.read_checked(run, after, limit).await?;
        if let (Err(StoreError::Damaged { reason, .. }), None) = (&result, known) {
            let (reply, marked) = oneshot::channel();
            let mark = Request::Damage { run, reason: reason.clone(), reply };
            // If the run cannot be marked now, the next read finds the damage again.
            if self.requests.send(mark).await.is_ok() {
                let _ = marked.await;
            }
        }
        result
    }

    /// Returns the events of the log, or its damage, and the damage that was known before.
    async fn read_checked(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<(Result<Vec<Record>, StoreError>, Option<String>), StoreError> {
        let tail = Text::new(sql::TAIL).text(run.to_string()).finish();
        // Read one event before the first wanted one, for its hash.
        let events = events(run, after.0.max(1), limit.saturating_add(1));
        let asked = self.ask(&[tail, events]).await?;
        let tail = asked.rows(0).first().ok_or(StoreError::NotFound(run))?;
        if is_erased(tail) {
            return Err(StoreError::Erased(run));
        }
        let (tail, known) = match tail_row(tail) {
            Ok(tail) => tail,
            Err(error) => {
                let reason = format!("its row cannot be read: {error}");
                return Ok((Err(StoreError::Damaged { run, seq: after.next(), reason }), None));
            }
        };
        let events = asked.rows(1).iter().map(|row| event_row(run, row));
        Ok((chain::check(run, after, limit, &tail, events), known))
    }

    /// Returns events as they are stored, and none of a hidden log.
    pub(super) async fn stored(
        &self,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Option<StoredEvent>>, StoreError> {
        let hidden = Text::new(sql::stage::LOG_HIDDEN).text(run.to_string()).finish();
        let asked = self.ask(&[hidden, events(run, after.next().0, limit)]).await?;
        if !asked.rows(0).is_empty() {
            return Ok(Vec::new());
        }
        Ok(asked.rows(1).iter().map(|row| event_row(run, row)).collect())
    }

    pub(super) async fn now(&self) -> Result<u64, StoreError> {
        let asked = self.ask(&[pg::NOW.to_owned()]).await?;
        let row = asked.rows(0).first().ok_or(sqlx::Error::RowNotFound);
        row.and_then(|row| number(row, 0)).map_err(|error| self.strange(error))
    }

    pub(super) async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        // The living workers matter only to a filter by status.
        let living: Vec<String> = match filter.status.is_empty() {
            true => Vec::new(),
            false => {
                let asked = self.ask(&[pg::LIVING.to_owned()]).await?;
                self.living(asked.rows(0)).iter().map(ToString::to_string).collect()
            }
        };
        let selected = bind_selection(Text::new, selection::select(filter, &living));
        let mut rows = self.standing(selected).await?;
        follow(&mut rows, filter);
        Ok(rows)
    }

    /// Returns the runs that `statement` selects, with their status.
    async fn standing(&self, statement: Text) -> Result<Vec<RunRow>, StoreError> {
        let asked = self.ask(&[statement.finish(), pg::LIVING.to_owned()]).await?;
        Ok(as_they_stand(asked.rows(0), &self.living(asked.rows(1))))
    }

    /// Returns the workers of `rows` and this one, which is alive.
    fn living(&self, rows: &[impl Cells]) -> HashSet<WorkerId> {
        let others = rows.iter().filter_map(|row| row.text(0).ok()?.parse().ok());
        others.chain([self.presence.worker]).collect()
    }

    /// Returns the living workers that have introduced themselves.
    pub(super) async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let asked = self.ask(&[pg::WORKERS.to_owned()]).await?;
        let lease = u64::try_from(self.presence.lease.as_millis()).unwrap_or(u64::MAX);
        let worker = |row: &_| {
            let (id, about) = (Cells::text(row, 0).ok()?, Cells::text(row, 1).ok()?);
            let left = number(row, 2).unwrap_or(0);
            let (id, silent_ms) = (id.parse().ok()?, lease.saturating_sub(left));
            Some(Worker { id, about: introduced(&about)?, silent_ms })
        };
        Ok(asked.rows(0).iter().filter_map(worker).collect())
    }

    /// Finds runs whose ids begin or end with `part`, or else have it near the end, newest first.
    pub(super) async fn find(&self, part: &str) -> Result<Vec<RunRow>, StoreError> {
        let Some(ending) = ending(part) else { return Ok(Vec::new()) };
        let begins = Text::new(&sql::runs_by_beginning());
        let begins = begins.text(part.to_owned()).text(format!("{part:z<26}")).number(FOUND);
        let ends = Text::new(&sql::runs_by_ending()).text(ending.to_owned()).number(FOUND);
        let asked = self.ask(&[begins.finish(), ends.finish(), pg::LIVING.to_owned()]).await?;
        let living = self.living(asked.rows(2));
        let (begin, end) =
            (as_they_stand(asked.rows(0), &living), as_they_stand(asked.rows(1), &living));
        let found = found(part, begin, end);
        if !found.is_empty() || !is_a_piece(part) {
            return Ok(found);
        }
        let holds = Text::new(&sql::runs_by_piece());
        self.standing(holds.text(format!("%{part}%")).number(FOUND)).await
    }

    /// Returns ended runs to archive, or whose logs to remove.
    pub(super) async fn leftovers(&self, wanted: Leftovers) -> Result<Vec<RunRow>, StoreError> {
        let long = u64::try_from(wanted.ended_for.as_millis()).unwrap_or(u64::MAX);
        let latest = self.now().await?.saturating_sub(long);
        let query = Text::new(&sql::leftovers(wanted.which));
        self.standing(bind_leftovers(query, latest, wanted.limit)).await
    }

    pub(super) async fn spending(
        &self,
        query: &SpendingQuery,
    ) -> Result<Vec<Spending>, StoreError> {
        let asked = self.ask(&[bind_spending(Text::new, query).finish()]).await?;
        let sums = asked.rows(0).iter().map(spending_row).collect::<Result<Vec<_>, _>>();
        let mut sums = sums.map_err(|error| self.strange(error))?;
        name_days(query.by, &mut sums);
        Ok(sums)
    }

    /// Returns the rows of `run` in the ledger.
    pub(super) async fn ledger(&self, run: RunId) -> Result<Vec<LedgerRow>, StoreError> {
        let calls = Text::new(&sql::calls_of_a_run()).text(run.to_string());
        let asked = self.ask(&[calls.finish()]).await?;
        Ok(asked.rows(0).iter().map(ledger_row).collect())
    }

    pub(super) async fn deliveries(
        &self,
        filter: &DeliveryFilter,
    ) -> Result<Vec<Delivery>, StoreError> {
        let limit = if filter.limit == 0 { LIST } else { filter.limit };
        let listed = listing(Text::new(&sql::deliveries(filter)), filter, limit);
        let asked = self.ask(&[listed.finish()]).await?;
        Ok(asked.rows(0).iter().map(delivery_row).collect())
    }

    pub(super) async fn next_due(&self, hook: &str) -> Result<Option<Duration>, StoreError> {
        let next = Text::new(sql::DELIVERY_NEXT).text(hook.to_owned());
        let asked = self.ask(&[next.finish(), pg::NOW.to_owned()]).await?;
        let next = asked.rows(0).first().and_then(|row| row.maybe_integer(0).ok().flatten());
        let now = asked.rows(1).first().and_then(|row| row.integer(0).ok());
        let wait = next.zip(now).map(|(next, now)| u64::try_from(next - now).unwrap_or(0));
        Ok(wait.map(Duration::from_millis))
    }

    /// Returns damage outside of the logs: changed deliveries, and deliveries about runs that do
    /// not exist, and bundles of such runs. The server takes care of its indexes.
    pub(super) async fn flaws(&self) -> Result<Vec<Flaw>, StoreError> {
        let all = DeliveryFilter::default();
        let listed = listing(Text::new(&sql::deliveries(&all)), &all, usize::MAX).finish();
        let of_nobody =
            [sql::DELIVERIES_OF_NOBODY, sql::stage::BUNDLES_OF_NOBODY].map(str::to_owned);
        let [deliveries, bundles] = of_nobody;
        let asked = self.ask(&[listed, deliveries, bundles]).await?;
        let told = |it: &Delivery, reason: &str| Flaw {
            run: Some(it.run).filter(|run| *run != RunId::from_u128(0)),
            reason: format!("the delivery {} to the webhook `{}`: {reason}", it.id, it.hook),
        };
        let changed = asked.rows(0).iter().map(delivery_row);
        let changed = changed.filter_map(|it| Some(told(&it, it.damaged.as_ref()?)));
        let lost = asked.rows(1).iter().map(delivery_row).filter(|it| it.damaged.is_none());
        let lost = lost.map(|it| told(&it, "the run that it tells of is not there"));
        let bundles = asked.rows(2).iter().filter_map(|row| row.text(0).ok());
        Ok(changed.chain(lost).chain(bundles.map(|run| Flaw::of_bundle(&run))).collect())
    }

    /// Returns the first column of a statement without values.
    pub(super) async fn names(&self, statement: &str) -> Result<Vec<String>, StoreError> {
        let asked = self.ask(&[statement.to_owned()]).await?;
        let names = asked.rows(0).iter().map(|row| row.text(0)).collect::<Result<_, _>>();
        names.map_err(|error| self.strange(error))
    }
}

/// The replies, without those of the statements that begin the transaction.
pub(super) struct Asked(Replies);

impl Asked {
    pub(super) fn rows(&self, statement: usize) -> &[sqlx::postgres::PgRow] {
        self.0.rows(Begin::READING + statement)
    }
}

fn events(run: RunId, from: u64, limit: usize) -> String {
    let events = Text::new(sql::EVENTS_FROM).text(run.to_string()).number(to_sql(from));
    events.number(to_sql(limit as u64)).finish()
}
