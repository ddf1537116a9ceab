//! Limits in settings files.

use super::Setting;
use super::table::settings;
use super::value::Bytes;
use posse_protocol::{Extra, Limits, Usd};
use std::time::Duration;

settings! {
    /// How far runs may go, and where each limit came from.
    pub struct LimitSettings, "limits.", from struct FileLimits {
        /// How many model calls a run may make.
        turns: Setting<Option<u32>> = None, Lower, Anyone;
        /// How many tool calls a run may make.
        tool_calls: Setting<Option<u32>> = None, Lower, Anyone;
        /// How many tokens a run may send, cached or not.
        input_tokens: Setting<Option<u64>> = None, Lower, Anyone;
        /// How many tokens a run may receive.
        output_tokens: Setting<Option<u64>> = None, Lower, Anyone;
        /// How many dollars a run may cost; more than 0.
        cost: Setting<Option<Usd>> = None, Lower, Anyone;
        /// How long a run may work: `"90s"`, `"10m"`, `"2h"`, `"500ms"`, or a number of seconds as text.
        time: Setting<Option<Duration>> = None, Lower, Anyone;
        /// How many bytes the tools and commands of a run may write to disks: `"20GiB"`, `"500MB"`.
        written: Setting<Option<Bytes>> = Some(Bytes(20 << 30)), Lower, Anyone;
    }
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
            wall_ms: self.time.value.map(|time| time.as_millis() as u64),
            written_bytes: self.written.value.map(|Bytes(written)| written),
            extra: Extra::default(),
        }
    }
}
