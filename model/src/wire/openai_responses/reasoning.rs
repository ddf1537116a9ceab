//! Reads and writes reasoning items. The only text of an item is stored once, as the text of the
//! part, and is put back into the item.

use super::part::{beside, head, is_empty, take_string};
use posse_protocol::Thinking;
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

/// What stands between two pieces of reasoning.
pub(super) const BETWEEN: &str = "\n\n";

/// What an item says, as a part.
pub(super) fn thinking(mut item: Map<String, Value>) -> Thinking {
    let signature = take_string(&mut item, "encrypted_content").filter(|text| !text.is_empty());
    let mut item = head(item);
    let no_summary = item.get("summary").is_some_and(is_empty);
    let no_content = item.get("content").is_none_or(is_empty);
    let alone = match (no_summary, no_content) {
        (true, false) => take_alone(&mut item, "content", "reasoning_text"),
        (false, true) => take_alone(&mut item, "summary", "summary_text"),
        _ => None,
    };
    let text = alone.unwrap_or_else(|| match joined(item.get("content")) {
        text if text.is_empty() => joined(item.get("summary")),
        text => text,
    });
    Thinking { text, signature, extra: beside(item) }
}

/// Writes the fields of the item that `thinking` was, all but `type` and those of `item` that
/// have no meaning here.
pub(super) fn write<M: SerializeMap>(
    map: &mut M,
    thinking: &Thinking,
    item: Option<&Map<String, Value>>,
) -> Result<(), M::Error> {
    let field = |key: &str| item.and_then(|item| item.get(key));
    let (summary, content) = (field("summary"), field("content"));
    let text = Some(thinking.text.as_str()).filter(|text| !text.is_empty());
    match (summary, text) {
        (Some(summary), _) => map.serialize_entry("summary", summary)?,
        (None, Some(text)) if content.is_none_or(is_empty) => {
            map.serialize_entry("summary", &[Alone { r#type: "summary_text", text }])?;
        }
        // The wire requires it.
        (None, _) => map.serialize_entry("summary", &[(); 0])?,
    }
    match (content, text) {
        (Some(content), _) => map.serialize_entry("content", content)?,
        (None, Some(text)) if summary.is_some_and(is_empty) => {
            map.serialize_entry("content", &[Alone { r#type: "reasoning_text", text }])?;
        }
        (None, _) => {}
    }
    match &thinking.signature {
        Some(signature) => map.serialize_entry("encrypted_content", signature),
        None => Ok(()),
    }
}

/// The fields that [`write()`] writes.
pub(super) const WRITTEN: [&str; 4] = ["type", "summary", "content", "encrypted_content"];

#[derive(Serialize)]
struct Alone<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// Takes the list `key` out of `item` if it holds one text of type `kind` and nothing else.
fn take_alone(item: &mut Map<String, Value>, key: &str, kind: &str) -> Option<String> {
    let [Value::Object(piece)] = &mut item.get_mut(key)?.as_array_mut()?[..] else { return None };
    let field = |key: &str| piece.get(key).and_then(Value::as_str);
    if piece.len() != 2 || field("type") != Some(kind) || field("text").is_none_or(str::is_empty) {
        return None;
    }
    let text = take_string(piece, "text")?;
    item.shift_remove(key);
    Some(text)
}

/// The texts in a list, with a blank line between two.
fn joined(list: Option<&Value>) -> String {
    let list = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut out = String::new();
    for text in list.iter().filter_map(|piece| piece["text"].as_str()) {
        if !out.is_empty() && !text.is_empty() {
            out.push_str(BETWEEN);
        }
        out.push_str(text);
    }
    out
}
