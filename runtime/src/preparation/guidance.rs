//! Which guidance files a run gets at its start: those of its parent if it works in the same folder,
//! so that all runs of a tree see the same, else those that there are now.

use crate::authority;
use crate::config::Guidance;
use crate::error::Error;
use crate::guidance::{self, Limits};
use crate::policy::FileRules;
use crate::runtime::Runtime;
use posse_protocol::{Grant, GuidanceFile, RunStarted, Site};
use std::path::PathBuf;
use std::sync::Arc;

impl Runtime {
    /// Returns the guidance files of a run with `grant` below `parent`.
    pub(crate) async fn guidance_of(
        &self,
        grant: &Grant,
        parent: Option<&RunStarted>,
    ) -> Result<Vec<GuidanceFile>, Error> {
        let config = self.config();
        // A worktree is not there yet, and has no files that git ignores.
        let worktree = grant.worktree.as_ref().map(|worktree| &worktree.origin);
        let folder = PathBuf::from(worktree.unwrap_or(&grant.workspace));
        let sources = config.around(&folder).guidance;
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        let has_files = grant.site != Site::Nowhere && !grant.site.is_portable();
        let which = match sources.which() {
            Guidance::All if !has_files => Guidance::User,
            which => which,
        };
        let same = |parent: &&RunStarted| parent.grant.workspace == grant.workspace;
        let parents = parent.filter(same).map(|parent| &parent.guidance);
        if let Some(known) = parents.filter(|known| !known.is_empty()) {
            let stays = |file: &&GuidanceFile| match which {
                Guidance::Off => false,
                Guidance::User => file.own,
                Guidance::All => true,
            };
            return Ok(known.iter().filter(stays).cloned().collect());
        }
        let facts = self.inner.tools.facts_with(&grant.workspace, &grant.sources)?;
        let policy = authority::policy(grant, config, &facts).map(Arc::new)?;
        let (rules, redactor) = (FileRules::of(&policy), config.permissions.redactor.clone());
        let limits = Limits { which, rules, redactor };
        let work = move || guidance::read(&sources, &folder, limits);
        let read = tokio::task::spawn_blocking(work).await;
        read.map_err(|_| Error::InvalidInput("the guidance files could not be read".to_owned()))
    }
}
