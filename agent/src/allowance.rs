//! How much a run may still draw from its own budget and from the budgets above it.

use crate::transcript::Transcript;
use posse_protocol::{Limit, Limits, Share, Usd};

/// How much a run may still draw from budgets. A limit without an entry is not limited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowance(pub Vec<Share>);

/// Whether an allowance counts what other runs may still give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountHeld {
    /// Counts only what is left now.
    Now,
    /// Counts what is left, and what other runs hold and may give back.
    Returned,
}

impl Allowance {
    /// True when no budget limits the run.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The share of `limit`, if a budget limits it.
    pub fn of(&self, limit: Limit) -> Option<&Share> {
        self.0.iter().find(|share| share.limit == limit)
    }

    /// The same allowance, as if other runs gave nothing back.
    pub(crate) fn without_what_others_hold(mut self) -> Self {
        self.0.iter_mut().for_each(|share| share.held = 0);
        self
    }

    /// `limits`, narrowed to what the run may draw. A run within these limits is also within its budgets.
    pub(crate) fn within(
        &self,
        limits: &Limits,
        transcript: &Transcript,
        reach: CountHeld,
    ) -> Limits {
        let used = transcript.leg_usage();
        let spent = &transcript.spent;
        let most = |limit: Limit, used: u64| {
            let share = self.of(limit)?;
            let returned = if reach == CountHeld::Returned { share.held } else { 0 };
            Some(used.saturating_add(share.left).saturating_add(returned))
        };
        let least = |own: Option<u64>, drawn: Option<u64>| own.into_iter().chain(drawn).min();
        let small = |own: Option<u32>, drawn: Option<u64>| {
            least(own.map(u64::from), drawn).map(|count| u32::try_from(count).unwrap_or(u32::MAX))
        };
        let cost = least(limits.cost.map(|cost| cost.0), most(Limit::Cost, used.cost.0));
        Limits {
            turns: small(limits.turns, most(Limit::Turns, u64::from(spent.turns))),
            tool_calls: small(
                limits.tool_calls,
                most(Limit::ToolCalls, u64::from(spent.tool_calls)),
            ),
            input_tokens: least(
                limits.input_tokens,
                most(Limit::InputTokens, used.all_input_tokens()),
            ),
            output_tokens: least(
                limits.output_tokens,
                most(Limit::OutputTokens, used.output_tokens),
            ),
            cost: cost.map(Usd),
            wall_ms: limits.wall_ms,
            written_bytes: limits.written_bytes,
            extra: limits.extra.clone(),
        }
    }
}
