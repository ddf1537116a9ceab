//! Writes a request: borrowed from the transcript, keys in a fixed order, straight into bytes.
//!
//! Cache marks sit on the system prompt (which covers the tools before it; on the last tool when
//! there is none) and on the last three turns of the user. The last mark of the request before is
//! therefore still a mark, and each turn reads what the one before has written.

use super::NAME;
use crate::wire::{EncodeError, Target};
use posse_agent::Request;
use posse_protocol::{Extra, Message, Part, Role, ToolSpec};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use std::sync::Arc;

/// Turns of the user that get a mark. With the one on system or tools: the four a request may have.
const MARKED_TURNS: usize = 3;

/// The body of a request.
///
/// The same request gives the same bytes. Messages of the same role in a row become one, results
/// of tools come first in it. Left out are: text without a visible character, reasoning without a
/// signature or with nothing after it, and opaque blocks of other wires; the provider would refuse
/// the first three. Arguments that are not an object, which the wire does not allow either, go
/// back as `{"raw_input": …}`.
///
/// # Errors
/// When a value has no JSON form.
pub fn encode(request: &Request, target: Target<'_>) -> Result<Vec<u8>, EncodeError> {
    Ok(serde_json::to_vec(&Body { request, target })?)
}

struct Body<'a> {
    request: &'a Request,
    target: Target<'a>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.request;
        let system = Some(&*request.system).filter(|text| is_visible(text));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.target.model)?;
        map.serialize_entry("max_tokens", &request.max_tokens)?;
        map.serialize_entry("stream", &true)?;
        if !request.tools.is_empty() {
            let mark = if system.is_none() { Mark::Set } else { Mark::Unset };
            map.serialize_entry("tools", &Tools { tools: &request.tools, mark })?;
        }
        if let Some(text) = system {
            map.serialize_entry("system", &[TextBlock { text, mark: Mark::Set }])?;
        }
        map.serialize_entry("messages", &turns(&request.messages))?;
        map.end()
    }
}

/// Whether a block carries a cache mark.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Set,
    Unset,
}

impl Mark {
    fn write<M: SerializeMap>(self, map: &mut M) -> Result<(), M::Error> {
        #[derive(serde::Serialize)]
        struct Ephemeral {
            r#type: &'static str,
        }
        match self {
            Mark::Set => map.serialize_entry("cache_control", &Ephemeral { r#type: "ephemeral" }),
            Mark::Unset => Ok(()),
        }
    }
}

struct Tools<'a> {
    tools: &'a [ToolSpec],
    /// Of the last one.
    mark: Mark,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.tools.len()))?;
        for (position, tool) in self.tools.iter().enumerate() {
            let mark = if position + 1 == self.tools.len() { self.mark } else { Mark::Unset };
            list.serialize_element(&ToolBlock { tool, mark })?;
        }
        list.end()
    }
}

struct ToolBlock<'a> {
    tool: &'a ToolSpec,
    mark: Mark,
}

impl Serialize for ToolBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.tool.name)?;
        map.serialize_entry("description", &self.tool.description)?;
        map.serialize_entry("input_schema", &self.tool.schema)?;
        self.mark.write(&mut map)?;
        map.end()
    }
}

struct TextBlock<'a> {
    text: &'a str,
    mark: Mark,
}

impl Serialize for TextBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "text")?;
        map.serialize_entry("text", self.text)?;
        self.mark.write(&mut map)?;
        map.end()
    }
}

/// Messages of one role in a row, as the wire wants them: one message, only blocks it takes.
struct Turn<'a> {
    role: Role,
    parts: Vec<&'a Part>,
    /// Which part carries a cache mark.
    marked: Option<usize>,
}

/// The transcript as turns, marks placed.
fn turns(messages: &[Arc<Message>]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(messages.len());
    for message in messages {
        let role = message.role;
        let parts = message.parts.iter().filter(|part| is_sendable(part, role));
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            continue;
        }
        if turns.last().is_some_and(|turn| turn.role != role) {
            close(&mut turns);
        }
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.parts.extend(parts),
            _ => turns.push(Turn { role, parts: parts.collect(), marked: None }),
        }
    }
    close(&mut turns);
    let of_user = turns.iter_mut().rev().filter(|turn| turn.role == Role::User);
    for turn in of_user.take(MARKED_TURNS) {
        turn.marked = turn.parts.iter().rposition(|part| !matches!(part, Part::Opaque { .. }));
    }
    turns
}

