//! Puts marks into the body of an answer, which may be a stream with a key or a path in pieces.
//!
//! It assumes only that a wire sends events as JSON, and that the pieces of a text come at the same
//! place of successive events. A body without anything to remove stays the same, byte for byte.

use super::line::Content;
use super::scrub::{Passage, Scrub};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Fields that tell one text from another at the same place: which block, which call, which kind.
const APART: [&str; 6] =
    ["type", "index", "output_index", "content_index", "summary_index", "item_id"];

/// A body as it is written into a cassette.
pub(super) fn content(scrub: &Scrub, body: &[u8]) -> Content {
    let Ok(text) = std::str::from_utf8(body) else {
        return Content::base64(&scrub.bytes(body));
    };
    if let Ok(mut value) = serde_json::from_str::<Value>(text) {
        let before = value.clone();
        scrub.value(&mut value);
        let same = before == value;
        return Content::Text(if same { text.to_owned() } else { value.to_string() });
    }
    Content::Text(events(scrub, text))
}

/// A line of a stream: an event, or anything else.
enum Line<'a> {
    Event(Value, &'a str),
    Other(&'a str),
}

/// A stream of events with marks. Lines that are not events get marks, too.
fn events(scrub: &Scrub, text: &str) -> String {
    let mut lines: Vec<Line<'_>> = text
        .split_inclusive('\n')
        .map(|line| match line.strip_prefix("data:").map(serde_json::from_str) {
            Some(Ok(value)) => Line::Event(value, line),
            _ => Line::Other(line),
        })
        .collect();
    let mut texts: HashMap<String, Vec<&mut String>> = HashMap::new();
    for line in &mut lines {
        if let Line::Event(value, _) = line {
            collect(value, &mut String::new(), &mut texts);
        }
    }
    let mut found = false;
    for pieces in texts.values_mut() {
        found |= mark(scrub, pieces);
    }
    drop(texts);
    let mut out = String::with_capacity(text.len());
    for line in lines {
        match line {
            Line::Event(value, line) if found => {
                let before = line.strip_prefix("data:").map(serde_json::from_str::<Value>);
                match before {
                    Some(Ok(before)) if before != value => {
                        let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
                        // Writing to a string cannot fail.
                        let _ = write!(out, "data: {value}{end}");
                    }
                    _ => out.push_str(line),
                }
            }
            Line::Event(_, line) => out.push_str(line),
            Line::Other(line) => out.push_str(&scrub.text(line)),
        }
    }
    out
}

/// Sorts the texts of `value` by their place and by the fields that tell texts apart.
fn collect<'a>(
    value: &'a mut Value,
    place: &mut String,
    texts: &mut HashMap<String, Vec<&'a mut String>>,
) {
    let length = place.len();
    match value {
        Value::String(text) => texts.entry(place.clone()).or_default().push(text),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let _ = write!(place, "[{index}]");
                collect(item, place, texts);
                place.truncate(length);
            }
        }
        Value::Object(fields) => {
            for name in APART {
                if let Some(value @ (Value::String(_) | Value::Number(_))) = fields.get(name) {
                    let _ = write!(place, "{{{name}={value}}}");
                }
            }
            let length = place.len();
            for (name, value) in fields {
                let _ = write!(place, ".{name}");
                collect(value, place, texts);
                place.truncate(length);
            }
        }
        _ => {}
    }
    place.truncate(length);
}

/// Puts marks into a text that comes in `pieces`. A mark goes into the piece where its passage
/// begins; later pieces lose their part of the passage. Returns whether there was any.
fn mark(scrub: &Scrub, pieces: &mut [&mut String]) -> bool {
    let whole: String = pieces.iter().map(|piece| piece.as_str()).collect();
    let passages = scrub.find(&whole);
    if passages.is_empty() {
        return false;
    }
    let mut begin = 0;
    for piece in pieces {
        let end = begin + piece.len();
        **piece = marked(&whole, begin..end, &passages);
        begin = end;
    }
    true
}

/// What remains of the piece that has `span` of the whole.
fn marked(whole: &str, span: std::ops::Range<usize>, passages: &[Passage<'_>]) -> String {
    let (mut out, mut at) = (String::new(), span.start);
    for (range, mark) in passages {
        if range.end <= span.start || range.start >= span.end {
            continue;
        }
        if range.start >= at {
            out.push_str(&whole[at..range.start]);
            out.push_str(mark);
        }
        at = range.end.min(span.end);
    }
    out.push_str(&whole[at..span.end]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassette::Places;

    fn scrubbed(text: &str) -> String {
        let places = Places { workspace: "/home/ann/work".into(), home: None };
        match content(&Scrub::new(&places, ["key-of-anthropic"]), text.as_bytes()) {
            Content::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// A stream that says `pieces` one after the other, in the manner of Anthropic.
    fn said(pieces: &[&str]) -> String {
        pieces.iter().fold(
            "event: ping\ndata: {\"type\": \"ping\"}\n\n".to_owned(),
            |all, piece| {
                let delta = serde_json::json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": piece}});
                format!("{all}event: content_block_delta\ndata: {delta}\n\n")
            },
        )
    }

    #[test]
    fn a_path_or_key_in_pieces_is_found() {
        let stream = said(&["{\"file_path\": \"/ho", "me/ann", "/work/a.rs\", ", "\"x\": 1}"]);
        let expected =
            said(&["{\"file_path\": \"{{posse:workspace}}", "", "/a.rs\", ", "\"x\": 1}"]);
        assert_eq!(scrubbed(&stream), expected);
        let stream = said(&["it is key-", "of-anth", "ropic, and /home/ann/wo", "rk too"]);
        let expected = said(&["it is {{posse:secret}}", "", ", and {{posse:workspace}}", " too"]);
        assert_eq!(scrubbed(&stream), expected);
    }

    #[test]
    fn two_texts_that_come_at_once_are_not_mixed_up() {
        let call = |index: u32, piece: &str| {
            let call = serde_json::json!({"index": index, "function": {"arguments": piece}});
            let chunk = serde_json::json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}],
                "usage": index});
            format!("data: {chunk}\n\n")
        };
        let stream = [call(0, "/home/a"), call(1, "/home"), call(0, "nn/work"), call(1, "/bob")];
        let expected =
            [call(0, "{{posse:workspace}}"), call(1, "/home"), call(0, ""), call(1, "/bob")];
        assert_eq!(scrubbed(&stream.concat()), expected.concat());
    }

    #[test]
    fn what_holds_nothing_stays_as_it_came() {
        for text in [
            ": comment\r\ndata:  {\"a\" : 1}\r\n\r\ndata: [DONE]\n\n",
            "{\"id\" : 1 }",
            "<html>no</html>",
            "data: {\"cut",
            "",
        ] {
            assert_eq!(scrubbed(text), text);
        }
    }

    #[test]
    fn documents_and_other_texts_are_marked_too() {
        let document = "{\"error\": {\"message\": \"bad key key-of-anthropic\"}}";
        let expected = "{\"error\":{\"message\":\"bad key {{posse:secret}}\"}}";
        assert_eq!(scrubbed(document), expected);
        assert_eq!(scrubbed("<p>/home/ann/work</p>"), "<p>{{posse:workspace}}</p>");
        assert_eq!(
            scrubbed("data: {\"x\": \"key-of-anthropic"),
            "data: {\"x\": \"{{posse:secret}}"
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_as_bytes() {
        let scrub = Scrub::default();
        assert_eq!(content(&scrub, b"\xff\xfe"), Content::Base64("//4=".to_owned()));
    }
}
