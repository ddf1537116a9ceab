//! Subagents by name: register them, then let one work on a task.
//!
//! It is a thin layer: a [`Subagent`] is an agent with its own instructions, tools and limits, and
//! [`SubagentExecutor::execute`] is one run of it, from the first message to the outcome.

mod call;
mod config;
mod error;
mod subagent;

pub use call::{SubagentCall, SubagentOutput};
pub use config::SubagentConfig;
pub use error::{Failure, SubagentError};
pub use posse_protocol::DelegationStrategy;
pub use subagent::Subagent;

use crate::agents::Source;
use crate::error::Error;
use crate::home::{Home, SharedHome};
use crate::query::{MAIN, Message, Query, USUAL, leader};
use crate::runtime::Runtime;
use posse_protocol::{AgentName, AgentSpec, InvalidName, RunSpec};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Executes the subagents that are registered with it. It opens nothing before the first execution.
///
/// It executes several at the same time, up to the limit of the runtime; the others wait in the queue.
/// [`SubagentExecutor::shutdown`] waits until a temporary home is removed; dropping the executor leaves that to a task.
///
/// ```
/// use posse::subagents::{DelegationStrategy, Subagent, SubagentExecutor};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let about = "# Kettle\n\nKettle is a program that boils water for everyone who asks.\n";
/// # std::fs::write(folder.path().join("README.md"), about)?;
/// let mut executor = SubagentExecutor::new(DelegationStrategy::Auto).in_folder(folder.path());
/// executor.register(Subagent {
///     name: "guide".into(),
///     description: "Explains a project".into(),
///     instructions: "Read what there is to read, then explain it briefly.".into(),
///     allowed_tools: vec!["Read".into(), "Glob".into(), "Grep".into()],
///     max_turns: Some(20),
///     model: Some("offline/planner".into()), // needs no key
/// })?;
/// let output = executor.execute("guide", "What does this project do?").await?;
/// println!("{}: {}", output.subagent_name, output.text());
/// executor.shutdown().await;
/// # assert!(output.text().contains("boils water"), "{}", output.text());
/// # Ok(())
/// # }
/// ```
pub struct SubagentExecutor {
    strategy: DelegationStrategy,
    place: ExecutedIn,
    workspace: PathBuf,
    /// In the order in which they were registered.
    subagents: Vec<AgentSpec>,
    shared_home: OnceCell<Arc<SharedHome>>,
}

/// Where subagents are executed.
enum ExecutedIn {
    /// In a runtime that is opened on demand and has no other agents.
    Home(Home),
    /// In the runtime of the host.
    Runtime(Runtime),
}

impl SubagentExecutor {
    /// Creates an executor without subagents that works in the current folder and keeps no runs.
    ///
    /// It has no API keys: a subagent that names no model gets one of a local server, or the offline model.
    /// [`SubagentExecutor::with_home`] sets keys.
    pub fn new(strategy: DelegationStrategy) -> Self {
        SubagentExecutor {
            strategy,
            place: ExecutedIn::Home(Home::default()),
            workspace: PathBuf::from("."),
            subagents: Vec::new(),
            shared_home: OnceCell::new(),
        }
    }

    /// Creates an executor without subagents on the runtime of the host, whose slots, keys, tools and database it
    /// shares. Each registered subagent becomes an agent of that runtime: it stays there, and other runs may call it
    /// too.
    pub fn with_runtime(runtime: Runtime, strategy: DelegationStrategy) -> Self {
        let place = ExecutedIn::Runtime(runtime);
        SubagentExecutor { place, ..SubagentExecutor::new(strategy) }
    }

    /// Creates an executor with the subagents of `config`.
    ///
    /// # Errors
    /// As [`SubagentExecutor::register`].
    pub fn from_config(config: SubagentConfig) -> Result<Self, SubagentError> {
        let mut executor = SubagentExecutor::new(config.delegation_strategy);
        for subagent in config.subagents {
            executor.register(subagent)?;
        }
        Ok(executor)
    }

