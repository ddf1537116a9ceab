//! The parts of a reply while they arrive, and what they become.
//!
//! Text and reasoning grow in place; a call comes whole. A part with a signature must go back as
//! its own part, so the lengths of all parts of a text are kept.

use super::chunk::WirePart;
use super::{FUNCTION_CALL, MADE_ID, NAME, PART, PIECES, SIGNATURE};
use crate::fault::{Fault, Kind};
use crate::wire::hash::hash;
use posse_agent::DeltaSink;
use posse_protocol::{CallId, Delta, Extra, Part, Text, Thinking, ToolCall};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The longest id of a reply within ids of calls: some providers accept 40 characters.
const MAX_STEM: usize = 28;

/// What has arrived of a reply's content.
#[derive(Default)]
pub(super) struct Assembly {
    parts: Vec<Arriving>,
}

enum Arriving {
    Text { text: String, pieces: Vec<Piece> },
    Thinking { text: String, fields: Map<String, Value> },
    Call { call: Map<String, Value>, fields: Map<String, Value> },
    Opaque(Map<String, Value>),
}

/// One or more parts that are text alone, or one that has other fields.
struct Piece {
    length: usize,
    fields: Map<String, Value>,
}

/// What happens to a call that is the last part of its reply.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum LastCall {
    /// The model stopped of its own accord: the call is whole.
    Whole,
    /// The model was stopped: the call counts only if its arguments are an object.
    Doubtful,
}

impl Assembly {
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Adds a part. Returns whether there was anything in it.
    pub(super) fn push(
        &mut self,
        part: WirePart<'_>,
        deltas: DeltaSink<'_>,
    ) -> Result<bool, Fault> {
        let WirePart { text, thought, function_call, mut fields } = part;
        if let Some(call) = function_call {
            check(&call)?;
            if let Some(input) = call.get("args") {
                deltas(Delta::Called { bytes: input.to_string().len() });
            }
            if let Some(text) = text {
                fields.insert("text".to_owned(), text.into_owned().into());
            }
            self.parts.push(Arriving::Call { call, fields });
            return Ok(true);
        }
        // A signature without content belongs to an empty text.
        let signature_alone = fields.len() == 1 && fields.contains_key(SIGNATURE);
        let text = match text {
            Some(text) => text,
            None if fields.is_empty() => return Ok(false),
            None if signature_alone => "".into(),
            None => {
                if thought {
                    fields.insert("thought".to_owned(), true.into());
                }
                self.parts.push(Arriving::Opaque(fields));
                return Ok(true);
            }
        };
        if text.is_empty() && fields.is_empty() {
            return Ok(false);
        }
        match thought {
            true => self.push_thought(&text, fields),
            false => self.push_text(&text, fields),
        }
        if !text.is_empty() {
            let text = text.into_owned();
            deltas(if thought { Delta::Thinking { text } } else { Delta::Text { text } });
        }
        Ok(true)
    }

    fn push_text(&mut self, more: &str, fields: Map<String, Value>) {
        let length = more.len();
        let Some(Arriving::Text { text, pieces }) = self.parts.last_mut() else {
            let pieces = vec![Piece { length, fields }];
            self.parts.push(Arriving::Text { text: more.to_owned(), pieces });
            return;
        };
        text.push_str(more);
        match pieces.last_mut() {
            Some(last) if last.fields.is_empty() && fields.is_empty() => last.length += length,
            _ => pieces.push(Piece { length, fields }),
        }
    }

    fn push_thought(&mut self, more: &str, fields: Map<String, Value>) {
        match self.parts.last_mut() {
            Some(Arriving::Thinking { text, fields: before })
                if before.is_empty() && fields.is_empty() =>
            {
                text.push_str(more);
            }
            _ => self.parts.push(Arriving::Thinking { text: more.to_owned(), fields }),
        }
    }

    /// The parts of the message. Calls without an id of their own get one from `stem`, which
    /// differs from reply to reply.
    pub(super) fn finish(
        self,
        last_call: LastCall,
        stem: impl FnOnce(&[Part]) -> String,
    ) -> Vec<Part> {
        let last = self.parts.len().saturating_sub(1);
        let parts = self.parts.into_iter().enumerate().filter_map(|(position, part)| {
            part.into_part(if position == last { last_call } else { LastCall::Whole })
        });
        let mut parts: Vec<Part> = parts.collect();
        name_calls(&mut parts, stem);
        parts
    }
}

