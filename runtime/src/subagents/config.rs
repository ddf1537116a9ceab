//! Several subagents and a strategy, as data.

use super::{Subagent, SubagentError};
use posse_protocol::DelegationStrategy;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Several subagents, and how a main agent is encouraged to call them.
///
/// ```
/// use posse::subagents::{DelegationStrategy, Subagent, SubagentConfig, SubagentExecutor};
///
/// # fn main() -> Result<(), posse::subagents::SubagentError> {
/// let mut config = SubagentConfig::new(DelegationStrategy::Auto);
/// config.add_subagent(Subagent {
///     name: "reviewer".into(),
///     description: "Reviews code".into(),
///     instructions: "Look for bugs.".into(),
///     allowed_tools: vec!["Read".into()],
///     max_turns: Some(5),
///     model: None,
/// })?;
/// assert!(config.get_subagent("reviewer").is_some());
/// let executor = SubagentExecutor::from_config(config)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentConfig {
    /// The subagents, in their order.
    pub subagents: Vec<Subagent>,
    /// How a main agent is encouraged to call them.
    #[serde(default)]
    pub delegation_strategy: DelegationStrategy,
}

impl SubagentConfig {
    /// Creates a configuration without subagents.
    pub fn new(strategy: DelegationStrategy) -> Self {
        SubagentConfig { subagents: Vec::new(), delegation_strategy: strategy }
    }

    /// Adds a subagent.
    ///
    /// # Errors
    /// When the name is taken, or the definition is invalid.
    pub fn add_subagent(&mut self, subagent: Subagent) -> Result<(), SubagentError> {
        subagent.spec()?;
        if self.get_subagent(&subagent.name).is_some() {
            return Err(SubagentError::AlreadyExists(subagent.name));
        }
        self.subagents.push(subagent);
        Ok(())
    }

    /// Returns the subagent `name`, in any case. This is a linear search; for many look-ups, use
    /// [`SubagentConfig::to_map`].
    pub fn get_subagent(&self, name: &str) -> Option<&Subagent> {
        self.subagents.iter().find(|subagent| subagent.name.eq_ignore_ascii_case(name))
    }

    /// The subagents by their names.
    pub fn to_map(&self) -> HashMap<String, Subagent> {
        self.subagents.iter().map(|subagent| (subagent.name.clone(), subagent.clone())).collect()
    }
}
