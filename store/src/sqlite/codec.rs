//! Rows of the tables, to and from our types.

use super::presence::WorkerRow;
use crate::chain::{StoredEvent, Tail};
use crate::queue::Queued;
use crate::row::{
    OpenCall, RunAbout, RunFamily, RunFunds, RunLog, RunRow, RunSpending, RunState, RunWork, Spent,
    deaths_in_a_row,
};
use crate::spending::{LedgerRow, ModelCall, Spending, purpose_word};
use crate::sql::Kind;
use posse_protocol::{Amount, Cleanup, Purpose, RunId, Seq, Status, Usage, Usd};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteRow};
use sqlx::{Error, Row};

pub(super) type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

pub(super) fn bind_run<'q>(query: Statement<'q>, row: &RunRow) -> Statement<'q> {
    let query = query
        .bind(row.id.to_string())
        .bind(row.about.agent.clone())
        .bind(row.about.model.clone())
        .bind(row.about.title.clone())
        .bind(row.about.workspace.clone())
        .bind(i64::from(row.about.session))
        .bind(row.about.key.clone())
        .bind(to_sql(row.created_at));
    let query = bind_tail(query, row)
        .bind(i64::from(row.log.version))
        .bind(to_sql(row.work.epoch))
        .bind(row.work.owner.map(|owner| owner.to_string()))
        .bind(i64::from(row.work.runnable))
        .bind(to_sql(row.work.ready_at))
        .bind(row.state.outcome.clone())
        .bind(row.state.note.clone())
        .bind(i64::from(row.state.archived));
    let query = bind_spent(query, row)
        .bind(row.log.damaged.clone())
        .bind(row.family.parent.map(|run| run.to_string()))
        .bind(row.family.root.to_string())
        .bind(i64::from(row.family.depth))
        .bind(i64::from(row.state.stopping))
        .bind(i64::from(row.family.awaits))
        .bind(row.about.label.clone())
        .bind(i64::from(row.work.priority))
        .bind(i64::from(row.family.background))
        .bind(i64::from(row.family.expects))
        .bind(i64::from(row.family.gathers))
        .bind(to_sql(row.family.gathered_at))
        // 1 for a pause that was asked for, 2 for an interruption. An older build takes either for
        // a pause.
        .bind(i64::from(row.state.paused) + i64::from(row.state.interrupted))
        .bind(to_sql(row.state.finished_at))
        .bind(if row.state.cleanup.is_keep() { "keep" } else { "delete" })
        .bind(i64::from(row.log.erased))
        .bind(row.funds.account.map(|run| run.to_string()))
        .bind(row.funds.budget.as_ref().map(written))
        .bind(drawn(row));
    let query = bind_calling(query, row)
        .bind(i64::from(row.state.asks))
        .bind(row.work.abreast.map(i64::from))
        .bind(row.state.archive_after_ms.map(to_sql));
    let query = bind_uncertain(query, row);
    query.bind(i64::from(row.work.deaths)).bind(to_sql(row.work.calls_at_death))
}

/// The id, and what moves with every step.
pub(super) fn bind_moving<'q>(query: Statement<'q>, row: &RunRow) -> Statement<'q> {
    let query = bind_tail(query.bind(row.id.to_string()), row);
    bind_uncertain(bind_calling(bind_spent(query, row).bind(drawn(row)), row), row)
}

/// Where its log ends.
fn bind_tail<'q>(query: Statement<'q>, row: &RunRow) -> Statement<'q> {
    query
        .bind(to_sql(row.updated_at))
        .bind(to_sql(row.log.last_seq.0))
        .bind(row.log.last_hash.clone())
}

/// What it has taken so far, and what may come to that.
fn bind_spent<'q>(query: Statement<'q>, row: &RunRow) -> Statement<'q> {
    query
        .bind(to_sql(row.spending.turns))
        .bind(to_sql(row.spending.tool_calls))
        .bind(to_sql(row.spending.spent.input_tokens))
        .bind(to_sql(row.spending.spent.output_tokens))
        .bind(to_sql(row.spending.spent.cost.0))
        .bind(to_sql(row.spending.reserved.input_tokens))
        .bind(to_sql(row.spending.reserved.output_tokens))
        .bind(to_sql(row.spending.reserved.cost.0))
}

