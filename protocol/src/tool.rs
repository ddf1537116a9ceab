//! Tool specifications and results.

use crate::{About, Effect, Extra, Part, ToolFacts};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Deref;
use std::sync::Arc;

/// A JSON schema. Cheap to clone. It is serialised only once, however many requests contain it.
#[derive(Clone, Debug)]
pub struct Schema(Arc<Written>);

#[derive(Debug)]
struct Written {
    value: Value,
    text: Box<RawValue>,
}

impl Schema {
    /// The JSON text of the schema.
    pub fn text(&self) -> &str {
        self.0.text.get()
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        // A JSON value can always be serialised: its keys are strings.
        let text =
            serde_json::value::to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Schema(Arc::new(Written { value, text }))
    }
}

impl Deref for Schema {
    type Target = Value;
    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        // Compare the texts first, because that is fast.
        self.text() == other.text() || self.0.value == other.0.value
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Schema::from)
    }
}

/// The specification of a tool, for the model and for the dispatcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name, its effect and the subject of its calls.
    #[serde(flatten)]
    pub facts: ToolFacts,
    /// Its purpose, and when not to use it.
    pub description: String,
    /// JSON schema of the arguments.
    pub schema: Schema,
    /// A second call has no further effect, so an interrupted call may run again.
    pub idempotent: bool,
}

impl ToolSpec {
    /// A tool with the name `name`. After a crash, only a call that reads may run again, unless
    /// [`ToolSpec::idempotent`] is set.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        effect: Effect,
        schema: impl Into<Schema>,
    ) -> Self {
        ToolSpec {
            facts: ToolFacts::new(name, effect),
            description: description.into(),
            schema: schema.into(),
            idempotent: effect == Effect::Read,
        }
    }

    /// The same tool, with this subject of its calls.
    pub fn about(mut self, about: About) -> Self {
        self.facts.about = Some(about);
        self
    }

    /// The same tool, with this template for one line about a call: see [`ToolFacts::shown`].
    pub fn shown(mut self, shown: impl Into<String>) -> Self {
        self.facts.shown = shown.into();
        self
    }

    /// The same tool, with these aliases.
    pub fn aliases(mut self, aliases: &[&str]) -> Self {
        self.facts.aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        self
    }
}

impl Deref for ToolSpec {
    type Target = ToolFacts;
    fn deref(&self) -> &ToolFacts {
        &self.facts
    }
}

/// A file whose content an agent has read or written. The hash shows later whether another program
/// has changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    /// Relative to the workspace, or absolute outside of it.
    pub path: String,
    /// SHA-256 of the content, in hexadecimal digits.
    pub hash: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of a call. A tool that fails returns output marked as an error, which the model reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// Text and images.
    pub parts: Vec<Part>,
    /// The call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Until a new leg begins, the agent's calls must also match one of these rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrows: Option<Vec<String>>,
    /// How many bytes the call wrote to disk.
    #[serde(default, skip_serializing_if = "crate::usage::is_zero")]
    pub written_bytes: u64,
    /// The sandbox that confined the command, such as `bubblewrap`; `None` if it was not confined,
    /// or if the call is no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confined_by: Option<String>,
    /// The diff of the changed file, for people. The model does not get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The files whose present content the agent knows from this call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenFile>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolOutput {
    /// A successful result with this text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput {
            parts: vec![Part::text(text)],
            is_error: false,
            narrows: None,
            written_bytes: 0,
            confined_by: None,
            change: None,
            seen: Vec::new(),
            extra: Extra::default(),
        }
    }

    /// A failure. `text` says what went wrong and what to do instead.
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput { is_error: true, ..ToolOutput::text(text) }
    }

    /// The text parts, joined with line breaks.
    pub fn joined_text(&self) -> String {
        crate::message::joined_text(&self.parts)
    }
}
