//! Takes the changes of subagents over into the checkout of their parent.

use super::{Checkout, branch_of, point, unlock};
use crate::error::{RepositoryError, quoted};
use posse_protocol::{RepositorySite, RunId, Seq};
use posse_store::Bundle;

/// How many files that do not fit are named.
const NAMED: usize = 5;

/// What became of the changes of a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// They are in the checkout: so many files.
    Taken(usize),
    /// They do not fit, for this reason. They are on the branch only.
    Refused(String),
}

impl Checkout {
    /// True when the changes of `child` up to the commit `tip` were taken over, or refused.
    pub(crate) async fn has_merged(&self, child: RunId, tip: &str) -> bool {
        self.stored.lock().await.merged.get(&child).is_some_and(|known| known == tip)
    }

    /// True when [`Checkout::look_at`] was called for `child` with this end of its log.
    pub(crate) fn has_looked_at(&self, child: RunId, last: Seq) -> bool {
        self.looked.lock().get(&child) == Some(&last)
    }

    /// Notes that the changes of `child` up to this end of its log need not be looked at again by this process.
    pub(crate) fn look_at(&self, child: RunId, last: Seq) {
        self.looked.lock().insert(child, last);
    }

    /// Takes over the changes of a subagent that worked at `site`.
    ///
    /// # Errors
    /// When the repository cannot be fetched, or git fails. Nothing has changed then.
    pub(crate) async fn merge(
        &self,
        child: RunId,
        site: &RepositorySite,
        bundle: &Bundle,
    ) -> Result<Merge, RepositoryError> {
        // The child may have begun at another commit.
        self.repositories.fetched(&site.url, &site.commit).await?;
        let from = site.base();
        let mut stored = self.stored.lock().await;
        unlock(self.worktree());
        let (outside, inside) = (self.outside()?, self.inside()?);
        self.repositories.unpack(&outside, self.local.run, bundle).await?;
        let tip = &bundle.about.tip;
        point(&outside, &branch_of(child), tip).await?;
        let own = self.snapshot(&inside).await?;
        // The own state on top of the commit at which the child began, so that git takes this as the base.
        let tree = format!("{own}^{{tree}}");
        let beside = ["commit-tree", &tree, "-p", from, "-m", "Merge"];
        let beside = outside.line(&beside).await.map_err(RepositoryError::Local)?;
        let merge = ["merge-tree", "--write-tree", "--no-messages", "--name-only", "-z"];
        let merge = outside.question(&[&merge[..], &[&beside, tip]].concat()).await;
        let (fits, told) = merge.map_err(RepositoryError::Local)?;
        // A tree, then the names of files that do not fit.
        let mut told = told.split('\0').map(str::trim).filter(|it| !it.is_empty());
        let tree = told.next().unwrap_or_default().to_owned();
        let merged = if fits {
            let names = ["diff-tree", "-r", "-z", "--name-only", &own, &tree];
            let changed = inside.list(&names).await.map_err(RepositoryError::Local)?;
            // A file whose time alone has changed would be in the way. Git tells of other files with status 1.
            let refreshed = inside.question(&["update-index", "-q", "--refresh"]).await;
            refreshed.map_err(RepositoryError::Local)?;
            let update = inside.run(&["read-tree", "-m", "-u", &own, &tree]).await;
            update.map_err(RepositoryError::Local)?;
            Merge::Taken(changed.split('\0').filter(|it| !it.is_empty()).count())
        } else {
            Merge::Refused(conflicts(told))
        };
        stored.merged.insert(child, tip.clone());
        Ok(merged)
    }
}

/// Says which files have changes that do not fit.
fn conflicts<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(quoted).collect();
    let more = names.len().saturating_sub(NAMED);
    let named = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match more {
        0 => format!("both changed {named}"),
        more => format!("both changed {named}, and {more} more"),
    }
}
