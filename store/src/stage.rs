//! What is stored before the transaction that shows it. That transaction can then be short.

use crate::bundle::Bundle;
use crate::chain::StoredEvent;
use std::sync::Arc;
use std::time::Duration;

/// Something that is stored and not shown.
#[derive(Clone, Debug)]
pub enum Piece {
    /// A bundle. It counts when an append names it, or a copy of its run.
    Bundle(Arc<Bundle>),
    /// The next events of a run that comes from another store. Nobody sees them before
    /// [`crate::Logs::bring`]. The first event begins again.
    Events(Vec<StoredEvent>),
}

impl Piece {
    /// How long a store keeps a piece that nothing shows. Then it may remove it. A worker that stages
    /// events keeps all logs that it brings, and their bundles: a large tree may take longer.
    pub const KEPT_FOR: Duration = Duration::from_secs(3_600);
}

/// [`Piece::KEPT_FOR`] in milliseconds.
pub(crate) const KEPT_FOR_MS: i64 = 3_600_000;

/// How often a worker that stages events keeps what it staged before.
pub(crate) const KEEP_EACH_MS: u64 = 900_000;

/// How often to stage again what was removed before the transaction that shows it.
pub(crate) const TRIES: u32 = 3;

/// The most events of a hidden log that one transaction removes. An erasure removes shorter logs itself.
pub(crate) const EVENTS_AT_ONCE: u64 = 1_000;

/// The most parts of a bundle that one transaction removes.
pub(crate) const PARTS_AT_ONCE: i64 = 4;
