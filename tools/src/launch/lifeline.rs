//! The lifeline: the host's end of the pipe that keeps a command alive. When the host closes it, the
//! supervisor kills the command and all processes that it started. The kernel closes the pipe when the
//! host dies, so this works without any code of the host, and without polling a future.

use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio_util::sync::CancellationToken;

/// How long to send an order. A supervisor reads its order at once.
const LONGEST_SEND: Duration = Duration::from_secs(10);

/// Keeps a command alive. Dropping the value ends the command.
pub(super) struct Lifeline {
    pipe: Option<ChildStdin>,
    supervisor: Option<Pid>,
}

impl Lifeline {
    pub(super) fn of(process: &mut Child) -> Lifeline {
        let supervisor = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Lifeline { pipe: process.stdin.take(), supervisor }
    }

    /// Sends the order to the supervisor. If that fails, the supervisor is gone, and the caller notices
    /// the missing report. If it takes too long, the process is no supervisor, and the lifeline is cut.
    pub(super) async fn send(&mut self, order: &[u8], cancel: &CancellationToken) {
        let Some(pipe) = &mut self.pipe else { return };
        let sent = tokio::select! {
            // A command that is cancelled before it begins never runs.
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

    /// Closes the pipe, which ends the command.
    pub(super) fn cut(&mut self) {
        // Taking the pipe drops it, which closes it. There is nothing to flush.
        if self.pipe.take().is_some()
            && let Some(supervisor) = self.supervisor
        {
            // A command may have stopped its supervisor, which then would not notice.
            let _ = kill_process(supervisor, Signal::CONT);
        }
    }

    /// Forgets the process id of the supervisor, which has ended. The system may reuse the id.
    pub(super) fn forget(&mut self) {
        self.supervisor = None;
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.cut();
    }
}
