//! What happens to runs that have ended, according to settings files.

use super::Config;
use super::table::Row;
use crate::limits::LONGEST_MINUTES;
use std::time::Duration;

/// What happens to runs that have ended, and when. Ages count from the end of a run, by the wall clock of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// When a run is archived, once its whole tree has ended; `None` is never. An agent can set a shorter time for the
    /// children of its runs.
    pub archive_after: Option<Duration>,
    /// When the log of an archived run is removed; `None` is never. Its costs are kept.
    pub retention: Option<Duration>,
    /// When the log of a run with `cleanup = delete` is removed: a little after its end, so that followers see the end.
    /// If the run may have changed something, it is archived instead and keeps its log.
    pub removal_after: Duration,
    /// How often Posse looks for such runs.
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
    /// What happens to runs that have ended, in the form that a runtime takes.
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

/// After how many minutes runs are archived by default.
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
