//! For test builds only: dies as by `kill -9`, panics or stops at a named point of the code.

#![expect(
    clippy::disallowed_methods,
    reason = "test builds are told by the environment where to die"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Arms the point in `POSSE_PANICPOINT`: `name text` panics there with the text.
fn arm_panic() {
    let Ok(wanted) = std::env::var("POSSE_PANICPOINT") else { return };
    if let Some((name, text)) = wanted.split_once(' ') {
        let _ = fail::cfg(name, &format!("panic({text})"));
    }
}

/// Arms the point in `POSSE_STOPPOINT`: the process stops there the first time, until a SIGCONT.
fn arm_stop() {
    let Ok(name) = std::env::var("POSSE_STOPPOINT") else { return };
    let passed = AtomicU32::new(0);
    let stop = move || {
        if passed.fetch_add(1, Ordering::AcqRel) == 0 {
            let (this, stop) = (rustix::process::getpid(), rustix::process::Signal::STOP);
            // The signal may arrive within the call or a moment later. This loop ends once the
            // process has been stopped, whenever that was.
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

/// Arms the point in `POSSE_FAILPOINT`: `name`, or `name:n` for the n-th time that it is reached.
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
    // An unknown name does nothing: the harness notices that the process did not die.
    let _ = fail::cfg_callback(name, die);
}
