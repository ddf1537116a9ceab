//! Unusual replies that the formats allow, and that a good client accepts.

use super::anatomy::{self, Anatomy};
use super::draft::Draft;
use super::expectation::{Expectation, Failure, Needs};
use super::pace::padded_ping;
use super::plan::Plan;
use super::{Fault, Wire, spoilt};
use serde_json::{Value, json};
use std::time::Duration;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Less than any sane cap on an event.
const LARGE: usize = 1 << 20;

/// The wires that mark the end of a reply. In the other wire, later events are part of the reply.
const WITH_AN_END: &[Wire] = &[Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

pub(super) static FAULTS: &[Fault] = &[
    noise("crlf", "lines that end in CRLF", |draft| lines(draft, "\r\n").plan()),
    noise("cr", "lines that end in CR", |draft| lines(draft, "\r").plan()),
    noise("comments", "comments between events and within them", |draft| {
        let commented = |event: Vec<u8>| [b": a comment\n:\n".as_slice(), &event].concat();
        draft.each_event(commented).between_events(b": keep-alive\n\n").plan()
    }),
    noise("pings", "a ping before each event", |draft| {
        let ping = anatomy::ping(draft.wire());
        draft.between_events(&ping).plan()
    }),
    noise("byte-order-mark", "a byte order mark before the first event", |mut draft| {
        if draft.is_stream()
            && let Some(first) = draft.pieces.first_mut()
        {
            first.splice(..0, BYTE_ORDER_MARK.iter().copied());
        }
        draft.plan()
    }),
    noise("unknown-events", "events of a kind that nobody knows", |draft| {
        let unknown = anatomy::unknown(draft.wire());
        draft.between_events(&unknown).plan()
    }),
    noise("unknown-fields", "fields that nobody knows, everywhere", |draft| {
        draft.each_json(add_fields).plan()
    }),
    noise("no-space", "`data:` without a space after it", |draft| {
        draft.each_event(|event| replaced(event, "data: ", "data:")).plan()
    }),
    noise("several-data-lines", "data spread over several lines", |draft| {
        draft.each_event(spread).plan()
    }),
    noise("no-event-names", "no `event:` lines", |draft| {
        draft
            .each_event(|event| {
                let named = event.starts_with(b"event: ");
                let end = event.iter().position(|byte| *byte == b'\n');
                end.filter(|_| named).map_or(event.clone(), |end| event[end + 1..].to_vec())
            })
            .plan()
    }),
    noise("other-lines", "`id:`, `retry:` and unknown lines in each event", |draft| {
        let other = b"id: 7\nretry: 10\nflavour: mint\nlonely\n".as_slice();
        draft.each_event(|event| [other, &event].concat()).plan()
    }),
    noise("blank-lines", "blank lines between events", |draft| {
        draft.between_events(b"\n\n\n").plan()
    }),
    noise("one-byte-pieces", "a write for each byte, and a chunk for each byte", |mut draft| {
        draft.pieces = draft.pieces.concat().chunks(1).map(<[u8]>::to_vec).collect();
        draft.plan().dripping(Duration::ZERO)
    }),
    noise("three-byte-pieces", "chunks that end within characters and line ends", |mut draft| {
        let bytes = draft.pieces.concat();
        draft.pieces = bytes.chunks(3).map(<[u8]>::to_vec).collect();
        draft.plan()
    }),
    noise("one-write", "head and body in one write and one chunk", |mut draft| {
        draft.pieces = vec![draft.pieces.concat()];
        draft.plan().in_one_write()
    }),
    noise("large-event", "an event of 1 MiB that says nothing", |draft| {
        let large = padded_ping(&draft, LARGE);
        with_first(draft, large).plan()
    }),
    noise("reply-twice", "the whole reply a second time after its end", |mut draft| {
        if draft.is_stream() {
            draft.pieces.extend(draft.pieces.clone());
        }
        draft.plan()
    })
    .only_on(WITH_AN_END),
    noise("junk-after-end", "something that is no JSON after the end", |mut draft| {
        if draft.is_stream() {
            draft.pieces.push(b"data: {no json\n\n".to_vec());
        }
        draft.plan()
    })
    .except(&[(Wire::Gemini, Expectation::Tolerated(&[Failure::Malformed]))]),
    spoilt(
        "invalid-utf-8",
        "a text with bytes that are no UTF-8, split between two chunks",
        Expectation::Tolerated(&[Failure::Malformed]),
        |mut draft| {
            let wire = draft.wire();
            let is_text = |piece: &Vec<u8>| anatomy::marks(wire, piece).text;
            let broken = draft.pieces.iter().position(is_text).unwrap_or_default();
            if let Some(piece) = draft.pieces.get_mut(broken) {
                let middle = within_text(wire, piece);
                let rest = piece.split_off(middle);
                piece.extend(b"\xe2\x82");
                draft.pieces.insert(broken + 1, [b"\x28".as_slice(), &rest].concat());
            }
            draft.plan()
        },
    )
    .needing(Needs::Text),
];

const fn noise(name: &'static str, about: &'static str, deed: fn(Draft) -> Plan) -> Fault {
    spoilt(name, about, Expectation::Unharmed, deed)
}

fn lines(draft: Draft, end: &str) -> Draft {
    draft.each_event(|event| {
        // Some wires end their lines in CRLF already.
        let text = String::from_utf8_lossy(&event).replace("\r\n", "\n");
        text.replace('\n', end).into_bytes()
    })
}

fn replaced(event: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    String::from_utf8_lossy(&event).replace(from, to).into_bytes()
}

/// The same event, its data written over as many lines as it has fields.
fn spread(event: Vec<u8>) -> Vec<u8> {
    let Some(data) = anatomy::json(&event) else { return event };
    let pretty = format!("{data:#}").replace('\n', "\ndata: ");
    let text = String::from_utf8_lossy(&event).into_owned();
    match text.split_once("data: ") {
        Some((before, _)) => format!("{before}data: {pretty}\n\n").into_bytes(),
        None => event,
    }
}

/// Puts an event after the first one.
fn with_first(mut draft: Draft, event: Vec<u8>) -> Draft {
    if draft.is_stream() {
        draft.pieces.insert(1.min(draft.pieces.len()), event);
    }
    draft
}

/// Adds a field to every object, except in arguments of tools and in Gemini's parts: that provider
/// refuses a part with an unknown field.
fn add_fields(data: &mut Value) {
    match data {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                if !matches!(key.as_str(), "input" | "arguments" | "parts") {
                    add_fields(value);
                }
            }
            fields.insert("x_aura".to_owned(), json!({"colour": ["blue", null, 7.5]}));
        }
        Value::Array(items) => items.iter_mut().for_each(add_fields),
        _ => {}
    }
}

/// A place within the text of an event, or in the middle of a document.
fn within_text(wire: &dyn Anatomy, piece: &[u8]) -> usize {
    let mut data = anatomy::json(piece).unwrap_or_default();
    let text = anatomy::text_of(wire, &mut data).map(|text| text.to_string());
    let written = String::from_utf8_lossy(piece);
    let start = text.and_then(|text| written.find(&text));
    // After the quote that opens it.
    start.map_or(piece.len() / 2, |start| start + 1)
}
