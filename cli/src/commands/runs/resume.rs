//! `posse runs resume`: continues one run, or all unfinished runs.

use super::super::Common;
use super::super::asking::{first_asked, first_asked_below, waits_for_answer};
use super::super::follow::queue::why_it_waits;
use super::super::follow::{Followed, FollowedRun, Form, Until, Viewer};
use super::super::rest::at_rest;
use super::super::run::wait_for_below;
use super::targets;
use crate::args::Filters;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::is_open;
use posse::protocol::MessageOptions;
use posse::store::{Kin, Unfinished};
use posse::views::Tree;
use posse::{Extent, Outcome, RunHandle, RunRow, Runtime, Status};
use serde_json::json;
use std::time::Duration;

/// How long a resumed run may wait before this is said.
const WAITED: Duration = Duration::from_secs(1);

/// A message for the run before it continues.
#[derive(Default)]
pub struct More {
    pub text: Option<String>,
    pub asks: MessageOptions,
}

/// The message to a quarantined run that a person resumes without a text.
const TRY_AGAIN: &str = "Go on. The process that executed you died several times in a row, during the calls \
    that were interrupted. Do not repeat what may have ended it.";

/// Advice to continue a run with another model and the message `text`.
pub fn with_another_model(run: &str, text: Option<&str>) -> String {
    let said = text.filter(|text| text.len() <= 100 && text.chars().all(|it| !it.is_control()));
    // If the shell could change the message, the user has to repeat it.
    let said = match (said, text) {
        (Some(said), _) if !said.contains(['\'', '`', '\\']) => format!("'{said}'"),
        (_, Some(_)) => "\"…\"".to_owned(),
        (_, None) => "'go on'".to_owned(),
    };
    format!(
        "to use another model: `posse run --resume {run} --model MODEL {said}`; `posse models` shows \
         which models you can use now"
    )
}

pub async fn one(
    common: &Common,
    runtime: &Runtime,
    row: &RunRow,
    more: More,
    extent: Extent,
    form: Form,
) -> Result<Code, Failure> {
    let is_quarantined = row.state.outcome.as_deref() == Some(Outcome::QUARANTINED);
    let text = more.text.or_else(|| is_quarantined.then(|| TRY_AGAIN.to_owned()));
    let family = Tree::of(runtime, row).await?;
    let mut viewer = Viewer::new(common, form)?;
    let held = check(runtime, &family, row, text.as_deref(), extent, &viewer).await?;
    match &more.asks.model {
        Some(model) => runtime.check_model_for(row.id, model).await.map(drop)?,
        None => runtime.check_model(&row.about.model).map_err(|error| {
            Failure::from(error).hint(with_another_model(&row.id.short(), text.as_deref()))
        })?,
    }
    runtime.check_can_work().await?;
    // Without a person to answer, the run would only ask again.
    if text.is_some() && !viewer.can_ask() {
        let rows = std::iter::once(row).chain(family.below(row.id));
        if let Some(question) = first_asked(runtime, rows).await? {
            return Err(waits_for_answer(row.id, &question));
        }
    }
    let recalled = viewer.recall(runtime, row).await?;
    if let Some(text) = text {
        runtime.send_with(row.id, text, more.asks).await?;
    }
    if held {
        runtime.unpause(row.id, "the user", extent).await?;
    }
    // Also continue open runs below ended ones.
    for below in family.below(row.id).into_iter().filter(|below| is_open(below)) {
        runtime.resume(below.id);
    }
    let mut followee = FollowedRun::again(runtime.resume(row.id), recalled);
    let code = match viewer.follow(runtime, &mut followee, Until::Rest).await? {
        Followed::Ended(outcome) => {
            let code = viewer.conclude(runtime, &followee.run, &outcome).await?;
            wait_for_below(common, runtime, row.id, &mut viewer).await?;
            code
        }
        Followed::Rests(row) => {
            if viewer.form != Form::Json {
                viewer.screen.end_turn()?;
            }
            // Whatever the run waits for, its subagents continue first. They may have woken it.
            wait_for_below(common, runtime, row.id, &mut viewer).await?;
            let row = runtime.rested(row.id).await?;
            rests(runtime, &row, &mut viewer).await?
        }
        Followed::Signal(signal) => {
            return Err(viewer.shut_down_following(runtime, &mut followee, signal).await);
        }
    };
    tell_who_waits(runtime, row, &mut viewer).await?;
    viewer.close(runtime).await;
    Ok(code)
}

/// True when `row` is paused, or, with its subtree, when one of its subagents is.
fn is_held(family: &Tree, row: &RunRow, extent: Extent) -> bool {
    let is_held = |row: &RunRow| row.state.paused && row.state.outcome.is_none();
    let below = || family.below(row.id).into_iter().any(is_held);
    is_held(row) || (extent == Extent::Subtree && below())
}

