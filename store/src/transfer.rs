//! Copies runs of a store to another store, a tree at a time.

use crate::bundle::Bundle;
use crate::chain::{StoredEvent, Tail, check};
use crate::copy::{Binding, Brought, RunCopy, seal_of};
use crate::cost_check::CostCheck;
use crate::delivery::DeliveryFilter;
use crate::error::StoreError;
use crate::filter::{Filter, Kin};
use crate::projection::Projection;
use crate::row::RunRow;
use crate::spending::ModelCall;
use crate::stage::Piece;
use crate::store::Store;
use posse_protocol::{Event, RunId, Seq, Site, Status};
use std::sync::Arc;

/// How many events are in memory at a time.
const EVENTS: usize = 256;
/// How many bytes of events are staged at a time, unless a single one is longer.
const PIECE: usize = 1 << 20;

/// The most deliveries of one run.
const MOST: usize = 1_000_000_000;

/// How many rows to read at a time.
const PAGE: usize = 500;

/// What [`transfer`] has done so far.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// Runs that were stored.
    pub copied: u64,
    /// Their events.
    pub events: u64,
    /// Those of the stored runs that have not ended. They can be executed in both stores now.
    pub unfinished: u64,
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
    let is_open = |run: RunId| runs.iter().any(|row| row.id == run && row.state.outcome.is_none());
    let about = copies.iter().map(|copy| (copy.events(), is_open(copy.row.id)));
    let about: Vec<(u64, bool)> = about.collect();
    match to.bring(copies).await {
        Ok(brought) => {
            for (brought, (events, is_open)) in brought.into_iter().zip(about) {
                let is_new = brought == Brought::Stored;
                done.copied += u64::from(is_new);
                done.unfinished += u64::from(is_new && is_open);
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

impl RunCopy {
    /// Stages the log and the bundle of a run in another store, for [`crate::Logs::bring`], and checks
    /// everything meanwhile: the log against its hashes; the row, the costs and the bundle against the
    /// log. No worker owns the copy.
    ///
    /// # Errors
    /// When the run is damaged, or a worker executes it, or one of the stores fails.
    pub async fn stage(
        from: &dyn Store,
        to: &dyn Store,
        run: RunId,
    ) -> Result<RunCopy, StoreError> {
        let own = Filter { id: Some(run), limit: 1, ..Filter::default() };
        let mut row = from.list(&own).await?.pop().ok_or(StoreError::NotFound(run))?;
        let last = row.log.last_seq;
        if row.status == Status::Running {
            return Err(StoreError::NotOwner(run));
        }
        if let Some(reason) = &row.log.damaged {
            return Err(damaged(run, last, reason.clone()));
        }
        row.work.owner = None;
        row.status = row.status_given(false);
        let costs = from.ledger(run).await?;
        let calls = costs.iter().map(|it| ModelCall::read(run, it)).collect::<Option<Vec<_>>>();
        let calls = calls.ok_or_else(|| damaged(run, last, "a cost cannot be read".to_owned()))?;
        let of_run = DeliveryFilter { run: Some(run), limit: MOST, ..DeliveryFilter::default() };
        let deliveries = from.deliveries(&of_run).await?;
        if let Some(reason) = deliveries.iter().find_map(|it| it.damaged.clone()) {
            return Err(damaged(run, last, format!("a delivery to a webhook: {reason}")));
        }
        let mut copy = RunCopy { row, calls, deliveries, bundle: None, site: Site::Nowhere };
        if !copy.row.log.erased {
            let sealed = copy.stage_log(from, to, CostCheck::new(run, costs)).await?;
            copy.stage_bundle(from, to, sealed).await?;
        }
        Ok(copy)
    }

    /// Stages the log, a page at a time, and checks it. Returns the SHA-256 of the bundle, if the end
    /// of the log says it.
    async fn stage_log(
        &mut self,
        from: &dyn Store,
        to: &dyn Store,
        mut costs: CostCheck,
    ) -> Result<Option<String>, StoreError> {
        let (run, log) = (self.row.id, &self.row.log);
        let tail = Tail { seq: log.last_seq, hash: log.last_hash.clone(), version: log.version };
        let (mut projection, mut sealed) = (Projection::new(run), None);
        let mut before: Option<StoredEvent> = None;
        loop {
            let after = before.as_ref().map_or(Seq::ZERO, |event| event.seq);
            // The log may have grown since its row was read.
            let left = usize::try_from(tail.seq.0 - after.0).unwrap_or(EVENTS);
            let page = from.stored(run, after, EVENTS.min(left)).await?;
            let checked = before.take().map(Some).into_iter().chain(page.iter().cloned());
            for record in &check(run, after, EVENTS, &tail, checked)? {
                if let Event::RunStarted(started) = &record.event {
                    self.site = started.grant.site.clone();
                }
                seal_of(&record.event, &mut sealed);
                projection.apply(record);
                costs.apply(record);
            }
            let page: Vec<StoredEvent> = page.into_iter().flatten().collect();
            before = page.last().cloned();
            let has_more = before.as_ref().is_some_and(|event| event.seq < tail.seq);
            for piece in pieces(page) {
                to.stage(run, Piece::Events(piece)).await?;
            }
            if !has_more {
                break;
            }
        }
        if let Some(column) = projection.difference(&self.row) {
            let reason = format!("its row differs from its log in `{column}`");
            return Err(damaged(run, tail.seq, reason));
        }
        match costs.fault(tail.seq) {
            Some(reason) => {
                Err(damaged(run, tail.seq, format!("its costs differ from its log: {reason}")))
            }
            None => Ok(sealed),
        }
    }

    /// Stages the bundle, whose SHA-256 is `sealed` if the log says it.
    async fn stage_bundle(
        &mut self,
        from: &dyn Store,
        to: &dyn Store,
        sealed: Option<String>,
    ) -> Result<(), StoreError> {
        let run = self.row.id;
        let bundle = from.bundle(run).await?;
        self.bundle = bundle.as_ref().map(Bundle::head);
        if sealed.is_some() && self.bundle.as_ref().map(|it| &it.sha256) != sealed.as_ref() {
            let reason = "its bundle is not that of the end of its log".to_owned();
            return Err(damaged(run, self.row.log.last_seq, reason));
        }
        match bundle {
            Some(bundle) => to.stage(run, Piece::Bundle(Arc::new(bundle))).await,
            None => Ok(()),
        }
    }
}

/// Splits a page of events into short pieces.
fn pieces(page: Vec<StoredEvent>) -> Vec<Vec<StoredEvent>> {
    let (mut pieces, mut bytes) = (Vec::<Vec<StoredEvent>>::new(), 0);
    for event in page {
        bytes += event.body.len();
        match pieces.last_mut() {
            Some(piece) if bytes <= PIECE => piece.push(event),
            _ => {
                bytes = event.body.len();
                pieces.push(vec![event]);
            }
        }
    }
    pieces
}

fn damaged(run: RunId, seq: Seq, reason: String) -> StoreError {
    StoreError::Damaged { run, seq, reason }
}
