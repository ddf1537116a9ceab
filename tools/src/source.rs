//! Sources of tools that are known only at run time, such as MCP servers in their own processes.
//!
//! Posse asks a source once, before a run starts, which tools it offers, and stores the answer. It opens the
//! source again when a tool is called. A source can reach no more than the commands of the run.

use crate::built_in::Run;
use crate::confine::Confinement;
use crate::failure::Failure;
use crate::launch::{Command, LaunchError, Launcher, Process};
use crate::path_rules::PathRules;
use crate::read_only::ReadOnly;
use crate::sandbox::Sandbox;
use crate::scratch::Scratch;
use crate::workspace::Workspace;
use async_trait::async_trait;
use cap_std::fs::OpenOptions;
use posse_agent::{Answer, Claim, ToolContext};
use posse_protocol::{AgentName, Network, Profile, RunId, ToolSpec};
use serde_json::Value;
use std::ffi::OsString;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a source may take to open and list its tools, unless it returns another value.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a source stays open for a waiting run, unless it returns another value.
const KEPT_OPEN: Duration = Duration::from_secs(5 * 60);

/// How many bytes of the error stream of a source's process are kept.
const SAID_BYTES: usize = 4_000;

/// How many long results of one run are kept.
const MOST_KEPT: u32 = 10_000;

/// Longer than any process lives.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Offers tools for runs. A model sees them as `mcp__SOURCE__TOOL`.
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// Its name: letters, digits, `-` and single `_`. Runs store the name to find the source again.
    fn name(&self) -> &str;

    /// Returns true if a run may not start without the tools of this source.
    fn is_required(&self) -> bool {
        false
    }

    /// How long it may take to open the source and list its tools, together.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// How long it stays open for a run that waits for a person or for other runs.
    fn kept_open(&self) -> Duration {
        KEPT_OPEN
    }

    /// Opens the source for the run of `context`. Posse drops the returned value when the run ends or
    /// waits for long. Then nothing of it may be left. A source that serves all runs at once returns
    /// the same value for each.
    ///
    /// # Errors
    /// If it cannot be used now, with the reason.
    async fn open(&self, context: &SourceContext) -> Result<Arc<dyn OpenSource>, SourceError>;
}

/// A source that is open for a run.
#[async_trait]
pub trait OpenSource: Send + Sync {
    /// Returns its tools by their own names, without `mcp__SOURCE__`. Called once, right after opening.
    ///
    /// # Errors
    /// If it cannot list its tools.
    async fn tools(&self) -> Result<Vec<ToolSpec>, SourceError>;

    /// Returns false if this value can no longer be used. Then the next call opens the source again
    /// before it calls anything.
    fn is_open(&self) -> bool {
        true
    }

    /// Calls the tool `name`, as [`Tool::call`](posse_agent::Tool::call) does. Posse never repeats a call.
    ///
    /// # Errors
    /// If this value cannot be used any more. The model reads the reason, and that the effect of the
    /// call is unknown. The next call opens the source again.
    async fn call(
        &self,
        name: &str,
        input: Value,
        context: &ToolContext,
    ) -> Result<Answer, SourceError>;
}

/// Why a source cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

impl SourceError {
    /// Creates an error with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        SourceError(reason.into())
    }
}

impl From<LaunchError> for SourceError {
    fn from(error: LaunchError) -> Self {
        SourceError(error.to_string())
    }
}

impl From<std::io::Error> for SourceError {
    fn from(error: std::io::Error) -> Self {
        SourceError(error.to_string())
    }
}

/// The tool name that rules about files see when a source starts a process.
const SOURCE: &str = "mcp";

/// The run for which a source is opened, and what the source may reach.
#[derive(Clone)]
pub struct SourceContext {
    run: RunId,
    agent: AgentName,
    sandbox: Arc<Sandbox>,
    launcher: Option<Launcher>,
}

/// A program to start for a source.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its path, or its name, which is looked up in PATH.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables besides those of every command.
    pub variables: Vec<(OsString, OsString)>,
    /// What it may change, if that is less than for commands of the run.
    pub profile: Option<Profile>,
    /// Hosts that it may reach besides those of the run, because the user's settings say so.
    pub network: Network,
}