/// Says which run above has work to do after the end of `row`, and that it has no worker.
async fn tell_who_waits(
    runtime: &Runtime,
    row: &RunRow,
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    let Some(parent) = row.family.parent else { return Ok(()) };
    let family = Tree::of(runtime, row).await?;
    let above =
        family.find(parent).filter(|above| above.work.runnable && above.work.owner.is_none());
    if let Some(above) = above.filter(|above| above.state.outcome.is_none()) {
        let short = above.id.short();
        let waits = format!("run {short} waited for it: `posse runs resume {short}` continues it");
        viewer.screen.remark(&waits);
    }
    Ok(())
}

/// Reports that the turn of a session is over.
async fn rests(runtime: &Runtime, row: &RunRow, viewer: &mut Viewer) -> Result<Code, Failure> {
    if let Some(question) = first_asked_below(runtime, row).await?.filter(|_| !row.state.paused) {
        viewer.screen.end_turn()?;
        return Err(waits_for_answer(row.id, &question));
    }
    if viewer.form == Form::Json {
        let family = Tree::of(runtime, row).await?;
        print::json_pretty(&family.view(row).with_text(viewer.screen.last_text()))?;
        return Ok(Code::Done);
    }
    viewer.end_turn()?;
    viewer.screen.remark(&at_rest(row));
    Ok(if row.state.paused { Code::Interrupted } else { Code::Done })
}

/// Fails if the run cannot continue as it is. A run with an open question can continue where `viewer`
/// can ask it. Returns whether the run, within `extent`, is paused or interrupted.
pub async fn check(
    runtime: &Runtime,
    family: &Tree,
    row: &RunRow,
    text: Option<&str>,
    extent: Extent,
    viewer: &Viewer,
) -> Result<bool, Failure> {
    let (held, standing) = (is_held(family, row, extent), family.standing(row));
    let is_left = |below: &&RunRow| below.can_go_on() && below.status != Status::Running;
    let leaves = standing == Status::Finished && family.below(row.id).iter().any(is_left);
    if leaves && text.is_none() {
        return Ok(held);
    }
    let asks = (held || matches!(standing, Status::Waiting | Status::Finished))
        && text.is_none()
        && asks_alone(runtime, family, row, viewer).await?;
    if !held && !asks {
        refuse(row, standing, text)?;
    }
    Ok(held)
}

/// True when `row` and its subagents can only ask questions. Fails if no person can answer here.
async fn asks_alone(
    runtime: &Runtime,
    family: &Tree,
    row: &RunRow,
    viewer: &Viewer,
) -> Result<bool, Failure> {
    let rows = || std::iter::once(row).chain(family.below(row.id));
    if rows().any(|row| is_open(row) && row.work.runnable) {
        return Ok(false);
    }
    match first_asked(runtime, rows()).await? {
        Some(question) if !viewer.can_ask() => Err(waits_for_answer(row.id, &question)),
        asked => Ok(asked.is_some()),
    }
}

fn refuse(row: &RunRow, standing: Status, text: Option<&str>) -> Result<(), Failure> {
    let short = row.id.short();
    match standing {
        Status::Damaged => {
            let reason = row.log.damaged.as_deref().unwrap_or_default();
            let message = format!("run {} is damaged: {reason}", row.id);
            Err(Failure { code: Code::Store, message, hint: None }
                .hint("the other runs are not affected; start the task again with `posse run`"))
        }
        Status::Running if text.is_none() => {
            Err(Failure::internal(format!("run {short} is being executed now"))
                .hint(format!("`posse runs watch {short}` follows it")))
        }
        Status::Finished | Status::Waiting if text.is_none() && !row.work.runnable => {
            Err(Failure::usage(format!("run {short} has nothing to do"))
                .hint(format!("to continue it, add a message: posse runs resume {short} \"…\"")))
        }
        _ => Ok(()),
    }
}

