//! `posse runs fetch`: brings the changes of a run in a repository into a branch here.

use super::super::{Common, folder};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use posse::{Fetched, Runtime};
use serde_json::json;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    run: &str,
    branch: Option<&str>,
) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let Fetched { branch, commit, base, present, lacks } =
        runtime.fetch(row.id, &folder(None)?, branch).await?;
    if common.global.json {
        print::json(&json!({
            "run": row.id, "branch": branch, "commit": commit, "base": base, "present": present,
            "lacks": lacks,
        }))?;
        return Ok(Code::Done);
    }
    let (branch, short) = (clean_line(&branch, 200), &commit[..commit.len().min(12)]);
    print::line(match present {
        true => format!("the branch {branch} is here already, at {short}"),
        false => format!("the branch {branch} is here now, at {short}: `git merge {branch}`"),
    })?;
    if row.state.outcome.is_none() {
        print::note(format!("run {} has not ended; this is its last stored state", row.id.short()));
    }
    if !lacks.is_empty() {
        let lacks = clean_line(&lacks, 400);
        print::note(format!("later changes of the run are not on it: {lacks}"));
    }
    Ok(Code::Done)
}
