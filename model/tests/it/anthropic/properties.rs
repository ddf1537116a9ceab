//! What holds for any bytes and any transcript.

use super::encode::{body_of, encode, marks, request};
use super::transcripts::{PLAIN, RICH, read_chunks};
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
    let order = prop_oneof![
        Just((0..count).collect::<Vec<_>>()),
        vec(0..count, 0..40),
        (0..count, 0..count).prop_map(move |(a, b)| {
            let mut order: Vec<usize> = (0..count).collect();
            order.swap(a, b);
            order
        }),
    ];
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
    let pair = (prop_oneof!["type|text|input|signature|cache_control", "[a-z]{1,6}"], any::<u8>());
    vec(pair, 0..3).prop_map(|pairs| {
        let map: Map<String, Value> =
            pairs.into_iter().map(|(key, value)| (key, json!(value))).collect();
        Extra::from(map)
    })
}

fn part() -> impl Strategy<Value = Part> {
    let text = prop_oneof!["[ \n]{0,2}", ".{0,12}"];
    let plain = (text, extra()).prop_map(|(text, extra)| Part::Text(Text { text, extra }));
    let thinking = (".{0,6}", prop::option::of("[a-z]{1,4}"), extra())
        .prop_map(|(text, signature, extra)| Part::Thinking(Thinking { text, signature, extra }));
    let input = prop_oneof![Just(json!({"a": 1})), Just(json!("{raw")), Just(Value::Null)];
    let call = ("[ab]|c[.]é", input, extra()).prop_map(|(id, input, extra)| {
        Part::ToolCall(ToolCall { id: id.as_str().into(), name: "Read".to_owned(), input, extra })
    });
    let opaque = (prop_oneof![Just("anthropic"), Just("openai")], any::<bool>()).prop_map(
        |(wire, redacted)| {
            let kind = if redacted { "redacted_thinking" } else { "novel" };
            Part::Opaque { wire: wire.to_owned(), value: json!({"type": kind}) }
        },
    );
    let image = Just(Part::Image { media_type: "image/png".to_owned(), data: "AA".to_owned() });
    let leaf = prop_oneof![plain, thinking, call, opaque, image];
    leaf.prop_recursive(1, 4, 3, |inner| {
        ("[ab]|c[.]é", vec(inner, 0..3), any::<bool>(), extra()).prop_map(
            |(id, parts, is_error, extra)| {
                Part::ToolResult(ToolResult { call: id.as_str().into(), parts, is_error, extra })
            },
        )
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let wire = prop_oneof![Just(None), Just(Some("anthropic")), Just(Some("gemini"))];
    (role, vec(part(), 0..5), wire).prop_map(|(role, parts, wire)| {
        let mut message = Message::new(role, parts);
        message.wire = wire.filter(|_| role == Role::Assistant).map(str::to_owned);
        message
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_a_panic(chunks in vec(vec(any::<u8>(), 0..64), 0..16)) {
        let whole = chunks.concat();
        prop_assert_eq!(read_chunks([&whole[..]]), read_chunks(chunks.iter().map(Vec::as_slice)));
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
    fn any_transcript_makes_a_request_the_wire_allows(messages in vec(message(), 0..8)) {
        let request = request(messages);
        prop_assert_eq!(encode(&request), encode(&request.clone()));
        let body = body_of(&request);
        prop_assert!(marks(&body).len() <= 4);
        let messages = body["messages"].as_array().unwrap();
        prop_assert!(messages.first().is_none_or(|first| first["role"] == "user"));
        for pair in messages.windows(2) {
            prop_assert_ne!(&pair[0]["role"], &pair[1]["role"]);
        }
        let ids = |message: &Value, kind: &str, field: &str| -> Vec<String> {
            let blocks = message["content"].as_array().unwrap().iter();
            let blocks = blocks.filter(|block| block["type"] == kind);
            blocks.map(|block| block[field].as_str().unwrap().to_owned()).collect()
        };
        let mut calls = Vec::new();
        for message in messages {
            prop_assert_eq!(ids(message, "tool_result", "tool_use_id"), calls);
            calls = ids(message, "tool_use", "id");
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            prop_assert!(calls.iter().all(|id| !id.is_empty() && id.bytes().all(plain)));
        }
        prop_assert_eq!(calls, Vec::<String>::new());
        for message in messages {
            let blocks = message["content"].as_array().unwrap();
            prop_assert!(!blocks.is_empty());
            let is_result = |block: &&Value| block["type"] == "tool_result";
            let results = blocks.iter().filter(is_result).count();
            prop_assert_eq!(blocks.iter().take_while(is_result).count(), results);
            let inner = blocks.iter().filter_map(|block| block["content"].as_array()).flatten();
            for text in blocks.iter().chain(inner).filter(|block| block["type"] == "text") {
                prop_assert!(!text["text"].as_str().unwrap().trim().is_empty());
            }
            for call in blocks.iter().filter(|block| block["type"] == "tool_use") {
                prop_assert!(call["input"].is_object());
            }
            if message["role"] == "assistant" {
                let last = blocks.last().unwrap()["type"].as_str().unwrap();
                prop_assert!(!last.ends_with("thinking"));
            }
        }
    }
}