/// What of it is not known to have been spent.
fn bind_uncertain<'q>(query: Statement<'q>, row: &RunRow) -> Statement<'q> {
    query
        .bind(to_sql(row.spending.uncertain.input_tokens))
        .bind(to_sql(row.spending.uncertain.output_tokens))
        .bind(to_sql(row.spending.uncertain.cost.0))
        .bind(to_sql(row.spending.cut_calls))
}

/// The model call that has no answer yet.
fn bind_calling<'q>(query: Statement<'q>, row: &RunRow) -> Statement<'q> {
    let purpose = row.spending.calling.as_ref().map_or(Purpose::Turn, |call| call.purpose);
    query
        .bind(row.spending.calling.as_ref().map(|call| call.model.clone()))
        .bind(purpose_word(purpose))
}

/// What stands in the column `drawn`.
fn drawn(row: &RunRow) -> Option<String> {
    row.funds.drawn.map(|drawn| {
        let check = Some(check(row.id, &drawn, &row.funds.held));
        written(&Account { drawn, held: row.funds.held, check })
    })
}

pub(super) fn bind_call(query: Statement<'_>, call: ModelCall) -> Statement<'_> {
    query
        .bind(call.run.to_string())
        .bind(to_sql(call.seq.0))
        .bind(to_sql(call.at))
        .bind(call.root.to_string())
        .bind(call.agent)
        .bind(call.model)
        .bind(call.label)
        .bind(purpose_word(call.purpose))
        .bind(call.ending)
        .bind(1_i64)
        .bind(to_sql(call.usage.input_tokens))
        .bind(to_sql(call.usage.cache_read_tokens))
        .bind(to_sql(call.usage.cache_write_tokens))
        .bind(to_sql(call.usage.output_tokens))
        .bind(to_sql(call.usage.reasoning_tokens))
        .bind(to_sql(call.usage.cost.0))
        .bind(to_sql(call.uncertain.input_tokens))
        .bind(to_sql(call.uncertain.output_tokens))
        .bind(to_sql(call.uncertain.cost.0))
}

pub(super) fn bind_event(query: Statement<'_>, event: StoredEvent) -> Statement<'_> {
    query
        .bind(event.run.to_string())
        .bind(to_sql(event.seq.0))
        .bind(to_sql(event.at))
        .bind(i64::from(event.version))
        .bind(event.body)
        .bind(event.hash)
}

/// What stands in the column `drawn`.
#[derive(Default, Deserialize, Serialize)]
struct Account {
    #[serde(flatten)]
    drawn: Amount,
    #[serde(default)]
    held: Amount,
    /// A hash over the others: they follow from the logs of many runs, so that no log alone can tell
    /// whether they were changed. Rows of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<String>,
}

fn check(run: RunId, drawn: &Amount, held: &Amount) -> String {
    let hash = Sha256::digest(format!("{run} {} {}", written(drawn), written(held)));
    posse_protocol::hex(&hash[..8])
}

fn account(run: RunId, text: &str) -> Result<Account, Error> {
    let account: Account = read(text)?;
    match &account.check {
        Some(found) if *found != check(run, &account.drawn, &account.held) => {
            Err(Error::Decode("what was drawn of its budget was changed".into()))
        }
        _ => Ok(account),
    }
}

/// A value as JSON, which the engine never looks into.
fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Decode(Box::new(error)))
}

/// Leaves `rows` rows of such columns empty.
pub(super) fn bind_nothing<'q>(
    mut query: Statement<'q>,
    kinds: &[Kind],
    rows: usize,
) -> Statement<'q> {
    for kind in (0..rows).flat_map(|_| kinds) {
        query = match kind {
            Kind::Text => query.bind(None::<String>),
            Kind::Number => query.bind(None::<i64>),
        };
    }
    query
}

