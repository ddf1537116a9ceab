//! `posse runs`: lists, follows and controls runs. One file per verb.

mod archive;
pub mod cancel;
mod clean;
mod export;
mod fetch;
mod list;
mod log;
mod pause;
mod prune;
mod questions;
pub mod resume;
mod send;
mod show;
mod targets;
pub mod tree;
pub mod verify;
mod watch;

use super::follow::Form;
use super::{Common, folder};
use crate::args::{Choice, RunsVerb, Targets};
use crate::exit::{Code, Failure};
use crate::print;
use posse::{Extent, Runtime};
use resume::More;
use serde_json::json;

/// The number of events on a page.
pub(super) const PAGE: usize = 500;

pub async fn run(common: Common, verb: RunsVerb) -> Result<Code, Failure> {
    let folder = folder(None)?;
    let config = match verb {
        RunsVerb::Resume { .. } => common.config(&folder)?,
        // Commands that only read or stop runs work in any folder, so read only the user's settings.
        _ => common.user_config()?,
    };
    if !common.has_database()? {
        return nothing_yet(&common, &verb);
    }
    let agents = common.agents(&folder, &[])?;
    let runtime = common.runtime(&config, agents).await?;
    let leaves_work = leaves_work(&verb);
    // The output may lack the newest events. Commands that write fail, and `verify` reports it.
    if !leaves_work && !matches!(verb, RunsVerb::Verify { .. }) && !common.global.quiet {
        warn_of_loss(&common, &runtime);
    }
    let result = act(&common, &runtime, verb).await;
    // Tell the daemon at once: the request is stored, and need not wait for the end of this process.
    if leaves_work {
        common.nudge_daemon().await;
    }
    runtime.shutdown().await;
    result
}

/// Warns if the database has lost data.
fn warn_of_loss(common: &Common, runtime: &Runtime) {
    if let Err(lost) = runtime.check_store()
        && !common.global.json
    {
        print::note(format!("warning: {lost}; {}", crate::exit::MEND));
    }
}

/// True for verbs that may leave work for other processes.
fn leaves_work(verb: &RunsVerb) -> bool {
    match verb {
        RunsVerb::Send { .. }
        | RunsVerb::Answer(_)
        | RunsVerb::Cancel(_)
        | RunsVerb::Pause { .. }
        | RunsVerb::Resume { .. } => true,
        RunsVerb::List(_)
        | RunsVerb::Show { .. }
        | RunsVerb::Tree(_)
        | RunsVerb::Log { .. }
        | RunsVerb::Questions { .. }
        | RunsVerb::Watch { .. }
        | RunsVerb::Verify { .. }
        | RunsVerb::Archive { .. }
        | RunsVerb::Clean(_)
        | RunsVerb::Prune(_)
        | RunsVerb::Fetch { .. }
        | RunsVerb::Export { .. } => false,
    }
}

fn nothing_yet(common: &Common, verb: &RunsVerb) -> Result<Code, Failure> {
    let json = common.global.json;
    match verb {
        RunsVerb::List(_) if json => print::json_pretty(&json!([]))?,
        RunsVerb::List(_) => print::note("no runs yet; `posse \"…\"` starts one"),
        RunsVerb::Verify { run: None } if json => {
            print::json_pretty(&json!({"runs": 0, "events": 0, "removed": 0, "damaged": []}))?;
        }
        RunsVerb::Verify { run: None } => print::note("no runs yet"),
        RunsVerb::Prune(_) if json => {
            print::json_pretty(&json!({"removed": false, "runs": [], "events": 0}))?;
        }
        RunsVerb::Prune(_) => print::note("no runs yet"),
        RunsVerb::Clean(_) | RunsVerb::Questions { run: None } if json => {
            print::json_pretty(&json!([]))?;
        }
        RunsVerb::Clean(_)
        | RunsVerb::Questions { run: None }
        | RunsVerb::Resume { all: true, .. }
        | RunsVerb::Cancel(Targets { choice: Choice { all: true, .. }, .. })
        | RunsVerb::Pause { targets: Targets { choice: Choice { all: true, .. }, .. }, .. }
        | RunsVerb::Send { choice: Choice { all: true, .. }, .. } => {
            // With JSON, they print one line per run.
            if !json {
                print::note("no runs yet");
            }
        }
        _ => {
            let database = common.database()?;
            let message = format!("there are no runs yet: {database} does not exist");
            return Err(Failure::usage(message)
                .hint("`posse \"…\"` starts one; --db names another database"));
        }
    }
    Ok(Code::Done)
}

/// Whether a pause or its end includes the subagents.
fn extent(alone: bool) -> Extent {
    if alone { Extent::Alone } else { Extent::Subtree }
}

async fn act(common: &Common, runtime: &Runtime, verb: RunsVerb) -> Result<Code, Failure> {
    // If nothing can be stored, a resumed run would wait for ever.
    if let RunsVerb::Resume { .. } = verb {
        runtime.check_store()?;
    }
    match verb {
        RunsVerb::List(options) => list::run(common, runtime, options).await,
        RunsVerb::Show { run } => show::run(common, runtime, &run).await,
        RunsVerb::Tree(options) => tree::run(common, runtime, &options).await,
        RunsVerb::Log { run, after } => log::run(common, runtime, &run, after).await,
        RunsVerb::Watch { run } => watch::run(common, runtime, &run).await,
        RunsVerb::Send { words, later, choice } => {
            send::run(common, runtime, &words, later, &choice).await
        }
        RunsVerb::Questions { run } => questions::list(common, runtime, run.as_deref()).await,
        RunsVerb::Answer(options) => questions::answer(common, runtime, &options).await,
        RunsVerb::Cancel(targets) => cancel::run(common, runtime, &targets).await,
        RunsVerb::Pause { targets, alone } => {
            pause::run(common, runtime, &targets, extent(alone)).await
        }
        RunsVerb::Resume { all: true, filters, .. } => resume::all(common, runtime, &filters).await,
        RunsVerb::Resume { run, text, alone, filters, .. } => {
            if !filters.is_empty() {
                let refused = Failure::usage("options that select runs need --all");
                let run = run.as_deref().filter(|_| filters.model.is_some());
                return Err(match run {
                    Some(run) => refused.hint(resume::with_another_model(run, None)),
                    None => refused,
                });
            }
            let row = runtime.find(&run.unwrap_or_default()).await?;
            let changed = common.review_changes(row.about.workspace.as_ref(), false)?;
            if let Some(changed) = changed.filter(|_| !common.global.quiet && !common.global.json) {
                print::note(changed);
            }
            let more = More { text, ..More::default() };
            let form = Form::of(common, false);
            resume::one(common, runtime, &row, more, extent(alone), form).await
        }
        RunsVerb::Verify { run } => verify::run(common, runtime, run.as_deref()).await,
        RunsVerb::Archive { runs } => archive::run(common, runtime, &runs).await,
        RunsVerb::Clean(options) => clean::run(common, runtime, &options).await,
        RunsVerb::Prune(options) => prune::run(common, runtime, options).await,
        RunsVerb::Fetch { run, branch } => {
            fetch::run(common, runtime, &run, branch.as_deref()).await
        }
        RunsVerb::Export { run, output } => export::run(common, runtime, &run, output).await,
    }
}
