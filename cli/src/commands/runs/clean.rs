//! `posse runs clean`: removes worktrees that remain after crashes or because of files on no branch.

use crate::args::CleanOptions;
use crate::common::Common;
use crate::exit::{Code, Failure};
use crate::print;
use crate::worktree;
use posse::protocol::Changes;
use posse::{LeftoverWorktree, Runtime, Sweep};
use serde_json::{Value, json};

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    options: &CleanOptions,
) -> Result<Code, Failure> {
    let sweep = match (options.dry_run, options.discard) {
        (true, _) => Sweep::Look,
        (false, true) => Sweep::Discard,
        (false, false) => Sweep::Remove,
    };
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
            (Some(changes), true) if changes.files > 0 => format!(
                "{folder}: removed; {} on the branch {}",
                match changes.files {
                    1 => "1 changed file is".to_owned(),
                    files => format!("{files} changed files are"),
                },
                changes.branch
            ),
            (Some(_), true) => format!("{folder}: removed, with what was on no branch"),
            (None, true) => format!("{folder}: removed; nothing was changed in it"),
            // This message names the folder.
            (Some(Changes { kept: Some(kept), .. }), false) => worktree::kept(kept),
            (Some(changes), false) => format!("{folder}: kept: {}", changes.problem),
            (None, false) => format!("{folder}: kept: it cannot be removed"),
        };
        print::line(line)?;
    }
    if options.dry_run && !remnants.is_empty() {
        print::note(
            "`posse runs clean` removes them; what was changed stays on its branch, and a worktree \
             with files that are on no branch stays",
        );
    }
    if remnants.iter().any(|remnant| sweep == Sweep::Remove && !remnant.removed) {
        print::note("`posse runs clean --discard` removes what was kept, with all files in it");
    }
    Ok(Code::Done)
}

fn shown(remnant: &LeftoverWorktree) -> Value {
    let LeftoverWorktree { run, folder, changes, removed } = remnant;
    json!({"run": run, "folder": folder, "changes": changes, "removed": removed})
}
