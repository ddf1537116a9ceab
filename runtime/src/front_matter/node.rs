//! A definition as written, before it is interpreted: values with their places. The same for YAML,
//! JSON and TOML.

use super::problem::Position;
use serde_json::Value;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Position,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Null,
    Text {
        text: String,
        style: Style,
    },
    /// A number, `true` or `false`, and its spelling: a name may be spelled `1.10` or `no`.
    Plain {
        value: Value,
        written: String,
    },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes, in one line or several.
    Plain,
    /// In single quotes.
    Quoted,
    /// In double quotes, with line breaks as `\n`.
    Escaped,
}

/// A key of a map and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) place: Position,
    pub(crate) name: String,
}

impl Node {
    /// The node of `value`, whose parts have no places of their own.
    pub(crate) fn of_json(place: Position, value: Value) -> Self {
        let content = match value {
            Value::Null => Content::Null,
            Value::String(text) => Content::Text { text, style: Style::Escaped },
            Value::Array(values) => {
                Content::List(values.into_iter().map(|value| Node::of_json(place, value)).collect())
            }
            Value::Object(map) => {
                let entry = |(name, value)| (Key { place, name }, Node::of_json(place, value));
                Content::Map(map.into_iter().map(entry).collect())
            }
            value => Content::Plain { written: value.to_string(), value },
        };
        Node { place, content }
    }

    /// The same value without places.
    pub(crate) fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Text { text, .. } => Value::String(text.clone()),
            Content::Plain { value, .. } => value.clone(),
            Content::List(nodes) => nodes.iter().map(Node::to_json).collect(),
            Content::Map(entries) => {
                entries.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect()
            }
        }
    }

    /// The value as a text, as it is spelled, even if it is a number or a boolean.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text { text, .. } => Some(text),
            Content::Plain { written, .. } => Some(written),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.content == Content::Null
    }

    /// The kind of value, for a message.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            Content::Null => "empty",
            Content::Text { .. } => "a text",
            Content::Plain { value: Value::Bool(_), .. } => "true or false",
            Content::Plain { .. } => "a number",
            Content::List(_) => "a list",
            Content::Map(_) => "a table",
        }
    }
}
