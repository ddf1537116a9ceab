//! The options of a query, and the agents that it has.

use super::MAIN;
use crate::agents::{AgentCatalog, AgentDefinition, Level, ToolFacts};
use crate::error::Error;
use crate::home::Home;
use posse_protocol::ModelChoice;
use posse_protocol::{AgentName, AgentSpec, DelegationStrategy, Limits, RunId, RunSpec};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The agent that the main agent is based on by default.
pub(crate) const USUAL: &str = "general-purpose";

/// The options of a query.
///
/// ```
/// use posse::query::{AgentDefinition, DefinedRights, QueryOptions};
/// use posse::{Keys, Limits};
///
/// let reviewer = AgentDefinition {
///     description: "Reviews code. Use it after changes.".into(),
///     prompt: "You are a senior reviewer.".into(),
///     rights: DefinedRights::to_call(["Read", "Grep"]),
///     ..AgentDefinition::default()
/// };
/// let options = QueryOptions {
///     agents: [("code-reviewer".to_owned(), reviewer)].into(),
///     model: Some("sonnet".into()),
///     limits: Limits { turns: Some(10), ..Limits::default() },
///     home: Keys::default().with("ANTHROPIC_API_KEY", "sk-…").into(),
///     ..QueryOptions::default()
/// };
/// # assert_eq!(options.agents.len(), 1);
/// ```
#[derive(Clone)]
pub struct QueryOptions {
    /// Agents by name that the main agent may call, in addition to those of the home.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// How the main agent is encouraged to call other agents.
    pub strategy: DelegationStrategy,
    /// The agent that the main agent is based on; `general-purpose` by default.
    pub agent: Option<String>,
    /// The system prompt, in place of the one of that agent.
    pub system_prompt: Option<String>,
    /// The tools that the main agent may call, in place of those of that agent. Subagents have
    /// their own tools.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that no agent of the query may call.
    pub disallowed_tools: Vec<String>,
    /// The model, as `vendor/name` or a short name. Agents that name no model use the same one.
    pub model: Option<String>,
    /// The limits of the main agent.
    pub limits: Limits,
    /// The folder to work in.
    pub workspace: PathBuf,
    /// A run of an earlier query, which continues with the prompt. It keeps its folder, model and
    /// tools. This needs a home with a lasting database.
    pub resume: Option<RunId>,
    /// Where Posse stores the runs, and the API keys.
    pub home: Home,
}

impl Default for QueryOptions {
    /// The default agent in the current folder and in a temporary home.
    fn default() -> Self {
        QueryOptions {
            agents: BTreeMap::new(),
            strategy: DelegationStrategy::Auto,
            agent: None,
            system_prompt: None,
            allowed_tools: None,
            disallowed_tools: Vec::new(),
            model: None,
            limits: Limits::default(),
            workspace: PathBuf::from("."),
            resume: None,
            home: Home::default(),
        }
    }
}

/// The agents of a query, and warnings for their author.
pub(super) struct Agents {
    pub(super) all: Vec<AgentSpec>,
    pub(super) warnings: Vec<String>,
}

impl QueryOptions {
    /// Returns the agents of this query.
    pub(super) fn agents(&self) -> Result<Agents, Error> {
        let config = self.home.config();
        let known = config.definitions.agents.current();
        let mut main = leader(&known, self.agent.as_deref().unwrap_or(USUAL))?;
        let mut agents = Agents { all: Vec::new(), warnings: Vec::new() };
        let tools = config.tool_facts();
        for (name, definition) in &self.agents {
            let agent = agents.define(name, definition, &tools)?;
            agents.all.push(agent);
        }
        for agent in known.iter().filter(|agent| !is_main(&agent.name)) {
            if !agents.has(&agent.name) {
                agents.all.push(agent.clone());
            }
        }
        if main.children.agents.is_none() {
            main.children.agents =
                Some(agents.all.iter().map(|agent| agent.name.to_string()).collect());
        }
        if let Some(prompt) = &self.system_prompt {
            main.instructions.clone_from(prompt);
        }
        if self.allowed_tools.is_some() {
            main.rights.tools.clone_from(&self.allowed_tools);
        }
        agents.all.push(main);
        for agent in &mut agents.all {
            agent.rights.disallowed_tools.extend(self.disallowed_tools.iter().cloned());
        }
        Ok(agents)
    }

    /// Returns the run to start.
    pub(super) fn spec(&self, prompt: String) -> Result<RunSpec, Error> {
        Ok(RunSpec {
            models: ModelChoice::of(self.model.clone()),
            limits: self.limits.clone(),
            strategy: Some(self.strategy),
            ..RunSpec::new(parsed(MAIN)?, prompt, &self.workspace)
        })
    }
}

impl Agents {
    fn has(&self, name: &AgentName) -> bool {
        self.all.iter().any(|known| known.name.as_str().eq_ignore_ascii_case(name.as_str()))
    }

    /// Adds the agent `name` of `definition`, given the tools that exist.
    fn define(
        &mut self,
        name: &str,
        definition: &AgentDefinition,
        tools: &[ToolFacts],
    ) -> Result<AgentSpec, Error> {
        let name = parsed(name)?;
        let wrong = |what: &str| Err(Error::InvalidInput(format!("agent `{name}` {what}")));
        if is_main(&name) {
            return wrong("has the name of the agent that leads; take another");
        }
        if self.has(&name) {
            return wrong("is defined twice: the case of a name does not matter; take another");
        }
        if definition.max_turns == Some(0) {
            return wrong("may make no turns, so it can do nothing; give it at least 1");
        }
        let named = AgentDefinition { name: Some(name.clone()), ..definition.clone() };
        let (agent, problems) = named.resolve(tools);
        let error = problems.iter().find(|problem| problem.level == Level::Error);
        match (agent, error) {
            (Some(agent), None) => {
                self.warnings.extend(problems.iter().map(ToString::to_string));
                Ok(agent)
            }
            (_, Some(error)) => wrong(&format!("cannot be used: {}", error.reason)),
            (None, None) => wrong("cannot be used"),
        }
    }
}

/// Returns the main agent, based on the agent `like` of `known`.
pub(crate) fn leader(known: &AgentCatalog, like: &str) -> Result<AgentSpec, Error> {
    Ok(AgentSpec { name: parsed(MAIN)?, ..known.find(&parsed(like)?)?.clone() })
}

/// True when `name` is the name of the main agent.
pub(crate) fn is_main(name: &AgentName) -> bool {
    name.as_str().eq_ignore_ascii_case(MAIN)
}

fn parsed(name: &str) -> Result<AgentName, Error> {
    let parsed = name.parse();
    parsed.map_err(|error: posse_protocol::InvalidName| Error::InvalidInput(error.to_string()))
}
