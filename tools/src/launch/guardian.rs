//! The guardian: the parent process of a supervisor. A command can find its supervisor, which is its parent,
//! and may kill it. The kernel then hands the command's processes to the guardian, which kills them.
//!
//! Guardian and supervisor each clean up if the other dies, and each has its own process group. Only a
//! command that kills both at the same moment escapes.

use super::supervisor::{CLEAN_UP, LEAVE, LONGEST_CHECK, Preparations, Reaper, wait_for};
use crate::linux;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long to sleep while nothing happens.
const UNDISTURBED: Duration = Duration::from_secs(3600);

/// How often to send CONT to a supervisor that should be killing, in case it was stopped.
const NUDGE: Duration = Duration::from_millis(100);

/// How much longer than the supervisor the guardian waits.
const SLACK: Duration = Duration::from_millis(500);

/// Waits for the supervisor to end. If it does not exit with status 0, kills all processes that are
/// left. The supervisor writes to `killed` after it has killed everything, and then cleans up.
pub(super) fn guard(supervisor: Pid, killed: &OwnedFd, surroundings: &Preparations) {
    let _ = let_go_of_output();
    let mut reaper = Reaper::of(supervisor);
    // If the exit cannot be watched, do not wait: kill the tree at once.
    let exit = linux::watch_exit(supervisor);
    let _ = exit.and_then(|exit| wait_for_exit(supervisor, &exit, killed));
    reaper.reap();
    let ended_by_itself = reaper.status.is_some_and(|status| status.exit_status() == Some(0));
    if !ended_by_itself {
        reaper.kill_all();
        surroundings.clean_up();
    }
}

/// Closes our copies of the output. The host reads until the supervisor's end, and must not wait for us.
fn let_go_of_output() -> io::Result<()> {
    let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    Ok(rustix::stdio::dup2_stderr(&nowhere)?)
}

/// What the guardian knows about a supervisor that has not ended.
#[derive(Default)]
struct Known {
    /// When the host let go of the lifeline.
    let_go: Option<Instant>,
    /// When all processes of the command were dead.
    killed: Option<Instant>,
}

impl Known {
    /// Returns when to stop waiting for the supervisor. Killing has a short limit. The inspection after
    /// it must be able to finish, however many files the command left.
    fn until(&self) -> Option<Instant> {
        let let_go = self.let_go?;
        match self.killed {
            Some(killed) => killed.max(let_go).checked_add(LONGEST_CHECK),
            None => let_go.checked_add(LEAVE + CLEAN_UP + SLACK),
        }
    }
}

/// Returns when the supervisor has ended, or when its time since the host let go is over.
fn wait_for_exit(supervisor: Pid, exit: &OwnedFd, killed: &OwnedFd) -> io::Result<()> {
    let lifeline = io::stdin();
    let mut known = Known::default();
    loop {
        let time = if known.let_go.is_some() { NUDGE } else { UNDISTURBED };
        let mut events = vec![PollFd::new(exit, PollFlags::IN)];
        // Do not poll events that have already happened: they would wake us all the time.
        if known.let_go.is_none() {
            events.push(PollFd::new(&lifeline, PollFlags::IN));
        }
        if known.killed.is_none() {
            events.push(PollFd::new(killed, PollFlags::IN));
        }
        wait_for(&mut events, time)?;
        let mut happened = events.iter().map(|event| !event.revents().is_empty());
        if happened.next().unwrap_or(true) {
            return Ok(());
        }
        let mut learn = |when: &mut Option<Instant>| {
            if when.is_none() && happened.next().unwrap_or(false) {
                *when = Some(Instant::now());
            }
        };
        learn(&mut known.let_go);
        learn(&mut known.killed);
        if known.until().is_some_and(|until| Instant::now() >= until) {
            return Ok(());
        }
        if known.let_go.is_some() {
            // A command may have stopped its supervisor, which then could not act.
            let _ = kill_process(supervisor, Signal::CONT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_kill_has_its_time_and_to_look_at_what_is_left_has_more() {
        let begin = Instant::now();
        let after = |seconds| Some(begin + Duration::from_secs(seconds));
        let until = |let_go, killed| Known { let_go, killed }.until();
        assert_eq!(until(None, None), None);
        assert_eq!(until(None, after(1)), None, "the host has patience");
        let patience = LEAVE + CLEAN_UP + SLACK;
        assert_eq!(until(after(1), None), Some(begin + Duration::from_secs(1) + patience));
        assert_eq!(until(after(1), after(3)), after(3).map(|it| it + LONGEST_CHECK));
        assert_eq!(until(after(4), after(3)), after(4).map(|it| it + LONGEST_CHECK));
    }
}
