//! How a command that follows a run stops: orderly after a signal, and at once after a second one.

use super::Viewer;
use crate::exit::{Code, Failure};
use crate::print;
use crate::signals::Signal;
use posse::{RunHandle, RunId, Runtime};
use std::time::Duration;

/// How long storing that runs were interrupted may take.
const STORING: Duration = Duration::from_secs(5);

impl Viewer {
    /// Ends orderly after a signal; a second signal ends at once. Nothing is lost. What Ctrl-C
    /// stops stays interrupted until somebody resumes it; what another signal stops goes on like
    /// after a crash. Returns what to say of `run`.
    pub async fn shut_down(
        &mut self,
        runtime: &Runtime,
        run: &RunHandle,
        signal: Signal,
    ) -> Failure {
        let again = match signal {
            Signal::Interrupt => "Press Ctrl-C again to stop now",
            Signal::Terminate | Signal::Hangup => "A second signal stops it now",
        };
        self.screen.note(&format!("{signal}: Posse stops after the current step. {again}"));
        let short = run.id().short();
        let failure = match signal {
            Signal::Interrupt => match self.interrupt(runtime).await {
                Ok(runs) => {
                    let others = runs.iter().filter(|other| **other != run.id()).count() as u64;
                    let kept = match others {
                        0 => format!("run {short} is kept"),
                        others => format!(
                            "run {short} is kept, and so {} that this command had continued",
                            match others {
                                1 => "is 1 other run".to_owned(),
                                others => format!("are {others} other runs"),
                            }
                        ),
                    };
                    let message = format!("interrupted by {signal}; {kept}");
                    Failure { code: Code::Interrupted, message, hint: None }.hint(format!(
                        "`posse runs resume {short}` continues it, `posse runs cancel {short}` cancels \
                         it"
                    ))
                }
                Err(failure) => failure,
            },
            Signal::Terminate | Signal::Hangup => {
                let message = format!("stopped by {signal}; run {short} is kept");
                Failure { code: Code::Interrupted, message, hint: None }.hint(format!(
                    "`posse runs resume {short}`, or the next `posse run` in its folder, continues it"
                ))
            }
        };
        self.close(runtime).await;
        self.screen.pause();
        failure
    }

    /// Stores that a person has interrupted what this process works on. Not before this is done
    /// is another signal heard, so that it holds even if the process ends at once.
    pub async fn interrupt(&mut self, runtime: &Runtime) -> Result<Vec<RunId>, Failure> {
        self.interrupted = true;
        let stored = tokio::time::timeout(STORING, runtime.interrupt("the user")).await;
        let why = match stored {
            Ok(Ok(runs)) => return Ok(runs),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the database does not answer".to_owned(),
        };
        let message = format!("interrupted, but that could not be stored: {why}");
        Err(Failure { code: Code::Interrupted, message, hint: None }.hint(
            "the next `posse run` in this folder continues the run; `posse runs cancel` cancels it",
        ))
    }

    /// Ends orderly. A signal ends at once, but for SIGHUP: a terminal that is closed sends it more
    /// than once.
    pub async fn close(&mut self, runtime: &Runtime) {
        let again = async {
            loop {
                match self.signal().await {
                    Signal::Hangup => {}
                    signal => break signal,
                }
            }
        };
        tokio::select! {
            () = runtime.shutdown() => {}
            signal = again => {
                self.screen.pause();
                if signal == Signal::Interrupt
                    && !self.interrupted
                    && let Err(failure) = self.interrupt(runtime).await
                {
                    print::note(&failure.message);
                }
                print::note("stopped now; `posse runs list --unfinished` shows the runs that are kept");
                std::process::exit(Code::Interrupted as i32)
            }
        }
    }
}
