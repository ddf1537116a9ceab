//! What is left of runs that have ended, and of which something can be put away.

use std::time::Duration;

/// Which runs to look for: those of which something can be put away.
#[derive(Clone, Copy, Debug)]
pub struct Leftovers {
    /// Which.
    pub which: Leftover,
    /// For how long they must have ended, by the store's clock; of those that are [`Leftover::Due`],
    /// for how long their time must have been over.
    pub ended_for: Duration,
    /// At most this many, those that ended first first.
    pub limit: usize,
}

/// What can be put away of a run. A log that is damaged, or that a newer version wrote, is left
/// as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// It is not archived, and nothing in its tree is unfinished: what has ended below a run that
    /// goes on may be resumed.
    Ended,
    /// The same, of a run that was given a time of its own after which it is archived.
    Due,
    /// Its log was to be removed at its end. Nothing right below it is unfinished, and everybody
    /// has been told who asked to be.
    Unwanted,
    /// It is archived, and its log is still there.
    Archived,
}

impl Leftover {
    /// All there are.
    pub const ALL: [Leftover; 4] =
        [Leftover::Ended, Leftover::Due, Leftover::Unwanted, Leftover::Archived];
}