    /// Sets the home: API keys, or the configuration of a runtime with a lasting database.
    ///
    /// ```
    /// use posse::subagents::{DelegationStrategy, SubagentExecutor};
    /// use posse::{Keys, RuntimeConfig};
    ///
    /// let keys = Keys::default().with("ANTHROPIC_API_KEY", "sk-…");
    /// let passing = SubagentExecutor::new(DelegationStrategy::Auto).with_home(keys.clone());
    /// let config = RuntimeConfig::new("runs.db", keys);
    /// let lasting = SubagentExecutor::new(DelegationStrategy::Auto).with_home(config);
    /// ```
    #[must_use]
    pub fn with_home(self, home: impl Into<Home>) -> Self {
        let place = ExecutedIn::Home(home.into());
        SubagentExecutor { place, shared_home: OnceCell::new(), ..self }
    }

    /// Sets the workspace.
    #[must_use]
    pub fn in_folder(self, workspace: impl Into<PathBuf>) -> Self {
        SubagentExecutor { workspace: workspace.into(), ..self }
    }

    /// Registers `subagent`. Names are not case-sensitive.
    ///
    /// # Errors
    /// When the name is taken, or the definition is invalid. An existing subagent stays as it is.
    pub fn register(&mut self, subagent: Subagent) -> Result<(), SubagentError> {
        let agent = subagent.spec()?;
        if self.has_subagent(&subagent.name) {
            return Err(SubagentError::AlreadyExists(subagent.name));
        }
        match &self.place {
            ExecutedIn::Runtime(runtime) => introduce(runtime, &agent)?,
            ExecutedIn::Home(home) => {
                if let Some(shared_home) = self.shared_home.get() {
                    let known = &shared_home.runtime.config().definitions.agents;
                    let all = self.subagents.iter().chain([&agent]);
                    known.set(SubagentExecutor::main(home, all)?);
                    known.set(agent.clone());
                }
            }
        }
        self.subagents.push(agent);
        Ok(())
    }

    /// Runs the subagent `name` on `input` and waits for its end. Dropping this future cancels the run.
    ///
    /// # Errors
    /// When there is no such subagent, the input is empty, or the run ends without an answer: it fails, is cancelled,
    /// or reaches a limit. The error then has the messages until that point.
    pub async fn execute(&self, name: &str, input: &str) -> Result<SubagentOutput, SubagentError> {
        let agent = self.find(name).ok_or_else(|| SubagentError::NotFound(name.to_owned()))?;
        let query = self.start(agent.name.clone(), input).await?;
        collect(&agent.name, query).await
    }

    /// Executes `call` and stores the answer in it.
    ///
    /// # Errors
    /// As [`SubagentExecutor::execute`], and when the call was executed before.
    pub async fn execute_call(
        &self,
        call: &mut SubagentCall,
    ) -> Result<SubagentOutput, SubagentError> {
        if call.is_executed() {
            return Err(SubagentError::InvalidInput(format!(
                "this call of `{}` was executed before; make a new one",
                call.subagent_name
            )));
        }
        let output = self.execute(&call.subagent_name, &call.input).await?;
        call.output = Some(output.text().to_owned());
        Ok(output)
    }

    /// Runs a main agent on `prompt`. The strategy decides whether it may call the subagents:
    ///
    /// - [`Auto`](DelegationStrategy::Auto): it may, and its prompt says which there are and when to call them;
    /// - [`ToolCall`](DelegationStrategy::ToolCall): it may, but its prompt does not encourage it;
    /// - [`Manual`](DelegationStrategy::Manual): it may not; only [`SubagentExecutor::execute`] runs them.
    ///
    /// In the runtime of the host, the main agent is the `general-purpose` agent of that runtime, which may also call
    /// the other agents it knows.
    ///
    /// # Errors
    /// When the prompt is empty or the run cannot start.
    pub async fn query(&self, prompt: &str) -> Result<Query, SubagentError> {
        let main = match &self.place {
            ExecutedIn::Home(_) => MAIN,
            ExecutedIn::Runtime(_) => USUAL,
        };
        let main = main.parse();
        let main = main.map_err(|error: InvalidName| Error::InvalidInput(error.to_string()))?;
        self.start(main, prompt).await
    }

