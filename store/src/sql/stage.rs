//! Statements about what is stored and not shown: bundles before they count and after they were
//! replaced, logs that arrive from another store, and logs that were removed. Each has a time after
//! which anybody may remove it (`expires`). It is NULL for a bundle that counts.

use super::placeholders;

/// Columns of `bundles`.
pub(super) const BUNDLE_COLUMNS: &str = "run, data, expires, body, hash";
/// Columns of `bundle_parts`.
pub(super) const PART_COLUMNS: &str = "run, data, part, body, hash";
/// Columns of `hidden_logs`.
pub(super) const HIDDEN_COLUMNS: &str = "run, owner, expires, seq, hash";

/// The bundle of a run. Binds: run.
pub(crate) const BUNDLE: &str =
    "SELECT data, body, hash FROM bundles WHERE run = $1 AND expires IS NULL";
/// Some parts of a bundle. Binds: run, data, the part before the first, limit.
pub(crate) const PARTS: &str = "SELECT part, body, hash FROM bundle_parts \
    WHERE run = $1 AND data = $2 AND part > $3 ORDER BY part LIMIT $4";
/// The numbers of the stored parts. Binds: run, data.
pub(crate) const STORED_PARTS: &str = "SELECT part FROM bundle_parts WHERE run = $1 AND data = $2";
/// Binds: run, data.
pub(crate) const COUNT_PARTS: &str =
    "SELECT COUNT(*) FROM bundle_parts WHERE run = $1 AND data = $2";
/// Keeps the parts of a bundle until a time, if it does not count. Binds: run, data, expires.
pub(crate) const BUNDLE_STAGE: &str = "INSERT INTO bundles (run, data, expires, body, hash) \
    VALUES ($1, $2, $3, '', '') ON CONFLICT (run, data) DO UPDATE SET expires = excluded.expires \
    WHERE bundles.expires IS NOT NULL";
/// Binds: run, data, part, body, hash.
pub(crate) const PART_INSERT: &str = "INSERT INTO bundle_parts (run, data, part, body, hash) \
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run, data, part) DO NOTHING";
/// Binds: run.
pub(crate) const BUNDLE_RETIRE: &str =
    "UPDATE bundles SET expires = 0 WHERE run = $1 AND expires IS NULL";
/// Gives up a bundle that does not count. Binds: run, data.
pub(crate) const BUNDLE_GIVE_UP: &str =
    "UPDATE bundles SET expires = 0 WHERE run = $1 AND data = $2 AND expires IS NOT NULL";
/// Makes a bundle count. Binds: run, data, body, hash.
pub(crate) const BUNDLE_SHOW: &str = "INSERT INTO bundles (run, data, expires, body, hash) \
    VALUES ($1, $2, NULL, $3, $4) ON CONFLICT (run, data) DO UPDATE SET expires = NULL, \
    body = excluded.body, hash = excluded.hash";
/// Runs that have a bundle and no row, or no log any more, and parts of no bundle.
pub(crate) const BUNDLES_OF_NOBODY: &str = "SELECT run FROM bundles WHERE expires IS NULL \
    AND NOT EXISTS (SELECT id FROM runs WHERE runs.id = bundles.run AND runs.erased = 0) \
    UNION SELECT run FROM bundle_parts WHERE NOT EXISTS (SELECT data FROM bundles \
        WHERE bundles.run = bundle_parts.run AND bundles.data = bundle_parts.data) \
    ORDER BY 1";

/// Shows a log that has arrived. Binds: run.
pub(crate) const LOG_SHOW: &str = "DELETE FROM hidden_logs WHERE run = $1";
/// Begins a log that arrives, unless the run is there. Binds: run, owner, expires, and the run.
pub(crate) const LOG_BEGIN: &str = "INSERT INTO hidden_logs (run, owner, expires, seq, hash) \
    SELECT $1, $2, $3, 0, '' WHERE NOT EXISTS (SELECT id FROM runs WHERE id = $4) \
    ON CONFLICT (run) DO NOTHING";
