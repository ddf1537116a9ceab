//! What is left of runs that have ended, and of which something can be put away.

use std::time::Duration;

/// Which runs to look for: those of which something can be put away.
#[derive(Clone, Copy, Debug)]
pub struct Leftovers {
    /// Which.
    pub which: Leftover,
    /// For how long they must have ended, by the store's clock.
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
    /// Its log was to be removed at its end. Nothing right below it is unfinished, and everybody
    /// has been told who asked to be.
    Unwanted,
    /// It is archived, and its log is still there.
    Archived,
}
