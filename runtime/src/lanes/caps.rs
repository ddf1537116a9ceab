//! How many runs may be executed at the same time, in all and of a kind.

use posse_protocol::RunId;
use posse_store::Queued;
use std::collections::BTreeMap;

/// How many runs of a kind a process executes at the same time. What is over a cap waits in its
/// place; nothing is refused. A cap of 0 counts as 1: what it caps would never start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneCaps {
    /// Children of one run. A run whose agent says less has less.
    pub per_parent: Option<usize>,
    /// Runs of one agent, by its name.
    pub per_agent: Shares,
    /// Runs of one model, as `vendor/name`.
    pub per_model: Shares,
}

/// How many of each name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Of these.
    pub named: BTreeMap<String, usize>,
    /// Of each that is not named.
    pub others: Option<usize>,
}

impl Shares {
    /// How many of `name`; names are the same in any case.
    pub fn of(&self, name: &str) -> Option<usize> {
        let is_meant = |(known, _): &(&String, &usize)| known.eq_ignore_ascii_case(name);
        self.named.iter().find(is_meant).map(|(_, most)| *most).or(self.others)
    }
}

impl LaneCaps {
    /// How many children one run has at work, if its agent says `abreast` of them.
    pub(super) fn of_parent(&self, abreast: Option<u32>) -> Option<usize> {
        let own = abreast.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        self.per_parent.into_iter().chain(own).min()
    }
}

/// What runs that are capped alike have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Kind {
    pub(super) parent: Option<RunId>,
    /// How many children that parent has at work, if it says so.
    pub(super) abreast: Option<u32>,
    pub(super) agent: String,
    pub(super) model: String,
    /// It may take its process along.
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
