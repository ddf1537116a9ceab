//! What happens to runs that have ended: Posse archives them, removes their scratch folders, and removes old logs.
//!
//! Several processes may sweep one database at once. The store refuses an action that another process already did. If a
//! process dies in the middle, the next sweep completes its work.

mod worktrees;

use worktrees::checkout_left;
pub use worktrees::{LeftoverWorktree, Sweep};

use crate::config::Lifecycle;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::runtime_config::RuntimeConfig;
use crate::worktree::Repositories;
use posse_protocol::{Archived, Cleanup, Event, RunId, Seq};
use posse_store::{
    Append, Filter, Guard, Leftover, Leftovers, RunRow, Spending, SpendingQuery, Store, StoreError,
};
use posse_tools::Scratch;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How many runs of one kind a sweep handles, and how many folders it checks.
const BATCH: usize = 256;
/// How many events are read at once.
const PAGE: usize = 1_000;
/// How soon the next sweep starts if this one left work.
const SOON: Duration = Duration::from_secs(1);

/// Whether a sweep has left work for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swept {
    All,
    Some,
}

/// Archives and removes ended runs periodically.
pub(crate) struct Sweeper {
    store: Arc<dyn Store>,
    /// The folder that contains the scratch folders of runs.
    scratch: PathBuf,
    repositories: Repositories,
    /// The name of this machine; empty if it is the only one.
    host: String,
    /// Checkouts of archived runs that hold what nothing else does.
    kept: HashSet<RunId>,
    rules: Lifecycle,
    /// The run whose folder was checked last.
    looked_at: Option<RunId>,
}

impl Sweeper {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        repositories: Repositories,
        config: &RuntimeConfig,
    ) -> Self {
        let (scratch, rules) = (config.scratch(), config.lifecycle);
        let (host, kept) = (config.scheduling.worker.host.clone(), HashSet::new());
        Sweeper { store, scratch, repositories, host, kept, rules, looked_at: None }
    }

    /// Sweeps until `stop`. The first sweep is delayed, so a short command ends before it.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut wait = self.rules.every.min(SOON);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            let swept = tokio::select! {
                () = stop.cancelled() => return,
                swept = self.sweep() => swept,
            };
            // If the store fails, the next sweep tries again. The error itself shows up where runs append.
            let more = swept.is_ok_and(|swept| swept == Swept::Some);
            wait = if more { self.rules.every.min(SOON) } else { self.rules.every };
        }
    }

    async fn sweep(&mut self) -> Result<Swept, StoreError> {
        let Lifecycle { archive_after, retention, removal_after, .. } = self.rules;
        let mut swept = Swept::All;
        let kinds = [
            (Leftover::Unwanted, Some(removal_after)),
            (Leftover::Ended, archive_after),
            // Runs with a shorter time of their own.
            (Leftover::Due, Some(Duration::ZERO)),
            (Leftover::Archived, retention),
        ];
        for (which, after) in kinds {
            let Some(ended_for) = after else { continue };
            let wanted = Leftovers { which, ended_for, limit: BATCH };
            let rows = self.store.leftovers(wanted).await?;
            if rows.len() == BATCH {
                swept = Swept::Some;
            }
            for row in rows {
                // Errors are ignored: another process may have reopened or archived the run meanwhile.
                let _ = match which {
                    // A run whose log is to be removed is handled as `Unwanted` when its time comes.
                    Leftover::Ended | Leftover::Due if row.state.cleanup == Cleanup::Delete => {
                        Ok(())
                    }
                    Leftover::Ended | Leftover::Due => {
                        archive(&*self.store, &self.scratch, &row).await
                    }
                    Leftover::Unwanted => put_away(&*self.store, &self.scratch, &row).await,
                    Leftover::Archived => remove_log(&*self.store, &self.scratch, &row).await,
                };
            }
        }
        self.remove_stray_folders().await?;
        self.remove_stray_checkouts().await?;
        Ok(swept)
    }

    /// Removes the checkouts of archived runs, but for those that hold what is nowhere else.
    async fn remove_stray_checkouts(&mut self) -> Result<(), StoreError> {
        let repositories = self.repositories.clone();
        let listed = tokio::task::spawn_blocking(move || repositories.standing());
        for (run, folder) in listed.await.unwrap_or_default() {
            let own = Filter { id: Some(run), limit: 1, ..Filter::default() };
            let row = self.store.list(&own).await?.pop();
            let is_archived = row.is_some_and(|row| row.state.archived);
            if !is_archived || self.kept.contains(&run) {
                continue;
            }
            match checkout_left(&*self.store, &self.repositories, &self.host, run).await {
                // The log may have been removed. Its age says that nobody misses the files.
                Ok(left) if left.as_ref().is_none_or(|left| left.is_over) => {
                    // If it stays, a later sweep tries again.
                    self.repositories.sweep_away(run, &folder).await;
                }
                Ok(_) | Err(StoreError::Damaged { .. } | StoreError::Newer(_)) => {
                    self.kept.insert(run);
                }
                Err(error) => return Err(error),
            }
        }
        self.repositories.tidy().await;
        Ok(())
    }

    /// Removes folders of archived or unknown runs, which a process that died left behind.
    async fn remove_stray_folders(&mut self) -> Result<(), StoreError> {
        let after = self.looked_at;
        let around = self.scratch.clone();
        let listed = tokio::task::spawn_blocking(move || folders_of_runs(&around));
        let mut runs = listed.await.unwrap_or_default();
        runs.retain(|run| after.is_none_or(|after| *run > after));
        let more = runs.len() > BATCH;
        runs.truncate(BATCH);
        self.looked_at = runs.last().copied().filter(|_| more);
        for run in runs {
            let own = Filter { id: Some(run), limit: 1, ..Filter::default() };
            let row = self.store.list(&own).await?.pop();
            if row.is_none_or(|row| row.state.archived) {
                remove_scratch(&self.scratch, run).await;
            }
        }
        Ok(())
    }
}

