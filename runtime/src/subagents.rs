//! Specialists by name: register them, then have one work on a task.
//!
//! Thin: a [`Subagent`] is an agent with its own instructions, tools and limits, and
//! [`SubagentExecutor::execute`] is one run of it, from its first message to its outcome.

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
use crate::home::{Home, Household};
use crate::query::{MAIN, Message, Query, USUAL, leader};
use crate::runtime::Runtime;
use posse_protocol::{AgentName, AgentSpec, InvalidName, RunSpec};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Executes subagents that were registered with it. Nothing is opened before the first execution.
///
/// Several may be executed at the same time, up to what the runtime allows; more wait in order.
/// [`SubagentExecutor::shutdown`] waits until nothing is left of a temporary home; dropping it
/// leaves that to a task.
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
    place: Place,
    workspace: PathBuf,
    /// In the order in which they were registered.
    subagents: Vec<AgentSpec>,
    household: OnceCell<Arc<Household>>,
}

/// What subagents are executed by.
enum Place {
    /// A runtime that is opened when it is needed, and knows nobody but them.
    Home(Home),
    /// The host's own.
    Runtime(Runtime),
}

impl SubagentExecutor {
    /// An executor without subagents that works in the current folder and keeps nothing.
    ///
    /// It has no keys: subagents that name no model get one of a local server, or the offline one.
    /// [`SubagentExecutor::with_home`] gives it keys.
    pub fn new(strategy: DelegationStrategy) -> Self {
        SubagentExecutor {
            strategy,
            place: Place::Home(Home::default()),
            workspace: PathBuf::from("."),
            subagents: Vec::new(),
            household: OnceCell::new(),
        }
    }

    /// An executor without subagents on the host's own runtime, whose slots, keys, tools and
    /// database it shares. What is registered here becomes an agent of that runtime: it stays there,
    /// and other runs may call it too.
    pub fn with_runtime(runtime: Runtime, strategy: DelegationStrategy) -> Self {
        let place = Place::Runtime(runtime);
        SubagentExecutor { place, ..SubagentExecutor::new(strategy) }
    }

    /// An executor with the subagents of `config`.
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

    /// The same with another home: keys, or the configuration of a runtime whose database stays.
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
        let place = Place::Home(home.into());
        SubagentExecutor { place, household: OnceCell::new(), ..self }
    }

    /// The same in another folder.
    #[must_use]
    pub fn in_folder(self, workspace: impl Into<PathBuf>) -> Self {
        SubagentExecutor { workspace: workspace.into(), ..self }
    }

    /// Makes `subagent` known. Names match whatever the case.
    ///
    /// # Errors
    /// When there is one of this name, which then stays as it is, or the definition cannot be used.
    pub fn register(&mut self, subagent: Subagent) -> Result<(), SubagentError> {
        let agent = subagent.spec()?;
        if self.has_subagent(&subagent.name) {
            return Err(SubagentError::AlreadyExists(subagent.name));
        }
        match &self.place {
            Place::Runtime(runtime) => introduce(runtime, &agent)?,
            Place::Home(home) => {
                if let Some(household) = self.household.get() {
                    let known = &household.runtime.config().definitions.agents;
                    let all = self.subagents.iter().chain([&agent]);
                    known.set(SubagentExecutor::main(home, all)?);
                    known.set(agent.clone());
                }
            }
        }
        self.subagents.push(agent);
        Ok(())
    }

    /// Has the subagent called `name` work on `input`, and waits for its end. Whoever drops this
    /// future cancels the run.
    ///
    /// # Errors
    /// When there is no such subagent, the input is empty, or the run does not come to an answer:
    /// it fails, is cancelled, or reaches a limit. The error then has what was said until there.
    pub async fn execute(&self, name: &str, input: &str) -> Result<SubagentOutput, SubagentError> {
        let agent = self.find(name).ok_or_else(|| SubagentError::NotFound(name.to_owned()))?;
        let query = self.start(agent.name.clone(), input).await?;
        collect(&agent.name, query).await
    }

    /// Executes `call` and keeps the answer in it.
    ///
    /// # Errors
    /// As [`SubagentExecutor::execute`], and when it was executed before.
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

    /// Has a main agent work on `prompt`, with the subagents on offer as the strategy says:
    ///
    /// - [`Auto`](DelegationStrategy::Auto): it may call them, and is told who there is and when to;
    /// - [`ToolCall`](DelegationStrategy::ToolCall): it may call them, and nothing urges it to;
    /// - [`Manual`](DelegationStrategy::Manual): it may not; only [`SubagentExecutor::execute`] does.
    ///
    /// On the host's own runtime it is that one's `general-purpose` agent, which may call whom else
    /// it knows.
    ///
    /// # Errors
    /// When the prompt is empty or the run cannot start.
    pub async fn query(&self, prompt: &str) -> Result<Query, SubagentError> {
        let main = match &self.place {
            Place::Home(_) => MAIN,
            Place::Runtime(_) => USUAL,
        };
        let main = main.parse();
        let main = main.map_err(|error: InvalidName| Error::InvalidInput(error.to_string()))?;
        self.start(main, prompt).await
    }

    /// The names of all subagents, in the order in which they were registered.
    pub fn list_subagents(&self) -> Vec<String> {
        self.subagents.iter().map(|agent| agent.name.to_string()).collect()
    }

    /// True when there is a subagent called `name`.
    pub fn has_subagent(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// How a main agent comes to call the subagents.
    pub fn strategy(&self) -> &DelegationStrategy {
        &self.strategy
    }

    /// Takes everything down and waits until that is done. Queries that are under way go on; the
    /// last one takes the rest down.
    pub async fn shutdown(self) {
        if let Some(household) = self.household.into_inner() {
            household.leave().await;
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
        let household = self.household.get_or_try_init(|| self.open()).await?;
        let spec = RunSpec {
            strategy: Some(self.strategy),
            ..RunSpec::new(agent, input, &self.workspace)
        };
        Ok(Query::start(household.clone(), spec, Vec::new()).await?)
    }

    async fn open(&self) -> Result<Arc<Household>, SubagentError> {
        let home = match &self.place {
            Place::Home(home) => home,
            Place::Runtime(runtime) => return Ok(Household::of(runtime.clone())),
        };
        let mut agents = self.subagents.clone();
        agents.push(SubagentExecutor::main(home, self.subagents.iter())?);
        Ok(home.open(agents).await?)
    }

    /// The agent that leads `subagents`.
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

/// Makes `agent` known to a runtime that others use too.
fn introduce(runtime: &Runtime, agent: &AgentSpec) -> Result<(), SubagentError> {
    let agents = &runtime.config().definitions.agents;
    let known = agents.current();
    // What the user names on the command line comes before what the program says.
    let is_taken =
        known.entry(&agent.name).is_some_and(|entry| entry.source.rank() < Source::Host.rank());
    if is_taken {
        return Err(SubagentError::AlreadyExists(agent.name.to_string()));
    }
    Ok(agents.add(agent.clone())?)
}

/// All that `query` says, once it has ended.
async fn collect(name: &AgentName, mut query: Query) -> Result<SubagentOutput, SubagentError> {
    let mut messages = Vec::new();
    while let Some(message) = query.next().await {
        let message = match message {
            Ok(Message::Delta(_)) => continue,
            Ok(message) => message,
            Err(error) => return Err(Failure::broken(name, &error, messages).into()),
        };
        // What is said is plain data, which has a JSON form.
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
