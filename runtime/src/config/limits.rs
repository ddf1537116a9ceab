//! Limits in settings files, and durations as people write them.

use super::{Origin, Setting};
use crate::limits::{parse_duration, parse_size};
use posse_protocol::{Extra, Limits, Usd};
use serde::Deserialize;

/// What the tools of a run may write to disks unless somebody says otherwise, in bytes.
const WRITTEN_BYTES: u64 = 20 << 30;

/// Limits and where each came from.
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// Model calls.
    pub turns: Setting<Option<u32>>,
    /// Tool calls.
    pub tool_calls: Setting<Option<u32>>,
    /// Tokens sent.
    pub input_tokens: Setting<Option<u64>>,
    /// Tokens received.
    pub output_tokens: Setting<Option<u64>>,
    /// Money.
    pub cost: Setting<Option<Usd>>,
    /// Time at work, in milliseconds.
    pub wall_ms: Setting<Option<u64>>,
    /// Bytes written to disks.
    pub written_bytes: Setting<Option<u64>>,
}

impl LimitSettings {
    /// The limits without their origins.
    pub fn limits(&self) -> Limits {
        Limits {
            turns: self.turns.value,
            tool_calls: self.tool_calls.value,
            input_tokens: self.input_tokens.value,
            output_tokens: self.output_tokens.value,
            cost: self.cost.value,
            wall_ms: self.wall_ms.value,
            written_bytes: self.written_bytes.value,
            extra: Extra::default(),
        }
    }

    /// What holds when nobody says anything.
    pub(super) fn usual() -> Self {
        LimitSettings {
            turns: Setting::default(None),
            tool_calls: Setting::default(None),
            input_tokens: Setting::default(None),
            output_tokens: Setting::default(None),
            cost: Setting::default(None),
            wall_ms: Setting::default(None),
            written_bytes: Setting::default(Some(WRITTEN_BYTES)),
        }
    }

    /// Takes over what a file says where that is stricter. The user's file comes first, so a
    /// project can only narrow.
    pub(super) fn narrow(&mut self, limits: Limits, origin: &Origin) {
        self.turns.narrow(limits.turns, origin);
        self.tool_calls.narrow(limits.tool_calls, origin);
        self.input_tokens.narrow(limits.input_tokens, origin);
        self.output_tokens.narrow(limits.output_tokens, origin);
        self.cost.narrow(limits.cost, origin);
        self.wall_ms.narrow(limits.wall_ms, origin);
        self.written_bytes.narrow(limits.written_bytes, origin);
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileLimits {
    turns: Option<u32>,
    tool_calls: Option<u32>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost: Option<f64>,
    time: Option<String>,
    written: Option<String>,
}

impl FileLimits {
    pub(super) fn check(self) -> Result<Limits, String> {
        let cost = match self.cost {
            Some(dollars) if !(dollars.is_finite() && dollars > 0.0) => {
                return Err(format!("in [limits]: `cost` is {dollars}: give dollars, more than 0"));
            }
            cost => cost.map(Usd::from_dollars),
        };
        let wall_ms = self.time.map(|time| parse_duration(&time)).transpose();
        let wall_ms = wall_ms.map_err(|reason| format!("in [limits]: `time`: {reason}"))?;
        let written_bytes = self.written.map(|size| parse_size(&size)).transpose();
        let written_bytes =
            written_bytes.map_err(|reason| format!("in [limits]: `written`: {reason}"))?;
        Ok(Limits {
            turns: self.turns,
            tool_calls: self.tool_calls,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cost,
            wall_ms,
            written_bytes,
            extra: Extra::default(),
        })
    }
}
