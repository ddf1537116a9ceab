//! Makes the tools of runs, except those of the runtime itself.

use crate::error::Error;
use crate::runtime_config::RuntimeConfig;
use crate::tool_facts::{ToolFacts, of_the_runtime};
use parking_lot::Mutex;
use posse_agent::Tool;
use posse_protocol::{AgentName, RunId, SourceOffer};
use posse_tools::confine::Confinement;
use posse_tools::launch::Launcher;
use posse_tools::{PathRules, ReadOnly, Scratch, SourceContext, Workspace};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

/// The tools that runs can have.
pub(crate) struct Toolset {
    launcher: Option<Launcher>,
    host_tools: Vec<Arc<dyn Tool>>,
    /// Open workspaces.
    workspaces: Mutex<HashMap<String, Weak<Workspace>>>,
    /// The facts about the tools, once needed.
    facts: OnceLock<Arc<[ToolFacts]>>,
}

/// The folders of a run.
pub(crate) struct RunFolders<'a> {
    pub(crate) workspace: &'a str,
    pub(crate) scratch: Option<&'a Scratch>,
    pub(crate) read_only: Vec<ReadOnly>,
}

impl Toolset {
    pub(crate) fn new(config: &RuntimeConfig) -> Self {
        Toolset {
            launcher: config.confining_launcher(),
            host_tools: config.tools.clone(),
            workspaces: Mutex::default(),
            facts: OnceLock::new(),
        }
    }

    /// Returns the facts about the tools, before any is made for a run.
    pub(crate) fn facts(&self, workspace: &str) -> Result<Arc<[ToolFacts]>, Error> {
        if let Some(facts) = self.facts.get() {
            return Ok(facts.clone());
        }
        // Unconfined, so that this need not check whether commands can be confined.
        let tools =
            self.make(workspace, None, Vec::new(), &Confinement::none(), None, Vec::new())?;
        let plain = tools.iter().map(|tool| tool.spec().facts.clone());
        let facts = plain.chain(of_the_runtime()).collect();
        Ok(self.facts.get_or_init(|| facts).clone())
    }

    /// Returns the facts, with the tools that sources offered for a run.
    pub(crate) fn facts_with(
        &self,
        workspace: &str,
        offers: &[SourceOffer],
    ) -> Result<Arc<[ToolFacts]>, Error> {
        let facts = self.facts(workspace)?;
        if offers.is_empty() {
            return Ok(facts);
        }
        let offered = offers.iter().flat_map(|offer| &offer.tools);
        let offered = offered.map(|tool| tool.facts.clone());
        Ok(facts.iter().cloned().chain(offered).collect())
    }

    /// Returns what sources may reach for a run of `agent` with `grant`. They use no file that `rules` refuse.
    pub(crate) fn source_context(
        &self,
        (run, agent): (RunId, AgentName),
        folders: RunFolders<'_>,
        confinement: &Confinement,
        rules: Option<Arc<dyn PathRules>>,
    ) -> Result<SourceContext, Error> {
        let workspace = self.workspace(folders.workspace)?;
        let launcher = self.launcher.as_ref();
        let RunFolders { scratch, read_only, .. } = folders;
        let who = (run, agent);
        Ok(SourceContext::new(who, &workspace, scratch, read_only, launcher, confinement, rules))
    }

    /// Makes tools for the folder `path`, including the `offered` ones, but without the tools that start runs or load
    /// skills.
    pub(crate) fn make(
        &self,
        path: &str,
        scratch: Option<&Scratch>,
        read_only: Vec<ReadOnly>,
        confinement: &Confinement,
        rules: Option<Arc<dyn PathRules>>,
        offered: Vec<Arc<dyn Tool>>,
    ) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let workspace = self.workspace(path)?;
        let launcher = self.launcher.as_ref();
        let host: Vec<Arc<dyn Tool>> = self.host_tools.iter().cloned().chain(offered).collect();
        Ok(posse_tools::toolset_obeying(
            &workspace,
            scratch,
            read_only,
            launcher,
            confinement,
            rules,
            &host,
        ))
    }

    /// Returns the workspace `path`, opened once for all runs in it.
    fn workspace(&self, path: &str) -> Result<Arc<Workspace>, Error> {
        let mut known = self.workspaces.lock();
        if let Some(workspace) = known.get(path).and_then(Weak::upgrade) {
            return Ok(workspace);
        }
        let workspace = Workspace::open(path.as_ref()).map_err(|error| Error::Workspace {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        known.retain(|_, workspace| workspace.strong_count() > 0);
        known.insert(path.to_owned(), Arc::downgrade(&workspace));
        Ok(workspace)
    }
}
