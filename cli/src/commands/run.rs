//! `posse run`: one task, one answer.

use super::follow::{Followed, Followee, Form, Until, Viewer, interrupted};
use super::{Common, Pickup, folder, spec};
use crate::args::RunOptions;
use crate::exit::{Code, Failure};
use crate::view;
use posse::config::{AutoResume, Config};
use posse::protocol::Seq;
use posse::store::{Filter, Unfinished};
use posse::{RunHandle, RunId, RunRow, Runtime, Status};
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
    let mut viewer = Viewer::new(&common, form)?;
    let runtime = common.runtime(&config, Pickup::Folder(folder.clone())).await?;
    let result = async {
        // First of all the run itself: the look at others can wait, a person does not like to.
        let run = runtime.start(spec).await?;
        let mut others = unfinished(&runtime, &config, &folder).await?;
        // A key may have found a run that nobody executes.
        let run = runtime.resume(run.id());
        announce(&mut viewer, &others, run.id());
        let code = follow_to_end(&runtime, &run, Seq::ZERO, &mut viewer).await?;
        // Some may have been taken up unseen, between the opening and the look.
        others.extend(unfinished(&runtime, &config, &folder).await?);
        wait_for_others(&runtime, others, run.id(), &mut viewer).await;
        Ok(code)
    }
    .await;
    viewer.close(&runtime).await;
    result
}

/// Follows `run` from after `after` to its end. After a signal the runtime is shut down.
pub async fn follow_to_end(
    runtime: &Runtime,
    run: &RunHandle,
    after: Seq,
    viewer: &mut Viewer,
) -> Result<Code, Failure> {
    match viewer.follow(runtime, &mut Followee::new(run.clone(), after), Until::Rest).await? {
        Followed::Ended(outcome) => viewer.conclude(runtime, run, &outcome).await,
        Followed::Rests(row) => {
            viewer.screen.note(&format!("run {} waits; see `posse runs show`", row.id.short()));
            Ok(Code::Done)
        }
        Followed::Signal(signal) => {
            viewer.shut_down(runtime, signal).await;
            Err(interrupted(run, signal))
        }
    }
}

/// Runs in this folder that were interrupted and go on now.
pub async fn unfinished(
    runtime: &Runtime,
    config: &Config,
    folder: &Path,
) -> Result<Vec<RunId>, Failure> {
    if config.recovery.value == AutoResume::Wait {
        return Ok(Vec::new());
    }
    let filter = Filter {
        workspace: Some(folder.display().to_string()),
        unfinished: Unfinished::Only,
        limit: 1_000,
        ..Filter::default()
    };
    let rows = runtime.list(&filter).await?;
    let resumed = |row: &RunRow| match row.status {
        Status::Interrupted | Status::Queued => true,
        _ => runtime.handle(row.id).executed_here().is_some(),
    };
    Ok(rows.into_iter().filter(resumed).map(|row| row.id).collect())
}

fn announce(viewer: &mut Viewer, others: &[RunId], new: RunId) {
    let others: Vec<String> = others.iter().filter(|run| **run != new).map(RunId::short).collect();
    if !others.is_empty() {
        let runs = if others.len() == 1 { "run" } else { "runs" };
        let others = others.join(", ");
        viewer.screen.remark(&format!("going on with unfinished {runs} in this folder: {others}"));
    }
}

/// Waits for runs that were found unfinished, until a signal comes.
async fn wait_for_others(
    runtime: &Runtime,
    mut others: Vec<RunId>,
    own: RunId,
    viewer: &mut Viewer,
) {
    others.sort();
    others.dedup();
    others.retain(|run| *run != own);
    let busy = others.iter().filter(|run| runtime.handle(**run).executed_here().is_some()).count();
    if busy > 0 {
        let runs = view::count(busy as u64, "other run");
        viewer.screen.remark(&format!("waiting for {runs}; Ctrl-C leaves, they are kept"));
    }
    for other in others {
        let handle = runtime.handle(other);
        let rested = tokio::select! {
            rested = handle.at_rest() => rested,
            _ = viewer.signals.next() => return,
        };
        let Ok(row) = rested else { continue };
        let line = match row.outcome {
            Some(_) => crate::clean::clean_line(&row.note, 200),
            None => row.status.to_string(),
        };
        viewer.screen.remark(&format!("run {}: {line}", other.short()));
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
        (None, None) => return Err(Failure::usage("there is nothing to do").hint(SAY)),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty").hint(SAY));
    }
    Ok(text)
}

const SAY: &str = "say what to do: posse run \"what does this project do?\"";

fn read_prompt(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(MAX_PROMPT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > MAX_PROMPT {
        return Err(Failure::usage(format!("the prompt in {name} is larger than 4 MiB"))
            .hint("put it into a file in the folder, and name that file in the prompt"));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("the prompt in {name} is not valid UTF-8")))
}
