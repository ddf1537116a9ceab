//! The queue: runs that wait for a worker to claim them.

use crate::row::RunRow;
use posse_protocol::RunId;
use std::collections::HashSet;

/// A run that waits to be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The id of the run.
    pub id: RunId,
    /// The run at the top of its tree.
    pub root: RunId,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// How many subagents of its parent may execute at the same time, if the parent sets a limit.
    pub abreast: Option<u32>,
    /// The name of the agent.
    pub agent: String,
    /// The model, as `vendor/name`.
    pub model: String,
    /// The folder that it belongs to.
    pub workspace: String,
    /// Runs with a higher priority go first.
    pub priority: i32,
    /// Since when it waits.
    pub ready_at: u64,
    /// How many processes in a row died while they executed it.
    pub deaths: u32,
    /// Someone asked it to stop.
    pub stopping: bool,
}

/// Which runs of the queue to return.
#[derive(Clone, Debug)]
pub enum Look {
    /// The first runs by priority and time, and some runs of every root. So a root with thousands
    /// of runs does not hide the others.
    Ahead {
        /// Only runs in this folder.
        workspace: Option<String>,
    },
    /// The first runs by priority and time, without those in `passed`.
    Past {
        /// Only runs in this folder.
        workspace: Option<String>,
        /// The runs to leave out.
        passed: Passed,
    },
    /// Runs that wait since this time or a later one.
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
            stopping: row.state.stopping,
        }
    }
}

/// Runs to leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Runs of these agents.
    pub agents: Vec<String>,
    /// Runs of these models.
    pub models: Vec<String>,
    /// Runs that these runs started.
    pub parents: Vec<RunId>,
}

/// Runs of the queue, in no order.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The runs.
    pub runs: Vec<Queued>,
    /// True if more runs may match.
    pub more: bool,
    /// Roots that may have more waiting runs.
    pub cut: HashSet<RunId>,
    /// Since when the latest run of the queue waits. If later runs may be missing, this is the time
    /// of the latest run in `runs`. A [`Look::Since`] from here misses no run.
    pub until: u64,
    /// True if the store released runs of dead workers first. Such runs may be new to the caller
    /// although they have waited for long.
    pub freed: bool,
}

/// Which runs to claim.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// At most this many.
    pub limit: usize,
    /// Only these, unless empty.
    pub runs: Vec<RunId>,
    /// Only runs in this folder.
    pub workspace: Option<String>,
    /// Also runs that this worker owns already. A worker asks for them when an earlier claim failed:
    /// the claim may have succeeded although its answer was lost.
    pub again: bool,
}

/// A run that was claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The row of the run after the claim.
    pub row: RunRow,
    /// The epoch for the appends of the owner.
    pub epoch: u64,
}
