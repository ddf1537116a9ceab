//! How each thing that is sent is written.

use super::contents::{Content, Item, Media, Unsigned};
use super::{FUNCTION_CALL, MADE_ID, PART, PIECES, SIGNATURE};
use crate::wire::turns::{NO_RESULT, Origin, is_visible};
use posse_protocol::{Extra, Part, Role, Text, Thinking, ToolCall, ToolResult};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// The provider's signature for a call of another model.
const EXCUSE: &str = "skip_thought_signature_validator";

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let role = match self.role {
            Role::User => "user",
            Role::Assistant => "model",
        };
        map.serialize_entry("role", role)?;
        map.serialize_entry("parts", &Parts(self))?;
        map.end()
    }
}

struct Parts<'a>(&'a Content<'a>);

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for item in &self.0.items {
            item.write(self.0.role, &mut list)?;
        }
        list.end()
    }
}

impl Item<'_> {
    fn write<S: SerializeSeq>(&self, role: Role, list: &mut S) -> Result<(), S::Error> {
        match *self {
            Item::Note(ref text) => list.serialize_element(&Words::plain(text)),
            Item::Call { call, origin, unsigned } => {
                list.serialize_element(&Call { call, origin, unsigned })
            }
            Item::Response { call, origin, result, media } => {
                let response = Response { call, origin, result, media };
                list.serialize_element(&Keyed { functionResponse: response })
            }
            Item::Part { part, origin } => write_part(part, role, origin, list),
        }
    }
}

fn write_part<S: SerializeSeq>(
    part: &Part,
    role: Role,
    origin: Origin,
    list: &mut S,
) -> Result<(), S::Error> {
    match part {
        Part::Text(text) => {
            let own = role == Role::Assistant && origin == Origin::Here;
            match pieces(text).filter(|_| own) {
                Some(pieces) => pieces.iter().try_for_each(|piece| list.serialize_element(piece)),
                None => list.serialize_element(&Words::plain(&text.text)),
            }
        }
        Part::Thinking(thinking) => list.serialize_element(&Thought(thinking)),
        Part::Image { media_type, data } | Part::Document { media_type, data, .. } => {
            list.serialize_element(&InlineData::new(media_type, data))
        }
        Part::Opaque { value, .. } => list.serialize_element(value),
        // These two are items of their own.
        Part::ToolCall(_) | Part::ToolResult(_) => Ok(()),
    }
}

/// Text with the fields of the part it came in.
pub(super) struct Words<'a> {
    text: &'a str,
    fields: Option<&'a Map<String, Value>>,
}

impl<'a> Words<'a> {
    fn plain(text: &'a str) -> Self {
        Words { text, fields: None }
    }
}

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("text", self.text)?;
        write_fields(self.fields, &mut map)?;
        map.end()
    }
}

/// The parts that `text` came in. `None` when it was text alone, or when the stored lengths do not
/// fit it.
pub(super) fn pieces(text: &Text) -> Option<Vec<Words<'_>>> {
    let noted = field(&text.extra, PIECES)?.as_array()?;
    let mut rest = text.text.as_str();
    let mut pieces = Vec::with_capacity(noted.len());
    for piece in noted {
        let length = piece.get("length")?.as_u64()?;
        let (text, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        let fields = piece.get("fields").and_then(Value::as_object);
        if !text.is_empty() || fields.is_some() {
            pieces.push(Words { text, fields });
        }
        rest = after;
    }
    (rest.is_empty() && !pieces.is_empty()).then_some(pieces)
}

struct Thought<'a>(&'a Thinking);

impl Serialize for Thought<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Thinking { text, signature, extra } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("text", text)?;
        map.serialize_entry("thought", &true)?;
        if let Some(signature) = signature {
            map.serialize_entry(SIGNATURE, signature)?;
        }
        let fields = field(extra, PART).and_then(Value::as_object).into_iter().flatten();
        for (key, value) in fields.filter(|(key, _)| *key != SIGNATURE && !is_known(key)) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

struct Call<'a> {
    call: &'a ToolCall,
    origin: Origin,
    unsigned: Unsigned,
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("functionCall", &Function(self))?;
        if self.unsigned == Unsigned::Excuse {
            map.serialize_entry(SIGNATURE, EXCUSE)?;
        }
        let own = Some(&self.call.extra).filter(|_| self.origin == Origin::Here);
        let fields = own.and_then(|extra| field(extra, PART)).and_then(Value::as_object);
        write_fields(fields, &mut map)?;
        map.end()
    }
}

