//! `posse runs clean`: what crashes have left of worktrees.

use crate::args::CleanOptions;
use crate::commands::Common;
use crate::exit::{Code, Failure};
use crate::print;
use posse::{Remnant, Runtime, Sweep};
use serde_json::{Value, json};

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    options: &CleanOptions,
) -> Result<Code, Failure> {
    let sweep = if options.dry_run { Sweep::Look } else { Sweep::Remove };
    let remnants = runtime.clean(sweep).await?;
    if common.global.json {
        print::json_pretty(&remnants.iter().map(shown).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    if remnants.is_empty() {
        print::note("nothing is left of ended runs");
    }
    for remnant in &remnants {
        let folder = remnant.folder.display();
        let line = match (&remnant.changes, remnant.removed) {
            _ if options.dry_run => format!("{folder}: left of run {}", remnant.run.short()),
            (Some(changes), true) => format!(
                "{folder}: removed; {} changed files are on the branch {}",
                changes.files, changes.branch
            ),
            (None, true) => format!("{folder}: removed; nothing was changed in it"),
            (Some(changes), false) => format!("{folder}: kept: {}", changes.problem),
            (None, false) => format!("{folder}: kept: it cannot be removed"),
        };
        print::line(line)?;
    }
    if options.dry_run && !remnants.is_empty() {
        print::note("`posse runs clean` removes them; what was changed stays on its branch");
    }
    Ok(Code::Done)
}

fn shown(remnant: &Remnant) -> Value {
    let Remnant { run, folder, changes, removed } = remnant;
    json!({"run": run, "folder": folder, "changes": changes, "removed": removed})
}
