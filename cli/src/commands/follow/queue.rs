//! What a followed run waits for in the queue.

use super::super::worker;
use super::{FollowedRun, Viewer};
use crate::clean::clean_line;
use crate::exit::Failure;
use posse::{RunRow, Runtime};

/// Says for which worker a queued run waits, if neither this process nor any other takes it.
pub async fn why_it_waits(runtime: &Runtime, row: &RunRow) -> Result<Option<String>, Failure> {
    if runtime.may_take(row) {
        return Ok(None);
    }
    let Some(why) = runtime.why_nobody_takes(row).await? else { return Ok(None) };
    let (short, start) = (row.id.short(), worker::to_start(runtime, row));
    Ok(Some(format!("run {short} {}; to start one: {start}", clean_line(&why, 600))))
}

impl Viewer {
    /// Shows how many runs are before a run that waits for a slot. Says once what the run waits for if
    /// no worker takes it.
    pub(super) async fn look_in_line(
        &mut self,
        runtime: &Runtime,
        followee: &mut FollowedRun,
    ) -> Result<(), Failure> {
        let run = &followee.run;
        if run.executed_here().is_some() {
            return Ok(());
        }
        let Some(place) = run.position().await? else { return Ok(()) };
        if !followee.knows_worker {
            let row = run.row().await?;
            followee.knows_worker = true;
            if let Some(why) = why_it_waits(runtime, &row).await? {
                self.screen.remark(&why);
            }
        }
        self.screen.wait_in_line(place.saturating_sub(1));
        Ok(())
    }
}
