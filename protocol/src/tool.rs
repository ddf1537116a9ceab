//! What a tool says about itself and what it returns.

use crate::{Extra, Part};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tool does to the world. Decides what may run side by side, what a read-only agent
/// may call, and what may run again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Looks only.
    Read,
    /// Changes files.
    Write,
    /// Starts processes.
    Execute,
    /// Talks to other machines.
    Network,
    /// Starts or controls other runs.
    Delegate,
}

impl Effect {
    /// Calls with this effect may run beside others of the same reply.
    pub fn side_by_side(self) -> bool {
        matches!(self, Effect::Read | Effect::Delegate)
    }
}

/// A tool as the model and the dispatcher see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name that is offered to the model.
    pub name: String,
    /// What it is for and when not to use it.
    pub description: String,
    /// JSON schema of the arguments.
    pub schema: Value,
    /// What it does to the world.
    pub effect: Effect,
    /// Calling it twice has the effect of calling it once, so an interrupted call may run again.
    pub idempotent: bool,
}

/// What a call gave. A failing tool returns output marked as error; the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// Text and images.
    pub parts: Vec<Part>,
    /// The call did not do what was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolOutput {
    /// A text that is what was asked for.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput { parts: vec![Part::text(text)], is_error: false, extra: Extra::default() }
    }

    /// A text that says what went wrong and what to do instead.
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput { is_error: true, ..ToolOutput::text(text) }
    }

    /// The text parts, with a line break between two.
    pub fn joined_text(&self) -> String {
        crate::message::joined_text(&self.parts)
    }
}
