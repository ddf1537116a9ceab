//! The host's end of the pipe that keeps a command alive. Letting go of it kills the command
//! and all it started; that is a matter of the kernel and the supervisor, so it works when the
//! host dies, and when nobody polls.

use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio_util::sync::CancellationToken;

/// A supervisor reads its order at once.
const LONGEST_SEND: Duration = Duration::from_secs(10);

/// Holds a command. Dropping it lets go.
pub(super) struct Leash {
    pipe: Option<ChildStdin>,
    supervisor: Option<Pid>,
}

impl Leash {
    pub(super) fn of(process: &mut Child) -> Leash {
        let supervisor = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Leash { pipe: process.stdin.take(), supervisor }
    }

    /// Tells the supervisor what to do. When that fails it is gone, which the caller notices
    /// by its report missing; when it takes long, it is no supervisor, and is let go.
    pub(super) async fn send(&mut self, order: &[u8], cancel: &CancellationToken) {
        let Some(pipe) = &mut self.pipe else { return };
        let sent = tokio::select! {
            // What is cancelled before it begins never runs.
            biased;
            () = cancel.cancelled() => false,
            sent = pipe.write_all(order) => sent.is_ok(),
            () = tokio::time::sleep(LONGEST_SEND) => false,
        };
        if !sent {
            self.cut();
        }
    }

    pub(super) fn holds(&self) -> bool {
        self.pipe.is_some()
    }

    /// Lets go.
    pub(super) fn cut(&mut self) {
        // Closed without telling anyone: there is nothing to flush.
        if self.pipe.take().is_some()
            && let Some(supervisor) = self.supervisor
        {
            // A command may have stopped its supervisor; then it would not notice.
            let _ = kill_process(supervisor, Signal::CONT);
        }
    }

    /// The supervisor is gone, and its number may soon be another's.
    pub(super) fn forget(&mut self) {
        self.supervisor = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.cut();
    }
}
