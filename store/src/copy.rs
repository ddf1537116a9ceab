//! Copies of runs, to bring them from one store to another.

use crate::bundle::BundleHead;
use crate::delivery::Delivery;
use crate::row::RunRow;
use crate::spending::ModelCall;
use posse_protocol::{Event, Site};

/// A run as another store holds it, without its events and the data of its bundle: these are staged.
#[derive(Clone, Debug)]
pub struct RunCopy {
    pub(crate) row: RunRow,
    pub(crate) calls: Vec<ModelCall>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) bundle: Option<BundleHead>,
    /// Where its workspace is, as its log says.
    pub(crate) site: Site,
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
    /// The bundle of the run, without its data.
    pub fn bundle(&self) -> Option<&BundleHead> {
        self.bundle.as_ref()
    }

    /// Binds the run to the right machine in the other store.
    pub fn bind(&mut self, binding: &Binding) {
        let host = &mut self.row.work.host;
        match binding {
            Binding::To(name) if host.is_empty() => match &self.site {
                Site::Here => host.clone_from(name),
                // It was copied to a store of that machine alone before.
                site => site.host().clone_into(host),
            },
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
