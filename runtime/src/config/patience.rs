//! How often and how long Posse retries model calls, according to settings files.

use super::Setting;
use super::table::settings;
use super::value::between;
use posse_agent::Patience;
use std::time::Duration;

/// The longest wait that can be set.
const LONGEST_S: u64 = 24 * 3600;
const LONGEST_MS: u64 = LONGEST_S * 1000;

settings! {
    /// How often and how long Posse retries model calls, and where each value came from.
    pub struct PatienceSettings, "patience.", from struct FilePatience {
        /// How often Posse retries a call; at most twice if a reply stalled or was invalid.
        retries: Setting<u32> = Patience::default().retries, Later, Anyone;
        /// How long Posse waits before the first retry, in milliseconds. Each later wait is twice as
        /// long, with jitter.
        first_wait_ms: Setting<u64> = milliseconds(Patience::default().first_wait),
            Later, Anyone, check between(1, LONGEST_MS);
        /// The longest of these waits, in milliseconds.
        longest_wait_ms: Setting<u64> = milliseconds(Patience::default().longest_wait),
            Later, Anyone, check between(1, LONGEST_MS);
        /// The limit of all waits together, in seconds. If the provider asks for a longer wait, Posse
        /// gives up at once.
        total_wait_s: Setting<u64> = Patience::default().total_wait.as_secs(),
            Later, Anyone, check between(0, LONGEST_S);
        /// How long a reply may make no progress, in milliseconds; at least 100. Pings do not count as
        /// progress.
        stall_ms: Setting<u64> = milliseconds(posse_model::Options::default().stall),
            Later, Anyone, check between(100, LONGEST_MS);
    }
}

impl PatienceSettings {
    /// How often and how long Posse retries model calls.
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
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}
