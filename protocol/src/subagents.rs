//! Rules about the subagents that an agent may start, and their defaults.

use crate::{Announce, Cleanup, Extra};
use serde::{Deserialize, Serialize};

/// Rules about the subagents that an agent may start, and defaults for calls that do not set a
/// value. A layer can only make the rules of the layer above stricter, and set defaults that are not set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubagentRules {
    /// Whether the agent may start subagents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether a call must name an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_agent: Option<bool>,
    /// The names of the agents that it may start; `*` allows all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_agents: Option<Vec<String>>,
    /// The model of subagents whose agent names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// What happens to their logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_cleanup: Option<Cleanup>,
    /// How their outcomes are announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_announce: Option<Announce>,
    /// How long they may work; 0 means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout_seconds: Option<u64>,
    /// How many of them one run executes at the same time. The others are queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// How long after its end a subagent is archived at the latest; 0 means never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_after_minutes: Option<u64>,
    /// The tools that they may have.
    #[serde(skip_serializing_if = "NameRules::is_empty")]
    pub tools: NameRules,
    /// The skills that they may have.
    #[serde(skip_serializing_if = "NameRules::is_empty")]
    pub skills: NameRules,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SubagentRules {
    /// True when no rule and no default is set.
    pub fn is_empty(&self) -> bool {
        *self == SubagentRules::default()
    }
}

/// Allowed names without the denied ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameRules {
    /// The allowed names; `None` allows all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// The denied names. They take precedence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl NameRules {
    /// True when nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == NameRules::default()
    }
}
