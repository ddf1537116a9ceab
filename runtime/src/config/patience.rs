//! How long runs put up with a provider in trouble, as settings files say it.

use super::{Origin, Setting};
use posse_agent::Patience;
use serde::Deserialize;
use std::time::Duration;

/// How long runs put up with a provider, and where each value came from.
#[derive(Clone, Debug)]
pub struct PatienceSettings {
    /// Calls made again, between two replies.
    pub retries: Setting<u32>,
    /// The wait before the first of them, in milliseconds.
    pub first_wait_ms: Setting<u64>,
    /// The longest of the doubled waits, in milliseconds.
    pub longest_wait_ms: Setting<u64>,
    /// All waits together, between two replies, in seconds.
    pub total_wait_s: Setting<u64>,
    /// How long a reply may make no progress, in milliseconds.
    pub stall_ms: Setting<u64>,
}

impl PatienceSettings {
    /// How often and how long calls are made again.
    pub fn patience(&self) -> Patience {
        Patience {
            retries: self.retries.value,
            first_wait: Duration::from_millis(self.first_wait_ms.value),
            longest_wait: Duration::from_millis(self.longest_wait_ms.value),
            total_wait: Duration::from_secs(self.total_wait_s.value),
            ..Patience::default()
        }
    }

    /// How long a reply may make no progress.
    pub fn stall(&self) -> Duration {
        Duration::from_millis(self.stall_ms.value)
    }

    pub(super) fn usual() -> Self {
        let Patience { retries, first_wait, longest_wait, total_wait, .. } = Patience::default();
        let stall = posse_model::Options::default().stall;
        PatienceSettings {
            retries: Setting::default(retries),
            first_wait_ms: Setting::default(first_wait.as_millis() as u64),
            longest_wait_ms: Setting::default(longest_wait.as_millis() as u64),
            total_wait_s: Setting::default(total_wait.as_secs()),
            stall_ms: Setting::default(stall.as_millis() as u64),
        }
    }

    /// Takes over what a file says.
    pub(super) fn set(&mut self, file: FilePatience, origin: &Origin) -> Result<(), String> {
        let most = LONGEST.as_millis() as u64;
        let bounds = [
            ("first_wait_ms", file.first_wait_ms, 1, most),
            ("longest_wait_ms", file.longest_wait_ms, 1, most),
            ("total_wait_s", file.total_wait_s, 0, LONGEST.as_secs()),
            ("stall_ms", file.stall_ms, 100, most),
        ];
        for (key, value, least, most) in bounds {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                return Err(format!(
                    "in [patience]: `{key}` is {value}: it can be {least} to {most}"
                ));
            }
        }
        self.retries.set(file.retries, origin);
        self.first_wait_ms.set(file.first_wait_ms, origin);
        self.longest_wait_ms.set(file.longest_wait_ms, origin);
        self.total_wait_s.set(file.total_wait_s, origin);
        self.stall_ms.set(file.stall_ms, origin);
        Ok(())
    }
}

/// The longest that anything may wait.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilePatience {
    retries: Option<u32>,
    first_wait_ms: Option<u64>,
    longest_wait_ms: Option<u64>,
    total_wait_s: Option<u64>,
    stall_ms: Option<u64>,
}

impl FilePatience {
    /// Whether it says nothing.
    pub(super) fn is_empty(&self) -> bool {
        let numbers = [self.first_wait_ms, self.longest_wait_ms, self.total_wait_s, self.stall_ms];
        self.retries.is_none() && numbers.iter().all(Option::is_none)
    }
}
