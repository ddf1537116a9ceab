//! `posse run`: one task, one answer.

use super::asking::{first_asked_below, waits_for_answer};
use super::cassette::CommandCassette;
use super::follow::{Followed, FollowedRun, Form, Until, Viewer};
use super::prompt::prompt;
use super::rest::at_rest;
use super::{Common, again, background, folder, reason, spec};
use crate::args::RunOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::signals::Signal;
use posse::config::{AutoResume, Config};
use posse::is_open;
use posse::protocol::Place;
use posse::store::{Filter, Unfinished};
use posse::views::is_empty_chat;
use posse::{Extent, RunId, RunRow, RunSpec, Runtime, StartResult, Status};
use serde_json::Value;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The run that a command line describes.
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
        // A background run can ask later, through other commands.
        spec.rights.attended |= options.background && std::io::stdin().is_terminal();
        // A command with output for programs asks no questions.
        spec.rights.attended &= !common.global.json && !options.stream_json;
        spec.label = options.label.clone().unwrap_or_default();
        spec.priority = options.priority;
        spec.needs = options.needs.clone().unwrap_or_default();
        spec.place = match (&options.repo, options.no_files) {
            (Some(repository), _) => Some(Place::Repository(repository.clone())),
            (None, true) => Some(Place::Nowhere),
            (None, false) => None,
        };
        spec.output_schema = options.output_schema.as_deref().map(schema).transpose()?;
        Ok(Asked { folder, config, spec })
    }
}

pub async fn run(mut common: Common, options: RunOptions) -> Result<Code, Failure> {
    if let Some(earlier) = options.earlier() {
        return again::run(&mut common, &options, &earlier).await;
    }
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
    let form = Form::of(&common, options.stream_json);
    let mut viewer = Viewer::new(&common, form)?;
    let mut deck = CommandCassette::open(&options.cassette, &folder, &common.environment)?;
    // If there is a daemon, it continues runs that others left behind. A command that prints only its
    // answer must not spend money on other runs.
    let is_silent = form != Form::Screen || common.global.quiet;
    if deck.is_used() || is_silent || common.daemon().await.is_some() {
        config.recovery.value = AutoResume::Wait;
    }
    let agents = common.agents(&folder, &options.agent.agents)?;
    let runtime = common.runtime_with(&config, agents, deck.cassette()).await?;
    let result = async {
        viewer.warn_of_agents(&runtime, spec.agent.as_str());
        match &changed {
            Some(changed) => viewer.screen.remark(changed),
            None => viewer.warn_of_trust(&runtime, &config, spec.agent.as_str()),
        }
        common.tell_unused(&folder, &mut viewer.screen)?;
        common.tell_invoked(&runtime, &spec, &mut viewer.screen);
        deck.announce(&mut viewer.screen);
        let selection = runtime.select(&spec).await?;
        common.require_key(&selection)?;
        viewer.warn_of_models(&runtime, &selection);
        let why = reason(&selection, &spec, &config);
        viewer.screen.because(&selection.model, why);
        // Start the run first. The person waits for it, and not for the check of other runs.
        let (begun, events) = runtime.start_and_watch(spec).await?;
        let others = take_up(&runtime, &config, &folder, begun.run(), &mut viewer).await?;
        if let StartResult::Found(run) = begun {
            find_again(&runtime, run, &mut viewer).await?;
        }
        tell_interrupted(&common, &runtime, &folder, begun.run(), &mut viewer).await?;
        // A key may have found a run without a worker.
        let run = runtime.resume(begun.run());
        let mut followee = FollowedRun::started(run.clone(), events);
        let followed = follow_to_end(&runtime, &mut followee, &mut viewer).await;
        if matches!(&followed, Err(failure) if failure.code == Code::Interrupted) {
            return followed;
        }
        if run.row().await?.state.outcome.is_some() {
            wait_for_below(&common, &runtime, run.id(), &mut viewer).await?;
        }
        leave_others(&common, &runtime, run.id(), &others, &mut viewer).await?;
        followed
    }
    .await;
    viewer.close(&runtime).await;
    deck.close(result, &mut viewer.screen)
}

