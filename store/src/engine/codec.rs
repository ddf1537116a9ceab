//! Converts rows of the tables to and from types.

use super::cells::{Bind, Cells, maybe_number, number, small, to_sql};
use crate::bundle::{BundleHead, BundleRow};
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
use sqlx::Error;

pub(crate) fn bind_run<B: Bind>(query: B, row: &RunRow) -> B {
    let query = query
        .text(row.id.to_string())
        .text(row.about.agent.clone())
        .text(row.about.model.clone())
        .text(row.about.title.clone())
        .text(row.about.workspace.clone())
        .number(i64::from(row.about.session))
        .text(row.about.key.clone())
        .number(to_sql(row.created_at));
    let query = bind_tail(query, row)
        .number(i64::from(row.log.version))
        .number(to_sql(row.work.epoch))
        .text(row.work.owner.map(|owner| owner.to_string()))
        .number(i64::from(row.work.runnable))
        .number(to_sql(row.work.ready_at))
        .text(row.state.outcome.clone())
        .text(row.state.note.clone())
        .number(i64::from(row.state.archived));
    let query = bind_spent(query, row)
        .text(row.log.damaged.clone())
        .text(row.family.parent.map(|run| run.to_string()))
        .text(row.family.root.to_string())
        .number(i64::from(row.family.depth))
        .number(i64::from(row.state.stopping))
        .number(i64::from(row.family.awaits))
        .text(row.about.label.clone())
        .number(i64::from(row.work.priority))
        .number(i64::from(row.family.background))
        .number(i64::from(row.family.expects))
        .number(i64::from(row.family.gathers))
        .number(to_sql(row.family.gathered_at))
        // 1 for a requested pause, 2 for an interruption.
        .number(i64::from(row.state.paused) + i64::from(row.state.interrupted))
        .number(to_sql(row.state.finished_at))
        .text(if row.state.cleanup.is_keep() { "keep" } else { "delete" })
        .number(i64::from(row.log.erased))
        .text(row.funds.account.map(|run| run.to_string()))
        .text(row.funds.budget.as_ref().map(written))
        .text(drawn(row));
    let query = bind_calling(query, row)
        .number(i64::from(row.state.asks))
        .number(row.work.abreast.map(i64::from))
        .number(row.state.archive_after_ms.map(to_sql));
    let query = bind_uncertain(query, row);
    query
        .number(i64::from(row.work.deaths))
        .number(to_sql(row.work.calls_at_death))
        .text(row.work.host.clone())
        .text(row.work.needs.clone())
}

/// Binds the id and the columns that change with every step.
pub(crate) fn bind_moving<B: Bind>(query: B, row: &RunRow) -> B {
    let query = bind_tail(query.text(row.id.to_string()), row);
    bind_calling(bind_spent(query, row).text(drawn(row)), row)
}

/// Binds the end of the log.
fn bind_tail<B: Bind>(query: B, row: &RunRow) -> B {
    query
        .number(to_sql(row.updated_at))
        .number(to_sql(row.log.last_seq.0))
        .text(row.log.last_hash.clone())
}

/// Binds what the run has spent and reserved.
fn bind_spent<B: Bind>(query: B, row: &RunRow) -> B {
    query
        .number(to_sql(row.spending.turns))
        .number(to_sql(row.spending.tool_calls))
        .number(to_sql(row.spending.spent.input_tokens))
        .number(to_sql(row.spending.spent.output_tokens))
        .number(to_sql(row.spending.spent.cost.0))
        .number(to_sql(row.spending.reserved.input_tokens))
        .number(to_sql(row.spending.reserved.output_tokens))
        .number(to_sql(row.spending.reserved.cost.0))
}

/// Binds the uncertain part of the spending.
fn bind_uncertain<B: Bind>(query: B, row: &RunRow) -> B {
    query
        .number(to_sql(row.spending.uncertain.input_tokens))
        .number(to_sql(row.spending.uncertain.output_tokens))
        .number(to_sql(row.spending.uncertain.cost.0))
        .number(to_sql(row.spending.cut_calls))
}