/// Brings the last turn, to which nothing will be added, into its final form.
fn close(turns: &mut Vec<Turn<'_>>) {
    let Some(turn) = turns.last_mut() else { return };
    match turn.role {
        Role::User => turn.parts.sort_by_key(|part| !matches!(part, Part::ToolResult(_))),
        Role::Assistant => {
            while turn.parts.last().is_some_and(|part| is_reasoning(part)) {
                turn.parts.pop();
            }
            if turn.parts.is_empty() {
                turns.pop();
            }
        }
    }
}

fn is_sendable(part: &Part, role: Role) -> bool {
    match (part, role) {
        (Part::Text(text), _) => is_visible(&text.text),
        (Part::Opaque { wire, value }, _) => wire == NAME && value.is_object(),
        (Part::Image { .. } | Part::ToolResult(_), role) => role == Role::User,
        (Part::Document { .. }, role) => role == Role::User,
        (Part::ToolCall(_), role) => role == Role::Assistant,
        (Part::Thinking(thinking), role) => role == Role::Assistant && thinking.signature.is_some(),
    }
}

fn is_reasoning(part: &Part) -> bool {
    match part {
        Part::Thinking(_) => true,
        Part::Opaque { value, .. } => value["type"] == "redacted_thinking",
        _ => false,
    }
}

fn is_visible(text: &str) -> bool {
    !text.trim_start().is_empty()
}

impl Serialize for Turn<'_> {
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

struct Blocks<'a>(&'a Turn<'a>);

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let turn = self.0;
        serializer.collect_seq(turn.parts.iter().enumerate().map(|(position, part)| Block {
            part,
            role: turn.role,
            mark: if turn.marked == Some(position) { Mark::Set } else { Mark::Unset },
        }))
    }
}

struct Block<'a> {
    part: &'a Part,
    role: Role,
    mark: Mark,
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Part::Opaque { value, .. } = self.part {
            return value.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self.part {
            Part::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &text.text)?;
                self.write_extra(&mut map, &text.extra, &["type", "text"])?;
            }
            Part::Thinking(thinking) => {
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("thinking", &thinking.text)?;
                map.serialize_entry("signature", &thinking.signature)?;
                let known = ["type", "thinking", "signature"];
                self.write_extra(&mut map, &thinking.extra, &known)?;
            }
            Part::ToolCall(call) => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", &call.id)?;
                map.serialize_entry("name", &call.name)?;
                match &call.input {
                    Value::Object(input) => map.serialize_entry("input", input)?,
                    other => map.serialize_entry("input", &RawInput { raw_input: other })?,
                }
                self.write_extra(&mut map, &call.extra, &["type", "id", "name", "input"])?;
            }
            Part::ToolResult(result) => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_use_id", &result.call)?;
                if result.is_error {
                    map.serialize_entry("is_error", &true)?;
                }
                let content = ResultContent(&result.parts);
                if content.blocks().next().is_some() {
                    map.serialize_entry("content", &content)?;
                }
            }
            Part::Image { media_type, data } => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("source", &Source { r#type: "base64", media_type, data })?;
            }
            Part::Document { media_type, name, data } => {
                map.serialize_entry("type", "document")?;
                map.serialize_entry("source", &Source { r#type: "base64", media_type, data })?;
                map.serialize_entry("title", name)?;
            }
            Part::Opaque { .. } => {}
        }
        self.mark.write(&mut map)?;
        map.end()
    }
}

impl Block<'_> {
    /// Writes what the provider had put into the block, so only in blocks that came from it.
    fn write_extra<M: SerializeMap>(
        &self,
        map: &mut M,
        extra: &Extra,
        known: &[&str],
    ) -> Result<(), M::Error> {
        if self.role == Role::Assistant {
            for (key, value) in extra.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
                map.serialize_entry(key, value)?;
            }
        }
        Ok(())
    }
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

/// What is inside a tool result: text and images, nothing else.
struct ResultContent<'a>(&'a [Part]);

impl<'a> ResultContent<'a> {
    fn blocks(&self) -> impl Iterator<Item = Block<'a>> {
        let taken = self.0.iter().filter(|part| match part {
            Part::Text(text) => is_visible(&text.text),
            Part::Image { .. } | Part::Document { .. } => true,
            _ => false,
        });
        taken.map(|part| Block { part, role: Role::User, mark: Mark::Unset })
    }
}

impl Serialize for ResultContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.blocks())
    }
}
