//! The transcript as messages of the wire, and how each block is written.

use super::NAME;
use super::encode::{Mark, TextBlock};
use crate::wire::turns::{NO_RESULT, Origin, Rules, Said, is_readable, is_visible, turns};
use posse_protocol::{CallId, Extra, Message, Part, Role, ToolCall, ToolResult};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

/// Marks on turns of the user. With the one on system or tools: the four a request may have.
const MARKED_TURNS: usize = 3;

const RULES: Rules = Rules { wire: NAME, sends, is_reasoning };

/// One message of the wire.
pub(super) struct Content<'a> {
    pub(super) role: Role,
    pub(super) said: Vec<Said<'a>>,
    /// Which block carries a cache mark.
    marked: Option<usize>,
    /// Which block before it carries one, too.
    also_marked: Option<usize>,
}

/// The messages of a request, marks placed.
pub(super) fn contents(messages: &[Arc<Message>]) -> Vec<Content<'_>> {
    let turns = turns(messages, &RULES).into_iter();
    let mut contents: Vec<Content<'_>> = turns
        .map(|turn| Content { role: turn.role, said: turn.said, marked: None, also_marked: None })
        .collect();
    for content in &mut contents {
        // The provider refuses a reply that ends with reasoning.
        while content.role == Role::Assistant && content.said.last().is_some_and(is_thought) {
            content.said.pop();
        }
    }
    let mut of_user = contents.iter_mut().rev().filter(|content| content.role == Role::User);
    let mut marks = MARKED_TURNS;
    if let Some(last) = of_user.next() {
        last.marked = last.said.iter().rposition(|said| !is_opaque(said));
        // If a turn ends with two texts, the first may be the same for several runs: they take over
        // a conversation, each with its own task at the end.
        last.also_marked = last.marked.and_then(|at| {
            let before = at.checked_sub(1)?;
            (is_text(&last.said[at]) && is_text(&last.said[before])).then_some(before)
        });
        marks -= 1 + usize::from(last.also_marked.is_some());
    }
    for content in of_user.take(marks) {
        content.marked = content.said.iter().rposition(|said| !is_opaque(said));
    }
    contents
}

fn sends(part: &Part, role: Role, origin: Origin) -> bool {
    let own = origin == Origin::Here;
    match part {
        Part::Text(text) => is_visible(&text.text),
        Part::Opaque { wire, value } => own && wire == NAME && value.is_object(),
        Part::Image { .. } | Part::Document { .. } | Part::ToolResult(_) => role == Role::User,
        Part::ToolCall(_) => role == Role::Assistant,
        Part::Thinking(thinking) => role == Role::Assistant && own && thinking.signature.is_some(),
    }
}

pub(super) fn is_reasoning(part: &Part) -> bool {
    match part {
        Part::Thinking(_) => true,
        Part::Opaque { value, .. } => value["type"] == "redacted_thinking",
        _ => false,
    }
}

fn is_thought(said: &Said<'_>) -> bool {
    matches!(said, Said::Part { part, .. } if is_reasoning(part))
}

fn is_text(said: &Said<'_>) -> bool {
    matches!(said, Said::Part { part: Part::Text(_), .. })
}

fn is_opaque(said: &Said<'_>) -> bool {
    matches!(said, Said::Part { part: Part::Opaque { .. }, .. })
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let role = match self.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        map.serialize_entry("role", role)?;
        map.serialize_entry("content", &Blocks(self))?;
        map.end()
    }
}

struct Blocks<'a>(&'a Content<'a>);

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let content = self.0;
        serializer.collect_seq(content.said.iter().enumerate().map(|(position, said)| Block {
            said: *said,
            role: content.role,
            mark: match Some(position) {
                it if it == content.marked || it == content.also_marked => Mark::Set,
                _ => Mark::Unset,
            },
        }))
    }
}

struct Block<'a> {
    said: Said<'a>,
    role: Role,
    mark: Mark,
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mark = self.mark;
        match self.said {
            Said::Note(text) => TextBlock { text, mark }.serialize(serializer),
            Said::Part { part: Part::Opaque { value, .. }, .. } => value.serialize(serializer),
            Said::Part { part, origin } => {
                // Only fields from the provider itself go back to it.
                let own = self.role == Role::Assistant && origin == Origin::Here;
                let mut map = serializer.serialize_map(None)?;
                write_part(part, if own { Extras::Sent } else { Extras::Kept }, &mut map)?;
                mark.write(&mut map)?;
                map.end()
            }
            Said::Answer { call, result, .. } => {
                let mut map = serializer.serialize_map(None)?;
                write_result(call, result, &mut map)?;
                mark.write(&mut map)?;
                map.end()
            }
        }
    }
}

