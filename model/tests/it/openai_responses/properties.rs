//! What holds for any bytes and any transcript.

use super::encode::{encode_for, reasoning, request};
use super::transcripts::{PLAIN, RICH, read_chunks, read_document};
use posse_model::wire::Dialect;
use posse_protocol::{CallId, Extra, Message, Part, Role, Text, Thinking, ToolCall, ToolResult};
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
        vec(0..count, 0..60),
        (0..count, 0..count).prop_map(move |(a, b)| {
            let mut order: Vec<usize> = (0..count).collect();
            order.swap(a, b);
            order
        }),
        Just((0..count).collect::<Vec<_>>()).prop_shuffle(),
    ];
    let ends = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let numbers = prop_oneof![Just("0"), Just("1"), Just("18446744073709551615"), Just("-1")];
    let renumbered = prop::option::of((0..7_u8, numbers));
    let changes = prop_oneof![Just(vec![]), vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)];
    (order, ends, renumbered, changes).prop_map(move |(order, end, renumbered, changes)| {
        let mut body: String = order.iter().map(|position| events[*position]).collect();
        if let Some((from, to)) = renumbered {
            let index = |number: &str| format!("\"output_index\":{number}");
            body = body.replace(&index(&from.to_string()), &index(to));
        }
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

/// Any JSON, with the words of the wire in it.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "type|id|status|item|content|summary|text|refusal|arguments|name|call_id|output|role",
        "message|reasoning|function_call|output_text|summary_text|reasoning_text|completed",
        "incomplete|failed|error|response|usage|encrypted_content|annotations",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((word.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn extra() -> impl Strategy<Value = Extra> {
    let key = prop_oneof!["type|text|annotations|refusal|arguments|summary", "[a-z]{1,6}"];
    let item = prop_oneof![
        Just(json!({"id": "x_1", "status": "completed", "role": "assistant"})),
        Just(json!({"id": "x_2", "type": "odd", "content": 1, "call_id": 2, "name": 3})),
        Just(json!({"arguments": "{\"a\": 1}", "summary": [], "id": "x_3"})),
        Just(json!({"arguments": "null"})),
        Just(json!(5)),
    ];
    (vec((key, any::<u8>()), 0..3), prop::option::of(item)).prop_map(|(pairs, item)| {
        let fields = pairs.into_iter().map(|(key, value)| (key, json!(value)));
        let item = item.map(|item| ("item".to_owned(), item));
        Extra::from(fields.chain(item).collect::<Map<_, _>>())
    })
}

fn part() -> impl Strategy<Value = Part> {
    let text = prop_oneof!["[ \n]{0,2}", ".{0,12}"];
    let plain = (text, extra()).prop_map(|(text, extra)| Part::Text(Text { text, extra }));
    let thinking = (".{0,6}", prop::option::of("[a-z]{1,4}"), extra())
        .prop_map(|(text, signature, extra)| Part::Thinking(Thinking { text, signature, extra }));
    let input = prop_oneof![Just(json!({"a": 1})), Just(json!("{raw")), Just(Value::Null)];
    let id = prop_oneof!["[a-c]{0,2}", Just("long".repeat(40))];
    let call = (id.clone(), input, extra()).prop_map(|(id, input, extra)| {
        Part::ToolCall(ToolCall { id: CallId(id), name: "Read".to_owned(), input, extra })
    });
    let value = prop_oneof![
        Just(json!({"type": "novel"})),
        Just(json!({"content": {"type": "odd"}, "item": {"id": "x_1"}})),
        Just(json!({})),
        Just(json!([1])),
    ];
    let opaque = (prop_oneof![Just("openai-responses"), Just("anthropic")], value)
        .prop_map(|(wire, value)| Part::Opaque { wire: wire.to_owned(), value });
    let image = Just(Part::Image { media_type: "image/png".to_owned(), data: "AA".to_owned() });
    let leaf = prop_oneof![plain, thinking, call, opaque, image];
    leaf.prop_recursive(1, 4, 3, move |inner| {
        (id.clone(), vec(inner, 0..3), any::<bool>(), extra()).prop_map(
            |(id, parts, is_error, extra)| {
                Part::ToolResult(ToolResult { call: CallId(id), parts, is_error, extra })
            },
        )
    })
}

fn a_message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let wire = prop::option::of(prop_oneof![Just("openai-responses"), Just("anthropic")]);
    (role, vec(part(), 0..5), wire).prop_map(|(role, parts, wire)| Message {
        wire: wire.map(str::to_owned),
        ..Message::new(role, parts)
    })
}

fn dialect() -> impl Strategy<Value = Dialect> {
    any::<bool>().prop_map(|returns_reasoning| Dialect { returns_reasoning, ..reasoning() })
}

/// What the wire demands of an input.
fn check_input(input: &[Value]) -> Result<(), TestCaseError> {
    let mut open: Vec<&str> = Vec::new();
    for (position, entry) in input.iter().enumerate() {
        let next = input.get(position + 1).map(|next| &next["type"]);
        let kind = entry["type"].as_str().unwrap();
        if kind != "function_call_output" && !open.is_empty() {
            let speaks = entry["role"] != "user" && kind != "function_call_output";
            prop_assert!(speaks, "the user speaks before {open:?} are answered");
        }
        match kind {
            "function_call" => {
                let arguments = entry["arguments"].as_str().unwrap();
                prop_assert!(serde_json::from_str::<Map<String, Value>>(arguments).is_ok());
                open.push(entry["call_id"].as_str().unwrap());
            }
            "function_call_output" => {
                let id = entry["call_id"].as_str().unwrap();
                prop_assert_eq!(open.remove(0), id);
                let output = &entry["output"];
                prop_assert!(output.is_string() || !output.as_array().unwrap().is_empty());
            }
            "reasoning" => {
                prop_assert!(entry["summary"].is_array());
                let next = next.and_then(Value::as_str).unwrap();
                prop_assert_ne!(next, "function_call_output");
                prop_assert!(input[position + 1]["role"] != "user");
            }
            "message" => {
                let content = entry["content"].as_array().unwrap();
                prop_assert!(!content.is_empty());
                let texts = content.iter().filter(|piece| piece["type"] == "input_text");
                for text in texts {
                    prop_assert!(!text["text"].as_str().unwrap().trim().is_empty());
                }
            }
            other => prop_assert_eq!(other, "novel"),
        }
        if let Some(id) = entry["call_id"].as_str() {
            prop_assert!((1..=64).contains(&id.len()));
        }
    }
    prop_assert!(open.is_empty(), "{open:?} are not answered");
    Ok(())
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
    fn whatever_was_made_of_a_damaged_stream_can_be_sent_and_stored(body in damaged()) {
        if let Ok(reply) = read_chunks([&body[..]]).0 {
            let stored = serde_json::to_string(&reply.message).unwrap();
            let restored: Message = serde_json::from_str(&stored).unwrap();
            prop_assert_eq!(&restored, &reply.message);
            let bytes = encode_for(&request(vec![restored]), &reasoning());
            let body: Value = serde_json::from_slice(&bytes).unwrap();
            prop_assert!(body["input"].is_array());
        }
    }

    #[test]
    fn any_items_are_read_stored_and_sent(items in vec(any_json(), 0..4), status in any_json()) {
        let (reply, _) = read_document(&json!({"output": items, "status": status}));
        if let Ok(reply) = reply {
            let stored = serde_json::to_string(&reply.message).unwrap();
            let restored: Message = serde_json::from_str(&stored).unwrap();
            prop_assert_eq!(&restored, &reply.message);
            encode_for(&request(vec![restored]), &reasoning());
        }
    }

    #[test]
    fn any_transcript_makes_a_request_the_wire_allows(
        messages in vec(a_message(), 0..8),
        dialect in dialect(),
    ) {
        let request = request(messages);
        let bytes = encode_for(&request, &dialect);
        prop_assert_eq!(&encode_for(&request.clone(), &dialect), &bytes);
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        check_input(body["input"].as_array().unwrap())?;
    }

    #[test]
    fn any_transcript_is_a_prefix_of_the_next_turn_s(messages in vec(a_message(), 1..8)) {
        let answered = |messages: &[Message]| {
            // What a turn looks like when the next one is sent: nothing of it is open any more.
            let bytes = encode_for(&request(messages.to_vec()), &reasoning());
            String::from_utf8(bytes).unwrap().strip_suffix("]}").unwrap().to_owned()
        };
        let next = [&messages[..], &[Message::user("next")]].concat();
        let bytes = answered(&next);
        prop_assert!(bytes.starts_with(&answered(&messages)));
    }
}
