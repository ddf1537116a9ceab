//! What is said: messages and their parts.

use crate::{CallId, Extra};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, the host program, or the runtime on their behalf. Carries tool results.
    User,
    /// The model.
    Assistant,
}

/// A role and what it said, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What was said. The order is the provider's and is kept.
    pub parts: Vec<Part>,
    /// The wire format it came over, if a model said it: what only that provider understands
    /// (signatures, fields Posse does not know) goes back over the same wire, and over no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Message {
    /// A message of one text by the user.
    pub fn user(text: impl Into<String>) -> Self {
        Message::new(Role::User, vec![Part::text(text)])
    }

    /// A message of the given parts.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Message { role, parts, wire: None, extra: Extra::default() }
    }

    /// A message of a model, as it came over `wire`.
    pub fn from_model(wire: &str, parts: Vec<Part>) -> Self {
        let wire = Some(wire.to_owned());
        Message { role: Role::Assistant, parts, wire, extra: Extra::default() }
    }

    /// All text parts, one after the other with a line break between them.
    pub fn text(&self) -> String {
        joined_text(&self.parts)
    }

    /// The tool calls in this message, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// The text parts of `parts`, with a line break between two.
pub(crate) fn joined_text(parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        if let Part::Text(text) = part {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&text.text);
        }
    }
    out
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text(Text),
    /// The model's reasoning, with the signature its provider wants back unchanged.
    Thinking(Thinking),
    /// A call of a tool by the model.
    ToolCall(ToolCall),
    /// The answer to a call.
    ToolResult(ToolResult),
    /// A picture.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// Base 64.
        data: String,
    },
    /// A document that the model reads as it is, such as a PDF.
    Document {
        /// For example `application/pdf`.
        media_type: String,
        /// What it is called.
        name: String,
        /// Base 64.
        data: String,
    },
    /// A provider's own block, which Posse does not interpret: kept verbatim and sent back to
    /// the same wire, left out on any other.
    Opaque {
        /// The wire format it came from.
        wire: String,
        /// The block.
        value: Value,
    },
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Part::Text(Text { text: text.into(), extra: Extra::default() })
    }
}

/// Plain text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: String,
    /// What else the provider or a later version put into the block.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Reasoning of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thinking {
    /// The reasoning, possibly empty.
    pub text: String,
    /// Proof of origin that the provider wants back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// What else the provider or a later version put into the block.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call of a tool by the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Made by the provider; unique within the run.
    pub id: CallId,
    /// The name the model used.
    pub name: String,
    /// The arguments; an object when the model follows the schema.
    pub input: Value,
    /// What else the provider or a later version put into the block.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The answer to a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Which call.
    pub call: CallId,
    /// Text, images and documents.
    pub parts: Vec<Part>,
    /// The call did not do what was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}
