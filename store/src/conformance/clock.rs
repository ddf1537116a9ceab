//! A clock that can be moved.

use super::WallJump;
use crate::clock::{Clock, MachineClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// The clock of the machine, with an offset, and an adjustable wall clock.
#[derive(Default)]
pub struct MovableClock {
    machine: MachineClock,
    passed_ms: AtomicU64,
    wall_off_ms: AtomicI64,
}

impl MovableClock {
    /// A clock that shows the time of the machine.
    pub fn new() -> Arc<Self> {
        Arc::new(MovableClock::default())
    }

    /// Moves the clock forward.
    pub fn pass(&self, time: Duration) {
        self.passed_ms.fetch_add(milliseconds(time), Ordering::SeqCst);
    }

    /// Sets the wall clock.
    pub fn set_wall(&self, by: WallJump) {
        let by_ms = match by {
            WallJump::Forwards(time) => milliseconds(time) as i64,
            WallJump::Back(time) => -(milliseconds(time) as i64),
        };
        self.wall_off_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for MovableClock {
    fn wall_ms(&self) -> u64 {
        let passed_ms = self.passed_ms.load(Ordering::SeqCst);
        let wall_ms = self.machine.wall_ms().saturating_add(passed_ms);
        wall_ms.saturating_add_signed(self.wall_off_ms.load(Ordering::SeqCst))
    }

    fn steady_ms(&self) -> u64 {
        self.machine.steady_ms().saturating_add(self.passed_ms.load(Ordering::SeqCst))
    }

    fn boot(&self) -> &str {
        self.machine.boot()
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
