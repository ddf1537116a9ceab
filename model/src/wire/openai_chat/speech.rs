//! How a message of the model is written, with the fields that its vendor wants back.

use super::ids::wire_id;
use super::message::{Shown, TextPart, Texts};
use super::turn::{Mark, Speech};
use super::{EXTRA_CONTENT, REASONING_DETAILS};
use crate::wire::Dialect;
use crate::wire::turns::Origin;
use posse_protocol::{Extra, Part, ToolCall};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use std::fmt::{self, Display};

/// The longest name of a function that OpenAI takes.
const MAX_NAME: usize = 64;

/// A placeholder for missing reasoning, for vendors that require it: Moonshot treats an empty text
/// as missing.
const NO_REASONING: &str = " ";

pub(super) struct AssistantMessage<'a> {
    pub(super) speech: &'a Speech<'a>,
    pub(super) dialect: &'a Dialect,
}

impl Serialize for AssistantMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Speech { thinking, content, calls } = self.speech;
        let texts = content.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        if content.iter().any(|part| matches!(part, Part::Opaque { .. })) {
            map.serialize_entry("content", &Blocks(content))?;
        } else if content.is_empty() {
            map.serialize_entry("content", &())?;
        } else {
            map.serialize_entry("content", &Shown(Texts(texts)))?;
        }
        if self.dialect.returns_reasoning {
            // On every message and not only since the user last spoke: DeepSeek refuses a request
            // that leaves one out, others ignore the old ones, and the prefix stays the same.
            let reasoning = thinking.iter().map(|thinking| thinking.text.as_str());
            match thinking.iter().all(|thinking| thinking.text.is_empty()) {
                true => map.serialize_entry("reasoning_content", NO_REASONING)?,
                false => map.serialize_entry("reasoning_content", &Shown(Texts(reasoning)))?,
            }
        }
        if self.dialect.reasoning_details {
            let kept =
                thinking.iter().filter_map(|thinking| kept(&thinking.extra, REASONING_DETAILS));
            let details: Vec<&Value> = kept.filter_map(Value::as_array).flatten().collect();
            if !details.is_empty() {
                map.serialize_entry(REASONING_DETAILS, &details)?;
            }
        }
        if !calls.is_empty() {
            map.serialize_entry("tool_calls", &Calls { calls, dialect: self.dialect })?;
        }
        map.end()
    }
}

fn kept<'a>(extra: &'a Extra, key: &str) -> Option<&'a Value> {
    extra.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// Content with unknown blocks, each in its place.
struct Blocks<'a>(&'a [&'a Part]);

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for part in self.0 {
            match part {
                Part::Text(text) => {
                    list.serialize_element(&TextPart { text: &text.text, mark: Mark::Unset })?;
                }
                Part::Opaque { value, .. } => list.serialize_element(value)?,
                _ => {}
            }
        }
        list.end()
    }
}

struct Calls<'a> {
    calls: &'a [(&'a ToolCall, Origin)],
    dialect: &'a Dialect,
}

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dialect = self.dialect;
        serializer.collect_seq(self.calls.iter().map(|(call, origin)| Call {
            call,
            origin: *origin,
            dialect,
        }))
    }
}

struct Call<'a> {
    call: &'a ToolCall,
    origin: Origin,
    dialect: &'a Dialect,
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Function<'a> {
            name: Shown<Name<'a>>,
            arguments: Shown<Arguments<'a>>,
        }
        let Call { call, origin, dialect } = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &*wire_id(&call.id.0, origin, dialect.call_ids))?;
        map.serialize_entry("type", "function")?;
        let function =
            Function { name: Shown(Name(&call.name)), arguments: Shown(Arguments(&call.input)) };
        map.serialize_entry("function", &function)?;
        let takes = origin == Origin::Here && dialect.extra_content;
        let extra = kept(&call.extra, EXTRA_CONTENT).filter(|_| takes);
        if let Some(extra) = extra {
            map.serialize_entry(EXTRA_CONTENT, extra)?;
        }
        map.end()
    }
}

/// The name of a function as the wire allows it. Models make up other names, and a provider may
/// send such a name but refuse it in a request.
struct Name<'a>(&'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("unknown");
        }
        self.0.chars().take(MAX_NAME).try_for_each(|char| match char {
            '_' | '-' => write!(f, "{char}"),
            char if char.is_ascii_alphanumeric() => write!(f, "{char}"),
            _ => f.write_str("_"),
        })
    }
}

/// Arguments as JSON, an object in any case.
struct Arguments<'a>(&'a Value);

impl Display for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Object(_) => write!(f, "{}", self.0),
            other => write!(f, "{{\"raw_input\":{other}}}"),
        }
    }
}
