//! What became of a run's own worktree, as its log tells.

use crate::clean::clean_line;
use crate::format;
use posse::protocol::{Changes, Event, Kept};
use serde::Serialize;

/// What a run's events tell of its worktree.
#[derive(Default)]
pub struct Worktree {
    /// The run has one.
    own: bool,
    /// The run is over, and has left this.
    left: Option<Left>,
}

/// What a run has left in its worktree, as `--json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Where it is; nowhere if nothing was changed, or if it could not be put there.
    branch: Option<String>,
    files: u64,
    added: u64,
    removed: u64,
    /// Why it is on no branch, and where it is instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// What is on no branch, and where it is instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<Kept>,
}

impl Worktree {
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

    /// The same in words for people.
    pub fn told(&self) -> String {
        if let Some(problem) = &self.problem {
            let problem = clean_line(problem, 600);
            return format!("what was changed could not be put on a branch: {problem}");
        }
        let kept = self.kept.as_ref().map(kept);
        let Some(branch) = &self.branch else {
            return kept.unwrap_or_else(|| "nothing was changed in its worktree".to_owned());
        };
        let Left { files, added, removed, .. } = self;
        let (files, branch) = (format::count(*files, "file"), clean_line(branch, 200));
        let kept = kept.map_or_else(String::new, |kept| format!("; {kept}"));
        format!(
            "{files} changed, +{added} -{removed}, on the branch {branch}: `git merge {branch}`\
             {kept}"
        )
    }
}

/// What is on no branch, in words for people.
pub fn kept(kept: &Kept) -> String {
    let names = kept.names.iter().map(|name| clean_line(name, 200)).collect::<Vec<_>>().join(", ");
    let more = match kept.files.saturating_sub(kept.names.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}: {names}{more}", clean_line(&kept.to_string(), 600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_told_whole() {
        let left = Left { branch: Some("posse/1".into()), files: 2, added: 3, ..Left::default() };
        assert_eq!(
            left.told(),
            "2 files changed, +3 -0, on the branch posse/1: `git merge posse/1`"
        );
        assert_eq!(Left::default().told(), "nothing was changed in its worktree");
        let left = Left { problem: Some("git cannot; it still is in /w".into()), ..left };
        assert!(left.is_stuck() && left.told().ends_with("it still is in /w"));
    }
}
