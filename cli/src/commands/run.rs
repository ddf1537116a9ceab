//! `posse run`: one task, one answer.

use super::asking::{first_asked, waits_for_answer};
use super::cassette::Deck;
use super::follow::{Followed, Followee, Form, Until, Viewer, interrupted};
use super::rest::{busy_below, has_work, heads, rested};
use super::runs::resume::paused;
use super::{Common, background, folder, reason, spec};
use crate::args::RunOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::view;
use posse::config::{AutoResume, Config};
use posse::store::{Filter, Unfinished};
use posse::{Begun, RunId, RunRow, RunSpec, Runtime, Status};
use serde_json::Value;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// The largest prompt that is read.
const MAX_PROMPT: u64 = 4 << 20;

/// What a command line asks for.
pub struct Asked {
    pub folder: PathBuf,
    pub config: Config,
    pub spec: RunSpec,
}

impl Asked {
    pub fn read(common: &Common, options: &RunOptions) -> Result<Self, Failure> {
        let prompt = prompt(options)?;
        let folder = folder(options.agent.cwd.as_ref())?;
        let config = common.config(&folder)?;
        let mut spec = spec(&options.agent, &config, &folder, Some(prompt))?;
        spec.key = options.key.clone();
        // Who wants a form for programs is asked nothing.
        spec.attended &= !common.global.json && !options.stream_json;
        // Money that may be spent is that of everyone who works on the task.
        spec.budget.cost = spec.budget.cost.into_iter().chain(spec.limits.cost).min();
        spec.label = options.label.clone().unwrap_or_default();
        spec.priority = options.priority;
        spec.output_schema = options.output_schema.as_deref().map(schema).transpose()?;
        Ok(Asked { folder, config, spec })
    }
}

pub async fn run(mut common: Common, options: RunOptions) -> Result<Code, Failure> {
    if options.background {
        return background::run(&common, &options).await;
    }
    let place = folder(options.agent.cwd.as_ref())?;
    let mut changed = None;
    match options.agent.trust {
        true => common.trust_for_now(&place)?,
        false => changed = common.review_changes(&place, !options.stream_json)?,
    }
    let Asked { folder, mut config, spec } = Asked::read(&common, &options)?;
    let form = match (common.global.json, options.stream_json) {
        (true, _) => Form::Json,
        (_, true) => Form::StreamJson,
        _ => Form::Screen,
    };
    let mut viewer = Viewer::new(&common, form)?;
    let mut deck = Deck::open(&options.cassette, &folder, &common.environment)?;
    // Where there is a daemon, it goes on with what others have left.
    if deck.is_used() || common.daemon().await.is_some() {
        config.recovery.value = AutoResume::Wait;
    }
    let agents = common.agents(&folder, &options.agent.agents)?;
    let runtime = common.runtime_with(&config, agents, deck.cassette()).await?;
    let result = async {
        viewer.warn_of_agents(&runtime, spec.agent.as_str());
        match &changed {
            Some(changed) => viewer.screen.remark(changed),
            None => viewer.warn_of_trust(&runtime, &config, &spec.agent),
        }
        common.tell_unused(&folder, &mut viewer.screen)?;
        deck.announce(&mut viewer.screen);
        let selection = runtime.select(&spec).await?;
        let why = reason(&selection, &spec, &config);
        viewer.screen.because(&selection.model, why);
        // First of all the run itself: the look at others can wait, a person does not like to.
        let (begun, events) = runtime.start_and_watch(spec).await?;
        let (mut others, left) = take_up(&runtime, &config, &folder, begun.run()).await?;
        // A key may have found a run that nobody executes.
        let run = runtime.resume(begun.run());
        if let Begun::Found(run) = begun {
            let short = run.short();
            let found =
                format!("run {short} has this key already; it is followed, none is started");
            viewer.screen.remark(&found);
        }
        announce(&mut viewer, &others, left);
        let mut followee = Followee::started(run.clone(), events);
        let code = follow_to_end(&runtime, &mut followee, &mut viewer).await?;
        if runtime.find(&run.id().to_string()).await?.outcome.is_some() {
            wait_for_below(&common, &runtime, run.id(), &mut viewer).await?;
        }
        // Others may have been interrupted meanwhile.
        others.extend(take_up(&runtime, &config, &folder, run.id()).await?.0);
        wait_for_others(&runtime, others, &mut viewer).await?;
        Ok(code)
    }
    .await;
    viewer.close(&runtime).await;
    deck.close(result, &mut viewer.screen)
}

