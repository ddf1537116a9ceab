//! `posse runs cancel`: stops a run wherever it is executed, and waits until it has.

use super::super::Common;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use posse::Runtime;
use posse::protocol::CancelScope;
use serde_json::json;

pub async fn run(common: &Common, runtime: &Runtime, run: &str) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    runtime.cancel(row.id, "the user", CancelScope::Run).await?;
    let handle = runtime.handle(row.id);
    handle.at_rest().await?;
    let outcome = handle.outcome().await?;
    if common.global.json {
        print::json(&json!({"run": row.id, "outcome": outcome}))?;
    } else if !common.global.quiet {
        let line = clean_line(&outcome.to_string(), 200);
        print::note(format!("run {}: {line}", row.id.short()));
    }
    Ok(Code::Done)
}
