//! One content block while it is being received, and the part it becomes.
//!
//! Text grows in place. Unknown fields are kept, to be sent back.

use super::NAME;
use crate::fault::{Fault, Kind};
use posse_protocol::{CallId, Delta, Extra, Part, Text, Thinking, ToolCall};
use serde_json::{Map, Value};

/// A block between its start and its stop, or after.
pub(super) struct Block {
    body: Body,
    /// The fields that `body` does not hold; of an opaque block all of them.
    fields: Map<String, Value>,
    /// The arguments so far, as JSON. Parsed once, at the end.
    json: String,
    stopped: bool,
}

enum Body {
    Text(String),
    Thinking { text: String, signature: String },
    ToolUse { id: String, name: String },
    Opaque,
}

/// What happens to a tool call that is the last block of its reply.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum LastCall {
    /// The model stopped of its own accord: the call is whole.
    Whole,
    /// The model was stopped: the call counts only if its arguments are an object to the end.
    Doubtful,
}

impl Block {
    /// A block from the fields it starts with.
    pub(super) fn start(mut fields: Map<String, Value>) -> Result<Self, Fault> {
        let body = match fields.get("type").and_then(Value::as_str) {
            Some("text") => Body::Text(take_string(&mut fields, "text").unwrap_or_default()),
            Some("thinking") => Body::Thinking {
                text: take_string(&mut fields, "thinking").unwrap_or_default(),
                signature: take_string(&mut fields, "signature").unwrap_or_default(),
            },
            Some("tool_use") => {
                let id = take_string(&mut fields, "id").filter(|id| !id.is_empty());
                let name = take_string(&mut fields, "name");
                let (Some(id), Some(name)) = (id, name) else {
                    return Err(malformed("a tool_use block without id or name"));
                };
                Body::ToolUse { id, name }
            }
            Some(_) => Body::Opaque,
            None => return Err(malformed("a content block without a type")),
        };
        if !matches!(body, Body::Opaque) {
            fields.shift_remove("type");
        }
        Ok(Block { body, fields, json: String::new(), stopped: false })
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// The delta for the content that it started with.
    pub(super) fn first_delta(&self) -> Option<Delta> {
        match &self.body {
            Body::Text(text) if !text.is_empty() => Some(Delta::Text { text: text.clone() }),
            Body::Thinking { text, .. } if !text.is_empty() => {
                Some(Delta::Thinking { text: text.clone() })
            }
            _ => None,
        }
    }

    /// Adds text; false when this block has none.
    pub(super) fn push_text(&mut self, more: &str) -> bool {
        match &mut self.body {
            Body::Text(text) => text.push_str(more),
            _ => return false,
        }
        true
    }

    /// Adds reasoning; false when this block has none.
    pub(super) fn push_thinking(&mut self, more: &str) -> bool {
        match &mut self.body {
            Body::Thinking { text, .. } => text.push_str(more),
            _ => return false,
        }
        true
    }

    /// Adds to the signature; false when this block has none.
    pub(super) fn push_signature(&mut self, more: &str) -> bool {
        match &mut self.body {
            Body::Thinking { signature, .. } => signature.push_str(more),
            _ => return false,
        }
        true
    }

    /// Adds to the arguments; false when this block takes none.
    pub(super) fn push_json(&mut self, more: &str) -> bool {
        match &mut self.body {
            Body::ToolUse { .. } | Body::Opaque => self.json.push_str(more),
            _ => return false,
        }
        true
    }

    /// Adds a source to the list of sources.
    pub(super) fn push_citation(&mut self, citation: Value) {
        if citation.is_null() {
            return;
        }
        match self.fields.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation),
            _ => {
                self.fields.insert("citations".to_owned(), Value::Array(vec![citation]));
            }
        }
    }

    /// Adds a delta of an unknown type, field by field: a string is appended to the string of that
    /// name, anything else replaces it. All known deltas work like that. Returns whether anything
    /// has changed by it.
    pub(super) fn push_unknown(&mut self, delta: Map<String, Value>) -> bool {
        let mut changed = false;
        for (key, value) in delta {
            if key == "type" {
                continue;
            }
            match (self.fields.get_mut(&key), value) {
                (Some(Value::String(text)), Value::String(more)) => {
                    text.push_str(&more);
                    changed |= !more.is_empty();
                }
                (Some(before), value) if *before == value => {}
                (_, value) => {
                    self.fields.insert(key, value);
                    changed = true;
                }
            }
        }
        changed
    }

    /// True for a call whose end has not come.
    pub(super) fn is_half_call(&self) -> bool {
        matches!(self.body, Body::ToolUse { .. }) && !self.stopped
    }

    /// The part it became. `None` when it was cut off and half of it is useless.
    pub(super) fn into_part(mut self, last_call: LastCall) -> Option<Part> {
        match self.body {
            Body::Text(text) if text.is_empty() && self.fields.is_empty() => None,
            Body::Text(text) => Some(Part::Text(Text { text, extra: Extra::from(self.fields) })),
            Body::Thinking { text, signature } => {
                // The provider would refuse a signature that was cut off.
                let signature = (self.stopped && !signature.is_empty()).then_some(signature);
                let extra = Extra::from(self.fields);
                Some(Part::Thinking(Thinking { text, signature, extra }))
            }
            // Half a call must not be executed, and half of another block must not be sent back.
            Body::ToolUse { .. } | Body::Opaque if !self.stopped => None,
            Body::ToolUse { id, name } => {
                let given = self.fields.shift_remove("input");
                let input = match serde_json::from_str(&self.json) {
                    Ok(input @ Value::Object(_)) => input,
                    _ if last_call == LastCall::Doubtful => return None,
                    Ok(other) => other,
                    Err(_) if self.json.is_empty() => given.unwrap_or_else(|| Map::new().into()),
                    Err(_) => Value::String(self.json),
                };
                let extra = Extra::from(self.fields);
                Some(Part::ToolCall(ToolCall { id: CallId(id), name, input, extra }))
            }
            Body::Opaque => {
                if !self.json.is_empty() {
                    let input = serde_json::from_str(&self.json).ok()?;
                    self.fields.insert("input".to_owned(), input);
                }
                Some(Part::Opaque { wire: NAME.to_owned(), value: Value::Object(self.fields) })
            }
        }
    }
}

fn take_string(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    let text = match fields.get_mut(key)? {
        Value::String(text) => std::mem::take(text),
        _ => return None,
    };
    fields.shift_remove(key);
    Some(text)
}

pub(super) fn malformed(reason: impl Into<String>) -> Fault {
    Fault::new(Kind::Malformed, reason)
}
