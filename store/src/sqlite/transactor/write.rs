//! Writes the changes of a transaction with a few statements, each for many rows.

use super::{BEGIN, Group, Transactor};
use crate::StoreError;
use crate::engine::{bind_call, bind_event, bind_moving, bind_nothing, bind_run, room_for};
use crate::row::{Columns, RunRow};
use crate::sql;
use crate::sqlite::engine_error;
use crate::sqlite::text::{Message, Then};
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};
use std::sync::Arc;

impl Transactor {
    /// Prepares the statements for the first step of a run, before the first request needs them.
    pub(in crate::sqlite) async fn get_ready(&mut self) {
        let then = Then::Commit;
        let born = Message { events: 4, calls: 0, runs: 1, columns: Columns::All, then };
        let born = self.texts.get(born);
        for text in [BEGIN, sql::WORKER_SAVE].map(Arc::from).into_iter().chain([born]) {
            // The first use reports an error.
            let _ = self.connection.prepare(AssertSqlSafe(text).into_sql_str()).await;
        }
    }

    /// Writes the decisions so far.
    pub(super) async fn write(&mut self, group: &mut Group, then: Then) -> Result<(), StoreError> {
        let mut events = std::mem::take(&mut group.changes.events).into_iter();
        let mut calls = std::mem::take(&mut group.changes.calls).into_iter();
        let mut rows: Vec<(&RunRow, Columns)> = Vec::with_capacity(group.changes.rows.len());
        let dirty = group.changes.rows.iter();
        rows.extend(dirty.filter_map(|(run, columns)| Some((&**self.rows.get(run)?, *columns))));
        // A statement writes the same columns of all its rows.
        rows.sort_by_key(|(_, columns)| *columns == Columns::All);
        let mut rows = rows.as_slice();
        loop {
            let columns = rows.first().map_or(Columns::All, |(_, columns)| *columns);
            let alike = rows.iter().take_while(|(_, it)| *it == columns).count();
            let (taken_events, events_room) = room_for(events.len());
            let (taken_calls, calls_room) = room_for(calls.len());
            let (taken_rows, rows_room) = room_for(alike);
            let last = taken_events == events.len()
                && taken_calls == calls.len()
                && taken_rows == rows.len();
            // The tables have no foreign keys, so the rows may be split anywhere.
            let then = if last { then } else { Then::GoOn };
            let message =
                Message { events: events_room, calls: calls_room, runs: rows_room, columns, then };
            if events_room + calls_room + rows_room == 0 && then == Then::GoOn {
                break;
            }
            let mut query = sqlx::query(AssertSqlSafe(self.texts.get(message)));
            for event in events.by_ref().take(taken_events) {
                query = bind_event(query, event);
            }
            query = bind_nothing(query, sql::of_events(), events_room - taken_events);
            for call in calls.by_ref().take(taken_calls) {
                query = bind_call(query, call);
            }
            query = bind_nothing(query, sql::of_calls(), calls_room - taken_calls);
            let (now, later) = rows.split_at(taken_rows);
            for (row, _) in now {
                query = match columns {
                    Columns::All => bind_run(query, row),
                    Columns::Moving => bind_moving(query, row),
                };
            }
            query = bind_nothing(query, sql::of_runs(columns), rows_room - taken_rows);
            let result = query.execute(&mut self.connection).await;
            result.map_err(|error| engine_error(error, &self.path))?;
            if then == Then::GoOn {
                fail::fail_point!("store.rows.written");
            }
            rows = later;
            if last {
                break;
            }
        }
        group.touched.extend(std::mem::take(&mut group.changes.rows).into_keys());
        Ok(())
    }
}
