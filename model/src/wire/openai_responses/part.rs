//! The parts that output items become. Unknown fields are kept beside them.

use super::{ARGUMENTS, ITEM, NAME, REFUSAL};
use posse_protocol::{CallId, Extra, Part, Text, ToolCall};
use serde_json::{Map, Value, json};

/// How the reply ended, as far as it matters to its items.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ending {
    /// The model stopped of its own accord.
    Whole,
    /// The model was stopped: what is not done is cut off, and arguments have to be an object.
    Stopped,
}

/// Adds a part for each piece of a message's content.
pub(super) fn push_message(mut fields: Map<String, Value>, parts: &mut Vec<Part>) {
    let content = fields.shift_remove("content");
    let item = head(fields);
    match content {
        Some(Value::Array(pieces)) => {
            parts.extend(pieces.into_iter().map(|piece| content_part(piece, &item)));
        }
        Some(Value::String(text)) => {
            parts.push(content_part(json!({"type": "output_text", "text": text}), &item));
        }
        _ => {}
    }
}

fn content_part(piece: Value, item: &Map<String, Value>) -> Part {
    let item = Value::Object(item.clone());
    let key = match piece.get("type").and_then(Value::as_str) {
        Some("output_text") if piece["text"].is_string() => "text",
        Some("refusal") if piece["refusal"].is_string() => "refusal",
        // Without a type, which distinguishes it from an item.
        _ => {
            let fields = [("content".to_owned(), piece), (ITEM.to_owned(), item)];
            return opaque(Map::from_iter(fields));
        }
    };
    let mut fields = match piece {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let text = take_string(&mut fields, key).unwrap_or_default();
    let mut extra = head(fields);
    if extra.get("annotations").is_some_and(is_empty) {
        extra.shift_remove("annotations");
    }
    if key == "refusal" {
        extra.insert(REFUSAL.to_owned(), true.into());
    }
    extra.insert(ITEM.to_owned(), item);
    Part::Text(Text { text, extra: Extra::from(extra) })
}

/// The call of a tool. `None` when it was cut off.
pub(super) fn call(
    mut fields: Map<String, Value>,
    ending: Ending,
    call_id: String,
) -> Option<Part> {
    let (input, raw) = match fields.shift_remove("arguments") {
        Some(Value::String(raw)) => match serde_json::from_str::<Value>(&raw) {
            Ok(input) => (input, raw),
            Err(_) if raw.is_empty() && ending == Ending::Whole => (Map::new().into(), raw),
            Err(_) => (Value::String(raw), String::new()),
        },
        None | Some(Value::Null) if ending == Ending::Whole => (Map::new().into(), String::new()),
        other => (other.unwrap_or_default(), String::new()),
    };
    if ending == Ending::Stopped && !input.is_object() {
        return None;
    }
    let name = take_string(&mut fields, "name")?;
    let given = take_string(&mut fields, "call_id").filter(|id| !id.is_empty());
    let of_item = || Some(fields.get("id")?.as_str()?.to_owned()).filter(|id| !id.is_empty());
    let id = CallId(given.or_else(of_item).unwrap_or(call_id));
    let mut item = head(fields);
    // Kept only where needed, so that the same bytes go back and extend the provider's cache.
    let written = input.to_string();
    if !raw.is_empty() && input.is_object() && raw != written {
        item.insert(ARGUMENTS.to_owned(), raw.into());
    }
    Some(Part::ToolCall(ToolCall { id, name, input, extra: beside(item) }))
}

/// An item that is kept as it is.
pub(super) fn opaque(fields: Map<String, Value>) -> Part {
    Part::Opaque { wire: NAME.to_owned(), value: Value::Object(fields) }
}

/// The fields of an item that are kept: all except its type and nulls. A null means the same as an
/// absent field, but some providers refuse it.
pub(super) fn head(mut fields: Map<String, Value>) -> Map<String, Value> {
    fields.retain(|key, value| key != "type" && !value.is_null());
    fields
}

/// The `extra` of a part whose item has these fields besides.
pub(super) fn beside(item: Map<String, Value>) -> Extra {
    match item.is_empty() {
        true => Extra::default(),
        false => Extra::from(Map::from_iter([(ITEM.to_owned(), Value::Object(item))])),
    }
}

pub(super) fn take_string(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    let text = match fields.get_mut(key)? {
        Value::String(text) => std::mem::take(text),
        _ => return None,
    };
    fields.shift_remove(key);
    Some(text)
}

/// True for a list without anything in it.
pub(super) fn is_empty(list: &Value) -> bool {
    list.as_array().is_some_and(Vec::is_empty)
}
