//! Finds and removes worktrees that crashes left behind.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::worktree::is_taken;
use posse_protocol::{Changes, Event, RepositorySite, RunId, Seq, Worktree};
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

/// What the log of an ended run says about its checkout.
struct CheckoutLeft {
    site: RepositorySite,
    changes: Option<Changes>,
    /// Nothing in the folder on this machine is missed.
    is_over: bool,
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
            if sweep != Sweep::Look
                && let Some(left) = self.checkout_left(run).await?
            {
                let may = sweep == Sweep::Discard || left.is_over;
                remnant.changes = left.changes;
                remnant.removed = may && self.remove_checkout(run, &left.site).await;
            } else if sweep != Sweep::Look {
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

    /// Returns what the log says about the checkout of a run, if it works in one.
    async fn checkout_left(&self, run: RunId) -> Result<Option<CheckoutLeft>, Error> {
        let records = match self.inner.store.read(run, Seq::ZERO, usize::MAX).await {
            Err(StoreError::NotFound(_) | StoreError::Erased(_)) => return Ok(None),
            read => read?,
        };
        let Some(Event::RunStarted(started)) = records.first().map(|record| &record.event) else {
            return Ok(None);
        };
        let Some(site) = started.grant.site.repository() else { return Ok(None) };
        let end = records.iter().rev().find_map(|record| match &record.event {
            Event::RunFinished(finished) => Some(finished.changes.as_deref().cloned()),
            _ => None,
        });
        let changes = end.flatten();
        // What could not be stored is on the machine that the end names.
        let folder = self.inner.repositories.local(run, site).worktree.folder;
        let host = &self.config().scheduling.worker.host;
        let here = if host.is_empty() { folder } else { format!("{host}:{folder}") };
        let is_elsewhere = |changes: &Changes| {
            let kept = changes.kept.as_ref().is_none_or(|kept| kept.folder != here);
            kept && !changes.problem.ends_with(&here)
        };
        let is_over = is_taken(changes.as_ref()) || changes.as_ref().is_some_and(is_elsewhere);
        Ok(Some(CheckoutLeft { site: site.clone(), changes, is_over }))
    }

    async fn remove_checkout(&self, run: RunId, site: &RepositorySite) -> bool {
        let repositories = &self.inner.repositories;
        repositories.remove(&repositories.local(run, site)).await.is_ok()
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
