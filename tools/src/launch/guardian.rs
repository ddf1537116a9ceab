//! The process above a supervisor, which it forked off. A command knows its supervisor, as its
//! parent, and may kill it; what it had started then comes to the guardian, which kills it.
//!
//! Each of the two cleans up when the other dies, and each has a process group of its own. Only a
//! command that kills both in the same moment gets away.

use super::supervisor::{CLEAN_UP, Reaper, Surroundings, wait_for};
use crate::linux;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long to sleep while nothing happens.
const UNDISTURBED: Duration = Duration::from_secs(3600);

/// How often a supervisor that should be killing is told to go on, in case it was stopped.
const NUDGE: Duration = Duration::from_millis(100);

/// How much longer than a supervisor's own patience ours is.
const SLACK: Duration = Duration::from_millis(500);

/// Waits for the supervisor to end. If it did not end by itself, kills all that is left.
pub(super) fn guard(supervisor: Pid, surroundings: &Surroundings) {
    let _ = let_go_of_output();
    let mut reaper = Reaper::of(supervisor);
    // Without a watch there is nothing to wait for: the tree must go.
    let _ = linux::watch_exit(supervisor).and_then(|exit| wait_for_exit(supervisor, &exit));
    reaper.reap();
    let ended_by_itself = reaper.status.is_some_and(|status| status.exit_status() == Some(0));
    if !ended_by_itself {
        reaper.kill_all();
        surroundings.clean_up();
    }
}

/// The report and the output end when the supervisor does: nobody must wait for us too.
fn let_go_of_output() -> io::Result<()> {
    let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    Ok(rustix::stdio::dup2_stderr(&nowhere)?)
}

/// Returns when the supervisor has ended, or when it had long enough to do so since the host let
/// go.
fn wait_for_exit(supervisor: Pid, exit: &OwnedFd) -> io::Result<()> {
    let leash = io::stdin();
    let mut let_go: Option<Instant> = None;
    loop {
        let mut events = [PollFd::new(exit, PollFlags::IN), PollFd::new(&leash, PollFlags::IN)];
        match let_go {
            None => wait_for(&mut events, UNDISTURBED)?,
            Some(_) => wait_for(&mut events[..1], NUDGE)?,
        }
        let ended = !events[0].revents().is_empty();
        let_go = let_go.or_else(|| (!events[1].revents().is_empty()).then(Instant::now));
        if ended || let_go.is_some_and(|since| since.elapsed() >= CLEAN_UP + SLACK) {
            return Ok(());
        }
        if let_go.is_some() {
            // A command may have stopped its supervisor; then it would not notice.
            let _ = kill_process(supervisor, Signal::CONT);
        }
    }
}
