//! Statements that only PostgreSQL has: locks, the time of the server, transactions.

use crate::sql::{self, RUN_COLUMNS, Shape, claimable, insert_events, placeholders};

/// The class of the advisory locks of writing transactions. The number of the lock for migrations
/// is derived from it. Other programs in the same database must not use it.
const CLASS: i32 = 0x706f_7373;

/// How long to wait for a lock, and how long the server waits for the next message of a transaction
/// before it releases its locks: a process that is suspended with locks would block all others.
const LIMITS: &str = "SET LOCAL lock_timeout = '15s'; \
    SET LOCAL idle_in_transaction_session_timeout = '5s'";

/// What begins a transaction, for the tables of one schema.
pub(super) struct Begin {
    pub(super) writing: String,
    /// Each statement sees what is committed when it begins.
    pub(super) looking: String,
    /// All statements see the same snapshot.
    pub(super) reading: String,
}

impl Begin {
    pub(super) fn of(schema: &str) -> Self {
        // The name was checked and needs no escaping.
        let path = format!("SET LOCAL search_path = \"{schema}\"");
        let begin = |how: &str| format!("BEGIN ISOLATION LEVEL {how}; {path}");
        Begin {
            writing: format!("{}; {LIMITS}", begin("READ COMMITTED READ WRITE")),
            looking: begin("READ COMMITTED READ ONLY"),
            reading: begin("REPEATABLE READ READ ONLY"),
        }
    }

    /// The number of statements in [`Begin::writing`].
    pub(super) const WRITING: usize = 4;
    /// The number of statements in the others.
    pub(super) const READING: usize = 2;
}

/// Tells readers the earliest time that this transaction may stamp, by an advisory lock until its
/// end. Returns 1 if the worker has a row, else 0. Binds: worker.
pub(super) fn begun() -> String {
    format!("SELECT posse_begin({CLASS}, $1)")
}

