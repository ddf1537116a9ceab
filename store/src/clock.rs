//! The clock of a store: wall time for people, and steady time for leases.

use std::time::{SystemTime, UNIX_EPOCH};

/// Tells a store the time.
///
/// Leases use only the steady time. So a change of the wall clock neither takes a run from its
/// owner nor gives it a second one.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970, for people.
    fn wall_ms(&self) -> u64;

    /// Milliseconds since the machine started, including time in suspend.
    fn steady_ms(&self) -> u64;

    /// The id of this boot of the machine. Steady times of different boots cannot be compared.
    fn boot(&self) -> &str;
}

/// The clock of this machine.
pub struct MachineClock {
    boot: String,
}

impl MachineClock {
    /// Reads the boot id of the machine.
    pub fn new() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        MachineClock { boot: boot.trim().to_owned() }
    }
}

impl Default for MachineClock {
    fn default() -> Self {
        MachineClock::new()
    }
}

impl Clock for MachineClock {
    fn wall_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }

    fn steady_ms(&self) -> u64 {
        #[cfg(target_os = "linux")]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = rustix::time::ClockId::Monotonic;
        let now = rustix::time::clock_gettime(clock);
        now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
    }

    fn boot(&self) -> &str {
        &self.boot
    }
}
