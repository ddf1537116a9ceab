//! The statements that only PostgreSQL has: locks, the server's time, transactions.

use crate::sql::{RUN_COLUMNS, Shape, claimable, placeholders};

/// The class of the advisory locks that writing transactions hold, and of the one for migrations: any
/// number that others in the same database do not use.
const CLASS: i32 = 0x706f_7373;

/// How long a lock is waited for, and how long the server waits for the next message of a transaction
/// until it takes the locks away: whoever is stopped with locks in its hands stops everybody.
const LIMITS: &str = "SET LOCAL lock_timeout = '15s'; \
    SET LOCAL idle_in_transaction_session_timeout = '5s'";

/// What begins every message, for the tables of one schema.
pub(super) struct Begin {
    pub(super) writing: String,
    /// Each statement sees what is stored when it begins.
    pub(super) looking: String,
    /// All statements see the same.
    pub(super) reading: String,
}

impl Begin {
    pub(super) fn of(schema: &str) -> Self {
        // Checked: it has no sign that would have to be quoted.
        let path = format!("SET LOCAL search_path = \"{schema}\"");
        let begin = |how: &str| format!("BEGIN ISOLATION LEVEL {how}; {path}");
        Begin {
            writing: format!("{}; {LIMITS}", begin("READ COMMITTED READ WRITE")),
            looking: begin("READ COMMITTED READ ONLY"),
            reading: begin("REPEATABLE READ READ ONLY"),
        }
    }

    /// The statements of [`Begin::writing`].
    pub(super) const WRITING: usize = 4;
    /// The statements of the others.
    pub(super) const READING: usize = 2;
}

/// Says from when on this transaction may stamp what it writes, to whoever looks before it is over.
/// Gives 1 if the worker is known, else 0. Binds: worker.
pub(super) fn begun() -> String {
    format!("SELECT posse_begin({CLASS}, $1)")
}

/// From when on each transaction that is not over may have stamped what it writes, modulo
/// [`WRAP`]. To be asked after [`NOW`] and before what is looked at.
pub(super) fn in_flight() -> String {
    format!(
        "SELECT CAST(objid AS BIGINT) FROM pg_locks WHERE locktype = 'advisory' \
         AND classid = {CLASS} AND objsubid = 2 \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
}

/// Advisory locks have numbers of 31 bits.
pub(super) const WRAP: i64 = 1 << 31;

/// Held by whoever changes the schema.
pub(super) fn migrating() -> String {
    format!("SELECT pg_advisory_xact_lock({})", i64::from(CLASS) << 8)
}

pub(super) const NOW: &str = "SELECT posse_now()";
/// What time it is, and which transaction this is.
pub(super) const NOW_AND_WHO: &str = "SELECT posse_now(), CAST(pg_current_xact_id() AS TEXT)";
/// Notes, with all else that a transaction writes, which one of this worker's it is. Binds: worker, number.
pub(super) const MARK: &str = "INSERT INTO commits (worker, number, at) \
    VALUES ($1, $2, posse_now()) \
    ON CONFLICT (worker) DO UPDATE SET number = excluded.number, at = excluded.at";
/// The last one of this worker's that was stored. Binds: worker.
pub(super) const MARKED: &str = "SELECT number FROM commits WHERE worker = $1";
pub(super) const UNMARK: &str = "DELETE FROM commits WHERE worker = $1";
/// Nobody asks any more what became of the last words of workers that have long been dead.
pub(super) const UNMARK_THE_DEAD: &str = "DELETE FROM commits \
    WHERE at < posse_now() - 86400000 AND worker NOT IN (SELECT id FROM workers)";
/// Whether a transaction is still under way. That it is not does not say whether it was stored: a server
/// that crashed may use its number again. One that never had it knows nothing of it. Binds: which.
pub(super) const UNDER_WAY: &str = "SELECT CASE WHEN given.id > pg_current_xact_id() THEN 'unknown' \
    ELSE pg_xact_status(given.id) END FROM (SELECT CAST($1 AS xid8) AS id) AS given";

/// Gives 1 if nobody knew the worker, else 0. Binds: id, milliseconds.
pub(super) const WORKER_SAVE: &str = "INSERT INTO workers (id, boot, lease_until) \
    VALUES ($1, '', posse_now() + $2) \
    ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until \
    RETURNING CAST(CASE WHEN xmax = 0 THEN 1 ELSE 0 END AS BIGINT)";
pub(super) const LIVING: &str = "SELECT id FROM workers WHERE lease_until >= posse_now()";
pub(super) const DEAD: &str = "SELECT id FROM workers WHERE lease_until < posse_now() LIMIT 1";
/// The dead, and whether a session of each is left: then it is only silent. Nobody renews what is locked,
/// and whoever has renewed is not found.
pub(super) const DEAD_LOCKED: &str = "SELECT id, CAST(CASE WHEN EXISTS ( \
        SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
        AND application_name = 'posse ' || workers.id \
    ) THEN 1 ELSE 0 END AS BIGINT) \
    FROM workers WHERE lease_until < posse_now() ORDER BY id FOR UPDATE";
/// Locks what nobody living owns.
pub(super) const LOST_LOCKED: &str = "SELECT id FROM runs WHERE owner IS NOT NULL \
    AND owner NOT IN (SELECT id FROM workers) ORDER BY id FOR UPDATE";
/// Runs were given back that may have waited for long. Whoever looks at what is new must look at all.
pub(super) const FREED: &str = "UPDATE marks SET number = number + 1 WHERE name = 'freed'";
pub(super) const FREED_SO_FAR: &str = "SELECT number FROM marks WHERE name = 'freed'";
/// Whether anything waits to be claimed.
pub(super) const SOMETHING_WAITS: &str = "SELECT id FROM runs \
    WHERE runnable = 1 AND owner IS NULL AND paused = 0 LIMIT 1";

/// Locks `count` runs and every account above them, in the order of their ids, and reads them. What a
/// run draws on never changes, so that the chain is known before anything is locked.
pub(super) fn lock_runs(count: usize) -> String {
    let list = placeholders(1, count);
    let list = list.trim_matches(['(', ')']);
    format!("SELECT {RUN_COLUMNS} FROM posse_lock(ARRAY[{list}])")
}

/// [`claimable`] runs that nobody else has locked.
pub(super) fn claimable_locked(shape: Shape) -> String {
    format!("{} FOR UPDATE SKIP LOCKED", claimable(shape))
}
