//! Ended runs that can be archived, or whose logs can be removed.

use std::time::Duration;

/// A query for ended runs that can be archived, or whose logs can be removed.
#[derive(Clone, Copy, Debug)]
pub struct Leftovers {
    /// The kind of leftover.
    pub which: Leftover,
    /// How long ago they must have ended, by the clock of the store. For [`Leftover::Due`], how
    /// long ago they became due.
    pub ended_for: Duration,
    /// At most this many, oldest end first.
    pub limit: usize,
}

/// A kind of leftover. Damaged logs and logs of a newer version are never included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// The run is not archived, and no run in its tree is unfinished. A run that continues may
    /// resume the ended runs below it.
    Ended,
    /// As [`Leftover::Ended`], for a run with its own time after which it is archived.
    Due,
    /// The log is to be removed after the end. No child of the run is unfinished, and no delivery
    /// about the run is due.
    Unwanted,
    /// The run is archived, its log still exists, and no delivery about the run is due.
    Archived,
}

impl Leftover {
    /// All kinds.
    pub const ALL: [Leftover; 4] =
        [Leftover::Ended, Leftover::Due, Leftover::Unwanted, Leftover::Archived];
}
