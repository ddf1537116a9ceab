//! The definition of a subagent.

use super::SubagentError;
use crate::query::is_main;
use posse_protocol::{
    AgentChildren, AgentName, AgentRights, AgentSpec, InvalidName, Limits, ModelChoice,
};
use serde::{Deserialize, Serialize};

/// A subagent: its purpose, its instructions, its rights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// Its purpose, and when to call it.
    pub description: String,
    /// Its instructions.
    pub instructions: String,
    /// The tools it may call; `*` alone means all. Posse refuses calls of other tools, whatever the
    /// model tries. An empty list is an error when the subagent is registered.
    pub allowed_tools: Vec<String>,
    /// How many model calls it may make; a run that needs more fails. `None` means no limit.
    #[serde(default)]
    pub max_turns: Option<u32>,
    /// Its model, as `vendor/name` or a short name; `None` means the default of the home, or any
    /// available model.
    #[serde(default)]
    pub model: Option<String>,
}

impl Subagent {
    /// The system prompt: the description and then the instructions.
    pub fn system_prompt(&self) -> String {
        format!("{}\n\nInstructions:\n{}", self.description, self.instructions)
    }

    /// Returns the agent that this defines.
    pub(super) fn spec(&self) -> Result<AgentSpec, SubagentError> {
        let name: AgentName = self
            .name
            .parse()
            .map_err(|error: InvalidName| SubagentError::InvalidInput(error.to_string()))?;
        let wrong =
            |what: &str| Err(SubagentError::InvalidInput(format!("subagent `{name}` {what}")));
        if is_main(&name) {
            return wrong("has the name of the agent that leads; take another");
        }
        if self.description.trim().is_empty() {
            return wrong("has no description; say what it is for and when to use it");
        }
        if self.instructions.trim().is_empty() {
            return wrong("has no instructions; say how it works");
        }
        if self.allowed_tools.is_empty() {
            return wrong(
                "may call no tools, so it can do nothing; name some in `allowed_tools`, or `*` for all",
            );
        }
        if self.max_turns == Some(0) {
            return wrong("may make no turns, so it can do nothing; give it at least 1");
        }
        Ok(AgentSpec {
            description: self.description.clone(),
            instructions: self.system_prompt(),
            rights: AgentRights::to_call(self.allowed_tools.clone()),
            // A subagent cannot call other agents, even if it has no parent.
            children: AgentChildren { max_depth: Some(0), ..AgentChildren::default() },
            models: ModelChoice::of(self.model.clone()),
            limits: Limits { turns: self.max_turns, ..Limits::default() },
            ..AgentSpec::new(name)
        })
    }
}
