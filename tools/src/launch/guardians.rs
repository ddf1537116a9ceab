//! The guardians of the commands that a process has started and that may still be at work.
//!
//! A process that exits must not leave them behind: until a guardian has ended, git may run what its command
//! left.

use crate::linux;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use std::os::fd::OwnedFd;
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

/// The guardians of a launcher.
#[derive(Debug, Default)]
pub(super) struct Guardians {
    /// A descriptor for each, which becomes readable when it ends.
    exits: Mutex<Vec<OwnedFd>>,
    /// Fires when all commands must end.
    pub leaving: CancellationToken,
}

impl Guardians {
    /// Adds the guardian `started`, and forgets those that have ended.
    pub(super) fn add(&self, started: &Child) {
        let id = started.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let mut exits = self.exits.lock();
        exits.retain(|exit| !has_ended(exit));
        // Without such a descriptor, nobody can wait for it.
        exits.extend(id.and_then(|id| linux::watch_exit(id).ok()));
    }

    /// Returns true if one of them has not ended.
    pub(super) fn are_at_work(&self) -> bool {
        let mut exits = self.exits.lock();
        exits.retain(|exit| !has_ended(exit));
        !exits.is_empty()
    }
}

fn has_ended(exit: &OwnedFd) -> bool {
    let mut events = [PollFd::new(exit, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut events, Some(&now)).is_ok_and(|ready| ready > 0)
}
