//! A copy of a run, to bring it from one store to another.

use crate::bundle::Bundle;
use crate::chain::{StoredEvent, Tail, check};
use crate::cost_check::CostCheck;
use crate::delivery::Delivery;
use crate::error::StoreError;
use crate::projection::Projection;
use crate::row::RunRow;
use crate::spending::{LedgerRow, ModelCall};
use posse_protocol::{Event, RunId, Seq, Site};
use std::sync::Arc;

/// A run as a store holds it.
#[derive(Clone, Debug)]
pub struct RunCopy {
    row: RunRow,
    events: Vec<StoredEvent>,
    calls: Vec<ModelCall>,
    deliveries: Vec<Delivery>,
    bundle: Option<Arc<Bundle>>,
    /// The SHA-256 of the bundle, if the end of the log says it.
    sealed: Option<String>,
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
    /// Makes a copy of what a store holds, and checks it: the log against its hashes, and the row and
    /// the costs against the log. No worker owns the copy.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], with the reason.
    pub fn new(
        mut row: RunRow,
        events: Vec<Option<StoredEvent>>,
        costs: Vec<LedgerRow>,
        deliveries: Vec<Delivery>,
    ) -> Result<RunCopy, StoreError> {
        let (run, last) = (row.id, row.log.last_seq);
        row.work.owner = None;
        row.status = row.status_given(false);
        let mut read = Vec::with_capacity(events.len());
        for (event, seq) in events.into_iter().zip(1..) {
            let unreadable = || damaged(run, Seq(seq), format!("event {seq} cannot be read"));
            read.push(event.ok_or_else(unreadable)?);
        }
        let calls = costs.iter().map(|it| ModelCall::read(run, it)).collect::<Option<Vec<_>>>();
        let calls = calls.ok_or_else(|| damaged(run, last, "a cost cannot be read".to_owned()))?;
        let mut copy = RunCopy {
            row,
            events: read,
            calls,
            deliveries,
            bundle: None,
            sealed: None,
            is_here: false,
        };
        copy.check(costs)?;
        Ok(copy)
    }

    /// Adds the bundle of the run, and checks it against the log.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], with the reason.
    pub fn with_bundle(self, bundle: Option<Bundle>) -> Result<RunCopy, StoreError> {
        if let Some(sealed) = &self.sealed
            && bundle.as_ref().map(Bundle::sha256).as_ref() != Some(sealed)
        {
            let reason = "its bundle is not that of the end of its log".to_owned();
            return Err(damaged(self.row.id, self.row.log.last_seq, reason));
        }
        Ok(RunCopy { bundle: bundle.map(Arc::new), ..self })
    }

    /// The bundle of the run.
    pub fn bundle(&self) -> Option<&Arc<Bundle>> {
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

    /// How many events its log has.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn parts(&self) -> (&RunRow, &[StoredEvent], &[ModelCall], &[Delivery]) {
        (&self.row, &self.events, &self.calls, &self.deliveries)
    }

    /// Checks the log, and the row and the costs against the log.
    fn check(&mut self, costs: Vec<LedgerRow>) -> Result<(), StoreError> {
        let RunCopy { row, events, deliveries, is_here, sealed, .. } = self;
        let (run, seq) = (row.id, row.log.last_seq);
        if let Some(reason) = &row.log.damaged {
            return Err(damaged(run, seq, reason.clone()));
        }
        if let Some(reason) = deliveries.iter().find_map(|it| it.damaged.clone()) {
            return Err(damaged(run, seq, format!("a delivery to a webhook: {reason}")));
        }
        if row.log.erased {
            return Ok(());
        }
        let (hash, version) = (row.log.last_hash.clone(), row.log.version);
        let tail = Tail { seq, hash, version };
        let log = check(run, Seq::ZERO, usize::MAX, &tail, events.iter().cloned().map(Some))?;
        let (mut projection, mut ledger) = (Projection::new(run), CostCheck::new(run, costs));
        for record in &log {
            if let Event::RunStarted(started) = &record.event {
                *is_here = started.grant.site == Site::Here;
            }
            seal_of(&record.event, sealed);
            projection.apply(record);
            ledger.apply(record);
        }
        if let Some(column) = projection.difference(row) {
            return Err(damaged(run, seq, format!("its row differs from its log in `{column}`")));
        }
        match ledger.fault(seq) {
            Some(reason) => {
                Err(damaged(run, seq, format!("its costs differ from its log: {reason}")))
            }
            None => Ok(()),
        }
    }
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
