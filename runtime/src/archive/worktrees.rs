//! Finds and removes worktrees that crashes left behind.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::worktree::is_taken;
use posse_protocol::{Changes, Event, RunId, Seq, Worktree};
use posse_store::{Filter, StoreError};
use std::path::PathBuf;

/// A worktree whose run has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftoverWorktree {
    /// The run it belonged to.
    pub run: RunId,
    /// The folder of the worktree.
    pub folder: PathBuf,
    /// The changes of the run, now on its branch.
    pub changes: Option<Changes>,
    /// True when the folder was removed.
    pub removed: bool,
}

/// Whether remnants are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Only find them.
    Look,
    /// Put the changes on a branch, and remove the folders that have nothing else.
    Remove,
    /// Remove all folders, including changes that could not be put on a branch.
    Discard,
}

impl Runtime {
    /// Finds the worktrees of runs that have ended or are unknown, and treats them as `sweep` says.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn clean(&self, sweep: Sweep) -> Result<Vec<LeftoverWorktree>, Error> {
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
            let mut remnant = LeftoverWorktree { run, folder, changes: None, removed: false };
            if sweep != Sweep::Look {
                match self.worktree_of(run).await? {
                    Some(worktree) => {
                        remnant.changes = worktrees.changes(&worktree).await;
                        let may = sweep == Sweep::Discard || is_taken(remnant.changes.as_ref());
                        remnant.removed = may && worktrees.remove(&worktree).await.is_ok();
                    }
                    // The repository of this worktree is unknown.
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