struct Function<'a>(&'a Call<'a>);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Call { call, origin, .. } = *self.0;
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = wire_id(call, origin) {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("name", &call.name)?;
        match &call.input {
            Value::Object(input) => map.serialize_entry("args", input)?,
            other => map.serialize_entry("args", &RawInput { raw_input: other })?,
        }
        let own = Some(&call.extra).filter(|_| origin == Origin::Here);
        let fields = own.and_then(|extra| field(extra, FUNCTION_CALL)).and_then(Value::as_object);
        let known = ["id", "name", "args"];
        for (key, value) in
            fields.into_iter().flatten().filter(|(key, _)| !known.contains(&key.as_str()))
        {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
struct RawInput<'a> {
    raw_input: &'a Value,
}

/// The id the provider gave to a call, which its result names too. An id that Posse made is not
/// sent: the provider matches results by their order then.
fn wire_id(call: &ToolCall, origin: Origin) -> Option<&str> {
    let id = call.id.0.as_str();
    Some(id).filter(|id| origin == Origin::Here && !id.starts_with(MADE_ID) && !id.is_empty())
}

#[derive(serde::Serialize)]
#[expect(non_snake_case, reason = "it is what the wire calls it")]
struct Keyed<'a> {
    functionResponse: Response<'a>,
}

struct Response<'a> {
    call: &'a ToolCall,
    origin: Origin,
    result: Option<&'a ToolResult>,
    media: Media,
}

impl Serialize for Response<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = wire_id(self.call, self.origin) {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("name", &self.call.name)?;
        map.serialize_entry("response", &Outcome(self.result))?;
        let parts = self.result.map_or(&[][..], |result| &result.parts);
        let media = InnerMedia { parts, media: self.media };
        if media.iter().next().is_some() {
            map.serialize_entry("parts", &media)?;
        }
        map.end()
    }
}

/// What a call gave: its words, as output or as error.
struct Outcome<'a>(Option<&'a ToolResult>);

impl Serialize for Outcome<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.0 {
            None => map.serialize_entry("error", NO_RESULT)?,
            Some(result) => {
                let key = if result.is_error { "error" } else { "output" };
                map.serialize_entry(key, &JoinedText(&result.parts))?;
            }
        }
        map.end()
    }
}

/// All text of a result, with a line break between two, written without a copy.
struct JoinedText<'a>(&'a [Part]);

impl fmt::Display for JoinedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.iter().filter_map(|part| match part {
            Part::Text(text) if is_visible(&text.text) => Some(&text.text),
            _ => None,
        });
        for (position, text) in texts.enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            f.write_str(text)?;
        }
        Ok(())
    }
}

impl Serialize for JoinedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The pictures and documents inside a result.
struct InnerMedia<'a> {
    parts: &'a [Part],
    media: Media,
}

impl<'a> InnerMedia<'a> {
    fn iter(&self) -> impl Iterator<Item = InlineData<'a>> {
        let media = self.media;
        self.parts.iter().filter(move |part| media.is_inside(part)).filter_map(|part| match part {
            Part::Image { media_type, data } | Part::Document { media_type, data, .. } => {
                Some(InlineData::new(media_type, data))
            }
            _ => None,
        })
    }
}

impl Serialize for InnerMedia<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    inline_data: Blob<'a>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

impl<'a> InlineData<'a> {
    fn new(mime_type: &'a str, data: &'a str) -> Self {
        InlineData { inline_data: Blob { mime_type, data } }
    }
}

fn field<'a>(extra: &'a Extra, key: &str) -> Option<&'a Value> {
    extra.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// Writes the other fields of the provider's part.
fn write_fields<M: SerializeMap>(
    fields: Option<&Map<String, Value>>,
    map: &mut M,
) -> Result<(), M::Error> {
    for (key, value) in fields.into_iter().flatten().filter(|(key, _)| !is_known(key)) {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}

/// True for the fields of a part that are written apart from the others.
fn is_known(key: &str) -> bool {
    matches!(key, "text" | "thought" | "functionCall")
}
