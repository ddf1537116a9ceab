//! `posse runs cancel`: cancels runs and their subagents in whatever process executes them, waits
//! until they have stopped, and prints which runs it reached.

use super::super::Common;
use super::targets::{self, BatchResult};
use crate::args::Targets;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::screen::line::label;
use posse::protocol::CancelScope;
use posse::{ControlledRun, Outcome, Receipt, RunId, RunRow, Runtime};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// How long a run may take to stop. Its commands are killed after some seconds, and a dead process
/// loses its runs after a lease of ten.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a run may wait for a worker.
const MOMENT: Duration = Duration::from_secs(3);

pub async fn run(common: &Common, runtime: &Runtime, wanted: &Targets) -> Result<Code, Failure> {
    let rows = targets::of(common, runtime, wanted, "cancelled").await?;
    let mut course = BatchResult::new(common);
    let mut receipts: Vec<Receipt> = Vec::new();
    let mut ended: Vec<&RunRow> = Vec::new();
    let mut reached: HashSet<RunId> = HashSet::new();
    // Cancel all runs before waiting for any.
    for row in &rows {
        if reached.contains(&row.id) {
            continue;
        }
        match runtime.cancel(row.id, "the user", CancelScope::Run).await {
            Ok(receipt) => {
                reached.extend(receipt.told.iter().map(|told| told.run));
                receipts.push(receipt);
            }
            // The run has ended, as wanted. With --all, it may have ended only meanwhile.
            Err(posse::Error::NotNow { .. }) if wanted.choice.all => {}
            Err(posse::Error::NotNow { .. }) => ended.push(row),
            Err(error) => course.fail(&error.into(), nothing(row.id, None))?,
        }
    }
    for row in ended {
        tell_ended(common, runtime, row).await?;
    }
    let mut stopped = 0;
    for receipt in &receipts {
        match stop(runtime, receipt).await {
            Ok((outcome, all)) => {
                stopped += receipt.told.len() as u64;
                tell(common, receipt, &outcome, &all)?;
            }
            Err(failure) => course.fail(&failure, nothing(receipt.run, None))?,
        }
    }
    if receipts.len() > 1 && !common.global.quiet && !common.global.json {
        print::note(format!("{} stopped", format::count(stopped, "run")));
    }
    Ok(course.code)
}

/// Cancels `run`. Returns its outcome and the runs that were reached.
pub async fn cancel(runtime: &Runtime, run: RunId) -> Result<(Outcome, Receipt), Failure> {
    let receipt = runtime.cancel(run, "the user", CancelScope::Run).await?;
    wait(runtime, &receipt).await?;
    Ok((runtime.handle(run).outcome().await?, receipt))
}

/// Waits until all reached runs are idle, with a time limit for each.
pub async fn wait(runtime: &Runtime, receipt: &Receipt) -> Result<(), Failure> {
    let mut stranded: Vec<RunId> = receipt.told.iter().map(|told| told.run).collect();
    for told in &receipt.told {
        let handle = runtime.handle(told.run);
        // A worker takes a run within a moment. If none does, this process ends it.
        if tokio::time::timeout(MOMENT, handle.at_rest()).await.is_err() {
            // All of them at once, and then each that is late.
            runtime.end_stranded(&std::mem::take(&mut stranded)).await;
            runtime.end_stranded(&[told.run]).await;
        }
        match tokio::time::timeout(PATIENCE, handle.at_rest()).await {
            Ok(rests) => rests?,
            Err(_) => return Err(not_stopped(told.run)),
        };
    }
    Ok(())
}

/// The error for a run that does not stop.
fn not_stopped(run: RunId) -> Failure {
    let (short, after) = (run.short(), PATIENCE.as_secs());
    let message = format!("run {short} was told to stop, and has not ended within {after} s");
    Failure::internal(message).hint(format!(
        "the request is stored; `posse runs show {short}` shows the status of the run"
    ))
}

/// A reached run and its outcome.
#[derive(Serialize)]
struct Stopped<'a> {
    #[serde(flatten)]
    told: &'a ControlledRun,
    outcome: Outcome,
}

/// Waits until all reached runs have stopped. Returns the outcome of the run, and of each of them.
async fn stop<'r>(
    runtime: &Runtime,
    receipt: &'r Receipt,
) -> Result<(Outcome, Vec<Stopped<'r>>), Failure> {
    wait(runtime, receipt).await?;
    let outcome = runtime.handle(receipt.run).outcome().await?;
    let mut stopped = Vec::with_capacity(receipt.told.len());
    for told in &receipt.told {
        stopped.push(Stopped { told, outcome: runtime.handle(told.run).outcome().await? });
    }
    Ok((outcome, stopped))
}

fn tell(
    common: &Common,
    receipt: &Receipt,
    outcome: &Outcome,
    stopped: &[Stopped<'_>],
) -> Result<(), Failure> {
    if common.global.json {
        return print::json(&json!({"run": receipt.run, "outcome": outcome, "told": stopped}));
    }
    if common.global.quiet {
        return Ok(());
    }
    print::note(told_line(outcome, receipt));
    for Stopped { told, outcome } in stopped {
        let (agent, label) = (clean_line(&told.agent, 64), label(&told.label));
        let (run, word, before) = (told.run.short(), outcome.kind(), told.before);
        print::line(format!("{run}  {word:11}  was {before:11}  [{agent}] {label}"))?;
    }
    Ok(())
}

/// Reports a run that had ended before, together with its subagents.
async fn tell_ended(common: &Common, runtime: &Runtime, row: &RunRow) -> Result<(), Failure> {
    // The outcome is unknown if the log was removed.
    let outcome = runtime.handle(row.id).outcome().await.ok();
    if common.global.json {
        return print::json(&nothing(row.id, outcome));
    }
    if !common.global.quiet {
        let how = outcome.map_or_else(|| row.state.note.clone(), |outcome| outcome.to_string());
        let (run, how) = (row.id.short(), clean_line(&how, 200));
        print::note(format!("run {run} has ended already: {how}"));
    }
    Ok(())
}

/// The report about a run for which no run was reached.
fn nothing(run: RunId, outcome: Option<Outcome>) -> Value {
    json!({"run": run, "outcome": outcome, "told": []})
}

/// The report about a cancelled run.
pub fn told_line(outcome: &Outcome, receipt: &Receipt) -> String {
    let below = match receipt.below().count() as u64 {
        0 => String::new(),
        count => format!("; {} below it told to stop", format::count(count, "run")),
    };
    format!("run {}: {}{below}", receipt.run.short(), clean_line(&outcome.to_string(), 200))
}