/// Binds the open model call.
fn bind_calling<B: Bind>(query: B, row: &RunRow) -> B {
    let purpose = row.spending.calling.as_ref().map_or(Purpose::Turn, |call| call.purpose);
    query
        .text(row.spending.calling.as_ref().map(|call| call.model.clone()))
        .text(purpose_word(purpose))
}

/// Returns the value of the column `drawn`.
fn drawn(row: &RunRow) -> Option<String> {
    row.funds.drawn.map(|drawn| {
        let check = check(row.id, &drawn, &row.funds.held);
        written(&Account { drawn, held: row.funds.held, check })
    })
}

pub(crate) fn bind_call<B: Bind>(query: B, call: ModelCall) -> B {
    query
        .text(call.run.to_string())
        .number(to_sql(call.seq.0))
        .number(to_sql(call.at))
        .text(call.root.to_string())
        .text(call.agent)
        .text(call.model)
        .text(call.label)
        .text(purpose_word(call.purpose))
        .text(call.ending)
        .number(to_sql(call.usage.input_tokens))
        .number(to_sql(call.usage.cache_read_tokens))
        .number(to_sql(call.usage.cache_write_tokens))
        .number(to_sql(call.usage.output_tokens))
        .number(to_sql(call.usage.reasoning_tokens))
        .number(to_sql(call.usage.cost.0))
        .number(to_sql(call.uncertain.input_tokens))
        .number(to_sql(call.uncertain.output_tokens))
        .number(to_sql(call.uncertain.cost.0))
}

pub(crate) fn bind_event<B: Bind>(query: B, event: StoredEvent) -> B {
    query
        .text(event.run.to_string())
        .number(to_sql(event.seq.0))
        .number(to_sql(event.at))
        .number(i64::from(event.version))
        .text(event.body)
        .text(event.hash)
}

/// The value of the column `drawn`.
#[derive(Default, Deserialize, Serialize)]
struct Account {
    #[serde(flatten)]
    drawn: Amount,
    #[serde(default)]
    held: Amount,
    /// A hash over the other fields. They depend on the logs of many runs, so no single log can
    /// show that they were changed.
    check: String,
}

fn check(run: RunId, drawn: &Amount, held: &Amount) -> String {
    let hash = Sha256::digest(format!("{run} {} {}", written(drawn), written(held)));
    posse_protocol::hex(&hash[..8])
}

fn account(run: RunId, text: &str) -> Result<Account, Error> {
    let account: Account = read(text)?;
    if account.check != check(run, &account.drawn, &account.held) {
        return Err(Error::Decode("what was drawn of its budget was changed".into()));
    }
    Ok(account)
}

/// Serializes a value as JSON, which the engine does not interpret.
fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Decode(Box::new(error)))
}

/// Binds NULL to all columns of `rows` rows.
pub(crate) fn bind_nothing<B: Bind>(mut query: B, kinds: &[Kind], rows: usize) -> B {
    for kind in (0..rows).flat_map(|_| kinds) {
        query = match kind {
            Kind::Text => query.text(None::<String>),
            Kind::Number => query.number(None::<i64>),
        };
    }
    query
}

/// Decodes a run. If only the id can be read, it is damaged, so a bad row does not hide others.
pub(crate) fn run_row(row: &impl Cells) -> Option<RunRow> {
    let id: RunId = row.text(0).ok()?.parse().ok()?;
    Some(decode_run(id, row).unwrap_or_else(|error| RunRow::unreadable(id, &error.to_string())))
}

