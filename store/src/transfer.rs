//! Copies all runs of a store to another store.

use crate::copy::{Binding, Brought};
use crate::error::StoreError;
use crate::filter::Filter;
use crate::store::Store;
use posse_protocol::RunId;

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
    /// Runs that were left, each with the reason.
    pub left: Vec<(RunId, StoreError)>,
}

/// Copies all runs from one store to another, oldest first, and checks each of them. Runs that the
/// other store has already are passed over, so it can be repeated. Runs that are damaged, or that a
/// worker executes, are left.
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
        let page = Filter { after: Some(after), limit: PAGE, ..Filter::default() };
        let rows = from.list(&page).await?;
        let Some(last) = rows.last() else { return Ok(done) };
        after = last.id;
        for row in &rows {
            let own = Filter { id: Some(row.id), limit: 1, ..Filter::default() };
            let there = to.list(&own).await?.pop();
            let end = |log: &crate::RunLog| (log.last_seq, log.last_hash.clone(), log.erased);
            if there.is_some_and(|there| end(&there.log) == end(&row.log)) {
                done.present += 1;
                continue;
            }
            match copy(from, to, binding, row.id).await {
                Ok((Brought::Stored, events)) => {
                    done.copied += 1;
                    done.events += events;
                }
                Ok((Brought::Present, _)) => done.present += 1,
                Err(error) if is_about_run(&error) => done.left.push((row.id, error)),
                Err(error) => return Err(error),
            }
            progress(&done);
        }
    }
}

async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    binding: &Binding,
    run: RunId,
) -> Result<(Brought, u64), StoreError> {
    let mut copy = from.copy(run).await?;
    copy.bind(binding);
    let events = copy.events() as u64;
    Ok((to.bring(copy).await?, events))
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
    )
}