impl SourceContext {
    /// The context for a run of `agent` in these folders. Its processes are confined by `confinement`,
    /// and use no file that `rules` refuses.
    pub fn new(
        (run, agent): (RunId, AgentName),
        workspace: &Arc<Workspace>,
        scratch: Option<&Scratch>,
        read_only: Vec<ReadOnly>,
        launcher: Option<&Launcher>,
        confinement: &Confinement,
        rules: Option<Arc<dyn PathRules>>,
    ) -> Self {
        let run_with = Run::new(workspace, scratch, read_only, launcher, confinement, rules);
        let files = run_with.files(SOURCE);
        let sandbox = Arc::new(Sandbox::new(files, confinement.clone()));
        SourceContext { run, agent, sandbox, launcher: launcher.cloned() }
    }

    /// The id of the run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The agent of the run.
    pub fn agent(&self) -> &AgentName {
        &self.agent
    }

    /// The workspace of the run.
    pub fn workspace(&self) -> &Path {
        self.sandbox.files.workspace.path()
    }

    /// The confinement of the run's commands, and of the processes of its sources.
    pub fn confinement(&self) -> &Confinement {
        &self.sandbox.confinement
    }

    /// Writes a text that is too long for a model into a new file of the run's scratch folder. Returns its path, or
    /// `None` if the run has no such folder or the file cannot be written.
    pub(crate) fn keep(&self, text: &str) -> Option<PathBuf> {
        let folder = self.sandbox.files.scratch.as_ref()?.open().ok()?;
        for number in 1..MOST_KEPT {
            let name = format!("mcp-{number}.txt");
            let options = OpenOptions::new().write(true).create_new(true).to_owned();
            match folder.dir.open_with(&name, &options) {
                Ok(mut file) => {
                    return file.write_all(text.as_bytes()).ok().map(|()| folder.path.join(name));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Starts `program` in the workspace, confined as a command of the run would be now, and with the
    /// environment of commands. Dropping the returned value kills it and all processes that it started.
    ///
    /// # Errors
    /// If it cannot be started or confined. Always if the host has no launcher.
    pub async fn start(&self, program: &Program) -> Result<Process, SourceError> {
        let Some(launcher) = &self.launcher else {
            return Err(SourceError::new(
                "this program cannot start processes: it has no launcher",
            ));
        };
        let plain = |Failure(why)| SourceError(why);
        let (mut confinement, _) = self.sandbox.confinement().await.map_err(plain)?;
        if let Some(profile) = program.profile {
            confinement.profile = confinement.profile.min(profile);
        }
        confinement.network = wider(confinement.network, &program.network);
        let mut variables = self.sandbox.variables().map_err(plain)?;
        variables.extend(program.variables.iter().cloned());
        let command = Command {
            program: program.program.clone(),
            args: program.args.clone(),
            cwd: ".".into(),
            variables,
            deadline: FOR_EVER,
            output_cap: SAID_BYTES,
            writable_bytes: None,
            confinement,
        };
        let workspace = &self.sandbox.files.workspace;
        let nobody_cancels = CancellationToken::new();
        Ok(launcher.hold(&Claim::default(), workspace, &command, &nobody_cancels).await?)
    }
}

/// Returns the hosts of both.
fn wider(one: Network, other: &Network) -> Network {
    match (one, other) {
        (Network::Open, _) | (_, Network::Open) => Network::Open,
        (Network::Off, other) => other.clone(),
        (one, Network::Off) => one,
        (Network::Hosts(mut hosts), Network::Hosts(more)) => {
            hosts.extend(
                more.iter().filter(|host| !hosts.contains(host)).cloned().collect::<Vec<_>>(),
            );
            Network::Hosts(hosts)
        }
    }
}

impl fmt::Debug for SourceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceContext")
            .field("run", &self.run)
            .field("agent", &self.agent)
            .field("workspace", &self.workspace())
            .finish_non_exhaustive()
    }
}