    /// Returns the names of all subagents, in the order of their registration.
    pub fn list_subagents(&self) -> Vec<String> {
        self.subagents.iter().map(|agent| agent.name.to_string()).collect()
    }

    /// True when there is a subagent `name`.
    pub fn has_subagent(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns how a main agent is encouraged to call the subagents.
    pub fn strategy(&self) -> &DelegationStrategy {
        &self.strategy
    }

    /// Shuts everything down and waits for that. Queries in progress continue; the last one shuts down the rest.
    pub async fn shutdown(self) {
        if let Some(shared_home) = self.shared_home.into_inner() {
            shared_home.leave().await;
        }
    }

    fn find(&self, name: &str) -> Option<&AgentSpec> {
        self.subagents.iter().find(|agent| agent.name.as_str().eq_ignore_ascii_case(name))
    }

    async fn start(&self, agent: AgentName, input: &str) -> Result<Query, SubagentError> {
        if input.trim().is_empty() {
            return Err(SubagentError::InvalidInput(format!(
                "the input of `{agent}` is empty; say what to do"
            )));
        }
        let shared_home = self.shared_home.get_or_try_init(|| self.open()).await?;
        let spec = RunSpec {
            strategy: Some(self.strategy),
            ..RunSpec::new(agent, input, &self.workspace)
        };
        Ok(Query::start(shared_home.clone(), spec, Vec::new()).await?)
    }

    async fn open(&self) -> Result<Arc<SharedHome>, SubagentError> {
        let home = match &self.place {
            ExecutedIn::Home(home) => home,
            ExecutedIn::Runtime(runtime) => return Ok(SharedHome::of(runtime.clone())),
        };
        let mut agents = self.subagents.clone();
        agents.push(SubagentExecutor::main(home, self.subagents.iter())?);
        Ok(home.open(agents).await?)
    }

    /// Returns the main agent for `subagents`.
    fn main<'a>(
        home: &Home,
        subagents: impl Iterator<Item = &'a AgentSpec>,
    ) -> Result<AgentSpec, Error> {
        let names = subagents.map(|agent| agent.name.to_string()).collect();
        let mut main = leader(&home.config().definitions.agents.current(), USUAL)?;
        main.children.agents = Some(names);
        Ok(main)
    }
}

impl fmt::Debug for SubagentExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubagentExecutor")
            .field("strategy", &self.strategy)
            .field("workspace", &self.workspace)
            .field("subagents", &self.list_subagents())
            .finish_non_exhaustive()
    }
}

/// Registers `agent` with a runtime that has other users.
fn introduce(runtime: &Runtime, agent: &AgentSpec) -> Result<(), SubagentError> {
    let agents = &runtime.config().definitions.agents;
    let known = agents.current();
    // Agents of the command line come before agents of the program.
    let is_taken =
        known.entry(&agent.name).is_some_and(|entry| entry.source.rank() < Source::Host.rank());
    if is_taken {
        return Err(SubagentError::AlreadyExists(agent.name.to_string()));
    }
    Ok(agents.add(agent.clone())?)
}

/// Collects all messages of `query` until its end.
async fn collect(name: &AgentName, mut query: Query) -> Result<SubagentOutput, SubagentError> {
    let mut messages = Vec::new();
    while let Some(message) = query.next().await {
        let message = match message {
            Ok(Message::Delta(_)) => continue,
            Ok(message) => message,
            Err(error) => return Err(Failure::broken(name, &error, messages).into()),
        };
        // Messages are plain data and always have a JSON form.
        messages.push(serde_json::to_value(&message).unwrap_or_default());
        if let Message::Result(summary) = message {
            return match summary.outcome.is_completed() {
                true => Ok(SubagentOutput { subagent_name: name.to_string(), messages, summary }),
                false => Err(Failure::ended(name, summary, messages).into()),
            };
        }
    }
    Err(Failure::broken(name, &Error::ShuttingDown, messages).into())
}
