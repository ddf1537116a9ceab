//! Whether a resumed run still has the rights that it got when its folder was trusted.

use crate::agents::AgentCatalog;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::trust::{FilesToTrust, TrustStatus};
use posse_protocol::{Event, RunId, RunStarted, Seq};
use std::path::Path;
use std::sync::Arc;

impl Runtime {
    /// Returns why `run` is read-only when it resumes, in words, although its grant allows more: the folder that
    /// defines its agent is no longer trusted. `None` if the run is not held back.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub async fn held_back(&self, run: RunId) -> Result<Option<String>, Error> {
        let first = self.inner.store.read(run, Seq::ZERO, 1).await?.pop();
        let Some(Event::RunStarted(started)) = first.map(|record| record.event) else {
            return Ok(None);
        };
        let Some(standing) = self.distrust(&started) else { return Ok(None) };
        let folder = started.project.as_deref().unwrap_or_default();
        let why = match (started.trusted.contains_key(folder), standing) {
            (true, _) => "changed since the run was started with `--trust`".to_owned(),
            (false, TrustStatus::Unknown) => "not trusted any more".to_owned(),
            (false, standing) => standing.to_string(),
        };
        Ok(Some(format!(
            "run {} is read-only: {folder}, which defines its agent, is {why}. Once you trust the \
             folder, the run has all its tools again",
            run.short()
        )))
    }

    /// Returns the agents for runs in `folder` below `above`. A child trusts the folders that its parent was started
    /// with trust in.
    pub(crate) fn agents_for(
        &self,
        folder: &Path,
        above: Option<&RunStarted>,
    ) -> Arc<AgentCatalog> {
        let agents = self.config().around(folder).agents;
        match above.filter(|above| !above.trusted.is_empty()) {
            Some(above) => agents.trusting(&above.trusted),
            None => agents.current(),
        }
    }

    /// Returns the standing of the folder that defines the agent of `started`, unless it is trusted. Trust given to
    /// this run lasts for its whole life, while the content of the folder is the same.
    pub(crate) fn distrust(&self, started: &RunStarted) -> Option<TrustStatus> {
        let project = started.project.as_deref()?;
        let folder = Path::new(project);
        if let Some(digest) = started.trusted.get(project)
            && FilesToTrust::by(folder)
                .is_ok_and(|now| now.is_some_and(|now| now.digest == *digest))
        {
            return None;
        }
        let around = self.config().around(started.grant.workspace.as_ref());
        let standing = around.agents.standing(folder, &started.agent.name);
        (!standing.is_trusted()).then_some(standing)
    }
}
