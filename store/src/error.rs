//! What can go wrong with a store.

use posse_protocol::{DecodeError, Limit, RunId, Seq};

/// Why a store did not do what it was asked.
///
/// The first group are refusals: the store works, the request does not fit the state of the run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No such run.
    #[error("there is no run {0}")]
    NotFound(RunId),
    /// A run with this id exists.
    #[error("run {0} exists already")]
    Exists(RunId),
    /// A run was started with this key before.
    #[error("the key `{key}` belongs to run {run}")]
    KeyTaken {
        /// The key.
        key: String,
        /// The run it found.
        run: RunId,
    },
    /// The appender does not own the run, or no longer.
    #[error("another process owns run {0}")]
    NotOwner(RunId),
    /// Something was appended after the expected position.
    #[error("the log of run {run} has moved on to event {last}")]
    Moved {
        /// Which run.
        run: RunId,
        /// Its last event.
        last: Seq,
    },
    /// The run has ended; only a message or archiving may follow.
    #[error("run {0} has ended")]
    Finished(RunId),
    /// Someone has asked the run to stop: nothing is started on its behalf any more.
    #[error("run {0} has been told to stop")]
    Stopping(RunId),
    /// Someone has asked the run to pause: nothing is started on its behalf until it goes on.
    #[error("run {0} is paused: it starts nothing until it is resumed")]
    Paused(RunId),
    /// The run is put away; nothing may follow.
    #[error("run {0} is archived")]
    Archived(RunId),
    /// A budget does not have what the run wants to draw.
    #[error(
        "the budget of run {} has {} of its {limit} left, and {} would be needed ({} more are held by others and may come back)",
        holder.short(), limit.amount(*left), limit.amount(*wanted), limit.amount(*held)
    )]
    OverBudget {
        /// Who wants to draw.
        run: RunId,
        /// Whose budget it is.
        holder: RunId,
        /// Of what.
        limit: Limit,
        /// How much is wanted; money in billionths of a dollar.
        wanted: u64,
        /// How much is left.
        left: u64,
        /// How much others have reserved and may give back.
        held: u64,
    },
    /// Its log was removed.
    #[error(
        "the log of run {0} was removed, by a person or because it was older than `retention_days`"
    )]
    Erased(RunId),
    /// The run has not ended: its log cannot be removed.
    #[error("run {0} has not ended")]
    Unfinished(RunId),
    /// These events cannot stand at this place of a log.
    #[error("a log cannot have this at its place: {0}")]
    Misplaced(&'static str),
    /// The log was changed, or part of it is missing.
    #[error("the log of run {run} is damaged: {reason}")]
    Damaged {
        /// Which run.
        run: RunId,
        /// The first bad event.
        seq: Seq,
        /// What is wrong with it.
        reason: String,
    },
    /// The log was written by a newer version.
    #[error("{0}")]
    Newer(String),

    /// There is no space left to write to.
    #[error(
        "the disk is full: Posse cannot store anything; runs can still be read, and continue when there is space again"
    )]
    Full,
    /// The database was made by a newer version.
    #[error(
        "the database {path} was made by a newer version of posse (schema {found}, this one knows {known}); update posse, or name another database"
    )]
    NewerDatabase {
        /// Where.
        path: String,
        /// Its schema.
        found: i64,
        /// The newest this build knows.
        known: i64,
    },
    /// The database file itself is damaged.
    #[error("the database {path} is damaged: {reason}")]
    Corrupt {
        /// Where.
        path: String,
        /// In the engine's words.
        reason: String,
    },
    /// Commits that were stored cannot be read any more. What there is can be read; nothing is stored
    /// until a person has decided.
    #[error(
        "the database {path} is damaged: {reason}; runs can be read, but Posse stores nothing more until the database is rebuilt or restored"
    )]
    CommitsLost {
        /// Where.
        path: String,
        /// What is lost.
        reason: String,
    },
    /// The database cannot be opened or used.
    #[error("the database {path} cannot be used: {reason}")]
    Unusable {
        /// Where.
        path: String,
        /// In the engine's words.
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