/// The earliest time that each open transaction may stamp, modulo [`WRAP`]. Execute this after
/// [`NOW`] and before the statements that read the queue.
pub(super) fn in_flight() -> String {
    format!(
        "SELECT CAST(objid AS BIGINT) FROM pg_locks WHERE locktype = 'advisory' \
         AND classid = {CLASS} AND objsubid = 2 \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
}

/// Times in advisory locks wrap here, because lock numbers are signed 32-bit integers.
pub(super) const WRAP: i64 = 1 << 31;

/// The lock of a process that migrates the schema.
pub(super) fn migrating() -> String {
    format!("SELECT pg_advisory_xact_lock({})", i64::from(CLASS) << 8)
}

pub(super) const NOW: &str = "SELECT posse_now()";
/// The time, and the id of the transaction.
pub(super) const NOW_AND_WHO: &str = "SELECT posse_now(), CAST(pg_current_xact_id() AS TEXT)";
/// Stores the number of this transaction with its other changes. Binds: worker, number.
pub(super) const MARK: &str = "INSERT INTO commits (worker, number, at) \
    VALUES ($1, $2, posse_now()) \
    ON CONFLICT (worker) DO UPDATE SET number = excluded.number, at = excluded.at";
/// The number of the last committed transaction of the worker. Binds: worker.
pub(super) const MARKED: &str = "SELECT number FROM commits WHERE worker = $1";
pub(super) const UNMARK: &str = "DELETE FROM commits WHERE worker = $1";
/// Removes the numbers of workers that have been dead for a day. Nobody needs them any more.
pub(super) const UNMARK_THE_DEAD: &str = "DELETE FROM commits \
    WHERE at < posse_now() - 86400000 AND worker NOT IN (SELECT id FROM workers)";
/// Whether a transaction is in progress. If not, it may be committed or not, because a server may
/// reuse an id after a crash. An id that is too large is unknown. Binds: the id.
pub(super) const UNDER_WAY: &str = "SELECT CASE WHEN given.id > pg_current_xact_id() THEN 'unknown' \
    ELSE pg_xact_status(given.id) END FROM (SELECT CAST($1 AS xid8) AS id) AS given";

/// Locks a bundle, which may not count yet. Binds: run, data.
pub(super) const BUNDLE_LOCK: &str =
    "SELECT data FROM bundles WHERE run = $1 AND data = $2 FOR UPDATE";
/// Undoes [`sql::stage::LOG_BEGIN`] if the run was shown while it waited for the transaction that showed it. Binds:
/// run, owner, and the run.
pub(super) const LOG_TOO_LATE: &str = "DELETE FROM hidden_logs WHERE run = $1 AND owner = $2 \
    AND EXISTS (SELECT id FROM runs WHERE id = $3)";
/// Whether a log ends so. Binds: run, owner, last event, its hash.
pub(super) const LOG_ENDS: &str = "SELECT run FROM hidden_logs \
    WHERE run = $1 AND owner = $2 AND seq = $3 AND hash = $4 AND expires > 0";
/// Locks logs that a worker brings. Binds: owner, runs.
pub(super) fn lock_logs(count: usize) -> String {
    format!("{} ORDER BY run FOR UPDATE", sql::stage::logs_of(count))
}

/// Inserts events of a run that is not shown, if [`LOG_ENDS`]. If the message is sent twice, they are
/// there already. Binds: the events, run, owner, last event, its hash, and the run.
pub(super) fn insert_hidden(count: usize) -> String {
    format!(
        "{} AND EXISTS ({LOG_ENDS}) AND NOT EXISTS (SELECT id FROM runs WHERE id = $5) \
         ON CONFLICT (run, seq) DO NOTHING",
        insert_events(count)
    )
}

/// A point in time that an index can be searched for.
const EXPIRED: &str = "expires < (SELECT posse_now())";

/// Chooses and locks an expired log that no other process works on, for the rest of the transaction:
/// [`LOG`], and [`LEFT`] after the removal of its last `count` events. Returns it, if there is one.
pub(super) fn choose_log(count: u64) -> String {
    format!(
        "SELECT set_config('posse.log', run, TRUE), \
         set_config('posse.left', CAST(seq - {count} AS TEXT), TRUE) FROM ( \
             SELECT run, seq FROM hidden_logs WHERE {EXPIRED} \
             ORDER BY expires LIMIT 1 FOR UPDATE SKIP LOCKED \
         ) AS chosen"
    )
}

/// Chooses and locks a log that was given up, as [`choose_log`] does. If another process works on it,
/// it waits. Binds: run.
pub(super) fn choose_given_up(count: u64) -> String {
    format!(
        "SELECT set_config('posse.log', run, TRUE), \
         set_config('posse.left', CAST(seq - {count} AS TEXT), TRUE) FROM ( \
             SELECT run, seq FROM hidden_logs WHERE run = $1 AND expires = 0 FOR UPDATE \
         ) AS chosen"
    )
}

/// Chooses and locks an expired bundle that no other process works on, for the rest of the
/// transaction: [`BUNDLE`] and [`DATA`]. Returns it, if there is one.
pub(super) fn choose_bundle() -> String {
    format!(
        "SELECT set_config('posse.bundle', run, TRUE), set_config('posse.data', data, TRUE) FROM ( \
             SELECT run, data FROM bundles WHERE {EXPIRED} \
             ORDER BY expires LIMIT 1 FOR UPDATE SKIP LOCKED \
         ) AS chosen"
    )
}

/// The run of the chosen log. No run has the name of none.
pub(super) const LOG: &str = "(SELECT current_setting('posse.log', TRUE))";
/// The event of the chosen log before those to remove. It is NULL if there is no such log.
pub(super) const LEFT: &str =
    "(SELECT CAST(NULLIF(current_setting('posse.left', TRUE), '') AS BIGINT))";
/// The run of the chosen bundle.
pub(super) const BUNDLE: &str = "(SELECT current_setting('posse.bundle', TRUE))";
/// The hash of the data of the chosen bundle.
pub(super) const DATA: &str = "(SELECT current_setting('posse.data', TRUE))";

/// Returns 1 if the worker had no row, else 0. Binds: id, milliseconds, what it says about itself.
pub(super) const WORKER_SAVE: &str = "INSERT INTO workers (id, boot, lease_until, about) \
    VALUES ($1, '', posse_now() + $2, $3) \
    ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, about = excluded.about \
    RETURNING CAST(CASE WHEN xmax = 0 THEN 1 ELSE 0 END AS BIGINT)";
pub(super) const LIVING: &str = "SELECT id FROM workers WHERE lease_until >= posse_now()";
/// The living workers, and the remaining times of their leases.
pub(super) const WORKERS: &str = "SELECT id, about, lease_until - posse_now() FROM workers \
    WHERE lease_until >= posse_now() ORDER BY id";
pub(super) const DEAD: &str = "SELECT id FROM workers WHERE lease_until < posse_now() LIMIT 1";
/// The dead workers, and whether each still has a session; then it is only silent. The rows are
/// locked, so their workers cannot renew them. Workers that have renewed are not selected.
pub(super) const DEAD_LOCKED: &str = "SELECT id, CAST(CASE WHEN EXISTS ( \
        SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
        AND application_name = 'posse ' || workers.id \
    ) THEN 1 ELSE 0 END AS BIGINT) \
    FROM workers WHERE lease_until < posse_now() ORDER BY id FOR UPDATE";
/// Locks runs whose owners have no row.
pub(super) const LOST_LOCKED: &str = "SELECT id FROM runs WHERE owner IS NOT NULL \
    AND owner NOT IN (SELECT id FROM workers) ORDER BY id FOR UPDATE";
/// Counts that runs of dead workers were released. They may have waited for long, so a query for
/// new runs must then return all.
pub(super) const FREED: &str = "UPDATE marks SET number = number + 1 WHERE name = 'freed'";
pub(super) const FREED_SO_FAR: &str = "SELECT number FROM marks WHERE name = 'freed'";
/// Whether a run waits to be claimed.
pub(super) const SOMETHING_WAITS: &str = "SELECT id FROM runs \
    WHERE runnable = 1 AND owner IS NULL AND paused = 0 LIMIT 1";

/// Locks and reads `count` runs and all accounts above them, in the order of their ids. The account
/// of a run never changes, so the chain is known before the lock.
pub(super) fn lock_runs(count: usize) -> String {
    let list = placeholders(1, count);
    let list = list.trim_matches(['(', ')']);
    format!("SELECT {RUN_COLUMNS} FROM posse_lock(ARRAY[{list}])")
}

/// [`claimable`] runs that no other transaction has locked. A worker that asks again waits for the
/// locks: its own earlier claim may hold them.
pub(super) fn claimable_locked(shape: Shape, condition: &str) -> String {
    let lock = if shape.again.is_some() { "FOR UPDATE" } else { "FOR UPDATE SKIP LOCKED" };
    format!("{} {lock}", claimable(shape, condition))
}