impl Arriving {
    fn into_part(self, last_call: LastCall) -> Option<Part> {
        Some(match self {
            Arriving::Text { text, pieces } => {
                let extra = match pieces.iter().any(|piece| !piece.fields.is_empty()) {
                    true => extra([(PIECES, pieces.into_iter().map(Piece::into_value).collect())]),
                    false => Extra::default(),
                };
                Part::Text(Text { text, extra })
            }
            Arriving::Thinking { text, mut fields } => {
                let signature = match fields.shift_remove(SIGNATURE) {
                    Some(Value::String(signature)) => Some(signature),
                    _ => None,
                };
                let extra = extra([(PART, fields.into())]);
                Part::Thinking(Thinking { text, signature, extra })
            }
            Arriving::Call { mut call, fields } => {
                let id = CallId(take_string(&mut call, "id"));
                let name = take_string(&mut call, "name");
                let input = match call.shift_remove("args").unwrap_or_default() {
                    input @ Value::Object(_) => input,
                    _ if last_call == LastCall::Doubtful => return None,
                    Value::Null => Map::new().into(),
                    other => other,
                };
                let extra = extra([(PART, fields.into()), (FUNCTION_CALL, call.into())]);
                Part::ToolCall(ToolCall { id, name, input, extra })
            }
            Arriving::Opaque(fields) => {
                Part::Opaque { wire: NAME.to_owned(), value: Value::Object(fields) }
            }
        })
    }
}

impl Piece {
    fn into_value(self) -> Value {
        match self.fields.is_empty() {
            true => json!({"length": self.length}),
            false => json!({"length": self.length, "fields": self.fields}),
        }
    }
}

/// Gives every call an id that no other of the reply has.
fn name_calls(parts: &mut [Part], stem: impl FnOnce(&[Part]) -> String) {
    let mut taken = HashSet::new();
    let is_named = |part: &Part| match part {
        Part::ToolCall(call) => {
            let id = call.id.0.as_str();
            !id.is_empty() && !id.starts_with(MADE_ID) && taken.insert(id.to_owned())
        }
        _ => true,
    };
    let nameless: Vec<usize> = parts
        .iter()
        .map(is_named)
        .enumerate()
        .filter(|(_, named)| !named)
        .map(|(at, _)| at)
        .collect();
    if nameless.is_empty() {
        return;
    }
    let stem = stem(parts);
    for (number, position) in nameless.into_iter().enumerate() {
        if let Some(Part::ToolCall(call)) = parts.get_mut(position) {
            call.id = CallId(format!("{MADE_ID}{stem}_{number}"));
        }
    }
}

/// Distinguishes the calls of one reply from those of another: the provider's id of the reply.
/// Without it, the counts of tokens, which grow every turn, and the content.
pub(super) fn stem(response_id: Option<&str>, tokens: u64, parts: &[Part]) -> String {
    let is_plain = |id: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !id.is_empty() && id.len() <= MAX_STEM && id.bytes().all(plain)
    };
    match response_id {
        Some(id) if is_plain(&id) => id.to_owned(),
        Some(id) => format!("{:016x}", hash([id])),
        None => format!("{:016x}", hash([&*format!("{tokens} {parts:?}")])),
    }
}

/// A call must name its function and be whole: Posse does not ask for arguments in pieces.
fn check(call: &Map<String, Value>) -> Result<(), Fault> {
    let malformed = |reason| Err(Fault::new(Kind::Malformed, reason));
    match call.get("name").and_then(Value::as_str) {
        None | Some("") => return malformed("a functionCall without a name"),
        Some(_) => {}
    }
    match call.get("willContinue").and_then(Value::as_bool) {
        Some(true) => malformed("a functionCall in pieces, which Posse did not ask for"),
        _ => Ok(()),
    }
}

fn extra<const N: usize>(fields: [(&str, Value); N]) -> Extra {
    let is_something = |value: &Value| value.as_object().is_none_or(|map| !map.is_empty());
    let kept = fields.into_iter().filter(|(_, value)| is_something(value));
    Extra::from(kept.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn take_string(fields: &mut Map<String, Value>, key: &str) -> String {
    match fields.shift_remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}
