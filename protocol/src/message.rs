//! Messages and their parts.

use crate::{CallId, Extra};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, the host program, or Posse on their behalf. Tool results have this role, too.
    User,
    /// The model.
    Assistant,
}

/// A role and its content, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The sender.
    pub role: Role,
    /// The content, in the vendor's order.
    pub parts: Vec<Part>,
    /// The wire format, if a model wrote the message. Parts that only that vendor understands
    /// (signatures, unknown fields) are sent back over the same wire format and over no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Message {
    /// A message from the user with one text.
    pub fn user(text: impl Into<String>) -> Self {
        Message::new(Role::User, vec![Part::text(text)])
    }

    /// A message with these parts.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Message { role, parts, wire: None, extra: Extra::default() }
    }

    /// A message from a model over the wire format `wire`.
    pub fn from_model(wire: &str, parts: Vec<Part>) -> Self {
        let wire = Some(wire.to_owned());
        Message { role: Role::Assistant, parts, wire, extra: Extra::default() }
    }

    /// All text parts, joined with line breaks.
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

/// The text parts of `parts`, joined with line breaks.
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
    /// The model's reasoning, with the signature that its vendor wants back unchanged.
    Thinking(Thinking),
    /// A tool call by the model.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// An image.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// Base 64.
        data: String,
    },
    /// A document that the model reads directly, such as a PDF.
    Document {
        /// For example `application/pdf`.
        media_type: String,
        /// Its name.
        name: String,
        /// Base 64.
        data: String,
    },
    /// A vendor-specific block that Posse does not interpret. It is kept verbatim, sent back over
    /// the same wire format, and left out on any other.
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
    /// Other fields from the vendor or from a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Reasoning of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thinking {
    /// The reasoning, possibly empty.
    pub text: String,
    /// Proof of origin that the vendor wants back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Other fields from the vendor or from a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool call by the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id, chosen by the vendor.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments. An object, if the model follows the schema.
    pub input: Value,
    /// Other fields from the vendor or from a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call: CallId,
    /// Text, images and documents.
    pub parts: Vec<Part>,
    /// The call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}
