//! Stops a command that follows a run: orderly after a signal, at once after a second one.

use super::{FollowedRun, Form, Viewer};
use crate::commands::runs::PAGE;
use crate::exit::{Code, Failure};
use crate::print;
use crate::signals::Signal;
use posse::protocol::Event;
use posse::{RunHandle, RunId, Runtime, Update};
use std::time::Duration;

/// How long it may take to store the interruption.
const STORING: Duration = Duration::from_secs(5);

/// How long the present step may take, as at a shutdown.
const STEP: Duration = Duration::from_secs(5);

impl Viewer {
    /// Shows stored events that were not shown, after the last step has ended.
    async fn catch_up(
        &mut self,
        runtime: &Runtime,
        followee: &mut FollowedRun,
    ) -> Result<(), Failure> {
        let run = followee.run.id();
        loop {
            let page = runtime.read(run, followee.shown, PAGE).await?;
            if page.is_empty() {
                return Ok(());
            }
            for record in page {
                followee.shown = record.seq;
                // The person who pressed Ctrl-C knows that, and that it cuts a reply short.
                let is_known = matches!(record.event, Event::Paused(_) | Event::ModelFailed(_));
                if self.form != Form::Screen || !is_known {
                    self.show(followee, run, &Update::Event(Box::new(record)))?;
                }
            }
        }
    }

    /// Ends orderly after a signal, and shows the last events of the run; see
    /// [`Viewer::shut_down`].
    pub async fn shut_down_following(
        &mut self,
        runtime: &Runtime,
        followee: &mut FollowedRun,
        signal: Signal,
    ) -> Failure {
        let run = followee.run.clone();
        let failure = self.interrupted_by(runtime, &run, signal).await;
        let told = Some((&run, &failure));
        self.unless_hurried(runtime, told, runtime.let_go(STEP)).await;
        // Events that cannot be shown now are in the log.
        let _ = self.catch_up(runtime, followee).await;
        let ended = self.conclude_ended(runtime, &run).await;
        self.unless_hurried(runtime, told, runtime.shutdown()).await;
        self.screen.pause();
        match ended {
            true => Failure {
                code: Code::Interrupted,
                message: format!(
                    "run {} ended before {signal} could interrupt it",
                    run.id().short()
                ),
                hint: None,
            },
            false => failure,
        }
    }

    /// Shows the outcome of `run` if its present step was its last. Returns whether it was.
    async fn conclude_ended(&mut self, runtime: &Runtime, run: &RunHandle) -> bool {
        let row = run.row().await.ok();
        if row.is_none_or(|row| row.state.outcome.is_none()) {
            return false;
        }
        let Ok(outcome) = run.outcome().await else { return false };
        // Events that cannot be shown now are in the log.
        let _ = self.conclude(runtime, run, &outcome).await;
        true
    }

    /// Ends orderly after a signal; a second signal ends at once. Nothing is lost. Runs that Ctrl-C
    /// stops stay interrupted until a person resumes them. Runs that another signal stops continue
    /// like after a crash. Returns the message about `run`.
    pub async fn shut_down(
        &mut self,
        runtime: &Runtime,
        run: &RunHandle,
        signal: Signal,
    ) -> Failure {
        let failure = self.interrupted_by(runtime, run, signal).await;
        self.unless_hurried(runtime, Some((run, &failure)), runtime.shutdown()).await;
        self.screen.pause();
        failure
    }

    /// Stores that a person has interrupted the runs of this process, if the signal says so.
    /// Returns the message about `run`.
    async fn interrupted_by(
        &mut self,
        runtime: &Runtime,
        run: &RunHandle,
        signal: Signal,
    ) -> Failure {
        let again = match signal {
            Signal::Interrupt => "Press Ctrl-C again to stop now",
            Signal::Terminate | Signal::Hangup => "A second signal stops it now",
        };
        self.screen.note(&format!(
            "{signal}: Posse stops after the current step, or in {} s. {again}",
            STEP.as_secs()
        ));
        self.kept(runtime, run, signal).await
    }

    /// Stores what the signal says about the runs of this process. Returns the message about `run`.
    async fn kept(&mut self, runtime: &Runtime, run: &RunHandle, signal: Signal) -> Failure {
        let short = run.id().short();
        match signal {
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
        }
    }

    /// Stores that a person has interrupted the runs of this process. Signals are ignored until
    /// this is done, so that it holds even if the process ends at once.
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

    /// Ends orderly. A signal ends at once, except SIGHUP, which a closed terminal sends more than once.
    pub async fn close(&mut self, runtime: &Runtime) {
        self.unless_hurried(runtime, None, runtime.shutdown()).await;
    }

    /// Does `work`, unless a signal ends the process first. `told` is the run that the command is about,
    /// and the last message about it.
    async fn unless_hurried(
        &mut self,
        runtime: &Runtime,
        told: Option<(&RunHandle, &Failure)>,
        work: impl Future<Output = ()>,
    ) {
        let again = async {
            loop {
                match self.signal().await {
                    Signal::Hangup => {}
                    signal => break signal,
                }
            }
        };
        let signal = tokio::select! {
            () = work => return,
            signal = again => signal,
        };
        self.screen.pause();
        let is_news = signal == Signal::Interrupt && !self.interrupted;
        match told {
            Some((run, _)) if is_news => {
                print::failure(&self.kept(runtime, run, signal).await, self.tell);
            }
            Some((_, failure)) => print::failure(failure, self.tell),
            None => {
                if is_news && let Err(failure) = self.interrupt(runtime).await {
                    print::note(&failure.message);
                }
                print::note(
                    "stopped now; `posse runs list --unfinished` shows the runs that are kept",
                );
            }
        }
        // Git may run what a command left until that has been inspected. A further signal does not wait for it.
        let further = async { while self.signal().await == Signal::Hangup {} };
        tokio::select! {
            () = runtime.end_commands() => {}
            () = further => {}
        }
        std::process::exit(Code::Interrupted as i32)
    }
}
