//! Copies of runs, to bring them from one store to another.

use crate::bundle::{Bundle, BundleHead};
use crate::chain::{StoredEvent, Tail, check};
use crate::cost_check::CostCheck;
use crate::delivery::{Delivery, DeliveryFilter};
use crate::error::StoreError;
use crate::filter::Filter;
use crate::projection::Projection;
use crate::row::RunRow;
use crate::spending::ModelCall;
use crate::stage::Piece;
use crate::store::Store;
use posse_protocol::{Event, RunId, Seq, Site, Status};
use std::sync::Arc;

/// How many events are in memory at a time.
const PAGE: usize = 256;
/// How many bytes of events are staged at a time, unless a single one is longer.
const PIECE: usize = 1 << 20;

/// The most deliveries of one run.
const MOST: usize = 1_000_000_000;

/// A run as another store holds it, without its events and the data of its bundle: these are staged.
#[derive(Clone, Debug)]
pub struct RunCopy {
    row: RunRow,
    calls: Vec<ModelCall>,
    deliveries: Vec<Delivery>,
    bundle: Option<BundleHead>,
    /// True if its workspace is a folder of the machine that has the store.
    is_here: bool,
}

/// Where the workspaces of copied runs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Several machines use the store. Folders of the old store are on the machine with this name.
    To(String),
    /// Only the machine with this name uses the store, so its runs need not name it.
    From(String),
}

/// What a store did with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// It stored the run.
    Stored,
    /// It had the run already, with the same log.
    Present,
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
        let mut copy = RunCopy { row, calls, deliveries, bundle: None, is_here: false };
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
            let left = usize::try_from(tail.seq.0 - after.0).unwrap_or(PAGE);
            let page = from.stored(run, after, PAGE.min(left)).await?;
            let checked = before.take().map(Some).into_iter().chain(page.iter().cloned());
            for record in &check(run, after, PAGE, &tail, checked)? {
                if let Event::RunStarted(started) = &record.event {
                    self.is_here = started.grant.site == Site::Here;
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

    /// The bundle of the run, without its data.
    pub fn bundle(&self) -> Option<&BundleHead> {
        self.bundle.as_ref()
    }

    /// Binds the run to the right machine in the other store.
    pub fn bind(&mut self, binding: &Binding) {
        let host = &mut self.row.work.host;
        match binding {
            Binding::To(name) if self.is_here && host.is_empty() => host.clone_from(name),
            Binding::From(name) if host == name => host.clear(),
            _ => {}
        }
    }

    /// The row of the run.
    pub fn row(&self) -> &RunRow {
        &self.row
    }

    /// How many events were staged.
    pub fn events(&self) -> u64 {
        if self.row.log.erased { 0 } else { self.row.log.last_seq.0 }
    }

    pub(crate) fn parts(&self) -> (&RunRow, &[ModelCall], &[Delivery]) {
        (&self.row, &self.calls, &self.deliveries)
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

/// Notes in `sealed` what an event says about the bundle: the end of a run names its hash, which
/// holds until the run goes on.
pub fn seal_of(event: &Event, sealed: &mut Option<String>) {
    match event {
        Event::RunFinished(end) => {
            let bundle = end.changes.as_ref().map(|changes| changes.bundle.clone());
            *sealed = bundle.filter(|bundle| !bundle.is_empty());
        }
        Event::Archived(_) | Event::CancelRequested(_) => {}
        _ => *sealed = None,
    }
}

fn damaged(run: RunId, seq: Seq, reason: String) -> StoreError {
    StoreError::Damaged { run, seq, reason }
}
