//! Mistakes that are planted at the end of a cycle. The checker has to find each.

use super::cycle::Scene;
use super::story;
use super::witness::DATABASE;
use crate::violation::Promise;
use std::io;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A run that was acknowledged is gone.
    LostRun,
    /// An effect has happened twice.
    DoubledEffect,
    /// The announcement of a child is not in the log of its parent.
    MissingAnnouncement,
    /// A worker that does not own a run stores a step of it.
    StaleWrite,
    /// A run has not ended.
    StuckRun,
}

impl Plant {
    /// All mistakes, and the promise that each breaks.
    pub const ALL: [(Plant, Promise); 5] = [
        (Plant::LostRun, Promise::NoRunLost),
        (Plant::DoubledEffect, Promise::EffectAtMostOnce),
        (Plant::MissingAnnouncement, Promise::AnnouncedOnce),
        (Plant::StaleWrite, Promise::OwnersAlone),
        (Plant::StuckRun, Promise::NoRunStuck),
    ];
}

impl Scene {
    /// Makes the mistake in the database, or in the ledger.
    pub(super) async fn plant(&self, plant: Plant) -> io::Result<()> {
        let root = "(SELECT min(id) FROM posse.runs WHERE depth = 0)";
        let statements = match plant {
            Plant::DoubledEffect => {
                let again = format!("{}{}\n", self.ledger(), story::nonces(1)[0]);
                return std::fs::write(self.ledger_file(), again);
            }
            Plant::LostRun => format!(
                "DELETE FROM posse.events WHERE run = {root}; DELETE FROM posse.runs WHERE id = {root}"
            ),
            // The positions after it move up, as if it had never been stored.
            Plant::MissingAnnouncement => format!(
                "CREATE TEMP TABLE gone AS SELECT run, max(seq) AS seq FROM posse.events \
                 WHERE run = {root} AND body LIKE '%\"announce\":\"followup\"%' \
                 AND body LIKE '{{\"type\":\"message_received\"%' GROUP BY run; \
                 DELETE FROM posse.events USING gone \
                 WHERE events.run = gone.run AND events.seq = gone.seq; \
                 UPDATE posse.events SET seq = -events.seq FROM gone \
                 WHERE events.run = gone.run AND events.seq > gone.seq; \
                 UPDATE posse.events SET seq = -seq - 1 WHERE seq < 0"
            ),
            Plant::StaleWrite => format!(
                "SET application_name = 'posse 01STALE'; \
                 INSERT INTO posse.events (run, seq, at, version, body, hash) \
                 SELECT run, 9999, at, version, body, hash FROM posse.events WHERE run = {root} \
                 AND body LIKE '{{\"type\":\"tool_started\"%' LIMIT 1"
            ),
            Plant::StuckRun => format!(
                "DELETE FROM posse.events WHERE run = {root} \
                 AND body LIKE '{{\"type\":\"run_finished\"%'"
            ),
        };
        self.site.node.sql(DATABASE, &statements).await.map(|_| ())
    }
}