/// The engine's numbers have a sign. What is larger than they hold is a count gone mad.
pub(super) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn number(row: &SqliteRow, index: usize) -> Result<u64, Error> {
    let number: i64 = row.try_get(index)?;
    u64::try_from(number).map_err(|error| Error::Decode(Box::new(error)))
}

fn maybe_number(row: &SqliteRow, index: usize) -> Result<Option<u64>, Error> {
    let number: Option<i64> = row.try_get(index)?;
    let unsigned = number.map(u64::try_from).transpose();
    unsigned.map_err(|error| Error::Decode(Box::new(error)))
}

pub(super) fn small(row: &SqliteRow, index: usize) -> Result<u32, Error> {
    u32::try_from(number(row, index)?).map_err(|error| Error::Decode(Box::new(error)))
}

/// A run. A row that has an id and is otherwise unreadable is a damaged run, so that one bad row
/// does not hide the others.
pub(super) fn run_row(row: &SqliteRow) -> Option<RunRow> {
    let id: RunId = row.try_get::<String, _>(0).ok()?.parse().ok()?;
    Some(decode_run(id, row).unwrap_or_else(|error| RunRow::unreadable(id, &error.to_string())))
}

/// A run that waits. One whose row is otherwise unreadable waits by itself, until the claim that
/// reads all of it finds out.
pub(super) fn queued_row(row: &SqliteRow) -> Option<Queued> {
    let id: RunId = row.try_get::<String, _>(0).ok()?.parse().ok()?;
    let text = |index: usize| row.try_get::<String, _>(index).unwrap_or_default();
    Some(Queued {
        id,
        root: text(1).parse().unwrap_or(id),
        parent: text(2).parse().ok(),
        agent: text(3),
        model: text(4),
        workspace: text(5),
        priority: i32::try_from(row.try_get::<i64, _>(6).unwrap_or(0)).unwrap_or(0),
        ready_at: number(row, 7).unwrap_or(0),
        abreast: maybe_number(row, 8).ok().flatten().and_then(|most| u32::try_from(most).ok()),
        deaths: deaths_in_a_row(
            small(row, 9).unwrap_or(0),
            number(row, 10).unwrap_or(0),
            number(row, 11).unwrap_or(0),
        ),
    })
}

fn decode_run(id: RunId, row: &SqliteRow) -> Result<RunRow, Error> {
    let number = |index: usize| number(row, index);
    let text = |index: usize| row.try_get::<String, _>(index);
    let maybe = |index: usize| row.try_get::<Option<String>, _>(index);
    let parse_error = |error: posse_protocol::InvalidRunId| Error::Decode(Box::new(error));
    let spent = |at: usize| -> Result<Spent, Error> {
        Ok(Spent {
            input_tokens: number(at)?,
            output_tokens: number(at + 1)?,
            cost: Usd(number(at + 2)?),
        })
    };
    let account = maybe(45)?.map(|text| account(id, &text)).transpose()?;
    Ok(RunRow {
        id,
        created_at: number(7)?,
        updated_at: number(8)?,
        about: RunAbout {
            agent: text(1)?,
            model: text(2)?,
            title: text(3)?,
            label: text(33)?,
            workspace: text(4)?,
            session: number(5)? != 0,
            key: maybe(6)?,
        },
        log: RunLog {
            last_seq: Seq(number(9)?),
            last_hash: text(10)?,
            version: small(row, 11)?,
            damaged: maybe(27)?,
            erased: number(42)? != 0,
        },
        work: RunWork {
            epoch: number(12)?,
            owner: maybe(13)?.map(|owner| owner.parse()).transpose().map_err(parse_error)?,
            runnable: number(14)? != 0,
            ready_at: number(15)?,
            priority: row.try_get(34)?,
            abreast: maybe_number(row, 49)?.and_then(|most| u32::try_from(most).ok()),
            deaths: small(row, 55)?,
            calls_at_death: number(56)?,
        },
        family: RunFamily {
            parent: maybe(28)?.map(|run| run.parse()).transpose().map_err(parse_error)?,
            root: text(29)?.parse().map_err(parse_error)?,
            depth: small(row, 30)?,
            background: number(35)? != 0,
            awaits: small(row, 32)?,
            expects: small(row, 36)?,
            gathers: small(row, 37)?,
            gathered_at: number(38)?,
        },
        state: RunState {
            outcome: maybe(16)?,
            note: text(17)?,
            asks: small(row, 48)?,
            stopping: number(31)? != 0,
            paused: number(39)? != 0,
            interrupted: number(39)? == 2,
            finished_at: number(40)?,
            archived: number(18)? != 0,
            cleanup: if text(41)? == "delete" { Cleanup::Delete } else { Cleanup::Keep },
            archive_after_ms: maybe_number(row, 50)?,
        },
        spending: RunSpending {
            turns: number(19)?,
            tool_calls: number(20)?,
            spent: spent(21)?,
            uncertain: spent(51)?,
            cut_calls: number(54)?,
            reserved: spent(24)?,
            calling: match (maybe(46)?, text(47)?.as_str()) {
                (None, _) => None,
                (Some(model), "compaction") => {
                    Some(OpenCall { model, purpose: Purpose::Compaction })
                }
                (Some(model), "turn") => Some(OpenCall { model, purpose: Purpose::Turn }),
                (Some(_), other) => {
                    return Err(Error::Decode(format!("a call is for `{other}`").into()));
                }
            },
        },
        funds: RunFunds {
            account: maybe(43)?.map(|run| run.parse()).transpose().map_err(parse_error)?,
            budget: maybe(44)?.map(|text| read(&text)).transpose()?,
            drawn: account.as_ref().map(|account| account.drawn),
            held: account.unwrap_or_default().held,
        },
        status: Status::Queued,
    })
}

