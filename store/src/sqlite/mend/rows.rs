//! Rebuilds rows of runs and of the ledger from the logs.

use super::{Mended, most};
use crate::chain::StoredEvent;
use crate::chain::{self, Tail};
use crate::cost_check::CostCheck;
use crate::engine::{bind_call, bind_run, event_row, ledger_row, run_row};
use crate::projection::Projection;
use crate::row::Columns;
use crate::row::RunRow;
use crate::spending::ModelCall;
use crate::sql;
use crate::sqlite::text::bare;
use posse_protocol::{Amount, Record, RunId, Seq};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Error, Row};

/// Rebuilds all runs of the new database, in a transaction.
pub(super) async fn mend(new: &mut SqliteConnection, mended: &mut Mended) -> Result<(), Error> {
    // Events of hidden logs make no run: it has not arrived yet.
    let ids = "SELECT id FROM runs UNION SELECT DISTINCT run FROM events \
        WHERE run NOT IN (SELECT run FROM hidden_logs) ORDER BY 1";
    let ids = sqlx::query(ids).fetch_all(&mut *new).await?;
    // Other names do not belong to runs. `verify` reports them.
    let ids = ids.iter().filter_map(|row| row.try_get::<String, _>(0).ok()?.parse::<RunId>().ok());
    for id in ids.collect::<Vec<_>>() {
        match mend_run(new, id).await? {
            Found::Sound => {}
            Found::Mended => mended.runs += 1,
            Found::Damaged => mended.damaged += 1,
        }
    }
    Ok(())
}

enum Found {
    Sound,
    Mended,
    Damaged,
}

async fn mend_run(new: &mut SqliteConnection, id: RunId) -> Result<Found, Error> {
    let query = sqlx::query(AssertSqlSafe(bare(&sql::runs_by_id(1)))).bind(id.to_string());
    let row = query.fetch_optional(&mut *new).await?.as_ref().and_then(run_row);
    if row.as_ref().is_some_and(|row| row.log.erased) {
        return Ok(Found::Sound);
    }
    let events = sqlx::query(sql::EVENTS_FROM).bind(id.to_string()).bind(1_i64).bind(most());
    let events = events.fetch_all(&mut *new).await?;
    let events: Vec<Option<StoredEvent>> = events.iter().map(|row| event_row(id, row)).collect();
    let readable = row.filter(|row| !row.is_unreadable());
    let Some((log, tail)) = believed(id, readable.as_ref(), events) else {
        return Ok(Found::Damaged);
    };
    let mut projection = Projection::new(id);
    log.iter().for_each(|record| projection.apply(record));
    let is_sound = readable.as_ref().is_some_and(|row| {
        let end = (row.log.last_seq, &row.log.last_hash) == (tail.seq, &tail.hash);
        end && row.log.damaged.is_none() && projection.difference(row).is_none()
    });
    // The number of awaited results cannot be checked. The rebuilt run is runnable instead, so that
    // the next worker finds out.
    if !is_sound || readable.as_ref().is_some_and(|row| row.family.awaits > 0) {
        save(new, made_again(projection.into_row(), &tail, readable)).await?;
    }
    let is_counted = recount(new, id, &log).await?;
    Ok(if is_sound && is_counted { Found::Sound } else { Found::Mended })
}

/// Returns the log if all of it is valid. If the row names a later end with another hash, events
/// are missing. Otherwise a valid log counts more than a row that was changed.
fn believed(
    id: RunId,
    row: Option<&RunRow>,
    events: Vec<Option<StoredEvent>>,
) -> Option<(Vec<Record>, Tail)> {
    let last = events.last()?.as_ref()?;
    let versions = events.iter().flatten().map(|event| event.version);
    let (seq, hash) = (last.seq, last.hash.clone());
    let tail = Tail { seq, hash, version: versions.max().unwrap_or(0) };
    let is_cut =
        row.is_some_and(|row| row.log.last_seq > tail.seq && row.log.last_hash != tail.hash);
    if is_cut {
        return None;
    }
    let log = chain::check(id, Seq::ZERO, usize::MAX, &tail, events).ok()?;
    Some((log, tail))
}

/// Returns the row that follows from a log. Values that are not in the log come from the old row.
fn made_again(mut row: RunRow, tail: &Tail, before: Option<RunRow>) -> RunRow {
    (row.log.last_seq, row.log.last_hash) = (tail.seq, tail.hash.clone());
    row.log.version = tail.version;
    let has_ended = row.state.outcome.is_some() || row.state.archived;
    row.work.owner = None;
    match before {
        Some(before) => {
            row.about.workspace = before.about.workspace;
            (row.work.epoch, row.work.ready_at) = (before.work.epoch, before.work.ready_at);
            (row.funds.drawn, row.funds.held) = (before.funds.drawn, before.funds.held);
            row.work.runnable = before.work.runnable || before.family.awaits > 0;
        }
        None => {
            // It is unknown what other runs have drawn. Count what the run has spent itself.
            row.funds.drawn = row.funds.budget.as_ref().map(|_| Amount {
                input_tokens: row.spending.spent.input_tokens,
                output_tokens: row.spending.spent.output_tokens,
                cost: row.spending.spent.cost,
                turns: row.spending.turns,
                tool_calls: row.spending.tool_calls,
                children: 0,
            });
            row.work.runnable = true;
            row.work.ready_at = row.updated_at;
        }
    }
    row.family.awaits = 0;
    row.work.runnable &= !has_ended;
    row
}

async fn save(new: &mut SqliteConnection, mut row: RunRow) -> Result<(), Error> {
    // Delete first, because an upsert does not write columns that never change.
    let delete = sqlx::query("DELETE FROM runs WHERE id = ?").bind(row.id.to_string());
    delete.execute(&mut *new).await?;
    // A key belongs to one run: the first that has it. `verify` reports the other.
    let taken = sqlx::query("SELECT id FROM runs WHERE key = ?").bind(row.about.key.clone());
    if taken.fetch_optional(&mut *new).await?.is_some() {
        row.about.key = None;
    }
    let insert = sqlx::query(AssertSqlSafe(bare(&sql::save_runs(1, Columns::All))));
    bind_run(insert, &row).execute(new).await.map(|_| ())
}

/// Rebuilds the ledger rows of a run if they do not match its log. Returns false then.
async fn recount(new: &mut SqliteConnection, id: RunId, log: &[Record]) -> Result<bool, Error> {
    let calls = sqlx::query(AssertSqlSafe(bare(&sql::calls_of_a_run()))).bind(id.to_string());
    let calls: Vec<SqliteRow> = calls.fetch_all(&mut *new).await?;
    let mut reckoning = CostCheck::new(id, calls.iter().map(ledger_row).collect());
    log.iter().for_each(|record| reckoning.apply(record));
    if reckoning.fault(Seq(u64::MAX)).is_none() {
        return Ok(true);
    }
    let delete = sqlx::query("DELETE FROM model_calls WHERE run = ?").bind(id.to_string());
    delete.execute(&mut *new).await?;
    let mut run = RunRow::new(id, 0);
    for record in log {
        if let Some(call) = ModelCall::settled(&run, &record.event, record.seq, record.at) {
            let insert = sqlx::query(AssertSqlSafe(bare(&sql::insert_calls(1))));
            bind_call(insert, call).execute(&mut *new).await?;
        }
        run.updated_at = record.at;
        run.project(&record.event, record.at);
    }
    Ok(false)
}