pub async fn all(common: &Common, runtime: &Runtime, filters: &Filters) -> Result<Code, Failure> {
    let mut filter = targets::filter(runtime, filters, Kin::All).await?;
    filter.unfinished = Unfinished::Only;
    let mut rows = targets::all(runtime, filter).await?;
    // Paused and interrupted runs stay so, unless the filters select them.
    if filters.status.iter().any(|it| matches!(it, Status::Paused | Status::Interrupted)) {
        for row in rows.iter().filter(|row| row.state.paused) {
            match runtime.unpause(row.id, "the user", Extent::Alone).await {
                Ok(_) | Err(posse::Error::NotNow { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        rows.retain(is_open);
    } else {
        tell_who_stays(common, &rows);
        rows.retain(RunRow::can_go_on);
    }
    let mut viewer = Viewer::new(common, Form::Json)?;
    let mut code = Code::Done;
    let mut resumed = Vec::new();
    for head in runtime.heads(&rows).await? {
        let mut models = rows
            .iter()
            .filter(|row| row.family.root == head.family.root)
            .map(|row| &row.about.model);
        match models.find_map(|model| runtime.check_model(model).err()) {
            None => {
                runtime.check_can_work().await?;
                if let Some(why) = runtime.held_back(head.id).await? {
                    let why = format!("{why}; `posse trust FOLDER` shows what it contains");
                    print::note(clean_line(&why, 1000));
                }
                resumed.push(runtime.resume(head.id));
            }
            Some(error) => {
                code = Code::Failed;
                let why = clean_line(&error.to_string(), 400);
                print::note(format!("run {} waits: {why}", head.id.short()));
            }
        }
    }
    if !resumed.is_empty() && !common.global.quiet && !common.global.json {
        let runs = format::count(resumed.len() as u64, "run");
        print::note(format!(
            "continues {runs}; `posse runs watch RUN` in another terminal follows one"
        ));
    }
    for handle in &resumed {
        let row = tokio::select! {
            rested = runtime.rested(handle.id()) => rested?,
            failure = tell_why_it_waits(common, runtime, handle) => return Err(failure),
            signal = viewer.signal() => {
                return Err(viewer.shut_down(runtime, handle, signal).await);
            }
        };
        if row.state.outcome.as_deref().is_some_and(|outcome| outcome != "completed") {
            code = Code::Failed;
        }
        tell(common, runtime, &row).await?;
    }
    // No run above waits for `silent` children.
    for handle in &resumed {
        wait_for_below(common, runtime, handle.id(), &mut viewer).await?;
    }
    viewer.close(runtime).await;
    Ok(code)
}

/// Says once for which worker or slot a run waits, or which machine executes it, and then waits for
/// ever. Returns an error of the store.
async fn tell_why_it_waits(common: &Common, runtime: &Runtime, run: &RunHandle) -> Failure {
    if common.global.quiet || common.global.json {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(WAITED).await;
        match why_it_waits_now(runtime, run).await {
            Ok(Some(why)) => {
                print::note(why);
                return std::future::pending().await;
            }
            Ok(None) => {}
            Err(failure) => return failure,
        }
    }
}

/// What a run waits for now, unless this process executes it.
async fn why_it_waits_now(runtime: &Runtime, run: &RunHandle) -> Result<Option<String>, Failure> {
    if run.executed_here().is_some() {
        return Ok(None);
    }
    let row = run.row().await?;
    if let Some(why) = why_it_waits(runtime, &row).await? {
        return Ok(Some(why));
    }
    let short = row.id.short();
    if let Some(machine) = runtime.machine_of(&row).await? {
        let machine = clean_line(&machine, 64);
        return Ok(Some(format!(
            "run {short} is executed on the machine `{machine}`; this command waits for its end"
        )));
    }
    Ok(match run.position().await? {
        Some(1) => Some(format!("run {short} is next in the queue, and waits for a free slot")),
        Some(place) => Some(format!(
            "run {short} waits in the queue behind {}",
            format::count(place - 1, "run")
        )),
        None => None,
    })
}

/// Says which runs stay as they are: paused or interrupted runs, and runs with an open question.
fn tell_who_stays(common: &Common, rows: &[RunRow]) {
    if common.global.quiet || common.global.json {
        return;
    }
    for (status, word) in [(Status::Interrupted, "interrupted"), (Status::Paused, "paused")] {
        let stay = rows.iter().filter(|row| row.status == status).count() as u64;
        if stay > 0 {
            let runs = format::count(stay, &format!("{word} run"));
            print::note(format!(
                "not resumed: {runs}; `posse runs resume --all --status {word}` resumes those"
            ));
        }
    }
    let asks = |row: &&RunRow| row.state.asks > 0 && !row.state.paused && !row.can_go_on();
    let asking = rows.iter().filter(asks).count() as u64;
    if asking > 0 {
        let runs = format::count(asking, "run");
        print::note(format!(
            "not resumed: {runs} with an open question; `posse runs questions` shows how to answer"
        ));
    }
}

/// Reports the state of an idle run.
async fn tell(common: &Common, runtime: &Runtime, row: &RunRow) -> Result<(), Failure> {
    let outcome = match row.state.outcome {
        Some(_) => Some(runtime.handle(row.id).outcome().await?),
        None => None,
    };
    if common.global.json {
        return print::json(&json!({"run": row.id, "status": row.status, "outcome": outcome}));
    }
    let line = match &outcome {
        Some(outcome) => clean_line(&outcome.to_string(), 200),
        None => row.status.to_string(),
    };
    print::line(format!("{}  {line}", row.id.short()))
}
