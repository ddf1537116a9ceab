//! `posse runs cancel`: stops a run and all below it wherever they are executed, and waits until
//! they have stopped.

use super::super::Common;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use crate::view;
use posse::protocol::CancelScope;
use posse::{Outcome, RunId, Runtime};
use serde_json::json;

pub async fn run(common: &Common, runtime: &Runtime, run: &str) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let (outcome, told) = cancel(runtime, row.id).await?;
    if common.global.json {
        print::json(&json!({"run": row.id, "outcome": outcome, "below": told}))?;
    } else if !common.global.quiet {
        print::note(told_line(row.id, &outcome, &told));
    }
    Ok(Code::Done)
}

/// Stops `run`. Returns how it ended and who below it was told to stop too.
pub async fn cancel(runtime: &Runtime, run: RunId) -> Result<(Outcome, Vec<RunId>), Failure> {
    let told = runtime.cancel(run, "the user", CancelScope::Run).await?;
    for run in std::iter::once(run).chain(told.iter().copied()) {
        runtime.handle(run).at_rest().await?;
    }
    Ok((runtime.handle(run).outcome().await?, told))
}

/// What is told of a run that was stopped.
pub fn told_line(run: RunId, outcome: &Outcome, told: &[RunId]) -> String {
    let below = match told.len() as u64 {
        0 => String::new(),
        count => format!("; {} below it told to stop", view::count(count, "run")),
    };
    format!("run {}: {}{below}", run.short(), clean_line(&outcome.to_string(), 200))
}
