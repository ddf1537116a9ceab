//! `posse runs send`: says something to a run and leaves it to others to execute it.

use super::super::Common;
use crate::exit::{Code, Failure};
use crate::print;
use posse::{Runtime, Status};
use serde_json::json;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    run: &str,
    text: String,
) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    runtime.post(row.id, text).await?;
    let daemon = common.daemon().await;
    let short = row.id.short();
    if common.global.json {
        print::json(
            &json!({"run": row.id, "sent": true, "running": row.status == Status::Running}),
        )?;
    } else if !common.global.quiet {
        print::note(match row.status {
            Status::Running => format!("run {short} reads it before its next step"),
            _ if daemon.is_some() => format!("the daemon goes on with run {short}"),
            _ => format!(
                "kept for run {short}; nobody executes it now: `posse runs resume {short}` does"
            ),
        });
    }
    Ok(Code::Done)
}
