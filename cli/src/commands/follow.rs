//! Following runs until they end or rest, or until a signal asks to stop.

use super::Common;
use super::runs::PAGE;
use crate::exit::{Code, Failure};
use crate::print;
use crate::screen::{Screen, Volume};
use crate::signals::{Signal, Signals};
use crate::view::RunView;
use posse::protocol::{Event, Outcome, Seq};
use posse::{Events, RunHandle, RunRow, Runtime, Update};
use std::time::Duration;

/// How a run is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Screen,
    /// One JSON object at the end.
    Json,
    /// Every update as a line of JSON.
    StreamJson,
}

/// How following ended.
pub enum Followed {
    /// The run ended.
    Ended(Outcome),
    /// The run waits until something is appended to it.
    Rests(Box<RunRow>),
    /// This signal came.
    Signal(Signal),
}

/// How long a run is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until it ends or waits.
    Rest,
    /// Until it ends, however often it waits meanwhile.
    End,
}

/// A run that is followed, and how far.
pub struct Followee {
    pub run: RunHandle,
    events: Events,
    shown: Seq,
    /// The epoch of this process's claim to it, once it was seen to execute it.
    claim: Option<u64>,
}

impl Followee {
    /// Follows `run` from after `after` on.
    pub fn new(run: RunHandle, after: Seq) -> Self {
        Followee { events: run.events(after), run, shown: after, claim: None }
    }

    /// Follows a run that was only just started, and `events` of it from its beginning on.
    pub fn started(run: RunHandle, events: Events) -> Self {
        Followee { events, run, shown: Seq::ZERO, claim: None }
    }
}

/// Shows runs, and hears signals meanwhile.
pub struct Viewer {
    pub form: Form,
    pub screen: Screen,
    pub signals: Signals,
}

impl Viewer {
    pub fn new(common: &Common, form: Form) -> Result<Self, Failure> {
        let quiet = common.global.quiet || form != Form::Screen;
        let volume = if quiet { Volume::Quiet } else { Volume::Usual };
        let screen = Screen::new(volume, common.environment.no_color);
        Ok(Viewer { form, screen, signals: Signals::listen()? })
    }

    /// Lets the screen know what those events refer to that come after `row`, the run as it is
    /// found.
    pub async fn recall(&mut self, runtime: &Runtime, row: &RunRow) -> Result<(), Failure> {
        let mut after = Seq::ZERO;
        loop {
            let page = runtime.read(row.id, after, PAGE).await?;
            for record in page.iter().take_while(|record| record.seq <= row.last_seq) {
                self.screen.recall(record);
            }
            match page.last() {
                Some(last) if last.seq < row.last_seq => after = last.seq,
                _ => return Ok(()),
            }
        }
    }

    /// Shows a run until then, or until a signal comes. May be called again to go on.
    pub async fn follow(
        &mut self,
        runtime: &Runtime,
        followee: &mut Followee,
        until: Until,
    ) -> Result<Followed, Failure> {
        let run = followee.run.clone();
        let mut rest = std::pin::pin!(run.at_rest());
        let mut looking = true;
        let mut rested: Option<RunRow> = None;
        // Each turn of a session is a claim of its own.
        followee.claim = None;
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        let mut checks = tokio::time::interval(Duration::from_secs(1));
        loop {
            followee.claim = followee.claim.max(run.executed_here());
            // What happened before the rest is shown before it is believed.
            if let Some(row) = rested.take_if(|row| row.last_seq <= followee.shown) {
                match until {
                    Until::Rest => return Ok(Followed::Rests(Box::new(row))),
                    Until::End => self.end_turn()?,
                }
            }
            let update = tokio::select! {
                biased;
                signal = self.signals.next() => return Ok(Followed::Signal(signal)),
                update = followee.events.next() => update,
                row = &mut rest, if looking => {
                    (looking, rested) = (false, Some(row?));
                    continue;
                }
                _ = ticks.tick() => {
                    self.screen.tick();
                    continue;
                }
                _ = checks.tick() => {
                    self.look_who_executes(runtime, followee).await?;
                    continue;
                }
            };
            let Some(update) = update else {
                return Err(Failure::internal(format!("run {} is archived", run.id())));
            };
            if let Some(outcome) = self.show(followee, &update?)? {
                self.look_who_executes(runtime, followee).await?;
                return Ok(Followed::Ended(outcome));
            }
            if !looking && rested.is_none() {
                looking = true;
                rest.set(run.at_rest());
            }
        }
    }

    /// Shows what was said last, if it has not been shown.
    pub fn end_turn(&mut self) -> Result<(), Failure> {
        match self.form {
            Form::Screen => self.screen.end_turn(),
            Form::Json | Form::StreamJson => Ok(()),
        }
    }

    fn show(
        &mut self,
        followee: &mut Followee,
        update: &Update,
    ) -> Result<Option<Outcome>, Failure> {
        match self.form {
            // With JSON at the end the screen is quiet, and only remembers.
            Form::Screen | Form::Json => self.screen.show(update),
            Form::StreamJson => match update {
                Update::Event(record) => print::json(record)?,
                Update::Delta(delta) => print::json(delta)?,
            },
        }
        let Update::Event(record) = update else { return Ok(None) };
        followee.shown = record.seq;
        match &record.event {
            Event::RunFinished(finished) => Ok(Some(finished.outcome.clone())),
            _ => Ok(None),
        }
    }

    /// Tells when another process has taken the run over, because this one was silent too long.
    /// Its claim is later than ours was.
    async fn look_who_executes(
        &mut self,
        runtime: &Runtime,
        followee: &mut Followee,
    ) -> Result<(), Failure> {
        let Some(ours) = followee.claim else { return Ok(()) };
        let row = runtime.find(&followee.run.id().to_string()).await?;
        if row.epoch <= ours {
            return Ok(());
        }
        followee.claim = Some(row.epoch);
        self.screen.pause();
        print::note(format!(
            "another process has taken over run {}: this one was stopped for too long. \
             Nothing it still does for the run is stored; following the run there",
            row.id.short()
        ));
        Ok(())
    }

    /// Shows how a run ended and returns the exit code.
    pub async fn conclude(
        &mut self,
        runtime: &Runtime,
        run: &RunHandle,
        outcome: &Outcome,
    ) -> Result<Code, Failure> {
        match self.form {
            Form::Screen => self.screen.finish(outcome)?,
            Form::Json => {
                let row = runtime.find(&run.id().to_string()).await?;
                print::json_pretty(&RunView::of(&row).with_text(outcome.text()))?;
            }
            Form::StreamJson => {}
        }
        Ok(Code::of(outcome))
    }

    /// Ends orderly after a signal: nothing is lost. A second signal ends at once.
    pub async fn shut_down(&mut self, runtime: &Runtime, signal: Signal) {
        self.screen.note(&format!("{signal}: finishing the present step; once more stops at once"));
        self.close(runtime).await;
    }

    /// Ends orderly. A signal ends at once.
    pub async fn close(&mut self, runtime: &Runtime) {
        tokio::select! {
            () = runtime.shutdown() => {}
            _ = self.signals.next() => {
                self.screen.pause();
                print::note("stopped at once; `posse runs list --unfinished` shows what is kept");
                std::process::exit(Code::Interrupted as i32)
            }
        }
    }
}

/// What is told when a signal has ended the following of `run`.
pub fn interrupted(run: &RunHandle, signal: Signal) -> Failure {
    Failure {
        code: Code::Interrupted,
        message: format!("interrupted by {signal}; run {} is kept", run.id().short()),
        hint: Some(format!("`posse runs resume {}` goes on with it", run.id().short())),
    }
}