/// Follows a run to its end. Shuts the runtime down after a signal.
pub async fn follow_to_end(
    runtime: &Runtime,
    followee: &mut FollowedRun,
    viewer: &mut Viewer,
) -> Result<Code, Failure> {
    let followed = viewer.follow(runtime, followee, Until::Rest).await?;
    let run = &followee.run;
    match followed {
        Followed::Ended(outcome) => viewer.conclude(runtime, run, &outcome).await,
        Followed::Rests(row) if row.state.paused => {
            viewer.screen.note(&at_rest(&row));
            Ok(Code::Interrupted)
        }
        Followed::Rests(row) => {
            if let Some(question) = first_asked_below(runtime, &row).await? {
                return Err(waits_for_answer(row.id, &question));
            }
            viewer.screen.note(&at_rest(&row));
            Ok(Code::Done)
        }
        Followed::Signal(signal) => {
            Err(viewer.shut_down_following(runtime, followee, signal).await)
        }
    }
}

/// Says that a key has found `run`. If it was interrupted, resumes it: the person has asked for it again.
async fn find_again(runtime: &Runtime, run: RunId, viewer: &mut Viewer) -> Result<(), Failure> {
    let (row, short) = (runtime.find(&run.to_string()).await?, run.short());
    if row.state.interrupted {
        viewer.screen.remark(&format!("run {short} already has this key, and was interrupted: continuing it with the limits it was started with"));
        runtime.unpause(run, "the user", Extent::Subtree).await?;
        return Ok(());
    }
    let found = format!(
        "run {short} already has this key: following it, with its own limits, and starting no new run"
    );
    viewer.screen.remark(&found);
    Ok(())
}

/// Continues other runs in this folder that a crash or a closed terminal left unfinished, and returns
/// them. Runs whose model cannot be used here, and runs below a paused run, stay as they are.
async fn take_up(
    runtime: &Runtime,
    config: &Config,
    folder: &Path,
    own: RunId,
    viewer: &mut Viewer,
) -> Result<Vec<RunId>, Failure> {
    let mut taken = Vec::new();
    if config.recovery.value == AutoResume::Wait {
        return Ok(taken);
    }
    let mut rows = unfinished(runtime, folder).await?;
    rows.retain(|row| row.family.root != own);
    for head in runtime.heads(&rows).await?.into_iter().filter(|head| !head.state.paused) {
        let (short, about) = (head.id.short(), about(&head));
        if !runtime.may_take(&head) {
            // Another worker takes it, or it waits for one.
            if let Some(why) = runtime.why_nobody_takes(&head).await? {
                let why = clean_line(&why, 200);
                viewer.screen.remark(&format!("run {short} {about} {why}"));
            }
            continue;
        }
        let family = rows.iter().filter(|row| row.family.root == head.family.root);
        if family.clone().any(was_let_go) {
            viewer.screen.remark(&format!(
                "run {short} {about} is not done; to continue it: posse runs resume {short}"
            ));
            continue;
        }
        match family.map(|row| runtime.check_model(&row.about.model)).find_map(Result::err) {
            None => {
                taken.push(runtime.resume(head.id).id());
                viewer.screen.remark(&format!(
                    "continuing unfinished run {short} {about}; to cancel it: posse runs cancel {short}"
                ));
                viewer.warn_of_distrust(runtime, head.id).await?;
            }
            Some(error) => {
                let why = clean_line(&error.to_string(), 200);
                viewer.screen.remark(&format!("run {short} {about} waits: {why}"));
            }
        }
    }
    Ok(taken)
}

/// True for a run that an earlier command continued and left during a call. Calls that are cut short
/// cost money, so a short command must not start another.
fn was_let_go(row: &RunRow) -> bool {
    let (_, cut) = row.unsure();
    row.status == Status::Queued && cut > 1
}

/// The label or the title of a run, quoted.
fn about(row: &RunRow) -> String {
    format!(
        "\"{}\"",
        clean_line(
            if row.about.label.is_empty() { &row.about.title } else { &row.about.label },
            60
        )
    )
}

