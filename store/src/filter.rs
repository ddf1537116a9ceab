//! Filters for lists of runs.

use posse_protocol::{RunId, Status};

/// Which runs to list. All conditions that are set must hold. The default selects every run.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this run.
    pub id: Option<RunId>,
    /// Only runs in this folder.
    pub workspace: Option<String>,
    /// Only runs at this place in their tree.
    pub kin: Kin,
    /// Only runs that have not ended.
    pub unfinished: Unfinished,
    /// Only runs of this agent.
    pub agent: Option<String>,
    /// Only runs of this model, as `vendor/name`.
    pub model: Option<String>,
    /// Only runs with a matching label.
    pub label: Option<Label>,
    /// Only runs with one of these statuses, unless empty.
    pub status: Vec<Status>,
    /// Only runs with this outcome, named as by [`posse_protocol::Outcome::kind`].
    pub outcome: Option<String>,
    /// Whether to list runs in the background.
    pub background: Background,
    /// Only runs created at this time or later: milliseconds since 1970, taken from the id.
    pub since: Option<u64>,
    /// Only runs created before this time.
    pub until: Option<u64>,
    /// Only runs older than this one. Use it for the next page.
    pub before: Option<RunId>,
    /// Only runs newer than this one, oldest first.
    pub after: Option<RunId>,
    /// At most this many, newest first unless `after` is set. 0 means 100.
    pub limit: usize,
}

/// A condition on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// The label is exactly this.
    Is(String),
    /// The label begins with this.
    Begins(String),
}

/// The place of the listed runs in their tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kin {
    /// Anywhere.
    #[default]
    All,
    /// Roots.
    Roots,
    /// Roots, and runs below a root that has ended.
    Heads,
    /// Children of this run.
    ChildrenOf(RunId),
    /// This root and all runs below it.
    TreeOf(RunId),
}

/// Whether to list ended runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// Ended or not.
    #[default]
    All,
    /// Only runs that have not ended.
    Only,
    /// Only runs that collect results and wait for more of them.
    Gathering,
    /// Only runs that wait for the decision of a person about a call.
    Asking,
}

/// Whether to list background runs, for whose end no call waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// In the background or not.
    #[default]
    All,
    /// Only background runs, each started by another run. A root is never in the background.
    Only,
    /// Only roots and runs for whose end a call waits.
    Not,
}
