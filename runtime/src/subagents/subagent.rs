//! The definition of a subagent.

use super::SubagentError;
use crate::query::is_main;
use posse_protocol::{
    AgentChildren, AgentName, AgentRights, AgentSpec, InvalidName, Limits, ModelChoice,
};
use serde::{Deserialize, Serialize};

/// A specialist: what it is for, how it works, what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    /// What it is called by: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it is for, and when to use it.
    pub description: String,
    /// How it works.
    pub instructions: String,
    /// The tools it may call; `*` alone is all of them. Calls of others are refused, whatever the
    /// model tries. A list without any is refused when the subagent is registered.
    pub allowed_tools: Vec<String>,
    /// Model calls it may make; one that needs more has failed. `None` is without limit.
    #[serde(default)]
    pub max_turns: Option<u32>,
    /// Its model, as `vendor/name` or a short name; `None` is as the home says, or what can be had.
    #[serde(default)]
    pub model: Option<String>,
}

impl Subagent {
    /// What the model is told of who it is: the description and, after it, the instructions.
    pub fn system_prompt(&self) -> String {
        format!("{}\n\nInstructions:\n{}", self.description, self.instructions)
    }

    /// The agent that this defines.
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
            // A subagent hands nothing on, even when nobody stands above it.
            children: AgentChildren { max_depth: Some(0), ..AgentChildren::default() },
            models: ModelChoice::of(self.model.clone()),
            limits: Limits { turns: self.max_turns, ..Limits::default() },
            ..AgentSpec::new(name)
        })
    }
}
