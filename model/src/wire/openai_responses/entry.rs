//! How one entry of a request's input is written.

use super::input::is_shown;
use super::reasoning;
use super::{ARGUMENTS, ITEM, REFUSAL};
use crate::wire::hash::hash;
use posse_protocol::{CallId, Extra, Part, Role, Text, Thinking, ToolCall, ToolResult};
use serde::ser::{Error, Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// The longest id of a call and the longest name of a tool that the wire takes.
const MAX_LENGTH: usize = 64;

/// One entry.
pub(super) enum Entry<'a> {
    Said(Said<'a>),
    Reasoning { thinking: &'a Thinking, head: Head<'a> },
    Call { call: &'a ToolCall, head: Head<'a> },
    Output { call: &'a CallId, result: Option<&'a ToolResult> },
    Opaque(&'a Value),
}

/// A message.
pub(super) struct Said<'a> {
    pub(super) role: Role,
    pub(super) head: Head<'a>,
    pub(super) content: Vec<Content<'a>>,
}

/// A piece of a message.
pub(super) enum Content<'a> {
    Part(&'a Part),
    /// As the provider sent it.
    Raw(&'a Value),
    /// Words of ours.
    Word(&'static str),
}

/// Whose words they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Origin {
    /// Of a provider on this wire.
    Own,
    /// The same, but without the ids of its items.
    OwnWithoutIds,
    /// Of another provider.
    #[default]
    Foreign,
}

/// What the provider's item had besides, if there was one.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Head<'a> {
    origin: Origin,
    fields: Option<&'a Map<String, Value>>,
}

impl<'a> Head<'a> {
    pub(super) fn new(origin: Origin, fields: &'a Map<String, Value>) -> Self {
        Head { origin, fields: Some(fields).filter(|_| origin != Origin::Foreign) }
    }

    /// The head that a part's `extra` holds.
    pub(super) fn of(origin: Origin, extra: &'a Extra) -> Self {
        let item = extra.iter().find(|(key, _)| *key == ITEM);
        match item.and_then(|(_, item)| item.as_object()) {
            Some(fields) => Head::new(origin, fields),
            None => Head { origin, fields: None },
        }
    }

    /// True when there was an item.
    pub(super) fn is_known(&self) -> bool {
        self.fields.is_some()
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.fields?.get(key)
    }

    /// Writes its fields but for those in `known`, which are written otherwise.
    fn write<M: SerializeMap>(&self, map: &mut M, known: &[&str]) -> Result<(), M::Error> {
        for (key, value) in self.fields.into_iter().flatten() {
            let unsaid = key == "id" && self.origin == Origin::OwnWithoutIds;
            if !unsaid && key != "type" && !known.contains(&key.as_str()) {
                map.serialize_entry(key, value)?;
            }
        }
        Ok(())
    }
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Entry::Opaque(value) = self {
            return value.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self {
            Entry::Said(said) => {
                map.serialize_entry("type", "message")?;
                said.head.write(&mut map, &["role", "content"])?;
                match (said.role, said.head.get("role")) {
                    (Role::User, _) => map.serialize_entry("role", "user")?,
                    (Role::Assistant, Some(role)) => map.serialize_entry("role", role)?,
                    (Role::Assistant, None) => map.serialize_entry("role", "assistant")?,
                }
                map.serialize_entry("content", &Contents(said))?;
            }
            Entry::Reasoning { thinking, head } => {
                map.serialize_entry("type", "reasoning")?;
                head.write(&mut map, &reasoning::WRITTEN)?;
                reasoning::write(&mut map, thinking, head.fields)?;
            }
            Entry::Call { call, head } => {
                map.serialize_entry("type", "function_call")?;
                head.write(&mut map, &["call_id", "name", ARGUMENTS])?;
                map.serialize_entry("call_id", &call_id(&call.id))?;
                map.serialize_entry("name", &tool_name(&call.name, head.origin))?;
                let arguments = arguments(&call.input, head).map_err(S::Error::custom)?;
                map.serialize_entry("arguments", &arguments)?;
            }
            Entry::Output { call, result } => {
                map.serialize_entry("type", "function_call_output")?;
                map.serialize_entry("call_id", &call_id(call))?;
                map.serialize_entry("output", &Output(*result))?;
            }
            Entry::Opaque(_) => {}
        }
        map.end()
    }
}

/// The id of a call in this wire. Ids of other providers can be of any length.
fn call_id(id: &CallId) -> Cow<'_, str> {
    match id.0.chars().count() {
        1..=MAX_LENGTH => Cow::Borrowed(&id.0),
        _ => Cow::Owned(format!("call_{:016x}", hash([&*id.0]))),
    }
}

/// The name of a tool in this wire. Models of other providers make up names that it refuses.
fn tool_name(name: &str, origin: Origin) -> Cow<'_, str> {
    let fits = |each: char| each.is_ascii_alphanumeric() || each == '_' || each == '-';
    match name {
        _ if origin != Origin::Foreign => Cow::Borrowed(name),
        "" => Cow::Borrowed("unknown"),
        _ if name.len() <= MAX_LENGTH && name.chars().all(fits) => Cow::Borrowed(name),
        _ => {
            let letters = name.chars().map(|each| if fits(each) { each } else { '_' });
            Cow::Owned(letters.take(MAX_LENGTH).collect())
        }
    }
}

