//! What became of a run's own worktree, as its log tells.

use posse_protocol::{Changes, Event, Kept};
use serde::Serialize;

/// What a run's events tell of its worktree.
#[derive(Default)]
pub struct WorktreeView {
    /// The run has one.
    own: bool,
    /// The run is over, and has left this.
    left: Option<Left>,
}

/// What a run has left in its worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Where it is; nowhere if nothing was changed, or if it could not be put there.
    pub branch: Option<String>,
    /// Files that were changed.
    pub files: u64,
    /// Lines that were added.
    pub added: u64,
    /// Lines that were removed.
    pub removed: u64,
    /// Why it is on no branch, and where it is instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What is on no branch, and where it is instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

impl WorktreeView {
    /// Takes note of an event of the run.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => self.own = started.grant.worktree.is_some(),
            // It was set to work again.
            Event::ModelCalled(_) => self.left = None,
            Event::RunFinished(finished) if self.own => {
                self.left = Some(finished.changes.as_deref().map(Left::of).unwrap_or_default());
            }
            _ => {}
        }
    }

    /// What the run has left, if it is over and had a worktree.
    pub fn left(&self) -> Option<&Left> {
        self.left.as_ref()
    }
}

impl Left {
    fn of(changes: &Changes) -> Self {
        let problem = Some(&changes.problem).filter(|problem| !problem.is_empty());
        Left {
            branch: (problem.is_none() && changes.files > 0).then(|| changes.branch.clone()),
            files: changes.files,
            added: changes.added,
            removed: changes.removed,
            problem: problem.cloned(),
            kept: changes.kept.clone(),
        }
    }

    /// True when something is on no branch, or may be.
    pub fn is_stuck(&self) -> bool {
        self.problem.is_some() || self.kept.is_some()
    }
}
