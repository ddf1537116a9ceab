//! Starts one MCP server, for a person who looks at what it offers.

use crate::authority;
use crate::error::Error;
use crate::mcp::{Accepted, FoundServer};
use crate::policy::FileRules;
use crate::runtime::{Inner, Runtime};
use crate::toolset::RunFolders;
use posse_protocol::{AgentSpec, Grant, RunId, RunSpec};
use posse_tools::ToolSource;
use posse_tools::confine::Confinement;
use posse_tools::mcp::Listing;
use std::sync::Arc;

impl Runtime {
    /// Starts `server` in `folder` as it starts for a run that only reads, and lists its tools. Its process has ended
    /// when this returns. Nothing is accepted.
    ///
    /// # Errors
    /// When the folder cannot be used, or the server cannot be started or asked.
    pub async fn look_at_server(
        &self,
        agent: &AgentSpec,
        spec: &RunSpec,
        server: FoundServer,
    ) -> Result<(Listing, Accepted), Error> {
        let Inner { tools, config, .. } = &*self.inner;
        let workspace = super::canonical_folder(&spec.workspace, None)?;
        let mut grant = Grant { workspace, ..Grant::default() };
        authority::narrow(&mut grant, config, None, agent, spec, None)?;
        let facts = tools.facts(&grant.workspace)?;
        let policy = authority::policy(&grant, config, &facts).map(Arc::new)?;
        let confinement = Confinement::of(&grant);
        let (workspace, read_only) = (grant.workspace.as_str(), Vec::new());
        let folders = RunFolders { workspace, scratch: None, read_only };
        let who = (RunId::new(), agent.name.clone());
        let context = tools.source_context(who, folders, &confinement, FileRules::of(&policy))?;
        let source = config.mcp.source(server);
        let (name, patience) = (source.name().to_owned(), source.patience());
        let failed = |why: String| {
            Error::InvalidInput(format!("the MCP server `{name}` cannot be used: {why}"))
        };
        match tokio::time::timeout(patience, source.look(&context)).await {
            Ok(looked) => looked.map_err(|why| failed(why.to_string())),
            Err(_) => {
                let seconds = patience.as_secs_f64();
                Err(failed(format!("it did not list its tools within {seconds} s")))
            }
        }
    }
}
