//! Whether a run that goes on still has what its folder was trusted with.

use crate::agents::AgentCatalog;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::trust::{Brought, Standing};
use posse_protocol::{Event, RunId, RunStarted, Seq};
use std::path::Path;
use std::sync::Arc;

impl Runtime {
    /// Why `run` only looks when it goes on, although it was granted more, in words: whoever brought
    /// its agent along is not trusted now. Nothing if that is not so.
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
            (false, Standing::Unknown) => "not trusted any more".to_owned(),
            (false, standing) => standing.to_string(),
        };
        Ok(Some(format!(
            "run {} is read-only: {folder}, which defines its agent, is {why}. Once you trust the \
             folder, the run has all its tools again",
            run.short()
        )))
    }

    /// The agents there are for runs in `folder` on behalf of `above`: whom that run was started with
    /// trust in, its children have, too.
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

    /// What is thought of the folder that brought the agent of `started` along, unless it is trusted.
    /// That it is trusted for this run holds for the run's whole life, with what it brought along then.
    pub(crate) fn distrust(&self, started: &RunStarted) -> Option<Standing> {
        let project = started.project.as_deref()?;
        let folder = Path::new(project);
        if let Some(digest) = started.trusted.get(project)
            && Brought::by(folder).is_ok_and(|now| now.is_some_and(|now| now.digest == *digest))
        {
            return None;
        }
        let around = self.config().around(started.grant.workspace.as_ref());
        let standing = around.agents.standing(folder, &started.agent.name);
        (!standing.is_trusted()).then_some(standing)
    }
}
