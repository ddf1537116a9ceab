//! Copies all trees of runs of a store to another store.

use crate::copy::{Binding, Brought, RunCopy};
use crate::error::StoreError;
use crate::filter::{Filter, Kin};
use crate::row::RunRow;
use crate::store::Store;
use posse_protocol::{RunId, Seq, Status};

/// How many rows to read at a time.
const PAGE: usize = 500;

/// What [`transfer`] has done so far.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// Runs that were stored.
    pub copied: u64,
    /// Their events.
    pub events: u64,
    /// Runs that the other store had already, with the same log.
    pub present: u64,
    /// Runs that cannot be copied, each with the reason. All other runs of their trees were left, too.
    pub left: Vec<(RunId, StoreError)>,
}

/// Copies all runs from one store to another, oldest first, and checks each of them. Runs that the
/// other store has already are passed over, so it can be repeated. It leaves a whole tree if one of
/// its runs is damaged or a worker executes it: a run that waits for another must not come without it.
///
/// A tree appears in one transaction. Its logs and bundles are staged before, a little at a time; what
/// is in memory are the rows, the costs and the deliveries of one tree. If it breaks off, nothing of
/// the tree is seen, and what was staged expires.
///
/// # Errors
/// When one of the stores fails. What was copied until then stays.
pub async fn transfer(
    from: &dyn Store,
    to: &dyn Store,
    binding: &Binding,
    mut progress: impl FnMut(&Transfer),
) -> Result<Transfer, StoreError> {
    let mut done = Transfer::default();
    let mut after = RunId::from_u128(0);
    loop {
        let roots = rows(from, Kin::Roots, after).await?;
        let Some(last) = roots.last() else { return Ok(done) };
        after = last.id;
        for root in &roots {
            tree(from, to, binding, root.id, &mut done).await?;
            progress(&done);
        }
    }
}

/// Copies a root and all runs below it, or none of them.
async fn tree(
    from: &dyn Store,
    to: &dyn Store,
    binding: &Binding,
    root: RunId,
    done: &mut Transfer,
) -> Result<(), StoreError> {
    let runs = whole(from, root).await?;
    let (mut missing, mut left) = (Vec::new(), Vec::new());
    for row in &runs {
        match is_missing(to, row).await {
            Ok(true) => missing.push(row.id),
            Ok(false) => {}
            Err(error) if is_about_run(&error) => left.push((row.id, error)),
            Err(error) => return Err(error),
        }
    }
    let mut copies = Vec::new();
    for run in if left.is_empty() { &missing[..] } else { &[] } {
        match RunCopy::stage(from, to, *run).await {
            Ok(copy) => copies.push(copy),
            Err(error) if is_about_run(&error) => left.push((*run, error)),
            Err(error) => return Err(error),
        }
    }
    // A run may have gone on while the others were read.
    if left.is_empty() && !copies.is_empty() && ends(&whole(from, root).await?) != ends(&runs) {
        left.push((root, StoreError::NotOwner(root)));
    }
    if !left.is_empty() {
        done.left.append(&mut left);
        return Ok(());
    }
    done.present += (runs.len() - copies.len()) as u64;
    if copies.is_empty() {
        return Ok(());
    }
    copies.iter_mut().for_each(|copy| copy.bind(binding));
    let events: Vec<u64> = copies.iter().map(RunCopy::events).collect();
    match to.bring(copies).await {
        Ok(brought) => {
            for (brought, events) in brought.into_iter().zip(events) {
                let is_new = brought == Brought::Stored;
                done.copied += u64::from(is_new);
                done.events += if is_new { events } else { 0 };
                done.present += u64::from(!is_new);
            }
        }
        Err(error) if is_about_run(&error) => done.left.push((root, error)),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Returns true if the other store does not have the run. It may be copied then.
async fn is_missing(to: &dyn Store, row: &RunRow) -> Result<bool, StoreError> {
    if row.status == Status::Running {
        return Err(StoreError::NotOwner(row.id));
    }
    let own = Filter { id: Some(row.id), limit: 1, ..Filter::default() };
    match to.list(&own).await?.pop() {
        Some(there) if end(&there) == end(row) => Ok(false),
        Some(_) => Err(StoreError::Exists(row.id)),
        None => Ok(true),
    }
}

/// Returns the rows of a tree, oldest first.
async fn whole(store: &dyn Store, root: RunId) -> Result<Vec<RunRow>, StoreError> {
    let mut all: Vec<RunRow> = Vec::new();
    loop {
        let after = all.last().map_or(RunId::from_u128(0), |row| row.id);
        let mut page = rows(store, Kin::TreeOf(root), after).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.append(&mut page);
    }
}

async fn rows(store: &dyn Store, kin: Kin, after: RunId) -> Result<Vec<RunRow>, StoreError> {
    store.list(&Filter { kin, after: Some(after), limit: PAGE, ..Filter::default() }).await
}

fn end(row: &RunRow) -> (Seq, &str, bool) {
    (row.log.last_seq, &row.log.last_hash, row.log.erased)
}

/// Which runs there are, and where their logs end.
fn ends(rows: &[RunRow]) -> Vec<(RunId, bool, (Seq, &str, bool))> {
    rows.iter().map(|row| (row.id, row.status == Status::Running, end(row))).collect()
}

/// True if the stores work, and only this run cannot be copied.
fn is_about_run(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Damaged { .. }
            | StoreError::NotOwner(_)
            | StoreError::Exists(_)
            | StoreError::KeyTaken { .. }
            | StoreError::Newer(_)
            | StoreError::NotFound(_)
            | StoreError::Unstaged(_)
    )
}