/// What happens to unknown fields.
#[derive(Clone, Copy, PartialEq)]
enum Extras {
    Sent,
    Kept,
}

fn write_part<M: SerializeMap>(part: &Part, extras: Extras, map: &mut M) -> Result<(), M::Error> {
    match part {
        Part::Text(text) => {
            map.serialize_entry("type", "text")?;
            map.serialize_entry("text", &text.text)?;
            write_extra(&text.extra, extras, &["type", "text"], map)
        }
        Part::Thinking(thinking) => {
            map.serialize_entry("type", "thinking")?;
            map.serialize_entry("thinking", &thinking.text)?;
            map.serialize_entry("signature", &thinking.signature)?;
            write_extra(&thinking.extra, extras, &["type", "thinking", "signature"], map)
        }
        Part::ToolCall(call) => {
            map.serialize_entry("type", "tool_use")?;
            map.serialize_entry("id", &wire_id(&call.id))?;
            map.serialize_entry("name", &call.name)?;
            match &call.input {
                Value::Object(input) => map.serialize_entry("input", input)?,
                other => map.serialize_entry("input", &RawInput { raw_input: other })?,
            }
            write_extra(&call.extra, extras, &["type", "id", "name", "input"], map)
        }
        Part::Image { media_type, data } => {
            map.serialize_entry("type", "image")?;
            map.serialize_entry("source", &Source { r#type: "base64", media_type, data })
        }
        Part::Document { media_type, name, data } => {
            map.serialize_entry("type", "document")?;
            map.serialize_entry("source", &Source { r#type: "base64", media_type, data })?;
            match is_visible(name) {
                true => map.serialize_entry("title", name),
                false => Ok(()),
            }
        }
        // These two are written elsewhere.
        Part::ToolResult(_) | Part::Opaque { .. } => Ok(()),
    }
}

fn write_extra<M: SerializeMap>(
    extra: &Extra,
    extras: Extras,
    known: &[&str],
    map: &mut M,
) -> Result<(), M::Error> {
    if extras == Extras::Kept {
        return Ok(());
    }
    // Only Posse sets marks, because their number is limited.
    let written = |key: &str| !known.contains(&key) && key != "cache_control";
    for (key, value) in extra.iter().filter(|(key, _)| written(key)) {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}

fn write_result<M: SerializeMap>(
    call: &ToolCall,
    result: Option<&ToolResult>,
    map: &mut M,
) -> Result<(), M::Error> {
    map.serialize_entry("type", "tool_result")?;
    map.serialize_entry("tool_use_id", &wire_id(&call.id))?;
    if result.is_none_or(|result| result.is_error) {
        map.serialize_entry("is_error", &true)?;
    }
    match result {
        None => {
            let text = TextBlock { text: NO_RESULT, mark: Mark::Unset };
            map.serialize_entry("content", &[text])
        }
        Some(result) if result.parts.iter().any(is_readable) => {
            map.serialize_entry("content", &ResultContent(&result.parts))
        }
        Some(_) => Ok(()),
    }
}

/// What is inside a tool result: text, images and documents, nothing else.
struct ResultContent<'a>(&'a [Part]);

impl Serialize for ResultContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter(|part| is_readable(part)).map(|part| Block {
            said: Said::Part { part, origin: Origin::Here },
            role: Role::User,
            mark: Mark::Unset,
        }))
    }
}

/// The id of a call as the wire takes it: letters, digits, `_` and `-`. Ids that other providers
/// make may have more in them; that is written as its number.
fn wire_id(id: &CallId) -> Cow<'_, str> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.0.is_empty() && id.0.bytes().all(is_allowed) {
        return Cow::Borrowed(&id.0);
    }
    let mut written = String::from("call_");
    for byte in id.0.bytes() {
        if is_allowed(byte) {
            written.push(char::from(byte));
        } else {
            let _ = write!(written, "_{byte:02x}");
        }
    }
    Cow::Owned(written)
}

#[derive(serde::Serialize)]
struct RawInput<'a> {
    raw_input: &'a Value,
}

#[derive(serde::Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}
