//! What crashes have left of worktrees.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::worktree::is_taken;
use posse_protocol::{Changes, Event, RunId, Seq, Worktree};
use posse_store::{Filter, StoreError};
use std::path::PathBuf;

/// A worktree whose run is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Remnant {
    /// The run it belonged to.
    pub run: RunId,
    /// Its folder.
    pub folder: PathBuf,
    /// What the run had changed, on its branch now.
    pub changes: Option<Changes>,
    /// It was removed.
    pub removed: bool,
}

/// Whether remnants are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// They are only looked for.
    Look,
    /// What was changed is put on its branch, and the folders are removed that hold nothing else.
    Remove,
    /// All folders are removed, with what could not be put on a branch.
    Discard,
}

impl Runtime {
    /// Finds worktrees whose runs have ended or are not known any more.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn clean(&self, sweep: Sweep) -> Result<Vec<Remnant>, Error> {
        let worktrees = &self.inner.worktrees;
        let mut remnants = Vec::new();
        if sweep != Sweep::Look {
            worktrees.sweep_away_the_rest().await;
        }
        for (run, folder) in worktrees.standing() {
            let filter = Filter { id: Some(run), ..Filter::default() };
            let row = self.list(&filter).await?.pop();
            if row.is_some_and(|row| {
                row.state.outcome.is_none() && !row.state.archived && row.log.damaged.is_none()
            }) {
                continue;
            }
            let mut remnant = Remnant { run, folder, changes: None, removed: false };
            if sweep != Sweep::Look {
                match self.worktree_of(run).await? {
                    Some(worktree) => {
                        remnant.changes = worktrees.changes(&worktree).await;
                        let may = sweep == Sweep::Discard || is_taken(remnant.changes.as_ref());
                        remnant.removed = may && worktrees.remove(&worktree).await.is_ok();
                    }
                    // Nobody knows what it was made from.
                    None => remnant.removed = worktrees.sweep_away(&remnant.folder).await.is_ok(),
                }
            }
            remnants.push(remnant);
        }
        Ok(remnants)
    }

    async fn worktree_of(&self, run: RunId) -> Result<Option<Worktree>, Error> {
        let first = match self.inner.store.read(run, Seq::ZERO, 1).await {
            Err(StoreError::NotFound(_) | StoreError::Erased(_)) => return Ok(None),
            read => read?.pop(),
        };
        Ok(match first.map(|record| record.event) {
            Some(Event::RunStarted(started)) => started.grant.worktree.clone(),
            _ => None,
        })
    }
}
