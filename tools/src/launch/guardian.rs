//! The process above a supervisor, which it forked off. A command knows its supervisor, as its
//! parent, and may kill it; what it had started then comes to the guardian, which kills it.
//!
//! Each of the two cleans up when the other dies, and each has a process group of its own. Only a
//! command that kills both in the same moment gets away.

use super::supervisor::{CLEAN_UP, LEAVE, LONGEST_LOOK, Reaper, Surroundings, wait_for};
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

/// Waits for the supervisor to end. If it did not end by itself, kills all that is left. The
/// supervisor writes to `killed` when it has killed all, and cleans up.
pub(super) fn guard(supervisor: Pid, killed: &OwnedFd, surroundings: &Surroundings) {
    let _ = let_go_of_output();
    let mut reaper = Reaper::of(supervisor);
    // Without a watch there is nothing to wait for: the tree must go.
    let exit = linux::watch_exit(supervisor);
    let _ = exit.and_then(|exit| wait_for_exit(supervisor, &exit, killed));
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

/// What is known of a supervisor that has not ended.
#[derive(Default)]
struct Known {
    /// Since when the host has let go.
    let_go: Option<Instant>,
    /// Since when all that the command started is dead.
    killed: Option<Instant>,
}

impl Known {
    /// When it had long enough. To kill has its time; what comes after that must be done to its end,
    /// however much the command has left to be looked at.
    fn until(&self) -> Option<Instant> {
        let let_go = self.let_go?;
        match self.killed {
            Some(killed) => killed.max(let_go).checked_add(LONGEST_LOOK),
            None => let_go.checked_add(LEAVE + CLEAN_UP + SLACK),
        }
    }
}

/// Returns when the supervisor has ended, or when it had long enough to do so since the host let
/// go.
fn wait_for_exit(supervisor: Pid, exit: &OwnedFd, killed: &OwnedFd) -> io::Result<()> {
    let leash = io::stdin();
    let mut known = Known::default();
    loop {
        let time = if known.let_go.is_some() { NUDGE } else { UNDISTURBED };
        let mut events = vec![PollFd::new(exit, PollFlags::IN)];
        // What is known would wake us all the time.
        if known.let_go.is_none() {
            events.push(PollFd::new(&leash, PollFlags::IN));
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
            // A command may have stopped its supervisor; then it would not notice.
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
        assert_eq!(until(after(1), after(3)), after(3).map(|it| it + LONGEST_LOOK));
        assert_eq!(until(after(4), after(3)), after(4).map(|it| it + LONGEST_LOOK));
    }
}
