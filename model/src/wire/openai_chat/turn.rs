//! The transcript as messages of this wire: what is sent, and in which place.
//!
//! Results are messages of their own, right after their calls. They contain only text, so pictures
//! and documents of a result follow in a message of the user.

use super::NAME;
use crate::wire::Dialect;
use crate::wire::turns::{Origin, Rules, Said, Turn, is_visible, turns};
use posse_protocol::{Message, Part, Role, Thinking, ToolCall, ToolResult};
use std::sync::Arc;

/// Turns of the user that get a cache mark. With the one on the system prompt: the four a request
/// may have.
const MARKED_TURNS: usize = 3;

const RULES: Rules = Rules { wire: NAME, sends, is_reasoning };

fn sends(part: &Part, role: Role, origin: Origin) -> bool {
    match (part, role) {
        (Part::Text(text), _) => is_visible(&text.text),
        (Part::ToolCall(_), role) => role == Role::Assistant,
        (Part::Thinking(_), role) => role == Role::Assistant && origin == Origin::Here,
        (Part::Opaque { wire, value }, role) => {
            let own = role == Role::Assistant && origin == Origin::Here;
            own && wire == NAME && value.is_object()
        }
        (Part::Image { .. } | Part::Document { .. } | Part::ToolResult(_), role) => {
            role == Role::User
        }
    }
}

fn is_reasoning(part: &Part) -> bool {
    matches!(part, Part::Thinking(_))
}

/// One message of the wire.
pub(super) enum Line<'a> {
    User(Vec<Item<'a>>, Mark),
    Assistant(Speech<'a>),
    Result(Answer<'a>, Mark),
    /// A message of the assistant between results and the user, for providers that want one.
    Bridge,
}

/// Whether a message carries a cache mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Set,
    Unset,
}

/// One thing the user says or shows.
#[derive(Clone, Copy)]
pub(super) enum Item<'a> {
    Part(&'a Part),
    Note(&'static str),
    /// Says which call the pictures and documents after it belong to.
    Source(&'a ToolCall),
}

/// What the model said in one turn.
#[derive(Default)]
pub(super) struct Speech<'a> {
    pub(super) thinking: Vec<&'a Thinking>,
    /// Text, and unknown blocks of this wire.
    pub(super) content: Vec<&'a Part>,
    pub(super) calls: Vec<(&'a ToolCall, Origin)>,
}

/// The answer to a call, if one is known.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) origin: Origin,
    pub(super) result: Option<&'a ToolResult>,
}

impl<'a> Answer<'a> {
    /// The pictures and documents of the result.
    fn attachments(&self) -> impl Iterator<Item = &'a Part> + use<'a> {
        let parts = self.result.map(|result| result.parts.as_slice()).unwrap_or_default();
        parts.iter().filter(|part| matches!(part, Part::Image { .. } | Part::Document { .. }))
    }

    pub(super) fn has_attachments(&self) -> bool {
        self.attachments().next().is_some()
    }
}

/// The messages of the wire for a transcript, cache marks placed if the dialect has them.
pub(super) fn lines<'a>(messages: &'a [Arc<Message>], dialect: &Dialect) -> Vec<Line<'a>> {
    let mut lines = Vec::with_capacity(messages.len());
    let mut ends = Vec::new();
    for turn in turns(messages, &RULES) {
        match turn.role {
            Role::Assistant => lines.push(Line::Assistant(speech(turn))),
            Role::User => {
                hear(turn, dialect, &mut lines);
                ends.extend(lines.len().checked_sub(1));
            }
        }
    }
    if dialect.cache_marks {
        for end in ends.into_iter().rev().take(MARKED_TURNS) {
            if let Line::User(_, mark) | Line::Result(_, mark) = &mut lines[end] {
                *mark = Mark::Set;
            }
        }
    }
    lines
}

fn speech(turn: Turn<'_>) -> Speech<'_> {
    let mut speech = Speech::default();
    for said in turn.said {
        let Said::Part { part, origin } = said else { continue };
        match part {
            Part::Thinking(thinking) => speech.thinking.push(thinking),
            Part::ToolCall(call) => speech.calls.push((call, origin)),
            part => speech.content.push(part),
        }
    }
    speech
}

/// Adds what was said to the model: a message for each result, and one for all the rest.
fn hear<'a>(turn: Turn<'a>, dialect: &Dialect, lines: &mut Vec<Line<'a>>) {
    let mut items = Vec::new();
    let before = lines.len();
    for said in turn.said {
        match said {
            Said::Answer { call, origin, result } => {
                let answer = Answer { call, origin, result };
                if answer.has_attachments() {
                    items.push(Item::Source(call));
                    items.extend(answer.attachments().map(Item::Part));
                }
                lines.push(Line::Result(answer, Mark::Unset));
            }
            Said::Part { part, .. } => items.push(Item::Part(part)),
            Said::Note(words) => items.push(Item::Note(words)),
        }
    }
    let after_results = lines.len() > before;
    if items.is_empty() {
        return;
    }
    if after_results && dialect.assistant_after_results {
        lines.push(Line::Bridge);
    }
    lines.push(Line::User(items, Mark::Unset));
}
