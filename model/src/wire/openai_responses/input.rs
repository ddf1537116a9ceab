//! The transcript as the entries of a request's input: what is sent, and in which order.
//!
//! The entries of a message do not depend on later ones, so a longer transcript only adds entries.

use super::entry::{Content, Entry, Head, Origin, Said};
use super::{ITEM, NAME};
use crate::wire::Dialect;
use posse_protocol::{Message, Part, Role, Thinking, ToolCall, ToolResult};
use serde_json::Value;
use std::sync::Arc;

/// What stands before a result whose call is not there.
const STRAY: &str = "(The result of an earlier call:)";

/// The entries for a transcript. Every call has its output, right after what the model said.
pub(super) fn items<'a>(messages: &'a [Arc<Message>], dialect: &Dialect) -> Vec<Entry<'a>> {
    let mut entries = Vec::with_capacity(2 * messages.len());
    let (mut calls, mut given) = (Vec::new(), Vec::new());
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        match message.role {
            Role::User => hear(&message.parts, &given, &mut entries),
            Role::Assistant => {
                speak(message, dialect, &mut entries);
                calls.extend(message.tool_calls());
                if after.first().is_none_or(|next| next.role == Role::User) {
                    given = answer(&mut calls, after, &mut entries);
                }
            }
        }
    }
    entries
}

/// The content of a user message, without results that were `given` to their calls. Opaque parts of
/// this wire are entries of their own.
fn hear<'a>(parts: &'a [Part], given: &[&'a ToolResult], entries: &mut Vec<Entry<'a>>) {
    let mut content = Vec::new();
    for part in parts {
        match part {
            part if is_shown(part) => content.push(Content::Part(part)),
            Part::ToolResult(result) if !given.iter().any(|each| std::ptr::eq(*each, result)) => {
                let shown = result.parts.iter().filter(|part| is_shown(part)).map(Content::Part);
                let mut shown = shown.peekable();
                content.extend(shown.peek().is_some().then_some(Content::Word(STRAY)));
                content.extend(shown);
            }
            Part::Opaque { wire, value } if wire == NAME && value.get("type").is_some() => {
                entries.extend(said_by_user(&mut content));
                entries.push(Entry::Opaque(value));
            }
            _ => {}
        }
    }
    entries.extend(said_by_user(&mut content));
}

fn said_by_user<'a>(content: &mut Vec<Content<'a>>) -> Option<Entry<'a>> {
    let content = std::mem::take(content);
    let said = Said { role: Role::User, head: Head::default(), content };
    (!said.content.is_empty()).then_some(Entry::Said(said))
}

/// What the model said, item by item.
fn speak<'a>(message: &'a Message, dialect: &Dialect, entries: &mut Vec<Entry<'a>>) {
    let is_sendable = |thinking: &Thinking| {
        let unsigned = dialect.returns_reasoning && !thinking.text.is_empty();
        thinking.signature.is_some() || unsigned
    };
    let lacks_reasoning = message.parts.iter().any(|part| match part {
        Part::Thinking(thinking) => !is_sendable(thinking),
        _ => false,
    });
    let origin = match message.wire.as_deref() {
        // The provider wants the reasoning of an item that has an id.
        None | Some(NAME) if lacks_reasoning => Origin::OwnWithoutIds,
        None | Some(NAME) => Origin::Own,
        Some(_) => Origin::Foreign,
    };
    let start = entries.len();
    for part in &message.parts {
        match part {
            Part::Text(text) => {
                let head = Head::of(origin, &text.extra);
                // Text of an item goes back, even without visible characters.
                if head.is_known() || is_visible(&text.text) {
                    say(head, Content::Part(part), start, entries);
                }
            }
            Part::ToolCall(call) => {
                entries.push(Entry::Call { call, head: Head::of(origin, &call.extra) });
            }
            Part::Thinking(thinking) if origin != Origin::Foreign && is_sendable(thinking) => {
                let head = Head::of(origin, &thinking.extra);
                entries.push(Entry::Reasoning { thinking, head });
            }
            Part::Opaque { wire, value } if origin != Origin::Foreign && wire == NAME => {
                match (value.get("type"), value.get("content"), value.get(ITEM)) {
                    (Some(_), _, _) => entries.push(Entry::Opaque(value)),
                    (None, Some(content), Some(Value::Object(item))) => {
                        say(Head::new(origin, item), Content::Raw(content), start, entries);
                    }
                    _ => {}
                }
            }
            Part::Thinking(_)
            | Part::Opaque { .. }
            | Part::ToolResult(_)
            | Part::Image { .. }
            | Part::Document { .. } => {}
        }
    }
    // Reasoning belongs to the next item, and the provider refuses it without one.
    while matches!(entries.last(), Some(Entry::Reasoning { .. })) {
        entries.pop();
    }
}

/// Adds to the message before it, if `content` was part of that, or else begins one.
fn say<'a>(head: Head<'a>, content: Content<'a>, start: usize, entries: &mut Vec<Entry<'a>>) {
    let last = entries.get_mut(start..).and_then(<[_]>::last_mut);
    match last {
        Some(Entry::Said(said)) if said.head == head => said.content.push(content),
        _ => {
            let said = Said { role: Role::Assistant, head, content: vec![content] };
            entries.push(Entry::Said(said));
        }
    }
}

/// Gives each call its output from the next user message, and returns the results that were given.
/// Of several calls with one id, each gets the next result with that id.
fn answer<'a>(
    calls: &mut Vec<&'a ToolCall>,
    after: &'a [Arc<Message>],
    entries: &mut Vec<Entry<'a>>,
) -> Vec<&'a ToolResult> {
    let turn = after.iter().take_while(|message| message.role == Role::User);
    let results = turn.flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    });
    let mut results: Vec<&ToolResult> = results.collect();
    let mut given = Vec::with_capacity(results.len());
    for call in calls.drain(..) {
        let position = results.iter().position(|result| result.call == call.id);
        let result = position.map(|position| results.remove(position));
        entries.push(Entry::Output { call: &call.id, result });
        given.extend(result);
    }
    given
}

/// True for what can be shown to the model: text, pictures and documents.
pub(super) fn is_shown(part: &Part) -> bool {
    match part {
        Part::Text(text) => is_visible(&text.text),
        Part::Image { .. } | Part::Document { .. } => true,
        _ => false,
    }
}

pub(super) fn is_visible(text: &str) -> bool {
    !text.trim_start().is_empty()
}
