//! What becomes of runs that have ended, as settings files say it.

use super::{Origin, Setting};
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

/// What becomes of runs that have ended, and where each value came from.
#[derive(Clone, Debug)]
pub struct LifecycleSettings {
    /// Minutes after its end when a run is archived; 0 is never.
    pub archive_after_minutes: Setting<u64>,
    /// Days after its end when an archived run loses its log; never, if nobody says.
    pub retention_days: Setting<Option<u64>>,
}

impl LifecycleSettings {
    /// As a runtime takes it.
    pub fn lifecycle(&self) -> Lifecycle {
        let minutes = Some(self.archive_after_minutes.value).filter(|minutes| *minutes > 0);
        let days = self.retention_days.value;
        Lifecycle {
            archive_after: minutes.map(|minutes| Duration::from_secs(minutes * 60)),
            retention: days.map(|days| Duration::from_secs(days * 24 * 3_600)),
            ..Lifecycle::default()
        }
    }

    pub(super) fn usual() -> Self {
        let minutes = Lifecycle::default().archive_after.map_or(0, |after| after.as_secs() / 60);
        LifecycleSettings {
            archive_after_minutes: Setting::default(minutes),
            retention_days: Setting::default(None),
        }
    }

    /// Takes over what a file says.
    pub(super) fn set(
        &mut self,
        minutes: Option<u64>,
        days: Option<u64>,
        origin: &Origin,
    ) -> Result<(), String> {
        if let Some(minutes) = minutes.filter(|minutes| *minutes > LONGEST_MINUTES) {
            return Err(format!(
                "`archive_after_minutes` is {minutes}: it can be up to {LONGEST_MINUTES}, and 0 is never"
            ));
        }
        let longest = LONGEST_MINUTES / 60 / 24;
        if let Some(days) = days.filter(|days| !(1..=longest).contains(days)) {
            return Err(format!(
                "`retention_days` is {days}: it can be 1 to {longest}; leave it out to keep logs for ever"
            ));
        }
        self.archive_after_minutes.set(minutes, origin);
        self.retention_days.set_some(days, origin);
        Ok(())
    }
}
