//! Limits: how far a run may go.

use crate::{Extra, Usd};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far a run may go in each leg; `None` means no limit.
///
/// A leg starts, and the counters start again, when a message wakes a run that was idle or had ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
    /// Tokens sent, cached or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// Time at work, in milliseconds. The time during which no process executed the run does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Bytes that its tools and their commands write to disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Limits {
    /// The stricter of each limit.
    #[must_use]
    pub fn stricter(self, other: &Limits) -> Limits {
        fn least<T: Ord + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Limits {
            turns: least(self.turns, other.turns),
            tool_calls: least(self.tool_calls, other.tool_calls),
            input_tokens: least(self.input_tokens, other.input_tokens),
            output_tokens: least(self.output_tokens, other.output_tokens),
            cost: least(self.cost, other.cost),
            wall_ms: least(self.wall_ms, other.wall_ms),
            written_bytes: least(self.written_bytes, other.written_bytes),
            extra: self.extra,
        }
    }
}

/// The name of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Model calls.
    Turns,
    /// Tool calls.
    ToolCalls,
    /// Tokens sent.
    InputTokens,
    /// Tokens received.
    OutputTokens,
    /// Money.
    Cost,
    /// Time at work.
    WallTime,
    /// Bytes written to disk.
    WrittenBytes,
    /// Subagents that have not ended.
    Children,
}

impl Limit {
    /// `number` in the unit of this limit, for people. Money is in billionths of a dollar.
    pub fn amount(self, number: u64) -> String {
        match self {
            Limit::Cost => Usd(number).to_string(),
            Limit::WrittenBytes => size(number),
            _ => number.to_string(),
        }
    }
}

/// `bytes` in the largest unit that fits.
fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) if bytes.trailing_zeros() >= shift => {
            format!("{} {unit}", bytes >> shift)
        }
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} bytes"),
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Turns => "turns",
            Limit::ToolCalls => "tool calls",
            Limit::InputTokens => "input tokens",
            Limit::OutputTokens => "output tokens",
            Limit::Cost => "cost",
            Limit::WallTime => "wall time",
            Limit::WrittenBytes => "bytes written",
            Limit::Children => "children",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_as_people_write_them() {
        let check = |limit: Limit, number: u64, expected: &str| {
            assert_eq!(limit.amount(number), expected);
        };
        check(Limit::WrittenBytes, 20 << 30, "20 GiB");
        check(Limit::WrittenBytes, (3 << 20) / 2, "1.5 MiB");
        check(Limit::WrittenBytes, 1_023, "1023 bytes");
        check(Limit::Turns, 7, "7");
    }
}