/// Follows a run to its end. After a signal the runtime is shut down.
pub async fn follow_to_end(
    runtime: &Runtime,
    followee: &mut Followee,
    viewer: &mut Viewer,
) -> Result<Code, Failure> {
    let followed = viewer.follow(runtime, followee, Until::Rest).await?;
    let run = &followee.run;
    match followed {
        Followed::Ended(outcome) => viewer.conclude(runtime, run, &outcome).await,
        Followed::Rests(row) if row.paused => {
            viewer.screen.note(&paused(&row));
            Ok(Code::Interrupted)
        }
        Followed::Rests(row) => {
            if let Some(question) = first_asked(runtime, [&*row]).await? {
                return Err(waits_for_answer(row.id, &question));
            }
            viewer.screen.note(&format!("run {} waits; see `posse runs show`", row.id.short()));
            Ok(Code::Done)
        }
        Followed::Signal(signal) => {
            viewer.shut_down(runtime, signal).await;
            Err(interrupted(run, signal))
        }
    }
}

/// Goes on with runs in this folder, other than `own`, that were interrupted. Returns them, and
/// why others are left as they are: their model cannot be had here.
async fn take_up(
    runtime: &Runtime,
    config: &Config,
    folder: &Path,
    own: RunId,
) -> Result<(Vec<RunId>, Vec<String>), Failure> {
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    if config.recovery.value == AutoResume::Wait {
        return Ok((taken, left));
    }
    let mut rows = unfinished(runtime, folder).await?;
    rows.retain(|row| row.root != own);
    for head in heads(runtime, &rows).await? {
        let models = rows.iter().filter(|row| row.root == head.root);
        match models.map(|row| runtime.check_model(&row.model)).find_map(Result::err) {
            None => taken.push(runtime.resume(head.id).id()),
            Some(error) => {
                let why = clean_line(&error.to_string(), 200);
                left.push(format!("run {} waits: {why}", head.id.short()));
            }
        }
    }
    Ok((taken, left))
}

/// Runs in this folder that nobody executes, or that are executed here.
pub async fn unfinished(runtime: &Runtime, folder: &Path) -> Result<Vec<RunRow>, Failure> {
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
    Ok(rows.into_iter().filter(resumed).collect())
}

fn announce(viewer: &mut Viewer, others: &[RunId], left: Vec<String>) {
    for line in left {
        viewer.screen.remark(&line);
    }
    let others: Vec<String> = others.iter().map(RunId::short).collect();
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
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    others.sort();
    others.dedup();
    let mut busy = 0;
    for other in &others {
        busy += u64::from(has_work(runtime, *other).await?);
    }
    if busy > 0 {
        let runs = view::count(busy, "other run");
        viewer.screen.remark(&format!("waiting for {runs}; Ctrl-C leaves, they are kept"));
    }
    for other in others {
        let rested = tokio::select! {
            rested = rested(runtime, other) => rested,
            _ = viewer.signals.next() => return Ok(()),
        };
        if let Ok(row) = rested {
            tell_rest(&row, viewer);
        }
    }
    Ok(())
}

/// Says how a run stands that was waited for.
fn tell_rest(row: &RunRow, viewer: &mut Viewer) {
    let line = match row.outcome {
        Some(_) => clean_line(&row.note, 200),
        None => row.status.to_string(),
    };
    viewer.screen.remark(&format!("run {}: {line}", row.id.short()));
}

/// Waits for those that are still at work below `run`, which does not wait for them, until a signal
/// comes. Without a daemon nobody would go on with them.
pub async fn wait_for_below(
    common: &Common,
    runtime: &Runtime,
    run: RunId,
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    let mut is_told = false;
    loop {
        let below = busy_below(runtime, run).await?;
        if below.is_empty() || common.daemon().await.is_some() {
            return Ok(());
        }
        if !std::mem::replace(&mut is_told, true) {
            let runs = view::count(below.len() as u64, "run");
            let told =
                format!("waiting for {runs} in the background; Ctrl-C leaves, they are kept");
            viewer.screen.remark(&told);
        }
        for below in below {
            let row = tokio::select! {
                row = rested(runtime, below) => row?,
                _ = viewer.signals.next() => return Ok(()),
            };
            tell_rest(&row, viewer);
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
        (None, None) => return Err(Failure::usage("there is nothing to do").hint(SAY)),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty").hint(SAY));
    }
    Ok(text)
}

/// The largest schema that is read.
const MAX_SCHEMA: u64 = 1 << 20;

/// The JSON Schema in the file at `path`.
fn schema(path: &Path) -> Result<Value, Failure> {
    let name = path.display();
    let wrong = |reason: String| {
        Failure::usage(format!("{name} is no JSON Schema: {reason}"))
            .hint("it holds an object such as {\"type\": \"object\", \"properties\": {…}}")
    };
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    let mut text = String::new();
    file.take(MAX_SCHEMA + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    if text.len() as u64 > MAX_SCHEMA {
        return Err(wrong("it is larger than 1 MiB".to_owned()));
    }
    match serde_json::from_str(&text) {
        Ok(schema @ Value::Object(_)) => Ok(schema),
        Ok(_) => Err(wrong("it is not an object".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    }
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
