//! The state of the worktree of a run, according to its log.

use posse_protocol::{Changes, Event, Grant, Kept, Sender, Site};
use serde::Serialize;

/// What the events of a run say about its worktree.
#[derive(Default)]
pub struct WorktreeView {
    /// The run has a worktree.
    own: bool,
    /// Where the run works, if not in a folder.
    place: Option<String>,
    /// The repository on which it works.
    repository: Option<RepositoryView>,
    /// What its agent was told last about its checkout.
    news: Option<String>,
    /// The run has ended and left this.
    left: Option<Left>,
}

/// The repository on which a run works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepositoryView {
    pub url: String,
    /// The commit at which the work began.
    pub commit: String,
}

impl RepositoryView {
    /// Returns the repository of a run that begins with `event`, if it works on one.
    pub fn of(event: &Event) -> Option<Self> {
        let Event::RunStarted(started) = event else { return None };
        let site = started.grant.site.repository()?;
        Some(RepositoryView { url: site.url.clone(), commit: site.commit.clone() })
    }
}

/// What a run has left in its worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// The branch with the changes; `None` if nothing was changed, or nothing could be committed.
    pub branch: Option<String>,
    /// The branch is in the store, and `posse runs fetch` brings it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stored: bool,
    /// How many files were changed.
    pub files: u64,
    /// How many lines were added.
    pub added: u64,
    /// How many lines were removed.
    pub removed: u64,
    /// Why the changes are on no branch, and where they are instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Files that are on no branch, and where they are instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

impl WorktreeView {
    /// Notes an event of the run.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => {
                self.repository = RepositoryView::of(event);
                let Grant { site, worktree, .. } = &started.grant;
                self.own = worktree.is_some() || site.repository().is_some();
                self.place = match site {
                    Site::Repository(site) => Some(format!("{} at {}", site.url, site.commit)),
                    Site::Nowhere => Some("no files".to_owned()),
                    Site::Here | Site::Host { .. } | Site::Shared => None,
                };
            }
            Event::MessageReceived(received) if matches!(received.from, Sender::Workspace) => {
                self.news = Some(received.message.text());
            }
            // The run continued.
            Event::ModelCalled(_) => self.left = None,
            Event::RunFinished(finished) if self.own => {
                self.left = Some(finished.changes.as_deref().map(Left::of).unwrap_or_default());
            }
            _ => {}
        }
    }

    /// Returns the repository and the commit that the run works on, or that it has no files; `None` for a run in a
    /// folder.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Returns the repository that the run works on.
    pub fn repository(&self) -> Option<&RepositoryView> {
        self.repository.as_ref()
    }

    /// Returns what its agent was told last about its checkout: that it is a new one and lacks
    /// something, or which changes of subagents came into it.
    pub fn news(&self) -> Option<&str> {
        self.news.as_deref()
    }

    /// Returns what the run left, if it has ended and had a worktree.
    pub fn left(&self) -> Option<&Left> {
        self.left.as_ref()
    }
}

impl Left {
    /// Returns what the event of a run's end says.
    pub fn of(changes: &Changes) -> Self {
        let problem = Some(&changes.problem).filter(|problem| !problem.is_empty());
        Left {
            branch: (problem.is_none() && changes.files > 0).then(|| changes.branch.clone()),
            stored: !changes.bundle.is_empty(),
            files: changes.files,
            added: changes.added,
            removed: changes.removed,
            problem: problem.cloned(),
            kept: changes.kept.clone(),
        }
    }

    /// True when something is on no branch, or may not be.
    pub fn is_stuck(&self) -> bool {
        self.problem.is_some() || self.kept.is_some()
    }
}