/// An event of `run`; nothing if its columns do not hold what they should.
pub(super) fn event_row(run: RunId, row: &SqliteRow) -> Option<StoredEvent> {
    let decode = || -> Result<StoredEvent, Error> {
        Ok(StoredEvent {
            run,
            seq: Seq(number(row, 0)?),
            at: number(row, 1)?,
            version: small(row, 2)?,
            body: row.try_get::<String, _>(3)?.into(),
            hash: row.try_get(4)?,
        })
    };
    decode().ok()
}

/// Where a log ends, and whether it is known to be damaged.
pub(super) fn tail_row(row: &SqliteRow) -> Result<(Tail, Option<String>), Error> {
    let tail = Tail { seq: Seq(number(row, 0)?), hash: row.try_get(1)?, version: small(row, 2)? };
    Ok((tail, row.try_get(3)?))
}

/// Whether the log was removed.
pub(super) fn is_erased(row: &SqliteRow) -> bool {
    number(row, 4).is_ok_and(|erased| erased != 0)
}

/// A row of the ledger, whatever it holds.
pub(super) fn ledger_row(row: &SqliteRow) -> LedgerRow {
    let unreadable = |_| "unreadable".to_owned();
    LedgerRow(std::array::from_fn(|index| row.try_get(index).unwrap_or_else(unreadable)))
}

/// A sum of model calls.
pub(super) fn spending_row(row: &SqliteRow) -> Result<Spending, Error> {
    Ok(Spending {
        key: row.try_get(0)?,
        runs: number(row, 1)?,
        calls: number(row, 2)?,
        unanswered: number(row, 9)?,
        usage: Usage {
            input_tokens: number(row, 3)?,
            cache_read_tokens: number(row, 4)?,
            cache_write_tokens: number(row, 5)?,
            output_tokens: number(row, 6)?,
            reasoning_tokens: number(row, 7)?,
            cost: Usd(number(row, 8)?),
            ..Usage::default()
        },
        uncertain: Usage {
            input_tokens: number(row, 10)?,
            output_tokens: number(row, 11)?,
            cost: Usd(number(row, 12)?),
            ..Usage::default()
        },
    })
}

/// A worker. One whose lease cannot be read has none.
pub(super) fn worker_row(row: &SqliteRow) -> Option<WorkerRow> {
    let id: String = row.try_get(0).ok()?;
    Some(WorkerRow {
        id: id.parse().ok()?,
        boot: row.try_get(1).unwrap_or_default(),
        lease_until: number(row, 2).unwrap_or_default(),
    })
}
