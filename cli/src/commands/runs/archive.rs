//! `posse runs archive`: archives ended runs.

use super::super::Common;
use crate::exit::{Code, Failure};
use crate::print;
use posse::Runtime;
use serde_json::json;

pub async fn run(common: &Common, runtime: &Runtime, runs: &[String]) -> Result<Code, Failure> {
    // Find all runs before the first is archived.
    let mut rows = Vec::with_capacity(runs.len());
    for run in runs {
        rows.push(runtime.find(run).await?);
    }
    let mut code = Code::Done;
    for row in rows {
        let failure = runtime.archive(row.id).await.err();
        if failure.is_some() {
            code = Code::Failed;
        }
        match (failure, common.global.json) {
            (failure, true) => {
                let error = failure.as_ref().map(ToString::to_string);
                let archived = error.is_none();
                print::json(&json!({"run": row.id, "archived": archived, "error": error}))?;
            }
            (Some(failure), false) => print::note(format!("error: {failure}")),
            (None, false) if common.global.quiet => {}
            (None, false) => print::note(format!("run {} is archived", row.id.short())),
        }
    }
    Ok(code)
}
