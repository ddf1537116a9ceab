//! `posse runs send`: says something to runs and leaves it to others to execute them.

use super::super::Common;
use super::targets;
use crate::args::Choice;
use crate::exit::{Code, Failure};
use crate::print;
use posse::{RunRow, Runtime, Status};
use serde_json::json;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    words: &[String],
    later: bool,
    choice: &Choice,
) -> Result<Code, Failure> {
    let Some((text, names)) = words.split_last() else {
        return Err(Failure::usage("say to whom, and what"));
    };
    match (names.is_empty(), choice.all) {
        (true, false) => {
            return Err(Failure::usage("say to whom, and what")
                .hint("posse runs send RUN \"…\", or --all and what selects them"));
        }
        (false, true) => {
            return Err(Failure::usage("runs are named beside --all; it is one or the other")
                .hint("what is said is one argument: put it into quotes"));
        }
        _ => {}
    }
    for row in targets::chosen(common, runtime, names, choice, "told").await? {
        match later {
            true => runtime.post_later(row.id, text.as_str()).await?,
            false => runtime.post(row.id, text.as_str()).await?,
        }
        let daemon = common.daemon().await;
        tell(common, &row, later, daemon.is_some())?;
    }
    Ok(Code::Done)
}

fn tell(common: &Common, row: &RunRow, later: bool, has_daemon: bool) -> Result<(), Failure> {
    let is_running = row.status == Status::Running;
    if common.global.json {
        return print::json(&json!({"run": row.id, "sent": true, "running": is_running}));
    }
    if common.global.quiet {
        return Ok(());
    }
    let short = row.id.short();
    print::note(match row.status {
        Status::Running if later => format!("run {short} reads it when its present turn is over"),
        Status::Running => format!("run {short} reads it before its next step"),
        Status::Paused => {
            format!("kept for run {short}; it is paused: `posse runs resume {short}` goes on")
        }
        _ if has_daemon => format!("the daemon goes on with run {short}"),
        _ => format!(
            "kept for run {short}; nobody executes it now: `posse runs resume {short}` does"
        ),
    });
    Ok(())
}
