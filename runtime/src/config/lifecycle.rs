//! What becomes of runs that have ended, as settings files say it.

use super::Config;
use super::table::Row;
use crate::limits::LONGEST_MINUTES;
use std::time::Duration;

/// What becomes of runs that have ended, and when. Ages count from a run's end, by the store's
/// wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// When a run is archived, once its whole tree has ended; without it, never. Those that an agent
    /// has started which says less are archived sooner.
    pub archive_after: Option<Duration>,
    /// When an archived run loses its log; without it, never. What it cost is kept.
    pub retention: Option<Duration>,
    /// When a run loses its log that was to lose it at its end: a little later, so that whoever
    /// watches sees that end. One that may have changed something is archived then, and keeps it.
    pub removal_after: Duration,
    /// How often it is looked for such runs.
    pub every: Duration,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Lifecycle {
            archive_after: Some(Duration::from_secs(7 * 24 * 3_600)),
            retention: None,
            removal_after: Duration::from_secs(60),
            every: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// What becomes of runs that have ended, as a runtime takes it.
    pub fn lifecycle(&self) -> Lifecycle {
        let minutes = Some(self.archive_after_minutes.value).filter(|minutes| *minutes > 0);
        let days = self.retention_days.value;
        Lifecycle {
            archive_after: minutes.map(|minutes| Duration::from_secs(minutes * 60)),
            retention: days.map(|days| Duration::from_secs(days * 24 * 3_600)),
            ..Lifecycle::default()
        }
    }
}

/// Minutes after which runs are archived that no setting says anything about.
pub(super) fn usual_minutes() -> u64 {
    Lifecycle::default().archive_after.map_or(0, |after| after.as_secs() / 60)
}

pub(super) fn minutes(minutes: &u64, row: &Row) -> Result<(), String> {
    let can_be = format!("it can be up to {LONGEST_MINUTES}, and 0 is never");
    let is_fine = *minutes <= LONGEST_MINUTES;
    if is_fine { Ok(()) } else { Err(row.wrong(format!(" is {minutes}: {can_be}"))) }
}

pub(super) fn days(days: &u64, row: &Row) -> Result<(), String> {
    let longest = LONGEST_MINUTES / 60 / 24;
    let can_be = format!("it can be 1 to {longest}; leave it out to keep logs for ever");
    let is_fine = (1..=longest).contains(days);
    if is_fine { Ok(()) } else { Err(row.wrong(format!(" is {days}: {can_be}"))) }
}
