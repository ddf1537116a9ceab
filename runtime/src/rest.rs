//! Waiting until runs are idle, and finding the runs to resume. A run counts together with the subagents it waits for.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::views::Tree;
use posse_protocol::RunId;
use posse_store::RunRow;

impl Runtime {
    /// Waits until there is nothing to do for `run`, and returns its row. A run that waits for subagents is idle when
    /// no worker executes or could execute them: then they wait for a person.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn settled(&self, run: RunId) -> Result<RunRow, Error> {
        let run = &self.handle(run);
        loop {
            let row = run.at_rest().await?;
            // A person can talk to a session meanwhile. Any other run is done only when its background children are.
            let is_done = row.family.awaits == 0 && (row.about.session || row.family.expects == 0);
            if is_done || row.state.paused {
                return Ok(row);
            }
            let busy = self.busy_below(run.id()).await?;
            for below in &busy {
                self.handle(*below).at_rest().await?;
            }
            // The last subagent may have ended since the first look.
            let row = run.row().await?;
            if busy.is_empty() && !is_busy(&row) {
                return Ok(row);
            }
        }
    }

    /// Waits until there is nothing to do for `run`, nor for the subagents whose results it expects.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn rested(&self, run: RunId) -> Result<RunRow, Error> {
        let handle = self.handle(run);
        loop {
            let row = self.settled(run).await?;
            if row.family.expects == 0 {
                return Ok(row);
            }
            let busy = self.busy_below(run).await?;
            // The last subagent may have woken the run since.
            let row = handle.row().await?;
            if busy.is_empty() && !is_busy(&row) {
                return Ok(row);
            }
            for below in busy {
                self.handle(below).at_rest().await?;
            }
        }
    }

    /// Returns the subagents of `run` that a worker executes or could execute.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn busy_below(&self, run: RunId) -> Result<Vec<RunId>, Error> {
        let below = self.handle(run).unfinished_below().await?;
        Ok(below.iter().filter(|row| is_busy(row)).map(|row| row.id).collect())
    }

    /// Returns the runs to resume so that all of `rows` continue, and the runs that wait for them: each root once or,
    /// if the root has ended, the highest ancestor of the run that is still open.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn heads(&self, rows: &[RunRow]) -> Result<Vec<RunRow>, Error> {
        let mut heads: Vec<RunRow> = Vec::new();
        for row in rows {
            if heads.iter().any(|head| head.id == row.family.root) {
                continue;
            }
            let head = match row.family.parent {
                None => row.clone(),
                Some(_) => head_of(&Tree::of(self, row).await?, row).clone(),
            };
            if heads.iter().all(|known| known.id != head.id) {
                heads.push(head);
            }
        }
        Ok(heads)
    }
}

fn head_of<'f>(family: &'f Tree, row: &'f RunRow) -> &'f RunRow {
    if let Some(root) = family.find(row.family.root).filter(|root| is_open(root)) {
        return root;
    }
    let mut head = row;
    while let Some(above) =
        head.family.parent.and_then(|run| family.find(run)).filter(|it| is_open(it))
    {
        head = above;
    }
    head
}

/// True when a run has not ended and still can: it is not damaged.
pub fn is_open(row: &RunRow) -> bool {
    row.state.outcome.is_none() && row.log.damaged.is_none()
}

fn is_busy(row: &RunRow) -> bool {
    row.can_go_on() || is_open(row) && row.work.owner.is_some()
}
