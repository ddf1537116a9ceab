//! Test builds only: dies, as by `kill -9`, or stands still at a named point of the code.

#![expect(
    clippy::disallowed_methods,
    reason = "test builds are told by the environment where to die"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Arms the point that `POSSE_PANICPOINT` names: `name text` panics there with the text.
fn arm_panic() {
    let Ok(wanted) = std::env::var("POSSE_PANICPOINT") else { return };
    if let Some((name, text)) = wanted.split_once(' ') {
        let _ = fail::cfg(name, &format!("panic({text})"));
    }
}

/// Arms the point that `POSSE_STOPPOINT` names: the process stands still there, the first time, until
/// somebody lets it go on.
fn arm_stop() {
    let Ok(name) = std::env::var("POSSE_STOPPOINT") else { return };
    let passed = AtomicU32::new(0);
    let stop = move || {
        if passed.fetch_add(1, Ordering::AcqRel) == 0 {
            let (this, stop) = (rustix::process::getpid(), rustix::process::Signal::STOP);
            // The signal may reach this thread within the call or a moment later: it goes on once
            // it has stood still, whenever that was.
            let mut looked = Instant::now();
            let _ = rustix::process::kill_process(this, stop);
            while looked.elapsed() < Duration::from_secs(1) {
                looked = Instant::now();
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    };
    let _ = fail::cfg_callback(name, stop);
}

/// Arms the point that `POSSE_FAILPOINT` names: `name`, or `name:n` for the n-th time it is
/// passed.
pub fn arm() {
    arm_panic();
    arm_stop();
    let Ok(wanted) = std::env::var("POSSE_FAILPOINT") else { return };
    let (name, nth) = match wanted.split_once(':') {
        Some((name, nth)) => (name.to_owned(), nth.parse().unwrap_or(1)),
        None => (wanted, 1u32),
    };
    let passed = AtomicU32::new(0);
    let die = move || {
        if passed.fetch_add(1, Ordering::AcqRel) + 1 == nth {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
            std::process::abort();
        }
    };
    // A name nobody passes does nothing: the harness notices that the process did not die.
    let _ = fail::cfg_callback(name, die);
}
