//! Brings the changes of a run into the repository of a user.

use super::super::WorktreeError;
use super::super::git::Git;
use crate::error::{Error, RepositoryError};
use crate::worktree::Repositories;
use posse_protocol::RunId;
use posse_store::Bundle;

/// Whether a branch is new in the repository of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// It was made.
    New,
    /// It was there already, at the same commit.
    Present,
}

impl Repositories {
    /// Brings the branch of a bundle into the repository of the user around `folder`, under the name
    /// `branch`. A branch of this name must not exist, or be the same.
    ///
    /// # Errors
    /// When there is no repository, it lacks the commit on which the branch stands, or there is another
    /// branch of this name.
    pub(crate) async fn bring(
        &self,
        run: RunId,
        bundle: &Bundle,
        folder: &str,
        branch: &str,
    ) -> Result<Brought, Error> {
        let planned = self.worktrees.plan(run, folder).await.map_err(|error| match error {
            WorktreeError::NoRepository { folder, reason } => Error::InvalidInput(format!(
                "{folder} is not in a git repository with files and a commit: {reason}; go to a \
                 clone of the repository of the run"
            )),
            error => error.into(),
        })?;
        let planned = planned.0;
        let git = Git::writing(self.launcher()?, &planned, self.around()?);
        let name = format!("refs/heads/{branch}");
        // Some names stand for other branches, e.g. `@{-1}`: git says which.
        let meant = git.line(&["check-ref-format", "--branch", branch]).await;
        if meant.as_deref() != Ok(branch) || ["HEAD", "@"].contains(&branch) {
            return Err(Error::InvalidInput(format!("`{branch}` cannot be the name of a branch")));
        }
        let tip = &bundle.about.tip;
        let known = git.line(&["rev-parse", "--verify", "--quiet", &name]).await;
        match known {
            Ok(known) if known == *tip => return Ok(Brought::Present),
            Ok(known) => {
                return Err(Error::InvalidInput(format!(
                    "the branch `{branch}` exists and is at another commit, {}; give the new branch \
                     another name",
                    &known[..known.len().min(12)]
                )));
            }
            Err(_) => {}
        }
        let base = format!("{}^{{commit}}", bundle.about.base);
        if git.run(&["cat-file", "-e", &base]).await.is_err() {
            return Err(Error::InvalidInput(format!(
                "the repository of {folder} lacks the commit {} on which the run began; fetch it \
                 first, with `git fetch`",
                bundle.about.base
            )));
        }
        self.unpack(&git, run, bundle).await?;
        // It fails if the branch was made meanwhile.
        let none = "0".repeat(tip.len());
        let made = git.run(&["update-ref", &name, tip, &none]).await;
        made.map_err(RepositoryError::Local)?;
        Ok(Brought::New)
    }
}
