//! `posse run`: one task, one answer.

use super::follow::{Followed, Form, conclude, follow, shut_down};
use super::{Common, Pickup, folder, spec};
use crate::args::RunOptions;
use crate::exit::{Code, Failure};
use crate::print;
use crate::screen::Screen;
use crate::signals::Signals;
use posse::protocol::Seq;
use posse::store::{Filter, Unfinished};
use posse::{RunHandle, RunId, Runtime, Status};
use std::io::{IsTerminal, Read};
use std::path::Path;

/// The largest prompt that is read.
const MAX_PROMPT: u64 = 4 << 20;

pub async fn run(common: Common, options: RunOptions) -> Result<Code, Failure> {
    let prompt = prompt(&options)?;
    let folder = folder(options.agent.cwd.as_ref())?;
    let config = common.config(&folder)?;
    let mut spec = spec(&options.agent, &config, &folder, Some(prompt))?;
    spec.key = options.key.clone();
    let form = match (common.global.json, options.stream_json) {
        (true, _) => Form::Json,
        (_, true) => Form::StreamJson,
        _ => Form::Screen,
    };
    let mut signals = Signals::listen()?;
    let mut screen = screen(&common, form);
    let runtime = common.runtime(&config, Pickup::Folder(folder.clone())).await?;
    let others = unfinished(&runtime, &folder).await?;
    let started = runtime.start(spec).await;
    let run = match started {
        Ok(run) => run,
        Err(error) => {
            runtime.shutdown().await;
            return Err(error.into());
        }
    };
    announce(&mut screen, &others, run.id());
    finish(&runtime, &run, others, form, &mut screen, &mut signals).await
}

pub fn screen(common: &Common, form: Form) -> Screen {
    Screen::new(common.global.quiet || form != Form::Screen, common.environment.no_color)
}

/// Follows `run` to its end, then waits for the runs that were found unfinished.
pub async fn finish(
    runtime: &Runtime,
    run: &RunHandle,
    others: Vec<RunId>,
    form: Form,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<Code, Failure> {
    let followed = follow(run, Seq::ZERO, form, screen, signals).await;
    let outcome = match followed {
        Ok(Followed::Ended(outcome)) => outcome,
        Ok(Followed::Signal(signal)) => {
            shut_down(runtime, signals, screen, signal).await;
            print::note(format!(
                "run {} is kept: `posse runs resume {}` goes on with it",
                run.id().short(),
                run.id()
            ));
            return Ok(Code::Interrupted);
        }
        Err(failure) => {
            runtime.shutdown().await;
            return Err(failure);
        }
    };
    let code = conclude(runtime, run, &outcome, form, screen).await?;
    wait_for_others(runtime, &others, run.id(), screen, signals).await;
    shut_down_quietly(runtime, signals).await;
    Ok(code)
}

async fn shut_down_quietly(runtime: &Runtime, signals: &mut Signals) {
    tokio::select! {
        () = runtime.shutdown() => {}
        _ = signals.next() => {}
    }
}

/// Runs that were interrupted in this folder and go on now.
pub async fn unfinished(runtime: &Runtime, folder: &Path) -> Result<Vec<RunId>, Failure> {
    let filter = Filter {
        workspace: Some(folder.display().to_string()),
        unfinished: Unfinished::Only,
        limit: 1_000,
        ..Filter::default()
    };
    let rows = runtime.list(&filter).await?;
    let resumed = |status: Status| matches!(status, Status::Interrupted | Status::Queued);
    Ok(rows.into_iter().filter(|row| resumed(row.status)).map(|row| row.id).collect())
}

fn announce(screen: &mut Screen, others: &[RunId], new: RunId) {
    let others: Vec<String> = others.iter().filter(|run| **run != new).map(RunId::short).collect();
    if !others.is_empty() {
        screen
            .note(&format!("going on with unfinished runs in this folder: {}", others.join(", ")));
    }
}

async fn wait_for_others(
    runtime: &Runtime,
    others: &[RunId],
    own: RunId,
    screen: &mut Screen,
    signals: &mut Signals,
) {
    for other in others.iter().filter(|run| **run != own) {
        let handle = runtime.handle(*other);
        tokio::select! {
            outcome = handle.outcome() => if let Ok(outcome) = outcome {
                screen.note(&format!("run {}: {}", other.short(), crate::clean::clean_line(&outcome.to_string(), 200)));
            },
            _ = signals.next() => return,
        }
    }
}

fn prompt(options: &RunOptions) -> Result<String, Failure> {
    let piped = !std::io::stdin().is_terminal();
    let text = match (&options.prompt, &options.prompt_file) {
        (Some(text), _) if text != "-" => text.clone(),
        (_, Some(path)) => {
            let file = std::fs::File::open(path);
            let file =
                file.map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
            read_prompt(file, &path.display().to_string())?
        }
        (Some(_), None) => read_prompt(std::io::stdin(), "standard input")?,
        (None, None) if piped => read_prompt(std::io::stdin(), "standard input")?,
        (None, None) => {
            return Err(Failure::usage("there is nothing to do")
                .hint("say what to do: posse run \"what does this project do?\""));
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty").hint("say what to do"));
    }
    Ok(text)
}

fn read_prompt(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(MAX_PROMPT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > MAX_PROMPT {
        return Err(Failure::usage(format!("the prompt in {name} is larger than 4 MiB")));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("the prompt in {name} is not valid UTF-8")))
}
