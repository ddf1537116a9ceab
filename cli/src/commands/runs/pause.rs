//! `posse runs pause`: pauses runs after their current step, in whatever process executes them.

use super::super::Common;
use super::targets::{self, BatchResult};
use crate::args::Targets;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::screen::line::label;
use posse::{Error, Extent, Receipt, RunId, Runtime, Status};
use serde_json::json;
use std::collections::HashSet;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    wanted: &Targets,
    extent: Extent,
) -> Result<Code, Failure> {
    let rows = targets::of(common, runtime, wanted, "paused").await?;
    let mut course = BatchResult::new(common);
    let mut reached: HashSet<RunId> = HashSet::new();
    for row in &rows {
        if reached.contains(&row.id) {
            continue;
        }
        match runtime.pause(row.id, "the user", extent).await {
            Ok(receipt) => {
                reached.extend(receipt.told.iter().map(|told| told.run));
                tell(common, &receipt)?;
            }
            Err(Error::NotNow { .. }) if wanted.choice.all => {}
            Err(error) => course.fail(&error.into(), json!({"run": row.id, "told": []}))?,
        }
    }
    Ok(course.code)
}

fn tell(common: &Common, receipt: &Receipt) -> Result<(), Failure> {
    if common.global.json {
        return print::json(receipt);
    }
    if common.global.quiet {
        return Ok(());
    }
    let short = receipt.run.short();
    let below = match receipt.below().count() as u64 {
        0 => String::new(),
        count => format!(", and {}", format::count(count, "subagent")),
    };
    let is_at_work = receipt.told.iter().any(|told| told.before == Status::Running);
    let pauses = if is_at_work { "pauses after its current step" } else { "is paused" };
    print::note(format!("run {short} {pauses}{below}; `posse runs resume {short}` continues it"));
    for told in &receipt.told {
        let (agent, label) = (clean_line(&told.agent, 64), label(&told.label));
        let when = match told.before {
            Status::Running => "after its current step",
            _ => "at once",
        };
        print::line(format!("{}  {when:22}  [{agent}] {label}", told.run.short()))?;
    }
    Ok(())
}
