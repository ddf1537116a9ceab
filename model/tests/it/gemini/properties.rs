//! What holds for any bytes and any transcript.

use super::transcripts::{PLAIN, RICH, encode, read_chunks, read_document, request};
use posse_model::wire::Gemini;
use posse_protocol::{Extra, Message, Part, Role, Text, Thinking, ToolCall, ToolResult};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Cuts `body` into chunks of these sizes, over and over.
fn cut<'a>(mut body: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        if body.is_empty() {
            break;
        }
        let (chunk, rest) = body.split_at((*size).min(body.len()));
        chunks.push(chunk);
        body = rest;
    }
    chunks
}

/// A valid stream with events left out, repeated and moved, lines ended in any way, and some
/// bytes changed.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let events: Vec<&str> =
        RICH.split_inclusive("\n\n").chain(PLAIN.split_inclusive("\n\n")).collect();
    let count = events.len();
    let order = prop_oneof![Just((0..count).collect::<Vec<_>>()), vec(0..count, 0..40)];
    let ends = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let changes = prop_oneof![Just(vec![]), vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)];
    (order, ends, changes).prop_map(move |(order, end, changes)| {
        let body: String = order.iter().map(|position| events[*position]).collect();
        let mut body = body.replace('\n', end).into_bytes();
        for (position, byte) in changes {
            if !body.is_empty() {
                let position = position.index(body.len());
                body[position] = byte;
            }
        }
        body
    })
}

fn extra() -> impl Strategy<Value = Extra> {
    let key = prop_oneof!["pieces|part|functionCall|thoughtSignature", "[a-z]{1,6}"];
    let value = prop_oneof![
        Just(json!(1)),
        Just(json!({"thoughtSignature": "MQ==", "text": 1, "id": 2, "k": 3})),
        Just(json!([{"length": 1, "fields": {"thoughtSignature": "MQ=="}}])),
    ];
    vec((key, value), 0..3)
        .prop_map(|pairs| Extra::from(pairs.into_iter().collect::<Map<String, Value>>()))
}

