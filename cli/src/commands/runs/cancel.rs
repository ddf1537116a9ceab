//! `posse runs cancel`: stops runs and all below them wherever they are executed, waits until they
//! have stopped, and says whom that reached.

use super::super::Common;
use super::targets;
use crate::args::Targets;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use crate::screen::line::label;
use crate::view;
use posse::protocol::CancelScope;
use posse::{Outcome, Receipt, RunId, Runtime, Told};
use serde::Serialize;
use serde_json::json;
use std::collections::HashSet;

pub async fn run(common: &Common, runtime: &Runtime, wanted: &Targets) -> Result<Code, Failure> {
    let rows = targets::of(common, runtime, wanted, "cancelled").await?;
    let mut receipts: Vec<Receipt> = Vec::new();
    let mut reached: HashSet<RunId> = HashSet::new();
    // All are told before any is waited for.
    for row in &rows {
        if !reached.contains(&row.id) {
            let receipt = match runtime.cancel(row.id, "the user", CancelScope::Run).await {
                // One of many that has come to its end meanwhile is no failure.
                Err(posse::Error::NotNow { .. }) if wanted.choice.all => continue,
                receipt => receipt?,
            };
            reached.extend(receipt.told.iter().map(|told| told.run));
            receipts.push(receipt);
        }
    }
    let mut stopped = 0;
    for receipt in &receipts {
        wait(runtime, receipt).await?;
        stopped += receipt.told.len() as u64;
        tell(common, runtime, receipt).await?;
    }
    if receipts.len() > 1 && !common.global.quiet && !common.global.json {
        print::note(format!("{} stopped", view::count(stopped, "run")));
    }
    Ok(Code::Done)
}

/// Stops `run`. Returns how it ended and whom that reached.
pub async fn cancel(runtime: &Runtime, run: RunId) -> Result<(Outcome, Receipt), Failure> {
    let receipt = runtime.cancel(run, "the user", CancelScope::Run).await?;
    wait(runtime, &receipt).await?;
    Ok((runtime.handle(run).outcome().await?, receipt))
}

async fn wait(runtime: &Runtime, receipt: &Receipt) -> Result<(), Failure> {
    for told in &receipt.told {
        runtime.handle(told.run).at_rest().await?;
    }
    Ok(())
}

/// A run that was told, and how it ended.
#[derive(Serialize)]
struct Stopped<'a> {
    #[serde(flatten)]
    told: &'a Told,
    outcome: Outcome,
}

async fn tell(common: &Common, runtime: &Runtime, receipt: &Receipt) -> Result<(), Failure> {
    let outcome = runtime.handle(receipt.run).outcome().await?;
    let mut stopped = Vec::with_capacity(receipt.told.len());
    for told in &receipt.told {
        stopped.push(Stopped { told, outcome: runtime.handle(told.run).outcome().await? });
    }
    if common.global.json {
        return print::json(&json!({"run": receipt.run, "outcome": outcome, "told": stopped}));
    }
    if common.global.quiet {
        return Ok(());
    }
    print::note(told_line(&outcome, receipt));
    for Stopped { told, outcome } in &stopped {
        let (agent, label) = (clean_line(&told.agent, 64), label(&told.label));
        let (run, word, before) = (told.run.short(), outcome.kind(), told.before);
        print::line(format!("{run}  {word:11}  was {before:11}  [{agent}] {label}"))?;
    }
    Ok(())
}

/// What is told of a run that was stopped.
pub fn told_line(outcome: &Outcome, receipt: &Receipt) -> String {
    let below = match receipt.below().count() as u64 {
        0 => String::new(),
        count => format!("; {} below it told to stop", view::count(count, "run")),
    };
    format!("run {}: {}{below}", receipt.run.short(), clean_line(&outcome.to_string(), 200))
}
