//! The time for the age of ended runs. Old runs are archived and their logs removed for good, so a
//! wall clock that is suddenly far ahead is not trusted at once.
//!
//! A note next to the database records the last look at the clocks by any process. The steady clock
//! of this boot tells how much time has passed since then. A wall clock that is further ahead is
//! trusted after it has been so for an hour. So on a machine that was off for a year, runs become
//! old an hour later. A clock that was a year ahead for a while makes no run old.

use crate::clock::Clock;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

/// How far the wall clock may be ahead of the expected time, in milliseconds.
const STRAY_MS: u64 = 10 * 60_000;
/// How long a clock that is further ahead must stay so to be trusted, in milliseconds.
const LASTING_MS: u64 = 60 * 60_000;
/// How often a look without news is recorded, in milliseconds.
const NOTED_MS: u64 = 60_000;

pub(super) struct Calendar {
    file: PathBuf,
    clock: Arc<dyn Clock>,
    /// The last look of this process, in case the note cannot be written.
    last: Mutex<Option<Look>>,
}

/// A look at the clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Look {
    /// The boot of the machine.
    boot: String,
    /// The steady time in that boot, in milliseconds.
    steady_ms: u64,
    /// The trusted time: milliseconds since 1970.
    wall_ms: u64,
    /// The offset of a wall clock that is not trusted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead: Option<Ahead>,
}

/// A wall clock that is far ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ahead {
    /// Since when, in steady milliseconds.
    since_ms: u64,
    /// How far it is ahead of the steady clock.
    offset_ms: u64,
}

impl Calendar {
    pub(super) fn new(database: &Path, clock: Arc<dyn Clock>) -> Self {
        let mut file = database.as_os_str().to_owned();
        file.push("-clock");
        Calendar { file: PathBuf::from(file), clock, last: Mutex::default() }
    }

    /// Returns the trusted time: milliseconds since 1970. Without an earlier look, it starts from
    /// the time of the `newest` event.
    pub(super) fn now_ms(&self, newest: impl FnOnce() -> Option<u64>) -> u64 {
        let mut last = self.last.lock();
        let known = self.noted().or_else(|| last.take());
        let (steady_ms, wall_ms) = (self.clock.steady_ms(), self.clock.wall_ms());
        let boot = self.clock.boot();
        let before = known.clone().unwrap_or_else(|| Look {
            boot: boot.to_owned(),
            steady_ms,
            wall_ms: newest().unwrap_or(wall_ms),
            ahead: None,
        });
        let now = before.look_again(boot, steady_ms, wall_ms);
        if known.is_none_or(|known| now.is_news_after(&known)) {
            // If the note cannot be written, `last` keeps the look.
            let _ = self.note(&now);
        }
        let now_ms = now.wall_ms;
        *last = Some(now);
        now_ms
    }

    fn noted(&self) -> Option<Look> {
        serde_json::from_slice(&fs::read(&self.file).ok()?).ok()
    }

    fn note(&self, look: &Look) -> io::Result<()> {
        let mut new = self.file.clone().into_os_string();
        new.push(format!("-{}", std::process::id()));
        let new = PathBuf::from(new);
        // A process with this number may have died here.
        let _ = fs::remove_file(&new);
        let mut options = fs::OpenOptions::new();
        options.create_new(true).write(true).mode(0o600);
        let written = options
            .open(&new)
            .and_then(|file| serde_json::to_writer(file, look).map_err(io::Error::from))
            .and_then(|()| fs::rename(&new, &self.file));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}

impl Look {
    /// Returns the next look, given the values of the clocks.
    fn look_again(&self, boot: &str, steady_ms: u64, wall_ms: u64) -> Look {
        let same_boot = self.boot == boot && steady_ms >= self.steady_ms;
        // It is not known how long the machine was off.
        let passed_ms = if same_boot { steady_ms - self.steady_ms } else { 0 };
        let at_least_ms = self.wall_ms.saturating_add(passed_ms);
        let look = |wall_ms, ahead| Look { boot: boot.to_owned(), steady_ms, wall_ms, ahead };
        if wall_ms <= at_least_ms.saturating_add(STRAY_MS) {
            return look(wall_ms, None);
        }
        let offset_ms = wall_ms.saturating_sub(steady_ms);
        let before = self.ahead.clone().filter(|before| {
            same_boot
                && before.since_ms <= steady_ms
                && before.offset_ms.abs_diff(offset_ms) <= STRAY_MS
        });
        let ahead = before.unwrap_or(Ahead { since_ms: steady_ms, offset_ms });
        if steady_ms - ahead.since_ms >= LASTING_MS {
            return look(wall_ms, None);
        }
        look(at_least_ms, Some(ahead))
    }

    /// Returns true if the next process must know about this look.
    fn is_news_after(&self, noted: &Look) -> bool {
        self.boot != noted.boot
            || self.ahead != noted.ahead
            || self.wall_ms < noted.wall_ms
            || self.steady_ms.abs_diff(noted.steady_ms) >= NOTED_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const YEAR: u64 = 365 * 24 * HOUR;
    const NOW: u64 = 1_800_000_000_000;

    fn at(steady_ms: u64, wall_ms: u64) -> Look {
        Look { boot: "one".to_owned(), steady_ms, wall_ms, ahead: None }
    }

    /// Returns the trusted time of each look: a boot, the steady clock, the wall clock.
    fn times(first: Look, looks: &[(&str, u64, u64)]) -> Vec<u64> {
        let mut last = first;
        let times = looks.iter().map(|(boot, steady, wall)| {
            last = last.look_again(boot, *steady, *wall);
            last.wall_ms
        });
        times.collect()
    }

    #[test]
    fn a_clock_that_goes_as_it_should_is_believed() {
        let looks = [("one", 60_000, NOW + 60_000), ("one", 70 * HOUR, NOW + 70 * HOUR)];
        assert_eq!(times(at(0, NOW), &looks), [NOW + 60_000, NOW + 70 * HOUR]);
        // A little ahead, or behind.
        assert_eq!(times(at(0, NOW), &[("one", 0, NOW + 60_000)]), [NOW + 60_000]);
        assert_eq!(times(at(0, NOW), &[("one", 0, NOW - YEAR)]), [NOW - YEAR]);
    }

    #[test]
    fn a_clock_that_is_ahead_for_a_while_is_not_believed() {
        let looks = [
            ("one", 1_000, NOW + YEAR),
            ("one", HOUR, NOW + YEAR + HOUR),
            ("one", HOUR + 2_000, NOW + HOUR + 2_000),
            // Ahead again: the hour starts anew.
            ("one", 2 * HOUR, NOW + YEAR + 2 * HOUR),
        ];
        let expected = [NOW + 1_000, NOW + HOUR, NOW + HOUR + 2_000, NOW + 2 * HOUR];
        assert_eq!(times(at(0, NOW), &looks), expected);
    }

    #[test]
    fn a_clock_that_stays_ahead_is_believed_after_an_hour() {
        let later = NOW + YEAR;
        // The machine was off for a year.
        let looks = [
            ("two", 5_000, later),
            ("two", 5_000 + HOUR / 2, later + HOUR / 2),
            ("two", 5_000 + HOUR, later + HOUR),
        ];
        assert_eq!(times(at(0, NOW), &looks), [NOW, NOW + HOUR / 2, later + HOUR]);
        // The clock jumps meanwhile.
        let looks = [("two", 5_000, later), ("two", 5_000 + HOUR, later + 9 * HOUR)];
        assert_eq!(times(at(0, NOW), &looks), [NOW, NOW + HOUR]);
    }
}
