//! The transcript in the form of the wire: what is sent, and in which place.

use super::{NAME, PART, SIGNATURE};
use crate::wire::dialect::Gemini;
use crate::wire::turns::{Origin, Rules, Said, Turn, is_visible, turns};
use posse_protocol::{Message, Part, Role, ToolCall, ToolResult};
use std::sync::Arc;

const RULES: Rules = Rules { wire: NAME, sends, is_reasoning };

/// Everything one side said in a row.
pub(super) struct Content<'a> {
    pub(super) role: Role,
    pub(super) items: Vec<Item<'a>>,
}

/// Something that is sent, as one part of the wire or, if it came in several, as those.
pub(super) enum Item<'a> {
    /// Words of Posse that explain what follows.
    Note(String),
    Part {
        part: &'a Part,
        origin: Origin,
    },
    Call {
        call: &'a ToolCall,
        origin: Origin,
        unsigned: Unsigned,
    },
    Response {
        call: &'a ToolCall,
        origin: Origin,
        result: Option<&'a ToolResult>,
        media: Media,
    },
}

/// How a call without a signature is sent.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unsigned {
    Leave,
    /// The provider wants one, and has a special value for calls without one.
    Excuse,
}

/// Where the pictures and documents of a result are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Media {
    /// In it, those of a type that may be there.
    Inside,
    /// After all results.
    After,
}

impl Media {
    /// True when `part` goes into the result itself.
    pub(super) fn is_inside(self, part: &Part) -> bool {
        const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "application/pdf"];
        self == Media::Inside && media_type(part).is_some_and(|given| TYPES.contains(&given))
    }
}

/// The contents of a request.
pub(super) fn contents<'a>(messages: &'a [Arc<Message>], rules: Gemini) -> Vec<Content<'a>> {
    let content = |turn: Turn<'a>| Content {
        role: turn.role,
        items: match turn.role {
            Role::User => heard(turn.said, rules),
            Role::Assistant => spoken(turn.said, rules),
        },
    };
    turns(messages, &RULES).into_iter().map(content).collect()
}

/// What the model said.
fn spoken(said: Vec<Said<'_>>, rules: Gemini) -> Vec<Item<'_>> {
    // Of parallel calls, only the first has a signature.
    let mut wants_signature = rules == Gemini::Three;
    let items = said.into_iter().map(|said| match said {
        Said::Part { part: Part::ToolCall(call), origin } => {
            let excuse = std::mem::take(&mut wants_signature) && !is_signed(call, origin);
            let unsigned = if excuse { Unsigned::Excuse } else { Unsigned::Leave };
            Item::Call { call, origin, unsigned }
        }
        other => plain(other, Media::After),
    });
    items.collect()
}

/// What was said to the model: the results of its calls, what belongs to them, and the rest.
fn heard(said: Vec<Said<'_>>, rules: Gemini) -> Vec<Item<'_>> {
    let media = if rules == Gemini::Three { Media::Inside } else { Media::After };
    let answers = said.iter().take_while(|said| matches!(said, Said::Answer { .. })).count();
    let mut items = Vec::with_capacity(said.len());
    let mut attached = Vec::new();
    for (position, said) in said.into_iter().enumerate() {
        if position == answers {
            items.append(&mut attached);
        }
        match said {
            Said::Answer { call, result: Some(result), .. } => {
                let own = result.parts.iter().filter(|part| media_type(part).is_some());
                let mut own = own.filter(|part| !media.is_inside(part)).peekable();
                if own.peek().is_some() {
                    attached.push(Item::Note(format!("Attached to the result of {}:", call.name)));
                    attached.extend(own.map(|part| Item::Part { part, origin: Origin::Here }));
                }
            }
            Said::Part { part: Part::Document { name, .. }, .. } if is_visible(name) => {
                // The wire has no other place for it.
                items.push(Item::Note(format!("{name}:")));
            }
            _ => {}
        }
        items.push(plain(said, media));
    }
    items.append(&mut attached);
    items
}

fn plain(said: Said<'_>, media: Media) -> Item<'_> {
    match said {
        Said::Note(note) => Item::Note(note.to_owned()),
        Said::Part { part, origin } => Item::Part { part, origin },
        Said::Answer { call, origin, result } => Item::Response { call, origin, result, media },
    }
}

fn sends(part: &Part, role: Role, origin: Origin) -> bool {
    let own = origin == Origin::Here;
    match part {
        Part::Text(text) => {
            // An empty one may carry a signature.
            let carries = || own && role == Role::Assistant && super::part::pieces(text).is_some();
            is_visible(&text.text) || carries()
        }
        Part::Image { .. } | Part::Document { .. } | Part::ToolResult(_) => role == Role::User,
        Part::ToolCall(_) => role == Role::Assistant,
        Part::Thinking(thinking) => {
            let is_something = thinking.signature.is_some() || is_visible(&thinking.text);
            role == Role::Assistant && own && is_something
        }
        Part::Opaque { wire, value } => own && wire == NAME && value.is_object(),
    }
}

fn is_reasoning(part: &Part) -> bool {
    matches!(part, Part::Thinking(_))
}

fn is_signed(call: &ToolCall, origin: Origin) -> bool {
    let fields = call.extra.iter().find(|(key, _)| *key == PART).map(|(_, fields)| fields);
    origin == Origin::Here && fields.is_some_and(|fields| fields.get(SIGNATURE).is_some())
}

fn media_type(part: &Part) -> Option<&str> {
    match part {
        Part::Image { media_type, .. } | Part::Document { media_type, .. } => Some(media_type),
        _ => None,
    }
}
