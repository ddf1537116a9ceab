//! `posse runs send`: sends a message to runs, and leaves their execution to other processes.

use super::super::Common;
use super::super::rest::who_continues;
use super::targets::{self, BatchResult};
use crate::args::Choice;
use crate::exit::{Code, Failure};
use crate::print;
use posse::{RunRow, Runtime, Status};
use serde_json::{Value, json};

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    words: &[String],
    later: bool,
    choice: &Choice,
) -> Result<Code, Failure> {
    let Some((text, names)) = words.split_last() else {
        return Err(Failure::usage("name a run and a message"));
    };
    match (names.is_empty(), choice.all) {
        (true, false) => {
            return Err(Failure::usage("name a run and a message")
                .hint("posse runs send RUN \"…\"; --all in place of RUN sends it to all"));
        }
        (false, true) => {
            return Err(Failure::usage("you named runs together with --all; use one or the other")
                .hint("the message must be one argument: quote it"));
        }
        _ => {}
    }
    if text.trim().is_empty() {
        return Err(Failure::usage("the message is empty"));
    }
    let mut course = BatchResult::new(common);
    for row in targets::chosen(common, runtime, names, choice, "told").await? {
        let sent = match later {
            true => runtime.post_later(row.id, text.as_str()).await,
            false => runtime.post(row.id, text.as_str()).await,
        };
        match sent {
            Ok(()) => tell(common, &row, later, common.daemon().await.is_some())?,
            Err(error) => course.fail(&error.into(), report(&row, false))?,
        }
    }
    Ok(course.code)
}

fn report(row: &RunRow, sent: bool) -> Value {
    json!({"run": row.id, "sent": sent, "running": row.status == Status::Running})
}

fn tell(common: &Common, row: &RunRow, later: bool, has_daemon: bool) -> Result<(), Failure> {
    if common.global.json {
        return print::json(&report(row, true));
    }
    if common.global.quiet {
        return Ok(());
    }
    let short = row.id.short();
    print::note(match who_continues(row, has_daemon) {
        None if later => format!("run {short} reads it when it would otherwise wait or end"),
        None => format!("run {short} reads it before its next step"),
        Some(how) => format!("stored; {how}"),
    });
    Ok(())
}