/// Decodes a waiting run. If only the id can be read, the run waits as a root of its own until a
/// claim reads the whole row and finds the damage.
pub(crate) fn queued_row(row: &impl Cells) -> Option<Queued> {
    let id: RunId = row.text(0).ok()?.parse().ok()?;
    let text = |index: usize| row.text(index).unwrap_or_default();
    Some(Queued {
        id,
        root: text(1).parse().unwrap_or(id),
        parent: text(2).parse().ok(),
        agent: text(3),
        model: text(4),
        workspace: text(5),
        priority: i32::try_from(row.integer(6).unwrap_or(0)).unwrap_or(0),
        ready_at: number(row, 7).unwrap_or(0),
        abreast: maybe_number(row, 8).ok().flatten().and_then(|most| u32::try_from(most).ok()),
        deaths: deaths_in_a_row(
            small(row, 9).unwrap_or(0),
            number(row, 10).unwrap_or(0),
            number(row, 11).unwrap_or(0),
        ),
        stopping: number(row, 12).is_ok_and(|it| it != 0),
    })
}

fn decode_run(id: RunId, row: &impl Cells) -> Result<RunRow, Error> {
    let number = |index: usize| number(row, index);
    let text = |index: usize| row.text(index);
    let maybe = |index: usize| row.maybe_text(index);
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
            priority: i32::try_from(row.integer(34)?)
                .map_err(|error| Error::Decode(Box::new(error)))?,
            abreast: maybe_number(row, 49)?.and_then(|most| u32::try_from(most).ok()),
            deaths: small(row, 55)?,
            calls_at_death: number(56)?,
            host: text(57)?,
            needs: text(58)?,
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

/// Decodes an event of `run`, or returns `None` if its columns do not hold valid values.
pub(crate) fn event_row(run: RunId, row: &impl Cells) -> Option<StoredEvent> {
    let decode = || -> Result<StoredEvent, Error> {
        Ok(StoredEvent {
            run,
            seq: Seq(number(row, 0)?),
            at: number(row, 1)?,
            version: small(row, 2)?,
            body: row.text(3)?.into(),
            hash: row.text(4)?,
        })
    };
    decode().ok()
}

/// Binds the values of [`crate::sql::stage::PART_INSERT`].
pub(crate) fn bind_part<B: Bind>(query: B, run: RunId, sha256: &str, row: BundleRow) -> B {
    let query = query.text(run.to_string()).text(sha256.to_owned()).number(to_sql(row.part));
    query.text(row.body).text(row.hash)
}

/// Binds the values of [`crate::sql::stage::BUNDLE_SHOW`].
pub(crate) fn bind_head<B: Bind>(query: B, run: RunId, head: &BundleHead) -> B {
    let row = head.row(run);
    query.text(run.to_string()).text(head.sha256.clone()).text(row.body).text(row.hash)
}

/// Decodes a row of a bundle.
pub(crate) fn bundle_row(row: &impl Cells) -> Result<BundleRow, Error> {
    Ok(BundleRow { part: number(row, 0)?, body: row.text(1)?, hash: row.text(2)? })
}

/// Decodes the hash of the data of a bundle, and its head.
pub(crate) fn head_row(row: &impl Cells) -> Result<(String, BundleRow), Error> {
    Ok((row.text(0)?, BundleRow { part: 0, body: row.text(1)?, hash: row.text(2)? }))
}

/// Decodes the end of a log, and the damage if it is known to be damaged.
pub(crate) fn tail_row(row: &impl Cells) -> Result<(Tail, Option<String>), Error> {
    let tail = Tail { seq: Seq(number(row, 0)?), hash: row.text(1)?, version: small(row, 2)? };
    Ok((tail, row.maybe_text(3)?))
}

/// Returns true if the log was removed.
pub(crate) fn is_erased(row: &impl Cells) -> bool {
    number(row, 4).is_ok_and(|erased| erased != 0)
}

/// Decodes a row of the ledger, whatever it contains.
pub(crate) fn ledger_row(row: &impl Cells) -> LedgerRow {
    let unreadable = |_| "unreadable".to_owned();
    LedgerRow(std::array::from_fn(|index| row.text(index).unwrap_or_else(unreadable)))
}

/// Decodes a sum of model calls.
pub(crate) fn spending_row(row: &impl Cells) -> Result<Spending, Error> {
    Ok(Spending {
        key: row.text(0)?,
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
