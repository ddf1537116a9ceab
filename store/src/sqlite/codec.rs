//! Rows of the tables, to and from our types.

use crate::row::{RunRow, Spent, StoredEvent};
use posse_protocol::{Seq, Status, Usd};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteRow};
use sqlx::{Error, Row};

pub(super) type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

pub(super) fn bind_run<'q>(query: Statement<'q>, row: &RunRow) -> Statement<'q> {
    query
        .bind(row.id.to_string())
        .bind(row.agent.clone())
        .bind(row.model.clone())
        .bind(row.title.clone())
        .bind(row.workspace.clone())
        .bind(i64::from(row.session))
        .bind(row.key.clone())
        .bind(row.created_at as i64)
        .bind(row.updated_at as i64)
        .bind(row.last_seq.0 as i64)
        .bind(row.last_hash.clone())
        .bind(i64::from(row.version))
        .bind(row.epoch as i64)
        .bind(row.owner.map(|owner| owner.to_string()))
        .bind(i64::from(row.runnable))
        .bind(row.ready_at as i64)
        .bind(row.outcome.clone())
        .bind(row.outcome_line.clone())
        .bind(i64::from(row.archived))
        .bind(row.turns as i64)
        .bind(row.tool_calls as i64)
        .bind(row.spent.input_tokens as i64)
        .bind(row.spent.output_tokens as i64)
        .bind(row.spent.cost.0 as i64)
        .bind(row.reserved.input_tokens as i64)
        .bind(row.reserved.output_tokens as i64)
        .bind(row.reserved.cost.0 as i64)
        .bind(row.damaged.clone())
}

pub(super) fn bind_event(query: Statement<'_>, event: StoredEvent) -> Statement<'_> {
    query
        .bind(event.run.to_string())
        .bind(event.seq.0 as i64)
        .bind(event.at as i64)
        .bind(i64::from(event.version))
        .bind(event.body)
        .bind(event.hash)
}

pub(super) fn run_row(row: &SqliteRow) -> Result<RunRow, Error> {
    let number = |index: usize| row.try_get::<i64, _>(index).map(|number| number as u64);
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
    Ok(RunRow {
        id: text(0)?.parse().map_err(parse_error)?,
        agent: text(1)?,
        model: text(2)?,
        title: text(3)?,
        workspace: text(4)?,
        session: number(5)? != 0,
        key: maybe(6)?,
        created_at: number(7)?,
        updated_at: number(8)?,
        last_seq: Seq(number(9)?),
        last_hash: text(10)?,
        version: number(11)? as u32,
        epoch: number(12)?,
        owner: maybe(13)?.map(|owner| owner.parse()).transpose().map_err(parse_error)?,
        runnable: number(14)? != 0,
        ready_at: number(15)?,
        outcome: maybe(16)?,
        outcome_line: text(17)?,
        archived: number(18)? != 0,
        turns: number(19)?,
        tool_calls: number(20)?,
        spent: spent(21)?,
        reserved: spent(24)?,
        damaged: maybe(27)?,
        status: Status::Queued,
    })
}
