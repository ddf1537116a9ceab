//! Implements the shared traits for statements and rows of SQLite.

use super::presence::WorkerRow;
use crate::engine::{Bind, BoundText, Cells, number};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteRow};
use sqlx::{Error, Row};

pub(super) type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

impl Bind for Statement<'_> {
    fn text(self, text: impl Into<BoundText>) -> Self {
        match text.into() {
            BoundText::Nothing => self.bind(None::<String>),
            BoundText::Owned(text) => self.bind(text),
            BoundText::Shared(text) => self.bind(text),
            BoundText::Word(text) => self.bind(text),
        }
    }

    fn number(self, number: impl Into<Option<i64>>) -> Self {
        self.bind(number.into())
    }
}

impl Cells for SqliteRow {
    fn text(&self, index: usize) -> Result<String, Error> {
        self.try_get(index)
    }

    fn maybe_text(&self, index: usize) -> Result<Option<String>, Error> {
        self.try_get(index)
    }

    fn integer(&self, index: usize) -> Result<i64, Error> {
        self.try_get(index)
    }

    fn maybe_integer(&self, index: usize) -> Result<Option<i64>, Error> {
        self.try_get(index)
    }
}

/// Decodes a worker. If the lease cannot be read, it has ended.
pub(super) fn worker_row(row: &SqliteRow) -> Option<WorkerRow> {
    Some(WorkerRow {
        id: row.text(0).ok()?.parse().ok()?,
        boot: row.text(1).unwrap_or_default(),
        lease_until: number(row, 2).unwrap_or_default(),
        about: row.text(3).unwrap_or_default(),
    })
}
