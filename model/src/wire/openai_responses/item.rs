//! One output item while it is being received.
//!
//! Texts grow with the deltas. The `done` event has the final fields; deltas count only for an item
//! without it.

use super::part::{self, Ending};
use super::reasoning::{self, BETWEEN};
use crate::fault::{Fault, Kind};
use posse_agent::DeltaSink;
use posse_protocol::{Delta, Part};
use serde_json::{Map, Value, json};

/// The most pieces of text one item may come in: every delta looks for its own.
const MAX_PIECES: usize = 1_024;

/// An output item, between its start and its end or after.
pub(super) struct Item {
    /// Its place among the items, as the provider numbers them.
    pub(super) index: u64,
    body: Body,
    /// All fields, as they were last told.
    fields: Map<String, Value>,
    pieces: Vec<Piece>,
    done: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Body {
    Message,
    Reasoning,
    Call,
    Opaque,
}

/// A text of an item: which list it is in, and where.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct TextPosition {
    pub(super) list: List,
    pub(super) index: u64,
}

/// The lists of texts an item can have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum List {
    Text,
    Refusal,
    Summary,
    Reasoning,
    Arguments,
}

/// A text of an item, from its deltas.
struct Piece {
    place: TextPosition,
    text: String,
    annotations: Vec<Value>,
    /// The provider has sent the whole text.
    whole: bool,
}

impl List {
    fn body(self) -> Body {
        match self {
            List::Text | List::Refusal => Body::Message,
            List::Summary | List::Reasoning => Body::Reasoning,
            List::Arguments => Body::Call,
        }
    }
}

impl TextPosition {
    /// Shows `more`, of which `shown` has been shown before.
    fn show(self, shown: &str, more: &str, deltas: DeltaSink<'_>) {
        match self.list.body() {
            _ if more.is_empty() => {}
            Body::Message => deltas(Delta::Text { text: more.to_owned() }),
            Body::Reasoning if self.index > 0 && shown.is_empty() => {
                deltas(Delta::Thinking { text: [BETWEEN, more].concat() });
            }
            Body::Reasoning => deltas(Delta::Thinking { text: more.to_owned() }),
            Body::Call => deltas(Delta::Called { bytes: more.len() }),
            Body::Opaque => {}
        }
    }

    /// Shows the part of `whole` after `shown`; nothing if another text was shown.
    fn show_rest(self, shown: &str, whole: &str, deltas: DeltaSink<'_>) {
        self.show(shown, whole.strip_prefix(shown).unwrap_or_default(), deltas);
    }
}

impl Item {
    /// An item from the fields it starts with.
    pub(super) fn start(index: u64, fields: Map<String, Value>) -> Result<Self, Fault> {
        let body = body(&fields).ok_or_else(|| malformed("an output item without a type"))?;
        Ok(Item { body, fields, ..Item::unknown(index) })
    }

    /// An item with only its place.
    pub(super) fn unknown(index: u64) -> Self {
        let (body, fields, pieces) = (Body::Opaque, Map::new(), Vec::new());
        Item { index, body, fields, pieces, done: false }
    }

    /// An item without a start, from the list of its first delta. Not for calls, which would have
    /// no name.
    pub(super) fn implied(index: u64, list: List) -> Option<Self> {
        let body = list.body();
        (body != Body::Call).then(|| Item { body, ..Item::unknown(index) })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.done
    }

    /// True when `fields` belong to an item of the same type and id. Some providers give all items
    /// the same id, but calls have an id of their own.
    pub(super) fn has_id_of(&self, fields: &Map<String, Value>) -> bool {
        let same_id = id(&self.fields).is_some_and(|own| id(fields) == Some(own));
        let same_call = self.fields.get("call_id") == fields.get("call_id");
        same_id && same_call && self.has_type_of(fields)
    }

    /// True when `fields` are those of an item of the same type.
    pub(super) fn has_type_of(&self, fields: &Map<String, Value>) -> bool {
        body(fields) == Some(self.body)
    }

    /// True when it ended with just these fields.
    pub(super) fn ended_with(&self, fields: &Map<String, Value>) -> bool {
        self.done && self.fields == *fields
    }

    /// Adds to a text and shows what is new. False when this item has no such text.
    pub(super) fn push(
        &mut self,
        place: TextPosition,
        more: &str,
        deltas: DeltaSink<'_>,
    ) -> Result<bool, Fault> {
        let Some(piece) = self.piece(place)? else { return Ok(false) };
        place.show(&piece.text, more, deltas);
        piece.text.push_str(more);
        Ok(true)
    }

    /// Puts the whole of a text in place of its deltas. False when this item has no such text.
    pub(super) fn settle(
        &mut self,
        place: TextPosition,
        whole: String,
        deltas: DeltaSink<'_>,
    ) -> Result<bool, Fault> {
        let Some(piece) = self.piece(place)? else { return Ok(false) };
        place.show_rest(&piece.text, &whole, deltas);
        (piece.text, piece.whole) = (whole, true);
        Ok(true)
    }

    /// Adds a source to a text. False when this item has no text.
    pub(super) fn annotate(&mut self, index: u64, annotation: Value) -> Result<bool, Fault> {
        let Some(piece) = self.piece(TextPosition { list: List::Text, index })? else {
            return Ok(false);
        };
        piece.annotations.push(annotation);
        Ok(true)
    }

