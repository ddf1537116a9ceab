//! `posse runs watch`: shows a run while another process executes it.

use super::super::Common;
use super::super::follow::{Followed, FollowedRun, Form, Until, Viewer};
use crate::exit::{Code, Failure};
use posse::{Runtime, Status};

pub async fn run(common: &Common, runtime: &Runtime, run: &str) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let form = if common.global.json { Form::StreamJson } else { Form::Screen };
    let mut viewer = Viewer::watching(common, form)?;
    let short = row.id.short();
    let is_orphan = row.status == Status::Crashed;
    if is_orphan || row.status == Status::Queued {
        viewer.screen.remark(&match common.daemon().await {
            Some(_) => format!("run {short} is in the queue of the daemon"),
            None => {
                format!("no process executes run {short} now; `posse runs resume {short}` does")
            }
        });
    }
    let mut followee = FollowedRun::new(runtime.handle(row.id));
    followee.orphan = Some(is_orphan);
    match viewer.follow(runtime, &mut followee, Until::End).await? {
        Followed::Ended(outcome) => {
            // Show how long the run took, and not how long this command watched it.
            let row = followee.run.row().await?;
            viewer.screen.took(row.state.finished_at.saturating_sub(row.created_at));
            viewer.conclude(runtime, &followee.run, &outcome).await
        }
        Followed::Rests(_) => Ok(Code::Done),
        Followed::Signal(_) => Ok(Code::Interrupted),
    }
}