/// The runs that have a scratch folder in `around`, sorted.
fn folders_of_runs(around: &Path) -> Vec<RunId> {
    // Most databases have no such folder.
    let Ok(entries) = std::fs::read_dir(around) else { return Vec::new() };
    // A run may have a second folder, `<run>.tmp`, for the temporary files of its commands.
    let own = |name: &str| name.strip_suffix(".tmp").unwrap_or(name).parse::<RunId>().ok();
    let run = |name: std::ffi::OsString| own(name.to_str()?);
    let mut runs: Vec<RunId> =
        entries.flatten().filter_map(|entry| run(entry.file_name())).collect();
    runs.sort_unstable();
    runs.dedup();
    runs
}

/// Archives a run if its log still ends as in `row`, and removes its scratch folder.
async fn archive(store: &dyn Store, scratch: &Path, row: &RunRow) -> Result<(), StoreError> {
    let event = Event::Archived(Archived::default());
    let guard = Guard::Anyone { last: Some(row.log.last_seq) };
    fail::fail_point!("archive.append.before");
    store.append(vec![Append { guard, ..Append::by_anyone(row.id, event) }]).await?;
    fail::fail_point!("archive.append.after");
    remove_scratch(scratch, row.id).await;
    fail::fail_point!("archive.folder.removed");
    Ok(())
}

/// Removes the log of a run with [`Cleanup::Delete`]. If the run may have changed something, archives it instead:
/// agents choose this cleanup, and an agent must not be able to erase its trail.
async fn put_away(store: &dyn Store, scratch: &Path, row: &RunRow) -> Result<(), StoreError> {
    match has_acted(store, row.id).await? {
        true => archive(store, scratch, row).await,
        false => remove_log(store, scratch, row).await,
    }
}

/// True when the run started a tool call that does more than read.
async fn has_acted(store: &dyn Store, run: RunId) -> Result<bool, StoreError> {
    let mut seen = Seq::ZERO;
    loop {
        let page = store.read(run, seen, PAGE).await?;
        let acted = |event: &Event| matches!(event, Event::ToolStarted(it) if !it.repeatable);
        if page.iter().any(|record| acted(&record.event)) {
            return Ok(true);
        }
        let Some(last) = page.last() else { return Ok(false) };
        seen = last.seq;
    }
}

/// Removes the log of a run if it still ends as in `row`, and the run's scratch folder.
async fn remove_log(store: &dyn Store, scratch: &Path, row: &RunRow) -> Result<(), StoreError> {
    store.erase(row.id, row.log.last_seq).await?;
    fail::fail_point!("archive.log.removed");
    remove_scratch(scratch, row.id).await;
    Ok(())
}

/// Removes the scratch folder of `run`.
async fn remove_scratch(scratch: &Path, run: RunId) {
    let path = scratch.join(run.to_string());
    let remove = move || Scratch::at(&path).and_then(|folder| folder.remove());
    // If this fails, a later sweep tries again.
    let _ = tokio::task::spawn_blocking(remove).await;
}

/// Whether to remove logs or only to list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// Remove the logs.
    Now,
    /// Change nothing.
    Preview,
}

impl Runtime {
    /// Archives a run that has ended: it accepts no more messages, and its scratch folder is removed. Its log stays.
    ///
    /// # Errors
    /// When there is no such run, it has not ended, or it is archived already.
    pub async fn archive(&self, run: RunId) -> Result<(), Error> {
        loop {
            let row = self.handle(run).row().await?;
            if row.state.archived {
                return Err(StoreError::Archived(run).into());
            }
            if row.state.outcome.is_none() {
                return Err(StoreError::Unfinished(run).into());
            }
            match archive(&*self.inner.store, &self.config().scratch(), &row).await {
                // Another process appended something, which may have reopened the run.
                Err(StoreError::Moved { .. }) => {}
                archived => return Ok(archived?),
            }
        }
    }

    /// Removes the logs of runs that ended at least `ended_for` ago and whose whole trees have ended. Their rows and
    /// costs stay. Returns these runs, the longest ended first, except runs that others reopened or removed.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prune(&self, ended_for: Duration, prune: Prune) -> Result<Vec<RunRow>, Error> {
        let limit = usize::MAX >> 1;
        let mut rows = Vec::new();
        for which in [Leftover::Ended, Leftover::Archived] {
            rows.extend(self.inner.store.leftovers(Leftovers { which, ended_for, limit }).await?);
        }
        rows.sort_by_key(|row| (row.state.finished_at, row.id));
        if prune == Prune::Preview {
            return Ok(rows);
        }
        let mut removed = Vec::with_capacity(rows.len());
        for row in rows {
            match remove_log(&*self.inner.store, &self.config().scratch(), &row).await {
                Ok(()) => removed.push(row),
                Err(
                    StoreError::Moved { .. }
                    | StoreError::Unfinished(_)
                    | StoreError::Erased(_)
                    | StoreError::Damaged { .. },
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Waits until the space is free: a command may end before the store has done it beside.
        self.inner
            .store
            .leftovers(Leftovers { which: Leftover::Archived, ended_for, limit: 0 })
            .await?;
        Ok(removed)
    }

    /// What model calls cost, summed up as `query` asks. Includes calls of runs that failed, were killed or lost their
    /// logs. The possible cost of calls without a reply is listed separately.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn costs(&self, query: &SpendingQuery) -> Result<Vec<Spending>, Error> {
        Ok(self.inner.store.spending(query).await?)
    }
}