/// Continues a log that arrives. Binds: last event, its hash, expires, run, owner, the event before.
pub(crate) const LOG_GO_ON: &str = "UPDATE hidden_logs SET seq = $1, hash = $2, expires = $3 \
    WHERE run = $4 AND owner = $5 AND seq = $6 AND expires > 0";
/// Gives up a log that arrives. Returns its last event. Binds: run.
pub(crate) const LOG_GIVE_UP: &str =
    "UPDATE hidden_logs SET expires = 0 WHERE run = $1 RETURNING seq";
/// Logs that a worker brings. Binds: owner, runs.
pub(crate) fn logs_of(count: usize) -> String {
    let runs = placeholders(2, count);
    format!(
        "SELECT run, seq, hash FROM hidden_logs WHERE owner = $1 AND expires > 0 AND run IN {runs}"
    )
}

/// Hides a log whose events are to be removed. Binds: run, last event.
pub(crate) const LOG_HIDE: &str = "INSERT INTO hidden_logs (run, owner, expires, seq, hash) \
    VALUES ($1, '', 0, $2, '') ON CONFLICT (run) DO UPDATE SET expires = 0";

/// Keeps the logs that a worker brings until a time. Binds: expires, owner.
pub(crate) const LOGS_KEEP: &str =
    "UPDATE hidden_logs SET expires = $1 WHERE owner = $2 AND expires > 0";
/// Keeps the bundles of these logs, too. Binds: expires, owner.
pub(crate) const BUNDLES_KEEP: &str = "UPDATE bundles SET expires = $1 WHERE expires > 0 \
    AND run IN (SELECT run FROM hidden_logs WHERE owner = $2 AND expires > 0)";
/// Whether a log is hidden. Binds: run.
pub(crate) const LOG_HIDDEN: &str = "SELECT run FROM hidden_logs WHERE run = $1";
/// The next bundle to remove. Binds: now.
pub(crate) const BUNDLE_EXPIRED: &str =
    "SELECT run, data FROM bundles WHERE expires < $1 ORDER BY expires LIMIT 1";
/// Removes some parts of a bundle. Binds: run, data, and both again, how many.
pub(crate) const PARTS_REMOVE: &str = "DELETE FROM bundle_parts WHERE run = $1 AND data = $2 \
    AND part IN (SELECT part FROM bundle_parts WHERE run = $3 AND data = $4 ORDER BY part LIMIT $5)";
/// Removes a bundle that does not count, if it has no parts any more. Binds: run, data.
pub(crate) const BUNDLE_REMOVE: &str = "DELETE FROM bundles WHERE run = $1 AND data = $2 \
    AND expires IS NOT NULL AND NOT EXISTS (SELECT part FROM bundle_parts \
        WHERE bundle_parts.run = bundles.run AND bundle_parts.data = bundles.data)";
/// The next log to remove. Binds: now.
pub(crate) const LOG_EXPIRED: &str =
    "SELECT run, seq FROM hidden_logs WHERE expires < $1 ORDER BY expires LIMIT 1";
/// Removes the last events of a hidden log. Binds: run, the event before the first, and the run.
pub(crate) const EVENTS_REMOVE: &str = "DELETE FROM events WHERE run = $1 AND seq > $2 \
    AND NOT EXISTS (SELECT id FROM runs WHERE id = $3 AND erased = 0)";
/// Notes that the last events were removed. Binds: the last event that is left, run.
pub(crate) const LOG_SHORTEN: &str =
    "UPDATE hidden_logs SET expires = 0, seq = $1, hash = '' WHERE run = $2";
/// Forgets a hidden log without events. Binds: run.
pub(crate) const LOG_REMOVE: &str =
    "DELETE FROM hidden_logs WHERE run = $1 AND expires = 0 AND seq <= 0";

/// Whether something is to be removed. Binds: now, now.
pub(crate) const EXPIRED: &str = "SELECT run FROM hidden_logs WHERE expires < $1 \
    UNION ALL SELECT run FROM bundles WHERE expires < $2 LIMIT 1";
