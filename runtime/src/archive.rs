//! What becomes of runs that have ended: they are put away, the folders go that were their own, and
//! logs are removed that nobody wants to keep.
//!
//! Several processes may sweep one database at the same time: whatever one of them does is refused
//! to the others. Whatever a process leaves half done when it dies, the next sweep finds.

mod worktrees;

pub use worktrees::{Remnant, Sweep};

use crate::config::Lifecycle;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::runtime_config::RuntimeConfig;
use posse_protocol::{Archived, Cleanup, Event, RunId, Seq};
use posse_store::{
    Append, Filter, Guard, Leftover, Leftovers, RunRow, Spending, SpendingQuery, Store, StoreError,
};
use posse_tools::Scratch;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs of one kind that a sweep puts away, and folders it looks at.
const BATCH: usize = 256;
/// Events that are read at once.
const PAGE: usize = 1_000;
/// How soon the next sweep comes when there was more to do.
const SOON: Duration = Duration::from_secs(1);

/// Whether a sweep has left something for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swept {
    All,
    Some,
}

/// Puts away what has ended, again and again.
pub(crate) struct Sweeper {
    store: Arc<dyn Store>,
    /// Around the folders that are the runs' own.
    scratch: PathBuf,
    rules: Lifecycle,
    /// The last folder that was looked at.
    looked_at: Option<RunId>,
}

impl Sweeper {
    pub(crate) fn new(store: Arc<dyn Store>, config: &RuntimeConfig) -> Self {
        let (scratch, rules) = (config.scratch(), config.lifecycle);
        Sweeper { store, scratch, rules, looked_at: None }
    }

    /// Sweeps until `stop`. A short command is over before the first sweep.
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
            // A store that fails now is asked again soon; whoever appends learns why.
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
            // Whoever was given less time than that.
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
                // One that was reopened or put away by others since is no longer left over.
                let _ = match which {
                    // What is to lose its log is looked at when its time has come.
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
        Ok(swept)
    }

    /// Removes folders of runs that are put away or no longer exist: those that someone who died
    /// has left.
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

/// The runs that have a folder of their own in `around`, in their order.
fn folders_of_runs(around: &Path) -> Vec<RunId> {
    // Most databases have none.
    let Ok(entries) = std::fs::read_dir(around) else { return Vec::new() };
    // Each may have a second one, by what its commands call temporary.
    let own = |name: &str| name.strip_suffix(".tmp").unwrap_or(name).parse::<RunId>().ok();
    let run = |name: std::ffi::OsString| own(name.to_str()?);
    let mut runs: Vec<RunId> =
        entries.flatten().filter_map(|entry| run(entry.file_name())).collect();
    runs.sort_unstable();
    runs.dedup();
    runs
}

/// Archives a run that stands as `row` says, and removes the folder that was its own.
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

/// Removes the log of a run that was to lose it. If the run may have changed something, it is archived
/// in place of that: agents ask for this, and none of them decides that its trail goes.
async fn put_away(store: &dyn Store, scratch: &Path, row: &RunRow) -> Result<(), StoreError> {
    match has_acted(store, row.id).await? {
        true => archive(store, scratch, row).await,
        false => remove_log(store, scratch, row).await,
    }
}

/// True when a tool of the run began that is not one that only looks.
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

/// Removes the log of a run that stands as `row` says, and the folder that was its own.
async fn remove_log(store: &dyn Store, scratch: &Path, row: &RunRow) -> Result<(), StoreError> {
    store.erase(row.id, row.log.last_seq).await?;
    fail::fail_point!("archive.log.removed");
    remove_scratch(scratch, row.id).await;
    Ok(())
}

/// Removes the folder that was `run`'s own.
async fn remove_scratch(scratch: &Path, run: RunId) {
    let path = scratch.join(run.to_string());
    let remove = move || Scratch::at(&path).and_then(|folder| folder.remove());
    // What cannot be removed now is found again by a later sweep.
    let _ = tokio::task::spawn_blocking(remove).await;
}

/// Whether something is done, or only said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// The logs are removed.
    Now,
    /// Nothing is changed.
    Preview,
}

impl Runtime {
    /// Puts a run away that has ended: nothing can be said to it any more, and the folder that was
    /// its own is removed. Its log stays.
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
                // Something was appended meanwhile, which may have reopened it.
                Err(StoreError::Moved { .. }) => {}
                archived => return Ok(archived?),
            }
        }
    }

    /// Removes the logs of runs that ended so long ago, and whose whole trees have ended. Their
    /// rows and what they cost stay. Returns those runs, the longest ended first; those that others
    /// reopened or removed meanwhile are not among them.
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
        Ok(removed)
    }

    /// What model calls cost, summed up as `query` asks. Calls of runs that failed, were killed or
    /// lost their logs are in it; what those without an answer may have cost is told apart.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn costs(&self, query: &SpendingQuery) -> Result<Vec<Spending>, Error> {
        Ok(self.inner.store.spending(query).await?)
    }
}
