//! Values that a statement binds, and rows that it returns.

use sqlx::Error;
use std::sync::Arc;

/// A statement that binds values in the order of its placeholders.
pub(crate) trait Bind: Sized {
    /// Binds text or NULL.
    fn text(self, text: impl Into<BoundText>) -> Self;

    /// Binds a number or NULL.
    fn number(self, number: impl Into<Option<i64>>) -> Self;
}

/// Text to bind.
pub(crate) enum BoundText {
    Nothing,
    Owned(String),
    Shared(Arc<str>),
    Word(&'static str),
}

impl From<String> for BoundText {
    fn from(text: String) -> Self {
        BoundText::Owned(text)
    }
}

impl From<Option<String>> for BoundText {
    fn from(text: Option<String>) -> Self {
        text.map_or(BoundText::Nothing, BoundText::Owned)
    }
}

impl From<Arc<str>> for BoundText {
    fn from(text: Arc<str>) -> Self {
        BoundText::Shared(text)
    }
}

impl From<&'static str> for BoundText {
    fn from(text: &'static str) -> Self {
        BoundText::Word(text)
    }
}

/// A row. Columns are numbered from 0.
pub(crate) trait Cells {
    fn text(&self, index: usize) -> Result<String, Error>;
    fn maybe_text(&self, index: usize) -> Result<Option<String>, Error>;
    fn integer(&self, index: usize) -> Result<i64, Error>;
    fn maybe_integer(&self, index: usize) -> Result<Option<i64>, Error>;
}

/// Converts to the signed numbers of an engine. Larger values are wrong anyway and are cut off.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn number(row: &impl Cells, index: usize) -> Result<u64, Error> {
    u64::try_from(row.integer(index)?).map_err(|error| Error::Decode(Box::new(error)))
}

pub(crate) fn maybe_number(row: &impl Cells, index: usize) -> Result<Option<u64>, Error> {
    let unsigned = row.maybe_integer(index)?.map(u64::try_from).transpose();
    unsigned.map_err(|error| Error::Decode(Box::new(error)))
}

pub(crate) fn small(row: &impl Cells, index: usize) -> Result<u32, Error> {
    u32::try_from(number(row, index)?).map_err(|error| Error::Decode(Box::new(error)))
}