fn part() -> impl Strategy<Value = Part> {
    let text = prop_oneof!["[ \n]{0,2}", ".{0,12}"];
    let plain = (text, extra()).prop_map(|(text, extra)| Part::Text(Text { text, extra }));
    let thinking = (".{0,6}", prop::option::of("[a-z]{1,4}"), extra())
        .prop_map(|(text, signature, extra)| Part::Thinking(Thinking { text, signature, extra }));
    let input = prop_oneof![Just(json!({"a": 1})), Just(json!("{raw")), Just(Value::Null)];
    let call = ("[ab]|posse_x", input, extra()).prop_map(|(id, input, extra)| {
        Part::ToolCall(ToolCall { id: id.as_str().into(), name: "Read".to_owned(), input, extra })
    });
    let opaque =
        (prop_oneof![Just("gemini"), Just("openai")], any::<bool>()).prop_map(|(wire, object)| {
            let value = if object { json!({"novel": 1}) } else { json!(1) };
            Part::Opaque { wire: wire.to_owned(), value }
        });
    let image = prop_oneof![Just("image/png"), Just("image/gif")].prop_map(|media_type| {
        Part::Image { media_type: media_type.to_owned(), data: "AA".to_owned() }
    });
    let leaf = prop_oneof![plain, thinking, call, opaque, image];
    leaf.prop_recursive(1, 4, 3, |inner| {
        ("[ab]|posse_x", vec(inner, 0..3), any::<bool>(), extra()).prop_map(
            |(id, parts, is_error, extra)| {
                Part::ToolResult(ToolResult { call: id.as_str().into(), parts, is_error, extra })
            },
        )
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let wire = prop_oneof![Just(None), Just(Some("gemini")), Just(Some("anthropic"))];
    (role, vec(part(), 0..5), wire).prop_map(|(role, parts, wire)| {
        let mut message = Message::new(role, parts);
        message.wire = wire.filter(|_| role == Role::Assistant).map(str::to_owned);
        message
    })
}

/// The parts of a content that have this field.
fn with<'a>(content: &'a Value, field: &str) -> Vec<&'a Value> {
    let parts = content["parts"].as_array().unwrap().iter();
    parts.filter_map(|part| part.get(field)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_a_panic(chunks in vec(vec(any::<u8>(), 0..64), 0..16)) {
        let whole = chunks.concat();
        prop_assert_eq!(read_chunks([&whole[..]]), read_chunks(chunks.iter().map(Vec::as_slice)));
        let _ = read_document(&String::from_utf8_lossy(&whole));
    }

    #[test]
    fn any_split_of_a_stream_gives_the_same_reply(sizes in vec(1_usize..200, 1..20)) {
        for body in [RICH.to_owned(), RICH.replace('\n', "\r\n"), RICH.replace('\n', "\r")] {
            let (reply, shown) = read_chunks(cut(body.as_bytes(), &sizes));
            let (expected, expected_shown) = read_chunks([RICH.as_bytes()]);
            prop_assert!(reply.is_ok());
            prop_assert_eq!(reply, expected);
            prop_assert_eq!(shown, expected_shown);
        }
    }

    #[test]
    fn any_split_of_a_damaged_stream_gives_the_same_end(
        body in damaged(),
        sizes in vec(1_usize..100, 1..10),
    ) {
        prop_assert_eq!(read_chunks([&body[..]]), read_chunks(cut(&body, &sizes)));
    }

    #[test]
    fn any_transcript_makes_a_request_the_wire_allows(
        messages in vec(message(), 0..8),
        rules in prop_oneof![Just(Gemini::Two), Just(Gemini::Three)],
    ) {
        let request = request(messages);
        let bytes = encode(&request, rules);
        prop_assert_eq!(&bytes, &encode(&request.clone(), rules));
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        let contents = body["contents"].as_array().unwrap();
        prop_assert!(contents.first().is_none_or(|first| first["role"] == "user"));
        for pair in contents.windows(2) {
            prop_assert_ne!(&pair[0]["role"], &pair[1]["role"]);
        }
        for (position, content) in contents.iter().enumerate() {
            let parts = content["parts"].as_array().unwrap();
            prop_assert!(!parts.is_empty());
            for part in parts {
                prop_assert!(part.is_object());
                let bare = part.as_object().unwrap().len() == 1;
                prop_assert!(!(bare && part["text"].as_str().is_some_and(str::is_empty)));
            }
            let calls = with(content, "functionCall");
            prop_assert!(calls.iter().all(|call| call["args"].is_object()));
            if content["role"] == "user" {
                prop_assert!(calls.is_empty());
                continue;
            }
            prop_assert!(with(content, "functionResponse").is_empty());
            if calls.is_empty() {
                continue;
            }
            let first = parts.iter().find(|part| part.get("functionCall").is_some()).unwrap();
            prop_assert!(rules == Gemini::Two || first.get("thoughtSignature").is_some());
            let next = &contents[position + 1];
            let responses = with(next, "functionResponse");
            prop_assert_eq!(responses.len(), calls.len());
            for (call, response) in calls.iter().zip(&responses) {
                prop_assert_eq!(call.get("id"), response.get("id"));
                prop_assert_eq!(&call["name"], &response["name"]);
                prop_assert!(response["response"].is_object());
            }
            let leading = next["parts"].as_array().unwrap().iter();
            let leading = leading.take_while(|part| part.get("functionResponse").is_some());
            prop_assert_eq!(leading.count(), responses.len());
        }
        let total: usize = contents.iter().map(|it| with(it, "functionResponse").len()).sum();
        let calls: usize = contents.iter().map(|it| with(it, "functionCall").len()).sum();
        prop_assert_eq!(total, calls);
    }
}
