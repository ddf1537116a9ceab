//! `posse runs resume`: goes on with one run, or with all that are unfinished.

use super::super::Common;
use super::super::follow::{Followed, Followee, Form, Until, Viewer, interrupted};
use super::super::rest::{heads, is_open, rested};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::family::Family;
use crate::print;
use posse::store::{Filter, Unfinished};
use posse::{RunRow, Runtime, Status};
use serde_json::json;

pub async fn one(
    common: &Common,
    runtime: &Runtime,
    run: &str,
    text: Option<String>,
) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let family = Family::of(runtime, &row).await?;
    refuse(&row, family.standing(&row), text.as_deref())?;
    runtime.check_model(&row.model)?;
    let form = if common.global.json { Form::Json } else { Form::Screen };
    let mut viewer = Viewer::new(common, form)?;
    let recalled = viewer.recall(runtime, &row).await?;
    if let Some(text) = text {
        runtime.send(row.id, text).await?;
    }
    let mut followee = Followee::again(runtime.resume(row.id), recalled);
    let code = match viewer.follow(runtime, &mut followee, Until::Rest).await? {
        Followed::Ended(outcome) => viewer.conclude(runtime, &followee.run, &outcome).await?,
        Followed::Rests(row) => rests(runtime, &row, &mut viewer).await?,
        Followed::Signal(signal) => {
            viewer.shut_down(runtime, signal).await;
            return Err(interrupted(&followee.run, signal));
        }
    };
    tell_who_waits(runtime, &row, &mut viewer).await?;
    viewer.close(runtime).await;
    Ok(code)
}

/// Says who above has something to do now that `row` has ended, and that nobody does it.
async fn tell_who_waits(
    runtime: &Runtime,
    row: &RunRow,
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    let Some(parent) = row.parent else { return Ok(()) };
    let family = Family::of(runtime, row).await?;
    let above = family.find(parent).filter(|above| above.runnable && above.owner.is_none());
    if let Some(above) = above.filter(|above| above.outcome.is_none()) {
        let short = above.id.short();
        let waits = format!("run {short} waited for it: `posse runs resume {short}` goes on");
        viewer.screen.remark(&waits);
    }
    Ok(())
}

/// Tells that the turn of a session is over.
async fn rests(runtime: &Runtime, row: &RunRow, viewer: &mut Viewer) -> Result<Code, Failure> {
    if viewer.form == Form::Json {
        let family = Family::of(runtime, row).await?;
        print::json_pretty(&family.view(row).with_text(viewer.screen.last_text()))?;
        return Ok(Code::Done);
    }
    viewer.screen.end_turn()?;
    let short = row.id.short();
    viewer.screen.remark(&format!("run {short} waits; `posse chat --resume {short}` goes on"));
    Ok(Code::Done)
}

/// Refuses to resume what cannot go on as it is.
pub fn refuse(row: &RunRow, standing: Status, text: Option<&str>) -> Result<(), Failure> {
    let short = row.id.short();
    match standing {
        Status::Damaged => {
            let reason = row.damaged.as_deref().unwrap_or_default();
            let message = format!("run {} is damaged: {reason}", row.id);
            Err(Failure { code: Code::Store, message, hint: None }
                .hint("the other runs are not affected; start it anew with `posse run`"))
        }
        Status::Running if text.is_none() => {
            Err(Failure::internal(format!("run {short} is being executed now"))
                .hint(format!("`posse runs watch {short}` follows it")))
        }
        Status::Finished | Status::Waiting if text.is_none() && !row.runnable => {
            Err(Failure::usage(format!("run {short} has nothing to do"))
                .hint(format!("say what: posse runs resume {short} \"…\"")))
        }
        _ => Ok(()),
    }
}

pub async fn all(common: &Common, runtime: &Runtime) -> Result<Code, Failure> {
    let filter = Filter { unfinished: Unfinished::Only, limit: 100_000, ..Filter::default() };
    let mut rows = runtime.list(&filter).await?;
    rows.retain(|row| row.runnable && is_open(row));
    let mut viewer = Viewer::new(common, Form::Json)?;
    let mut code = Code::Done;
    let mut resumed = Vec::new();
    for head in heads(runtime, &rows).await? {
        let mut models = rows.iter().filter(|row| row.root == head.root).map(|row| &row.model);
        match models.find_map(|model| runtime.check_model(model).err()) {
            None => resumed.push(runtime.resume(head.id)),
            Some(error) => {
                code = Code::Failed;
                let why = clean_line(&error.to_string(), 400);
                print::note(format!("run {} waits: {why}", head.id.short()));
            }
        }
    }
    for handle in resumed {
        let row = tokio::select! {
            rested = rested(runtime, handle.id()) => rested?,
            signal = viewer.signals.next() => {
                viewer.shut_down(runtime, signal).await;
                return Err(interrupted(&handle, signal));
            }
        };
        if row.outcome.as_deref().is_some_and(|outcome| outcome != "completed") {
            code = Code::Failed;
        }
        tell(common, runtime, &row).await?;
    }
    viewer.close(runtime).await;
    Ok(code)
}

/// Tells how a run stands now that it rests.
async fn tell(common: &Common, runtime: &Runtime, row: &RunRow) -> Result<(), Failure> {
    let outcome = match row.outcome {
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
