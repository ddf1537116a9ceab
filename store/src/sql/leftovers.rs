//! The statement that selects ended runs to archive, or whose logs to remove.

use super::RUN_COLUMNS;
use crate::leftover::Leftover;

/// Selects leftovers, oldest end first. Binds: the latest end (for [`Leftover::Due`], the latest
/// due time), version, limit.
pub(crate) fn leftovers(which: Leftover) -> String {
    // Keep the log while a delivery about the run is due.
    const UNTOLD: &str = "NOT EXISTS (SELECT deliveries.id FROM deliveries \
        WHERE deliveries.run = runs.id AND deliveries.state = 'due')";
    const OPEN_BELOW: &str = "NOT EXISTS (SELECT kin.id FROM runs AS kin \
        WHERE kin.parent = runs.id AND kin.outcome IS NULL)";
    const OPEN_TREE: &str = "NOT EXISTS (SELECT kin.id FROM runs AS kin \
        WHERE kin.root = runs.root AND kin.outcome IS NULL)";
    let since = match which {
        Leftover::Due => "finished_at + archive_after",
        Leftover::Ended | Leftover::Unwanted | Leftover::Archived => "finished_at",
    };
    let conditions = match which {
        Leftover::Due => format!(
            "archive_after IS NOT NULL AND finished_at > 0 AND archived = 0 AND {OPEN_TREE}"
        ),
        Leftover::Ended => format!("finished_at > 0 AND archived = 0 AND {OPEN_TREE}"),
        Leftover::Unwanted => format!(
            "cleanup = 'delete' AND erased = 0 AND archived = 0 AND finished_at > 0 \
             AND {OPEN_BELOW} AND {UNTOLD}"
        ),
        Leftover::Archived => format!("archived = 1 AND erased = 0 AND {UNTOLD}"),
    };
    format!(
        "SELECT {RUN_COLUMNS} FROM runs WHERE {conditions} AND {since} <= $1 \
         AND version <= $2 AND damaged IS NULL ORDER BY {since} LIMIT $3"
    )
}
