//! Which part of an event is what, wire by wire: so that a fault finds the text, the arguments,
//! the indices, the reason for stopping and the usage, and knows what means nothing.

use super::trouble::Trouble;
use serde_json::{Value, json};
use std::fmt;

/// Which part of an event is what, so that a fault finds the text, the arguments, the indices and
/// the reason for stopping, and knows what means nothing.
pub(crate) trait Anatomy: Sync + fmt::Debug {
    /// Whether an event has its type as its name.
    fn names_events(&self) -> bool {
        false
    }

    /// Whether an event brings a piece of a tool call.
    fn is_call(&self, data: &Value) -> bool;

    /// Whether an event brings the reason for stopping.
    fn is_stop(&self, data: &Value) -> bool;

    /// The piece of text in an event.
    fn text<'a>(&self, data: &'a mut Value) -> Option<&'a mut Value>;

    /// The numbers by which blocks or calls are told apart.
    fn numbers<'a>(&self, _: &'a mut Value) -> Vec<&'a mut Value> {
        Vec::new()
    }

    /// Whether an event goes on with a call or block that another one has begun.
    fn goes_on(&self, _: &Value) -> bool {
        false
    }

    /// Where an event or a document gives the reason for stopping.
    fn stop_place(&self, data: &Value) -> &'static str;

    /// The reason for stopping that says that no tool was called, where there is one.
    fn no_call_word(&self) -> &'static str {
        "stop"
    }

    /// The reason for stopping that is the cap on the length.
    fn length_word(&self) -> &'static str;

    /// Says that the reply was ended by the cap on its length.
    fn stop_for_length(&self, piece: &mut Vec<u8>) {
        let Some(mut data) = json(piece) else { return };
        restop_at(self.stop_place(&data), &mut data, &json!(self.length_word()));
        replace_json(piece, &data);
    }

    /// The data of an event that says only that the connection lives.
    fn ping(&self) -> Value;

    /// The data of an event of a kind that nobody knows yet.
    fn unknown(&self) -> Value;

    /// The status and the document that tell of a trouble.
    fn trouble(&self, trouble: Trouble) -> (u16, Value);

    /// The data of the event that tells of it within a stream.
    fn trouble_event(&self, trouble: Trouble) -> Value {
        self.trouble(trouble).1
    }
}

/// What an event brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// A piece of text.
    pub(super) text: bool,
    /// A piece of a tool call.
    pub(super) call: bool,
    /// The reason for stopping.
    pub(super) stop: bool,
}

/// The data of an event, or the document that a piece is.
pub(crate) fn json(piece: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(piece).ok()?;
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(text);
    serde_json::from_str(data).ok()
}

/// Puts other data into an event, or another document in the place of one.
pub(crate) fn replace_json(piece: &mut Vec<u8>, value: &Value) {
    let text = String::from_utf8_lossy(piece).into_owned();
    let Some((before, after)) = text.split_once("data: ") else {
        *piece = value.to_string().into_bytes();
        return;
    };
    let rest = after.find(['\r', '\n']).map_or("", |end| &after[end..]);
    *piece = format!("{before}data: {value}{rest}").into_bytes();
}

/// An event with this data, under its name where the wire has names.
pub(crate) fn event(wire: &dyn Anatomy, data: &Value) -> Vec<u8> {
    let name = match data["type"].as_str().filter(|_| wire.names_events()) {
        Some(kind) => format!("event: {kind}\n"),
        None => String::new(),
    };
    format!("{name}data: {data}\n\n").into_bytes()
}

/// What an event brings.
pub(super) fn marks(wire: &dyn Anatomy, piece: &[u8]) -> Marks {
    let Some(mut data) = json(piece) else { return Marks::default() };
    let (call, stop) = (wire.is_call(&data), wire.is_stop(&data));
    let text = text_of(wire, &mut data);
    Marks { text: text.is_some_and(|text| text != ""), call, stop }
}

/// The piece of text in an event.
pub(super) fn text_of<'a>(wire: &dyn Anatomy, data: &'a mut Value) -> Option<&'a mut Value> {
    wire.text(data).filter(|text| text.is_string())
}

/// Changes the numbers by which a wire tells blocks or calls apart.
pub(super) fn reindex(wire: &dyn Anatomy, data: &mut Value, change: impl Fn(u64) -> Value) {
    for index in wire.numbers(data) {
        if let Some(number) = index.as_u64() {
            *index = change(number);
        }
    }
}

/// Changes the reason for stopping, wherever one is given.
pub(super) fn restop(wire: &dyn Anatomy, data: &mut Value, reason: &Value) {
    restop_at(wire.stop_place(data), data, reason);
}

/// Changes the reason for stopping at `place`, if one is given.
pub(crate) fn restop_at(place: &str, data: &mut Value, reason: &Value) {
    // Items of a reply have a status of their own, and an unfinished reply one that says so.
    let stands = |given: &Value| given.is_string() && *given != "in_progress";
    if let Some(given) = data.pointer_mut(place).filter(|given| stands(given)) {
        *given = reason.clone();
    }
}

/// Calls `change` with each object that holds counts of tokens, and its parent's key for it.
pub(super) fn each_usage(data: &mut Value, change: &impl Fn(&mut Value)) {
    match data {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match key.as_str() {
                    "usage" | "usageMetadata" => change(value),
                    _ => each_usage(value, change),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_usage(item, change)),
        _ => {}
    }
}

/// An event that says only that the connection lives.
pub(super) fn ping(wire: &dyn Anatomy) -> Vec<u8> {
    event(wire, &wire.ping())
}

/// An event of a kind that nobody knows yet.
pub(super) fn unknown(wire: &dyn Anatomy) -> Vec<u8> {
    event(wire, &wire.unknown())
}
