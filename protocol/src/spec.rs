//! What is asked for: agents and runs.

use crate::{AgentName, Extra, Limits};
use serde::{Deserialize, Serialize};

/// An agent: data, no running state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// What it is called by.
    pub name: AgentName,
    /// What it is for, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// Names of the tools it may call; `None` is all. A list without any is refused at start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The model it wants, as `vendor/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How far it may go.
    #[serde(default)]
    pub limits: Limits,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What to start.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// Which agent.
    pub agent: AgentName,
    /// The first message. A session may start without one.
    pub prompt: Option<String>,
    /// The folder to work in.
    pub workspace: std::path::PathBuf,
    /// The model, in place of the agent's own.
    pub model: Option<String>,
    /// Limits, each in place of the agent's own where it is set.
    pub limits: Limits,
    /// Ends each turn waiting for the next message instead of finishing.
    pub session: bool,
    /// A second start with the same key finds the first run.
    pub key: Option<String>,
}

impl RunSpec {
    /// A run of `agent` on `prompt` in `workspace`, everything else as the agent says.
    pub fn new(
        agent: AgentName,
        prompt: impl Into<String>,
        workspace: impl Into<std::path::PathBuf>,
    ) -> Self {
        RunSpec {
            agent,
            prompt: Some(prompt.into()),
            workspace: workspace.into(),
            model: None,
            limits: Limits::default(),
            session: false,
            key: None,
        }
    }
}
