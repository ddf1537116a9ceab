//! The types of columns: text or numbers. An engine with strict types needs the type of each value
//! that it cannot infer from the column: values in a list of rows, and NULL.

use super::{CALL_COLUMNS, EVENT_COLUMNS, MOVING, RUN_COLUMNS};
use crate::row::Columns;
use std::sync::LazyLock;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
}

impl Kind {
    /// The name of the type in the schema.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Text => "TEXT",
            Kind::Number => "BIGINT",
        }
    }
}

/// The columns of any table that hold text. All others hold numbers.
const TEXTS: [&str; 34] = [
    "id",
    "agent",
    "model",
    "title",
    "workspace",
    "host",
    "needs",
    "about",
    "key",
    "last_hash",
    "owner",
    "outcome",
    "note",
    "damaged",
    "parent",
    "root",
    "label",
    "cleanup",
    "account",
    "budget",
    "drawn",
    "calling",
    "calling_for",
    "run",
    "body",
    "hash",
    "purpose",
    "ending",
    "boot",
    "hook",
    "kind",
    "data",
    "state",
    "seal",
];

pub(super) fn kind(column: &str) -> Kind {
    if TEXTS.contains(&column) { Kind::Text } else { Kind::Number }
}

fn kinds(columns: &str) -> Vec<Kind> {
    columns.split(", ").map(|column| kind(column.trim())).collect()
}

static EVENTS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds(EVENT_COLUMNS));
static CALLS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds(CALL_COLUMNS));
static RUNS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds(RUN_COLUMNS));
static MOVING_RUNS: LazyLock<Vec<Kind>> =
    LazyLock::new(|| ["id"].into_iter().chain(MOVING).map(kind).collect());

/// The types of the columns of an event.
pub(crate) fn of_events() -> &'static [Kind] {
    &EVENTS
}

/// The types of the columns of a model call.
pub(crate) fn of_calls() -> &'static [Kind] {
    &CALLS
}

/// The types of these columns of a run, and of its id.
pub(crate) fn of_runs(columns: Columns) -> &'static [Kind] {
    match columns {
        Columns::All => &RUNS,
        Columns::Moving => &MOVING_RUNS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SCHEMA;

    #[test]
    fn the_kinds_are_those_of_the_schema() {
        let mut seen = 0;
        let whole = SCHEMA.whole();
        let words: Vec<&str> =
            whole.split([' ', '\n', ',', '(']).filter(|it| !it.is_empty()).collect();
        for pair in words.windows(2) {
            let expected = match pair[1] {
                "TEXT" => Kind::Text,
                "BIGINT" => Kind::Number,
                _ => continue,
            };
            assert_eq!(kind(pair[0]), expected, "{}", pair[0]);
            seen += 1;
        }
        assert!(seen > 90, "{seen}");
    }
}
