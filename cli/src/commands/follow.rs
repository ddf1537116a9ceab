//! Following runs on the screen until they end, or until a signal asks to stop.

use crate::exit::{Code, Failure};
use crate::print;
use crate::screen::Screen;
use crate::signals::Signals;
use crate::view::RunView;
use posse::protocol::{Event, Outcome, Seq};
use posse::{RunHandle, Runtime, Update};
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
    /// This signal came.
    Signal(&'static str),
}

/// Shows a run until it ends or a signal comes.
pub async fn follow(
    run: &RunHandle,
    after: Seq,
    form: Form,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<Followed, Failure> {
    let mut events = run.events(after);
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    loop {
        let update = tokio::select! {
            update = events.next() => update,
            signal = signals.next() => return Ok(Followed::Signal(signal)),
            _ = ticks.tick() => {
                screen.tick();
                continue;
            }
        };
        let Some(update) = update else {
            return Err(Failure::internal("the run ended without saying how"));
        };
        let update = update?;
        match form {
            Form::Screen => screen.show(&update),
            Form::StreamJson => stream_json(&update),
            Form::Json => {}
        }
        if let Update::Event(record) = &update
            && let Event::RunFinished(finished) = &record.event
        {
            return Ok(Followed::Ended(finished.outcome.clone()));
        }
    }
}

fn stream_json(update: &Update) {
    match update {
        Update::Event(record) => print::json(record),
        Update::Delta(delta) => print::json(delta),
    }
}

/// Shows how a run ended and returns the exit code.
pub async fn conclude(
    runtime: &Runtime,
    run: &RunHandle,
    outcome: &Outcome,
    form: Form,
    screen: &mut Screen,
) -> Result<Code, Failure> {
    match form {
        Form::Screen => screen.finish(outcome),
        Form::Json => {
            let row = runtime.find(&run.id().to_string()).await?;
            print::json_pretty(&RunView::of(&row).with_text(outcome));
        }
        Form::StreamJson => {}
    }
    Ok(Code::of(outcome))
}

/// Ends orderly after a signal: nothing is lost. A second signal ends at once.
pub async fn shut_down(runtime: &Runtime, signals: &mut Signals, screen: &mut Screen, why: &str) {
    screen.note(&format!("{why}: stopping; once more stops at once"));
    tokio::select! {
        () = runtime.shutdown() => {}
        _ = signals.next() => std::process::exit(Code::Interrupted as i32),
    }
}
