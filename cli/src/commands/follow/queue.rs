//! What a followed run waits for in the queue.

use super::super::worker;
use super::{FollowedRun, Viewer};
use crate::clean::clean_line;
use crate::exit::Failure;
use posse::Runtime;

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
            if !runtime.may_take(&row)
                && let Some(why) = runtime.why_nobody_takes(&row).await?
            {
                let (short, start) = (row.id.short(), worker::to_start(&row));
                let why = clean_line(&why, 600);
                self.screen.remark(&format!("run {short} {why}; to start one: `{start}`"));
            }
        }
        self.screen.wait_in_line(place.saturating_sub(1));
        Ok(())
    }
}
