//! The errors of a store.

use posse_protocol::{DecodeError, Limit, RunId, Seq};

/// Why a store did not fulfil a request.
///
/// The first variants are refusals: the store works, but the state of the run forbids the request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The run does not exist.
    #[error("there is no run {0}")]
    NotFound(RunId),
    /// A run with this id exists already.
    #[error("run {0} exists already")]
    Exists(RunId),
    /// Another run was started with this key before.
    #[error("the key `{key}` belongs to run {run}")]
    KeyTaken {
        /// The key.
        key: String,
        /// The run that has the key.
        run: RunId,
    },
    /// The worker does not own the run, or no longer owns it.
    #[error("another process owns run {0}")]
    NotOwner(RunId),
    /// Another append came after the expected position.
    #[error("the log of run {run} has moved on to event {last}")]
    Moved {
        /// The run.
        run: RunId,
        /// The position of its last event.
        last: Seq,
    },
    /// The run has ended; only a message or archiving may follow.
    #[error("run {0} has ended")]
    Finished(RunId),
    /// The run was asked to stop and starts no subagents any more.
    #[error("run {0} has been told to stop")]
    Stopping(RunId),
    /// The run is paused and starts no subagents until it is resumed.
    #[error("run {0} is paused: it starts nothing until it is resumed")]
    Paused(RunId),
    /// The run is archived, so nothing can follow.
    #[error("run {0} is archived")]
    Archived(RunId),
    /// The run wants to draw more than a budget has left.
    #[error(
        "the budget of run {} has {} of its {limit} left, and {} would be needed ({} more are held by others and may come back)",
        holder.short(), limit.amount(*left), limit.amount(*wanted), limit.amount(*held)
    )]
    OverBudget {
        /// The run that wants to draw.
        run: RunId,
        /// The run that has the budget.
        holder: RunId,
        /// The limit that would be exceeded.
        limit: Limit,
        /// The amount that the run wants; money in billionths of a dollar.
        wanted: u64,
        /// The amount that is left.
        left: u64,
        /// The amount that other runs have reserved and may release.
        held: u64,
    },
    /// The log of the run was removed.
    #[error(
        "the log of run {0} was removed, by a person or because it was older than `retention_days`"
    )]
    Erased(RunId),
    /// The run has not ended, so its log cannot be removed.
    #[error("run {0} has not ended")]
    Unfinished(RunId),
    /// The events cannot follow at this position of a log.
    #[error("a log cannot have this at its place: {0}")]
    Misplaced(&'static str),
    /// What was to be stored with the run was stored before, but is not there any more.
    #[error("what was stored before for run {0} was removed meanwhile; try it again")]
    Unstaged(RunId),
    /// The log was changed, or part of it is missing.
    #[error("the log of run {run} is damaged: {reason}")]
    Damaged {
        /// The run.
        run: RunId,
        /// The position of the first bad event.
        seq: Seq,
        /// What is wrong with the event.
        reason: String,
    },
    /// A newer version of Posse wrote the log.
    #[error("{0}")]
    Newer(String),

    /// The disk is full.
    #[error(
        "the disk is full: Posse cannot store anything; runs can still be read, and continue when there is space again"
    )]
    Full,
    /// A newer version of Posse created the database.
    #[error(
        "the database {path} was made by a newer version of posse (schema {found}, this one knows {known}); update posse, or name another database"
    )]
    NewerDatabase {
        /// The path of the database.
        path: String,
        /// Its schema version.
        found: i64,
        /// The newest schema version that this build knows.
        known: i64,
    },
    /// A development version of Posse created the database, before the first release.
    #[error(
        "the database {path} was made by a development version of posse, before the first release (schema {found}, the first released one is {first}); name another database, or move this one away to begin a new one; its runs can be read with the version that made it"
    )]
    UnreleasedDatabase {
        /// The path of the database.
        path: String,
        /// Its schema version.
        found: i64,
        /// The first schema version that was released.
        first: i64,
    },
    /// The database file is damaged.
    #[error("the database {path} is damaged: {reason}")]
    Corrupt {
        /// The path of the database.
        path: String,
        /// The error of the database engine.
        reason: String,
    },
    /// The database has lost commits. The remaining runs can be read. The store accepts no writes
    /// until a person rebuilds or restores the database.
    #[error(
        "the database {path} is damaged: {reason}; runs can be read, but Posse stores nothing more until the database is rebuilt or restored"
    )]
    CommitsLost {
        /// The path of the database.
        path: String,
        /// What is lost.
        reason: String,
    },
    /// The database works, but refuses a value of this request. It would refuse it again.
    #[error("the database {path} cannot store this: {reason}")]
    Unstorable {
        /// The path of the database.
        path: String,
        /// The error of the database engine.
        reason: String,
    },
    /// The database cannot be opened or used.
    #[error("the database {path} cannot be used: {reason}")]
    Unusable {
        /// The path of the database.
        path: String,
        /// The error of the database engine.
        reason: String,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl From<DecodeError> for StoreError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Newer { .. } => StoreError::Newer(error.to_string()),
            DecodeError::Malformed { run, seq, source } => StoreError::Damaged {
                run,
                seq,
                reason: format!("event {seq} cannot be read: {source}"),
            },
        }
    }
}
