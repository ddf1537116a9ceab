//! Runs that wait to be claimed, at a glance: enough to decide whose turn it is.

use crate::row::RunRow;
use posse_protocol::RunId;
use std::collections::HashSet;

/// A run that waits to be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Which run.
    pub id: RunId,
    /// The run at the top of its tree.
    pub root: RunId,
    /// Who started it.
    pub parent: Option<RunId>,
    /// How many of those that its parent has started are executed at the same time, if the parent
    /// says so.
    pub abreast: Option<u32>,
    /// The agent's name.
    pub agent: String,
    /// The model, as `vendor/name`.
    pub model: String,
    /// The folder it works in.
    pub workspace: String,
    /// Who waits with a higher one goes first.
    pub priority: i32,
    /// Since when it waits.
    pub ready_at: u64,
    /// How many processes in a row died that executed it.
    pub deaths: u32,
}

/// Which of those that wait are looked at.
#[derive(Clone, Debug)]
pub enum Look {
    /// Those that go first by priority and time, and some of every root: nobody is out of sight
    /// because somebody else has thousands.
    Ahead {
        /// Only runs in this folder.
        workspace: Option<String>,
    },
    /// Those that go first, but for some.
    Past {
        /// Only runs in this folder.
        workspace: Option<String>,
        /// Those that are not looked for.
        passed: Passed,
    },
    /// Those that have waited from this moment on or later.
    Since(u64),
    /// Those of these runs that wait.
    Of(Vec<RunId>),
}

impl From<&RunRow> for Queued {
    fn from(row: &RunRow) -> Self {
        Queued {
            id: row.id,
            root: row.family.root,
            parent: row.family.parent,
            agent: row.about.agent.clone(),
            model: row.about.model.clone(),
            workspace: row.about.workspace.clone(),
            priority: row.work.priority,
            ready_at: row.work.ready_at,
            abreast: row.work.abreast,
            deaths: row.deaths_in_a_row(),
        }
    }
}

/// Runs that are passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Those of these agents.
    pub agents: Vec<String>,
    /// Those of these models.
    pub models: Vec<String>,
    /// Those that these runs have started.
    pub parents: Vec<RunId>,
}

/// What was seen of those that wait, in no order.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The runs.
    pub runs: Vec<Queued>,
    /// There may be more of those that were looked for.
    pub more: bool,
    /// Roots of which there may be more.
    pub cut: HashSet<RunId>,
    /// Since when the latest of all that wait has waited, or of those that were seen if there may be
    /// later ones. Whoever looks again from here on misses nobody.
    pub until: u64,
    /// Runs of dead workers were given back for this look: what waits since long may be new.
    pub freed: bool,
}

/// Which runs to claim.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// At most this many.
    pub limit: usize,
    /// Only these, if any are named.
    pub runs: Vec<RunId>,
    /// Only runs in this folder.
    pub workspace: Option<String>,
}

/// A run that was claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The run as it stands.
    pub row: RunRow,
    /// The epoch that its owner's appends carry.
    pub epoch: u64,
}
