//! The transcript as turns that alternate, each call followed by its result.
//!
//! For wires that require this. Each wire decides which parts of a message it sends ([`Rules`]) and
//! how it writes them.

use posse_protocol::{Message, Part, Role, ToolCall, ToolResult};
use std::collections::HashMap;
use std::sync::Arc;

/// The text before a transcript that begins with the model.
const BEGINNING: &str = "(The beginning of this conversation is not shown.)";

/// The text before a result without a call.
const STRAY_RESULT: &str = "(The result of an earlier call:)";

/// The result of a call without a result.
pub(super) const NO_RESULT: &str = "no result was recorded";

/// What a wire sends.
pub(super) struct Rules {
    /// What it is called.
    pub(super) wire: &'static str,
    /// Whether it sends a part of a message from there.
    pub(super) sends: fn(&Part, Role, Origin) -> bool,
    /// Whether a part is reasoning. No turn may consist of reasoning alone.
    pub(super) is_reasoning: fn(&Part) -> bool,
}

/// Where a message came from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Origin {
    /// This wire, or people: all that it carries may be sent.
    Here,
    /// Another wire: what only that one understands is not sent.
    Elsewhere,
}

/// Everything one side said in a row.
pub(super) struct Turn<'a> {
    pub(super) role: Role,
    pub(super) said: Vec<Said<'a>>,
}

/// One thing that was said.
#[derive(Clone, Copy)]
pub(super) enum Said<'a> {
    /// Words of Posse about what follows.
    Note(&'static str),
    /// Anything but a result.
    Part { part: &'a Part, origin: Origin },
    /// What the call of the turn before gave, if that is known.
    Answer { call: &'a ToolCall, origin: Origin, result: Option<&'a ToolResult> },
}

/// The turns of a transcript: the user begins, no turn is empty, and the answers to the calls of a
/// turn are the first of the next, one for each call and in their order.
pub(super) fn turns<'a>(messages: &'a [Arc<Message>], rules: &Rules) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::with_capacity(messages.len());
    let mut messages = messages.iter().filter(|message| rules.takes(message)).peekable();
    if messages.peek().is_some_and(|first| first.role == Role::Assistant) {
        turns.push(Turn { role: Role::User, said: vec![Said::Note(BEGINNING)] });
    }
    let mut open = Vec::new();
    while let Some(role) = messages.peek().map(|message| message.role) {
        let mut parts = Vec::new();
        while let Some(message) = messages.next_if(|message| message.role == role) {
            let origin = rules.origin(message);
            let sent = message.parts.iter().filter(|part| (rules.sends)(part, role, origin));
            parts.extend(sent.map(|part| (part, origin)));
        }
        let said = match role {
            Role::User => answer(std::mem::take(&mut open), &parts),
            Role::Assistant => {
                open.extend(parts.iter().filter_map(|(part, origin)| match part {
                    Part::ToolCall(call) => Some((call, *origin)),
                    _ => None,
                }));
                parts.into_iter().map(|(part, origin)| Said::Part { part, origin }).collect()
            }
        };
        turns.push(Turn { role, said });
    }
    if !open.is_empty() {
        turns.push(Turn { role: Role::User, said: answer(open, &[]) });
    }
    turns
}

/// What was said to the model, answers to `open` calls first.
fn answer<'a>(open: Vec<(&'a ToolCall, Origin)>, parts: &[(&'a Part, Origin)]) -> Vec<Said<'a>> {
    let mut results: HashMap<&str, Vec<&'a ToolResult>> = HashMap::new();
    for (part, _) in parts.iter().rev() {
        if let Part::ToolResult(result) = part {
            results.entry(&result.call.0).or_default().push(result);
        }
    }
    let mut take = |id: &str| results.get_mut(id).and_then(Vec::pop);
    let mut said = Vec::with_capacity(open.len() + parts.len());
    for (call, origin) in open {
        said.push(Said::Answer { call, origin, result: take(&call.id.0) });
    }
    for (part, origin) in parts {
        let Part::ToolResult(result) = part else {
            said.push(Said::Part { part, origin: *origin });
            continue;
        };
        // The remaining results have no call.
        if let Some(left) = take(&result.call.0) {
            said.push(Said::Note(STRAY_RESULT));
            let readable = left.parts.iter().filter(|part| is_readable(part));
            said.extend(readable.map(|part| Said::Part { part, origin: Origin::Here }));
        }
    }
    said
}

impl Rules {
    fn takes(&self, message: &Message) -> bool {
        let origin = self.origin(message);
        let mut sent = message.parts.iter().filter(|part| (self.sends)(part, message.role, origin));
        sent.any(|part| !(self.is_reasoning)(part))
    }

    fn origin(&self, message: &Message) -> Origin {
        match message.wire.as_deref() {
            Some(wire) if wire != self.wire => Origin::Elsewhere,
            _ => Origin::Here,
        }
    }
}

/// True for what may be inside a result.
pub(super) fn is_readable(part: &Part) -> bool {
    match part {
        Part::Text(text) => is_visible(&text.text),
        Part::Image { .. } | Part::Document { .. } => true,
        _ => false,
    }
}

/// True when there is a character to see. Providers refuse text without one.
pub(super) fn is_visible(text: &str) -> bool {
    !text.trim_start().is_empty()
}
