//! What an agent's runs may start, and how, unless a call says otherwise.

use crate::{Announce, Cleanup, Extra};
use serde::{Deserialize, Serialize};

/// What an agent's runs may start, and how, unless a call says otherwise. It only narrows: a layer
/// below can take away what the one above leaves, and fill in what nobody has said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubagentRules {
    /// Whether they may start any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether a call must say which agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_agent: Option<bool>,
    /// Names of the agents that they may start; `*` is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_agents: Option<Vec<String>>,
    /// The model of those whose agent names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// What becomes of their logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_cleanup: Option<Cleanup>,
    /// How their ends are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_announce: Option<Announce>,
    /// How long they may work; 0 is without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout_seconds: Option<u64>,
    /// How many of them one run has at work at the same time; the others are queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// How long after their ends they are archived at the latest; 0 is never.
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
    /// True when nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == SubagentRules::default()
    }
}

/// Names that are allowed, less those that are denied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameRules {
    /// Those that are allowed; `None` is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Those that are not, whatever else is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl NameRules {
    /// True when nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == NameRules::default()
    }
}
