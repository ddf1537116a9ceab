//! Facts about a database: its engine, the version of its schema, and how much it holds.

use serde::Serialize;

/// Facts about a database. Reading them changes nothing: the schema stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DatabaseStatus {
    /// The engine and its version.
    pub engine: String,
    /// The version of its schema; 0 if it has no tables yet.
    pub schema: i64,
    /// The oldest version that this program can bring to its own.
    pub oldest: i64,
    /// The version of the schema that this program uses.
    pub known: i64,
    /// The bytes that it takes on the disk.
    pub bytes: u64,
    /// How many runs it holds.
    pub runs: u64,
    /// How many of them have not ended.
    pub unfinished: u64,
}
