//! Which runs to list.

use posse_protocol::{RunId, Status};

/// Which runs to list. What is set must all hold; the default selects every run.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this run.
    pub id: Option<RunId>,
    /// Only runs in this folder.
    pub workspace: Option<String>,
    /// Only runs that stand there in their tree.
    pub kin: Kin,
    /// Only runs that have not ended.
    pub unfinished: Unfinished,
    /// Only runs of this agent.
    pub agent: Option<String>,
    /// Only runs of this model, as `vendor/name`.
    pub model: Option<String>,
    /// Only runs with such a label.
    pub label: Option<Label>,
    /// Only runs that stand like one of these, if any are named.
    pub status: Vec<Status>,
    /// Only runs that ended like this, in the word of [`posse_protocol::Outcome::kind`].
    pub outcome: Option<String>,
    /// Whether runs are listed that others have started and do not wait for.
    pub background: Background,
    /// Only runs made at this time or later: milliseconds since 1970, as their ids tell it.
    pub since: Option<u64>,
    /// Only runs made before this time.
    pub until: Option<u64>,
    /// Only runs older than this one: the next page.
    pub before: Option<RunId>,
    /// Only runs newer than this one, and the oldest of them first.
    pub after: Option<RunId>,
    /// At most this many, the newest first unless `after` says otherwise; 0 is 100.
    pub limit: usize,
}

/// What a label must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// This, to the letter.
    Is(String),
    /// Something that begins with this.
    Begins(String),
}

/// Where in their tree the listed runs stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kin {
    /// Anywhere.
    #[default]
    All,
    /// At the top.
    Roots,
    /// At the top, or below a root that has ended.
    Heads,
    /// Right below this run.
    ChildrenOf(RunId),
    /// In the tree whose root is this run, which is one of them.
    TreeOf(RunId),
}

/// Whether ended runs are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// Ended or not.
    #[default]
    All,
    /// Only runs that have not ended.
    Only,
    /// Only runs that have results to be told together and wait for more of them.
    Gathering,
    /// Only runs that ask a person about a call.
    Asking,
}

/// Whether runs are listed for whose end no call waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// In the background or not.
    #[default]
    All,
    /// Only runs in the background: others have started them. One at the top never is, whoever
    /// executes it.
    Only,
    /// Only runs that somebody waits for, and those at the top.
    Not,
}
