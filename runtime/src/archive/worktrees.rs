//! Finds and removes worktrees that crashes left behind.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::worktree::{Repositories, STILL_IN, is_taken};
use posse_protocol::{Changes, Event, RepositorySite, RunId, RunStarted, Seq, Worktree};
use posse_store::{Filter, Store, StoreError};
use std::path::PathBuf;
use std::sync::Arc;

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
pub(super) struct CheckoutLeft {
    site: RepositorySite,
    changes: Option<Changes>,
    /// Nothing in the folder on this machine is missed.
    pub(super) is_over: bool,
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
            if sweep == Sweep::Look {
                remnants.push(remnant);
                continue;
            }
            let (store, repositories) = (&*self.inner.store, &self.inner.repositories);
            let host = &self.config().scheduling.worker.host;
            let left = match checkout_left(store, repositories, host, run).await {
                // What a log that cannot be read says about its checkout is unknown.
                Err(StoreError::Damaged { .. } | StoreError::Newer(_)) => {
                    if sweep == Sweep::Discard {
                        remnant.removed = repositories.sweep_away(run, &remnant.folder).await;
                    }
                    remnants.push(remnant);
                    continue;
                }
                left => left?,
            };
            if let Some(left) = left {
                let may = sweep == Sweep::Discard || left.is_over;
                remnant.changes = left.changes;
                let local = repositories.local(run, &left.site);
                remnant.removed = may && repositories.remove(&local).await.is_ok();
            } else {
                match self.worktree_of(run).await? {
                    Some(worktree) => {
                        remnant.changes = worktrees.changes(&worktree).await;
                        let may = sweep == Sweep::Discard || is_taken(remnant.changes.as_ref());
                        remnant.removed = may && worktrees.remove(&worktree).await.is_ok();
                    }
                    // The repository of this worktree is unknown.
                    None => remnant.removed = repositories.sweep_away(run, &remnant.folder).await,
                }
            }
            remnants.push(remnant);
        }
        Ok(remnants)
    }

    async fn worktree_of(&self, run: RunId) -> Result<Option<Worktree>, Error> {
        let started = start_of(&*self.inner.store, run).await?;
        Ok(started.and_then(|started| started.grant.worktree.clone()))
    }
}

async fn start_of(store: &dyn Store, run: RunId) -> Result<Option<Arc<RunStarted>>, StoreError> {
    let first = match store.read(run, Seq::ZERO, 1).await {
        Err(StoreError::NotFound(_) | StoreError::Erased(_)) => return Ok(None),
        read => read?.pop(),
    };
    Ok(match first.map(|record| record.event) {
        Some(Event::RunStarted(started)) => Some(started),
        _ => None,
    })
}

/// Returns what the log says about the checkout of a run on the machine `host`, if the run works in one.
pub(super) async fn checkout_left(
    store: &dyn Store,
    repositories: &Repositories,
    host: &str,
    run: RunId,
) -> Result<Option<CheckoutLeft>, StoreError> {
    let Some(started) = start_of(store, run).await? else { return Ok(None) };
    let Some(site) = started.grant.site.repository() else { return Ok(None) };
    let records = store.read(run, Seq::ZERO, usize::MAX).await?;
    let end = records.iter().rev().find_map(|record| match &record.event {
        Event::RunFinished(finished) => Some(finished.changes.as_deref().cloned()),
        _ => None,
    });
    let changes = end.flatten();
    let local = repositories.local(run, site);
    // The run went on elsewhere, without what could not be stored here.
    if let Some(only_there) = repositories.only_there(&local) {
        let (site, changes) = (site.clone(), Some(only_there));
        return Ok(Some(CheckoutLeft { site, changes, is_over: false }));
    }
    // What could not be stored is on the machine that the end names.
    let folder = local.worktree.folder;
    let here = if host.is_empty() { folder } else { format!("{host}:{folder}") };
    let is_elsewhere = |changes: &Changes| {
        let kept = changes.kept.as_ref().is_none_or(|kept| kept.folder != here);
        let place = changes.problem.rsplit_once(STILL_IN).map(|(_, place)| place);
        let is_stored = changes.problem.is_empty() || !changes.bundle.is_empty();
        kept && (is_stored || place.is_some_and(|place| place != here))
    };
    let is_over = is_taken(changes.as_ref()) || changes.as_ref().is_some_and(is_elsewhere);
    Ok(Some(CheckoutLeft { site: site.clone(), changes, is_over }))
}
