//! Matchers: what must hold of a request for a rule to answer it.

use crate::ask::Wire;
use crate::ask::{Ask, joined};
use regex::Regex;
use serde_json::Value;
use std::fmt;

/// What a request must be like. All conditions must hold; without any, every request fits.
///
/// `user` texts are those of the last (or first) user message that has text, which need not be
/// the last message. Tool results count as `last` when no assistant message follows them.
#[derive(Clone, Debug, Default)]
pub struct When {
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug)]
enum Condition {
    Turn(usize),
    Wire(Wire),
    Model(String),
    Header(String, String),
    ToolOffered(String),
    /// A JSON pointer, and what must be there.
    Field(String, Value),
    Text(Place, Test),
}

/// Where to look for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    LastUser,
    FirstUser,
    LastToolResult,
    AnyMessage,
    System,
    Body,
    Path,
}

#[derive(Clone, Debug)]
enum Test {
    Contains(String),
    Matches(Regex),
    /// An invalid pattern and the reason; reported when the server starts.
    Broken(String, String),
}

impl When {
    /// Fits every request, until conditions are added.
    pub fn any() -> Self {
        Self::default()
    }

    /// The transcript holds this many assistant messages: 0 is the first call.
    pub fn turn(self, assistant_messages: usize) -> Self {
        self.and(Condition::Turn(assistant_messages))
    }

    /// The request speaks this wire format.
    pub fn wire(self, wire: Wire) -> Self {
        self.and(Condition::Wire(wire))
    }

    /// The body has exactly this value at a JSON pointer such as `/reasoning/effort`.
    pub fn field(self, pointer: &str, value: Value) -> Self {
        self.and(Condition::Field(pointer.to_owned(), value))
    }

    /// The model has exactly this name.
    pub fn model(self, name: &str) -> Self {
        self.and(Condition::Model(name.to_owned()))
    }

    /// A tool of exactly this name is offered.
    pub fn tool_offered(self, name: &str) -> Self {
        self.and(Condition::ToolOffered(name.to_owned()))
    }

    /// The header is there and its value contains `part`.
    pub fn header(self, name: &str, part: &str) -> Self {
        self.and(Condition::Header(name.to_ascii_lowercase(), part.to_owned()))
    }

    /// The last user text contains `part`.
    pub fn last_user_contains(self, part: &str) -> Self {
        self.contains(Place::LastUser, part)
    }

    /// The last user text matches the regular expression.
    pub fn last_user_matches(self, pattern: &str) -> Self {
        self.matches(Place::LastUser, pattern)
    }

    /// The first user text contains `part`.
    pub fn first_user_contains(self, part: &str) -> Self {
        self.contains(Place::FirstUser, part)
    }

    /// The first user text matches the regular expression.
    pub fn first_user_matches(self, pattern: &str) -> Self {
        self.matches(Place::FirstUser, pattern)
    }

    /// One of the last tool results contains `part`. With an empty part: there is one.
    pub fn last_tool_result_contains(self, part: &str) -> Self {
        self.contains(Place::LastToolResult, part)
    }

    /// One of the last tool results matches the regular expression.
    pub fn last_tool_result_matches(self, pattern: &str) -> Self {
        self.matches(Place::LastToolResult, pattern)
    }

    /// A text or tool result of any message contains `part`.
    pub fn any_message_contains(self, part: &str) -> Self {
        self.contains(Place::AnyMessage, part)
    }

    /// A text or tool result of any message matches the regular expression.
    pub fn any_message_matches(self, pattern: &str) -> Self {
        self.matches(Place::AnyMessage, pattern)
    }

    /// The system prompt contains `part`.
    pub fn system_contains(self, part: &str) -> Self {
        self.contains(Place::System, part)
    }

    /// The system prompt matches the regular expression.
    pub fn system_matches(self, pattern: &str) -> Self {
        self.matches(Place::System, pattern)
    }

    /// The body contains `part`, byte for byte as it was sent: JSON, with its escapes.
    pub fn body_contains(self, part: &str) -> Self {
        self.contains(Place::Body, part)
    }

    /// The body matches the regular expression, byte for byte as it was sent.
    pub fn body_matches(self, pattern: &str) -> Self {
        self.matches(Place::Body, pattern)
    }

    /// The path, with its query, contains `part`.
    pub fn path_contains(self, part: &str) -> Self {
        self.contains(Place::Path, part)
    }

