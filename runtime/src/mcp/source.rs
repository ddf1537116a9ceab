//! An MCP server as a tool source: expands its variables, compares its definitions with those that were accepted, and
//! keeps its secrets out of everything it says.

use super::accepted::Accepted;
use super::{FoundServer, McpServers};
use crate::mcp_settings::{Lookup, Variables};
use crate::redact::Redactor;
use async_trait::async_trait;
use posse_agent::{Answer, ToolContext};
use posse_protocol::ToolSpec;
use posse_tools::mcp::{Clean, Listing, McpConnection, McpServer};
use posse_tools::{OpenSource, Program, SourceContext, SourceError, ToolSource};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A server that may start.
pub(crate) struct McpSource {
    server: FoundServer,
    lookup: Option<Lookup>,
    refused: Vec<String>,
    accepted: Option<PathBuf>,
}

impl McpSource {
    pub(super) fn new(server: FoundServer, servers: &McpServers) -> Self {
        let refused = match server.is_of_project {
            true => servers.refused.clone(),
            false => Vec::new(),
        };
        let (lookup, accepted) = (servers.lookup.clone(), servers.accepted.clone());
        McpSource { server, lookup, refused, accepted }
    }

    /// The file that describes the server.
    pub(crate) fn file(&self) -> &Path {
        &self.server.file
    }

    async fn connect(&self, context: &SourceContext) -> Result<OpenServer, SourceError> {
        let settings = &self.server.settings;
        let variables = Variables { lookup: self.lookup.as_ref(), refused: &self.refused };
        let expanded = settings.expand(&variables).map_err(SourceError)?;
        let redactor = Redactor::new(expanded.secrets.iter().map(String::as_str));
        let program = Program {
            program: expanded.program,
            args: expanded.args,
            variables: expanded.variables,
            network: settings.network.clone(),
            ..Program::default()
        };
        let cleaner = redactor.clone();
        let clean: Clean = Arc::new(move |text| cleaner.text(&text).into_owned());
        let server = McpServer { program, call_within: settings.call_within, clean };
        let connection = server.connect(context).await.map_err(|why| plain(&redactor, why))?;
        let (server, accepted) = (self.server.clone(), self.accepted.clone());
        Ok(OpenServer { connection, redactor, server, accepted, tools: OnceLock::new() })
    }

    /// Starts the server for `context` and lists its tools, accepted or not.
    ///
    /// # Errors
    /// If it cannot be used.
    pub(crate) async fn look(
        &self,
        context: &SourceContext,
    ) -> Result<(Listing, Accepted), SourceError> {
        let open = self.connect(context).await?;
        let listing = open.list().await?;
        let accepted = open.accepted(&listing.tools);
        Ok((listing, accepted))
    }
}

#[async_trait]
impl ToolSource for McpSource {
    fn name(&self) -> &str {
        &self.server.settings.name
    }

    fn is_required(&self) -> bool {
        self.server.settings.required
    }

    fn patience(&self) -> Duration {
        self.server.settings.start_within
    }

    async fn open(&self, context: &SourceContext) -> Result<Arc<dyn OpenSource>, SourceError> {
        Ok(Arc::new(self.connect(context).await?))
    }
}

/// A server that runs.
struct OpenServer {
    connection: McpConnection,
    redactor: Redactor,
    server: FoundServer,
    accepted: Option<PathBuf>,
    /// As it listed them.
    tools: OnceLock<Vec<ToolSpec>>,
}

impl OpenServer {
    async fn list(&self) -> Result<Listing, SourceError> {
        self.connection.list().await.map_err(|why| plain(&self.redactor, why))
    }

    fn accepted(&self, tools: &[ToolSpec]) -> Accepted {
        let FoundServer { settings, file, .. } = &self.server;
        Accepted::of(self.accepted.as_deref(), settings, file, tools)
    }
}

#[async_trait]
impl OpenSource for OpenServer {
    async fn tools(&self) -> Result<Vec<ToolSpec>, SourceError> {
        let tools = self.list().await?.tools;
        let (accepted, name) = (self.accepted(&tools), self.server.settings.name.clone());
        let checked = tokio::task::spawn_blocking(move || accepted.check(&name)).await;
        checked.map_err(|error| SourceError(error.to_string()))?.map_err(SourceError)?;
        Ok(self.tools.get_or_init(|| tools).clone())
    }

    fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    async fn call(
        &self,
        name: &str,
        input: Value,
        context: &ToolContext,
    ) -> Result<Answer, SourceError> {
        let tools = self.tools.get().map(Vec::as_slice).unwrap_or_default();
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            return Err(SourceError(format!("it has no tool `{name}`")));
        };
        match self.connection.call(tool, input, context).await {
            Ok(Answer::Done(output)) => Ok(self.redactor.output(output).into()),
            Ok(pending) => Ok(pending),
            Err(why) => Err(plain(&self.redactor, why)),
        }
    }
}

fn plain(redactor: &Redactor, SourceError(why): SourceError) -> SourceError {
    SourceError(redactor.text(&why).into_owned())
}
