//! Budgets: how much a run and its subagents may spend together.

use crate::{Extra, Limit, RunId, Usage, Usd};
use serde::{Deserialize, Serialize};

/// How much a run and its subagents may spend together; `None` means no limit.
///
/// A run draws from the nearest budget above it that limits it. A budget of its own is drawn when
/// the run starts, everything else right before it is spent. The unspent rest goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Tokens sent, cached or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// Model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Subagents that have not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<u64>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An amount of each dimension that a [`Budget`] limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amount {
    /// Tokens sent, cached or not.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Money.
    pub cost: Usd,
    /// Model calls.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Runs.
    pub children: u64,
}

/// How much of one dimension a run may still draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The dimension.
    pub limit: Limit,
    /// The run whose budget limits it.
    pub holder: RunId,
    /// How much is left; money in billionths of a dollar.
    pub left: u64,
    /// How much other runs have reserved and may give back.
    pub held: u64,
}

impl Budget {
    /// The dimensions that budgets limit.
    pub const DIMENSIONS: [Limit; 6] = [
        Limit::InputTokens,
        Limit::OutputTokens,
        Limit::Cost,
        Limit::Turns,
        Limit::ToolCalls,
        Limit::Children,
    ];

    /// The limit of `dimension`, with money in billionths of a dollar. Only [`Budget::DIMENSIONS`] can have one.
    pub fn of(&self, dimension: Limit) -> Option<u64> {
        match dimension {
            Limit::InputTokens => self.input_tokens,
            Limit::OutputTokens => self.output_tokens,
            Limit::Cost => self.cost.map(|cost| cost.0),
            Limit::Turns => self.turns,
            Limit::ToolCalls => self.tool_calls,
            Limit::Children => self.children,
            Limit::WallTime | Limit::WrittenBytes => None,
        }
    }

    /// True when nothing is limited.
    pub fn is_empty(&self) -> bool {
        Budget::DIMENSIONS.iter().all(|dimension| self.of(*dimension).is_none())
            && self.extra.is_empty()
    }
}

impl Amount {
    /// The amount of `dimension`, with money in billionths of a dollar.
    pub fn of(&self, dimension: Limit) -> u64 {
        match dimension {
            Limit::InputTokens => self.input_tokens,
            Limit::OutputTokens => self.output_tokens,
            Limit::Cost => self.cost.0,
            Limit::Turns => self.turns,
            Limit::ToolCalls => self.tool_calls,
            Limit::Children => self.children,
            Limit::WallTime | Limit::WrittenBytes => 0,
        }
    }

    /// The amount of `dimension`, mutable; `None` for dimensions that budgets do not limit.
    pub fn of_mut(&mut self, dimension: Limit) -> Option<&mut u64> {
        match dimension {
            Limit::InputTokens => Some(&mut self.input_tokens),
            Limit::OutputTokens => Some(&mut self.output_tokens),
            Limit::Cost => Some(&mut self.cost.0),
            Limit::Turns => Some(&mut self.turns),
            Limit::ToolCalls => Some(&mut self.tool_calls),
            Limit::Children => Some(&mut self.children),
            Limit::WallTime | Limit::WrittenBytes => None,
        }
    }
}

impl From<&Usage> for Amount {
    fn from(usage: &Usage) -> Self {
        Amount {
            input_tokens: usage.all_input_tokens(),
            output_tokens: usage.output_tokens,
            cost: usage.cost,
            ..Amount::default()
        }
    }
}