/// The arguments as text: the original text, if it still means the same.
fn arguments<'a>(input: &Value, head: &Head<'a>) -> serde_json::Result<Cow<'a, str>> {
    #[derive(serde::Serialize)]
    struct RawInput<'a> {
        raw_input: &'a Value,
    }
    let raw = head.get(ARGUMENTS).and_then(Value::as_str);
    let is_meant = |raw: &&str| serde_json::from_str::<Value>(raw).is_ok_and(|it| it == *input);
    match (raw.filter(is_meant), input) {
        (Some(raw), Value::Object(_)) => Ok(Cow::Borrowed(raw)),
        (_, Value::Object(input)) => serde_json::to_string(input).map(Cow::Owned),
        (_, other) => serde_json::to_string(&RawInput { raw_input: other }).map(Cow::Owned),
    }
}

struct Contents<'a>(&'a Said<'a>);

impl Serialize for Contents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Said { role, head, content } = self.0;
        serializer.collect_seq(content.iter().map(|content| match (content, role) {
            (Content::Raw(value), _) => Piece::Raw(value),
            (Content::Word(words), _) => Piece::Word(words),
            (Content::Part(Part::Text(text)), Role::Assistant) => Piece::Spoken(text, head.origin),
            (Content::Part(part), _) => Piece::Given(part),
        }))
    }
}

/// A piece of content.
enum Piece<'a> {
    Raw(&'a Value),
    /// By the model.
    Spoken(&'a Text, Origin),
    /// To the model: text, a picture or a document.
    Given(&'a Part),
    /// A word of ours.
    Word(&'static str),
}

impl Serialize for Piece<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Piece::Raw(value) = self {
            return value.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self {
            Piece::Spoken(text, origin) => write_spoken(&mut map, text, *origin)?,
            Piece::Given(Part::Image { media_type, data }) => {
                map.serialize_entry("type", "input_image")?;
                map.serialize_entry("detail", "auto")?;
                map.serialize_entry("image_url", &DataUrl { media_type, data })?;
            }
            Piece::Given(Part::Document { media_type, name, data }) => {
                map.serialize_entry("type", "input_file")?;
                map.serialize_entry("filename", &file_name(name, media_type))?;
                map.serialize_entry("file_data", &DataUrl { media_type, data })?;
            }
            Piece::Given(Part::Text(Text { text, .. })) => {
                map.serialize_entry("type", "input_text")?;
                map.serialize_entry("text", text)?;
            }
            Piece::Word(word) => {
                map.serialize_entry("type", "input_text")?;
                map.serialize_entry("text", word)?;
            }
            Piece::Given(_) | Piece::Raw(_) => {}
        }
        map.end()
    }
}

fn write_spoken<M: SerializeMap>(map: &mut M, text: &Text, origin: Origin) -> Result<(), M::Error> {
    const KNOWN: [&str; 5] = ["type", "text", "annotations", REFUSAL, ITEM];
    let extras = || text.extra.iter().filter(|_| origin != Origin::Foreign);
    let field = |name: &str| extras().find(|(key, _)| *key == name).map(|(_, value)| value);
    if field(REFUSAL).is_some() {
        map.serialize_entry("type", "refusal")?;
        map.serialize_entry("refusal", &text.text)?;
    } else {
        map.serialize_entry("type", "output_text")?;
        map.serialize_entry("text", &text.text)?;
        match field("annotations") {
            Some(annotations) => map.serialize_entry("annotations", annotations)?,
            None => map.serialize_entry("annotations", &[(); 0])?,
        }
    }
    for (key, value) in extras().filter(|(key, _)| !KNOWN.contains(&key.as_str())) {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}

/// The file name of a document: the provider uses its ending.
fn file_name<'a>(name: &'a str, media_type: &str) -> Cow<'a, str> {
    let name = if name.is_empty() { "document" } else { name };
    match media_type {
        "application/pdf" if !name.to_lowercase().ends_with(".pdf") => {
            Cow::Owned(format!("{name}.pdf"))
        }
        _ => Cow::Borrowed(name),
    }
}

struct DataUrl<'a> {
    media_type: &'a str,
    data: &'a str,
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("data:{};base64,{}", self.media_type, self.data))
    }
}

/// The result of a call: a text, or a list if there is more than text in it.
struct Output<'a>(Option<&'a ToolResult>);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(result) = self.0 else {
            return serializer.serialize_str("Error: no result was recorded");
        };
        let shown = result.parts.iter().filter(|part| is_shown(part));
        if shown.clone().all(|part| matches!(part, Part::Text(_))) {
            return serializer.collect_str(&Words(result));
        }
        let error = result.is_error.then_some(Piece::Word("Error:"));
        serializer.collect_seq(error.into_iter().chain(shown.map(Piece::Given)))
    }
}

/// The texts of a result, with a line break between two. The wire has no field for an error, so the
/// text says it.
struct Words<'a>(&'a ToolResult);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        if self.0.is_error {
            f.write_str("Error: ")?;
        }
        if self.0.is_error && texts.clone().next().is_none() {
            return f.write_str("the tool gave no reason");
        }
        for (position, text) in texts.enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            f.write_str(text)?;
        }
        Ok(())
    }
}
