//! How many runs of a kind may be executed at the same time.

use posse_protocol::RunId;
use posse_store::Queued;
use std::collections::BTreeMap;

/// How many runs of a kind a process executes at the same time. Runs over a cap wait in their
/// place; none is refused. A cap of 0 counts as 1, because with 0 these runs would never start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneCaps {
    /// Children of one run. The agent of the run can only set a lower cap.
    pub per_parent: Option<usize>,
    /// Runs of one agent, by its name.
    pub per_agent: Shares,
    /// Runs of one model, as `vendor/name`.
    pub per_model: Shares,
}

/// Caps by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// The caps of these names.
    pub named: BTreeMap<String, usize>,
    /// The cap of each other name.
    pub others: Option<usize>,
}

impl Shares {
    /// The cap of `name`, compared without regard to case.
    pub fn of(&self, name: &str) -> Option<usize> {
        let is_meant = |(known, _): &(&String, &usize)| known.eq_ignore_ascii_case(name);
        self.named.iter().find(is_meant).map(|(_, most)| *most).or(self.others)
    }
}

impl LaneCaps {
    /// The cap of the children of one run whose agent sets the cap `abreast`.
    pub(super) fn of_parent(&self, abreast: Option<u32>) -> Option<usize> {
        let own = abreast.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        self.per_parent.into_iter().chain(own).min()
    }
}

/// The properties of a run that caps depend on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Kind {
    pub(super) parent: Option<RunId>,
    /// The cap that the agent of the parent sets.
    pub(super) abreast: Option<u32>,
    pub(super) agent: String,
    pub(super) model: String,
    /// True when it may kill its process.
    pub(super) suspect: bool,
}

impl Kind {
    pub(super) fn of(run: &Queued) -> Self {
        Kind {
            parent: run.parent,
            abreast: run.abreast,
            agent: run.agent.clone(),
            model: run.model.clone(),
            suspect: super::is_suspect(run.deaths),
        }
    }
}