    /// Takes the final fields, and shows text that no delta has shown.
    pub(super) fn finish(
        &mut self,
        fields: Map<String, Value>,
        deltas: DeltaSink<'_>,
    ) -> Result<(), Fault> {
        let ended = Item { done: true, ..Item::start(self.index, fields)? };
        let name = ended.fields.get("name").and_then(Value::as_str);
        if ended.body == Body::Call && name.is_none_or(str::is_empty) {
            return Err(malformed("a function_call without a name"));
        }
        if !self.done {
            for (place, whole) in ended.texts() {
                let piece = self.pieces.iter().find(|piece| piece.place == place);
                place.show_rest(piece.map_or("", |piece| &piece.text), whole, deltas);
            }
        }
        *self = ended;
        Ok(())
    }

    /// The texts in its fields that can be shown.
    fn texts(&self) -> Vec<(TextPosition, &str)> {
        let pieces = |key: &str| match self.fields.get(key) {
            Some(Value::Array(pieces)) => pieces.as_slice(),
            _ => &[],
        };
        let (list, pieces) = match self.body {
            Body::Message => (List::Text, pieces("content")),
            Body::Reasoning if pieces("content").is_empty() => (List::Summary, pieces("summary")),
            Body::Reasoning => (List::Reasoning, pieces("content")),
            Body::Call | Body::Opaque => return Vec::new(),
        };
        let texts = (0..).zip(pieces).filter_map(|(index, piece)| {
            let field = |key: &str| piece.get(key).and_then(Value::as_str);
            let (list, text) = match field("type") {
                Some("refusal") => (List::Refusal, field("refusal")),
                _ => (list, field("text")),
            };
            Some((TextPosition { list, index }, text?))
        });
        texts.collect()
    }

    fn piece(&mut self, place: TextPosition) -> Result<Option<&mut Piece>, Fault> {
        if self.done || self.body != place.list.body() {
            return Ok(None);
        }
        let position = match self.pieces.iter().rposition(|piece| piece.place == place) {
            Some(position) => position,
            None if self.pieces.len() < MAX_PIECES => {
                let (text, annotations) = (String::new(), Vec::new());
                self.pieces.push(Piece { place, text, annotations, whole: false });
                self.pieces.len() - 1
            }
            None => return Err(malformed(format!("an item of more than {MAX_PIECES} texts"))),
        };
        Ok(self.pieces.get_mut(position))
    }

    /// Adds the parts it became to `parts`. Half of a call or of an unknown item is left out.
    /// `call_id` is for a call that came without an id.
    ///
    /// # Errors
    /// When half of a call is in a reply that claims to be whole.
    pub(super) fn into_parts(
        mut self,
        ending: Ending,
        call_id: String,
        parts: &mut Vec<Part>,
    ) -> Result<(), Fault> {
        let half = || match ending {
            Ending::Whole => Err(Fault::new(Kind::Cut, "a function_call in it was never finished")),
            Ending::Stopped => Ok(()),
        };
        if !self.done && !self.assemble(ending) {
            return if matches!(self.body, Body::Call) { half() } else { Ok(()) };
        }
        let cut = match self.fields.get("status").and_then(Value::as_str) {
            Some("incomplete") => true,
            Some("in_progress") => ending == Ending::Stopped,
            _ => false,
        };
        match self.body {
            Body::Message => part::push_message(self.fields, parts),
            Body::Reasoning => {
                if cut {
                    // The provider would refuse half a signature.
                    self.fields.shift_remove("encrypted_content");
                }
                parts.push(Part::Thinking(reasoning::thinking(self.fields)));
            }
            Body::Call if cut => return half(),
            Body::Opaque if cut => {}
            Body::Call => parts.extend(part::call(self.fields, ending, call_id)),
            Body::Opaque => parts.push(part::opaque(self.fields)),
        }
        Ok(())
    }

    /// Makes the fields of an unfinished item from its deltas. False when there are none.
    fn assemble(&mut self, ending: Ending) -> bool {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.sort_by_key(|piece| piece.place.index);
        let of = |list: List| pieces.iter().filter(move |piece| piece.place.list == list);
        match self.body {
            Body::Opaque => return false,
            Body::Call => match of(List::Arguments).find(|piece| piece.whole) {
                Some(piece) => self.set("arguments", piece.text.as_str().into()),
                None => return false,
            },
            Body::Reasoning => {
                let texts = |list: List, kind: &str| -> Value {
                    of(list).map(|piece| json!({"type": kind, "text": piece.text})).collect()
                };
                let summary = texts(List::Summary, "summary_text");
                let content = texts(List::Reasoning, "reasoning_text");
                self.set("summary", summary);
                self.set("content", content);
                self.fields.shift_remove("encrypted_content");
            }
            Body::Message if pieces.is_empty() => {}
            Body::Message => {
                let content =
                    pieces.into_iter().map(|Piece { place, text, annotations, .. }| {
                        match place.list {
                            List::Refusal => json!({"type": "refusal", "refusal": text}),
                            _ => json!({
                                "type": "output_text", "text": text, "annotations": annotations,
                            }),
                        }
                    });
                self.set("content", content.collect());
            }
        }
        let status = if ending == Ending::Whole { "completed" } else { "incomplete" };
        self.set("status", status.into());
        true
    }

    fn set(&mut self, key: &str, value: Value) {
        self.fields.insert(key.to_owned(), value);
    }
}

fn id(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("id")?.as_str().filter(|id| !id.is_empty())
}

fn body(fields: &Map<String, Value>) -> Option<Body> {
    Some(match fields.get("type")?.as_str()? {
        "message" => Body::Message,
        "reasoning" => Body::Reasoning,
        "function_call" => Body::Call,
        _ => Body::Opaque,
    })
}

pub(super) fn malformed(reason: impl Into<String>) -> Fault {
    Fault::new(Kind::Malformed, reason)
}