/// Tells a person at a terminal which run in this folder was interrupted, and how to continue it.
async fn tell_interrupted(
    common: &Common,
    runtime: &Runtime,
    folder: &Path,
    own: RunId,
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    if common.global.quiet || viewer.form != Form::Screen || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    let filter = Filter {
        workspace: Some(folder.display().to_string()),
        status: vec![Status::Interrupted],
        limit: 1_000,
        ..Filter::default()
    };
    let mut rows = runtime.list(&filter).await?;
    rows.retain(|row| row.family.root != own);
    let heads = runtime.heads(&rows).await?;
    let mut asking = runtime.list(&Filter { status: vec![Status::Waiting], ..filter }).await?;
    asking.retain(|row| row.family.root != own && row.state.asks > 0);
    if let Some(newest) = asking.first() {
        let (short, about) = (newest.id.short(), about(newest));
        let more = match asking.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more: posse runs questions)"),
        };
        viewer.screen.remark(&format!(
            "run {short} {about} waits for your answer{more}: posse runs questions {short}"
        ));
    }
    let Some(newest) = heads.first() else { return Ok(()) };
    let (short, about) = (newest.id.short(), about(newest));
    let more = match heads.len() - 1 {
        0 => String::new(),
        more => format!(" ({more} more: posse runs list --status interrupted)"),
    };
    viewer.screen.remark(&format!(
        "run {short} {about} was interrupted here and waits{more}\n  \
         resume it: posse runs resume {short}; end it: posse runs cancel {short}"
    ));
    Ok(())
}

/// The unfinished runs in this folder that have no worker, or that this process executes.
async fn unfinished(runtime: &Runtime, folder: &Path) -> Result<Vec<RunRow>, Failure> {
    let filter = Filter {
        workspace: Some(folder.display().to_string()),
        unfinished: Unfinished::Only,
        limit: 1_000,
        ..Filter::default()
    };
    let rows = runtime.list(&filter).await?;
    let resumed = |row: &RunRow| match row.status {
        _ if is_empty_chat(row) => false,
        Status::Crashed | Status::Queued => true,
        _ => runtime.handle(row.id).executed_here().is_some(),
    };
    Ok(rows.into_iter().filter(resumed).collect())
}

/// How long a command that has its result waits for the present steps of the other runs.
const MOMENT: Duration = Duration::from_millis(250);

/// Releases the runs that were continued besides `own`, which is done. A daemon or the next command
/// here continues them. Prints the status of each.
async fn leave_others(
    common: &Common,
    runtime: &Runtime,
    own: RunId,
    others: &[RunId],
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    if others.is_empty() {
        return Ok(());
    }
    // Active subagents of `own` may finish their step, as after any command.
    if runtime.busy_below(own).await?.is_empty() {
        runtime.let_go(MOMENT).await;
    }
    let has_daemon = common.daemon().await.is_some();
    for other in others {
        let row = runtime.find(&other.to_string()).await?;
        let short = other.short();
        match is_open(&row) {
            false => tell_rest(&row, viewer),
            true if has_daemon => {
                viewer.screen.remark(&format!("run {short} is not done; the daemon continues it"));
            }
            true => viewer.screen.remark(&format!(
                "run {short} is not done; to continue it: posse runs resume {short}"
            )),
        }
    }
    Ok(())
}

/// Prints the status of a run that the command waited for.
fn tell_rest(row: &RunRow, viewer: &mut Viewer) {
    let line = match row.state.outcome {
        Some(_) => clean_line(&row.state.note, 200),
        None => row.status.to_string(),
    };
    viewer.screen.remark(&format!("run {}: {line}", row.id.short()));
}

/// Waits for the active subagents that `run` does not wait for, until a signal arrives. Without a
/// daemon, no process would continue them.
pub async fn wait_for_below(
    common: &Common,
    runtime: &Runtime,
    run: RunId,
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    let mut is_told = false;
    loop {
        let below = runtime.busy_below(run).await?;
        if below.is_empty() || common.daemon().await.is_some() {
            return Ok(());
        }
        if !std::mem::replace(&mut is_told, true) {
            let runs = format::count(below.len() as u64, "run");
            let told = format!("waiting for {runs} in the background; Ctrl-C interrupts them");
            viewer.screen.remark(&told);
        }
        for below in below {
            runtime.resume(below);
            let row = tokio::select! {
                row = runtime.rested(below) => row?,
                signal = viewer.signal() => {
                    return match signal {
                        Signal::Interrupt => viewer.interrupt(runtime).await.map(drop),
                        Signal::Terminate | Signal::Hangup => Ok(()),
                    };
                }
            };
            tell_rest(&row, viewer);
        }
    }
}

/// The most bytes of a schema.
const MAX_SCHEMA: u64 = 1 << 20;

/// The JSON Schema in the file at `path`.
fn schema(path: &Path) -> Result<Value, Failure> {
    let name = path.display();
    let wrong = |reason: String| {
        Failure::usage(format!("{name} is not a JSON Schema: {reason}"))
            .hint("it must hold an object such as {\"type\": \"object\", \"properties\": {…}}")
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