    /// The path, with its query, matches the regular expression.
    pub fn path_matches(self, pattern: &str) -> Self {
        self.matches(Place::Path, pattern)
    }

    /// The model it asks for, if it asks for one.
    pub(crate) fn named_model(&self) -> Option<&str> {
        self.conditions.iter().find_map(|condition| match condition {
            Condition::Model(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub(crate) fn contains(self, place: Place, part: &str) -> Self {
        self.and(Condition::Text(place, Test::Contains(part.to_owned())))
    }

    pub(crate) fn matches(self, place: Place, pattern: &str) -> Self {
        let test = match Regex::new(pattern) {
            Ok(regex) => Test::Matches(regex),
            Err(error) => Test::Broken(pattern.to_owned(), error.to_string()),
        };
        self.and(Condition::Text(place, test))
    }

    fn and(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        // Long texts are searched last: most rules already fail at the turn or the model.
        self.conditions.sort_by_key(|condition| {
            matches!(condition, Condition::Text(..) | Condition::Field(..))
        });
        self
    }

    /// Whether every request fits.
    pub(crate) fn is_any(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The first condition that `ask` does not meet.
    pub(crate) fn unmet(&self, ask: &Ask<'_>) -> Option<impl fmt::Display> {
        self.conditions.iter().find(|condition| !condition.holds(ask))
    }

    /// What no request could ever meet because it was written wrongly.
    pub(crate) fn problem(&self) -> Option<String> {
        self.conditions.iter().find_map(|condition| match condition {
            Condition::Text(place, Test::Broken(pattern, reason)) => {
                Some(format!("{place}_matches = {pattern:?} is no regular expression: {reason}"))
            }
            Condition::Field(pointer, _) if !pointer.starts_with('/') => Some(format!(
                "field {pointer:?} is no JSON pointer; write the way to the value, such as \
                 \"/reasoning/effort\""
            )),
            _ => None,
        })
    }
}

impl Condition {
    fn holds(&self, ask: &Ask<'_>) -> bool {
        match self {
            Condition::Turn(turn) => ask.turn == *turn,
            Condition::Wire(wire) => ask.wire == *wire,
            Condition::Field(pointer, value) => ask.field(pointer) == Some(value),
            Condition::Model(name) => ask.model == name,
            Condition::ToolOffered(name) => ask.tools.iter().any(|tool| tool == name),
            Condition::Header(name, part) => {
                ask.header(name).is_some_and(|value| value.contains(part))
            }
            Condition::Text(place, test) => match place {
                Place::LastUser => test.holds(&ask.last_user()),
                Place::FirstUser => test.holds(&ask.first_user()),
                Place::LastToolResult => ask.new_results().any(|result| test.holds(&result)),
                Place::System => test.holds(&joined(&ask.system)),
                Place::Body => test.holds(ask.body),
                Place::Path => test.holds(ask.path),
                Place::AnyMessage => ask.messages.iter().any(|said| {
                    test.holds(&said.text())
                        || said.results.iter().any(|pieces| test.holds(&joined(pieces)))
                }),
            },
        }
    }
}

impl Test {
    fn holds(&self, text: &str) -> bool {
        match self {
            Test::Contains(part) => text.contains(part),
            Test::Matches(regex) => regex.is_match(text),
            Test::Broken(..) => false,
        }
    }
}

/// As a script file writes it.
impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Turn(turn) => write!(out, "turn = {turn}"),
            Condition::Wire(wire) => write!(out, "wire = {:?}", wire.name()),
            Condition::Field(pointer, value) => write!(out, "field {pointer:?} = {value}"),
            Condition::Model(name) => write!(out, "model = {name:?}"),
            Condition::ToolOffered(name) => write!(out, "tool_offered = {name:?}"),
            Condition::Header(name, part) => write!(out, "header {name} = {part:?}"),
            Condition::Text(place, Test::Contains(part)) => {
                write!(out, "{place}_contains = {part:?}")
            }
            Condition::Text(place, Test::Matches(regex)) => {
                write!(out, "{place}_matches = {:?}", regex.as_str())
            }
            Condition::Text(place, Test::Broken(pattern, _)) => {
                write!(out, "{place}_matches = {pattern:?}")
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Place::LastUser => "last_user",
            Place::FirstUser => "first_user",
            Place::LastToolResult => "last_tool_result",
            Place::AnyMessage => "any_message",
            Place::System => "system",
            Place::Body => "body",
            Place::Path => "path",
        })
    }
}
