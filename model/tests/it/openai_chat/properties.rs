//! What holds for any bytes and any transcript.

use super::transcripts::{PLAIN, RICH, encode, read_chunks, request, sent};
use posse_model::wire::{CallIds, Dialect};
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

/// Any JSON, with the words of the wire for keys and values here and there.
fn json_value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "id|index|function|arguments|name|text|type|thinking|reasoning.text|content|code|message",
        "[a-z{\"]{0,3}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((word.clone(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Chunks of the right form whose fields hold anything.
fn odd_chunk() -> impl Strategy<Value = Value> {
    let names =
        "content|reasoning|reasoning_content|reasoning_details|refusal|annotations|tool_calls";
    let delta = vec((names, json_value()), 0..3)
        .prop_map(|pairs| -> Value { pairs.into_iter().collect::<Map<String, Value>>().into() });
    let call = (json_value(), json_value(), json_value(), json_value()).prop_map(
        |(index, id, name, arguments)| {
            let function = json!({"name": name, "arguments": arguments});
            json!({"tool_calls": [{"index": index, "id": id, "function": function}]})
        },
    );
    let delta = prop_oneof![delta, call];
    (delta, prop_oneof![Just(Value::Null), json_value()], json_value(), json_value()).prop_map(
        |(delta, reason, usage, id)| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
            json!({"id": id, "choices": [choice], "usage": usage})
        },
    )
}

fn extra() -> impl Strategy<Value = Extra> {
    let key = prop_oneof!["reasoning_details|extra_content|type|id|function", "[a-z]{1,6}"];
    let value = prop_oneof![any::<u8>().prop_map(Value::from), Just(json!([{"type": "x"}, 1]))];
    vec((key, value), 0..3)
        .prop_map(|pairs| Extra::from(pairs.into_iter().collect::<Map<String, Value>>()))
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]", "[a-z]{9}", "x{50}", Just(String::new())]
}

fn part() -> impl Strategy<Value = Part> {
    let text = prop_oneof!["[ \n]{0,2}", ".{0,12}"];
    let plain = (text, extra()).prop_map(|(text, extra)| Part::Text(Text { text, extra }));
    let thinking = (".{0,6}", prop::option::of("[a-z]{1,4}"), extra())
        .prop_map(|(text, signature, extra)| Part::Thinking(Thinking { text, signature, extra }));
    let input = prop_oneof![Just(json!({"a": 1})), Just(json!("{raw")), Just(Value::Null)];
    let call = (id(), ".{0,6}", input, extra()).prop_map(|(id, name, input, extra)| {
        Part::ToolCall(ToolCall { id: id.as_str().into(), name, input, extra })
    });
    let opaque = (prop_oneof![Just("openai-chat"), Just("gemini")], any::<bool>()).prop_map(
        |(wire, object)| {
            let value = if object { json!({"type": "novel"}) } else { json!(5) };
            Part::Opaque { wire: wire.to_owned(), value }
        },
    );
    let image = Just(Part::Image { media_type: "image/png".to_owned(), data: "AA".to_owned() });
    let leaf = prop_oneof![plain, thinking, call, opaque, image];
    leaf.prop_recursive(1, 4, 3, |inner| {
        (id(), vec(inner, 0..3), any::<bool>(), extra()).prop_map(|(id, parts, is_error, extra)| {
            Part::ToolResult(ToolResult { call: id.as_str().into(), parts, is_error, extra })
        })
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let wire = prop_oneof![Just(None), Just(Some("openai-chat")), Just(Some("anthropic"))];
    (role, vec(part(), 0..5), wire).prop_map(|(role, parts, wire)| Message {
        wire: wire.map(str::to_owned),
        ..Message::new(role, parts)
    })
}

fn dialect() -> impl Strategy<Value = Dialect> {
    any::<[bool; 6]>().prop_map(|[reasoning, marks, details, content, bridge, nine]| Dialect {
        returns_reasoning: reasoning,
        cache_marks: marks,
        reasoning_details: details,
        extra_content: content,
        assistant_after_results: bridge,
        call_ids: if nine { CallIds::NineAlphanumeric } else { CallIds::Any },
        ..Dialect::default()
    })
}

/// True when `content` has something to see, and only texts that have.
fn is_visible(content: &Value) -> bool {
    match content {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(parts) => {
            let shown =
                |part: &Value| part["text"].as_str().is_none_or(|text| !text.trim().is_empty());
            !parts.is_empty() && parts.iter().all(shown)
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_a_panic(chunks in vec(vec(any::<u8>(), 0..64), 0..16)) {
        let whole = chunks.concat();
        prop_assert_eq!(read_chunks([&whole[..]]), read_chunks(chunks.iter().map(Vec::as_slice)));
    }

    #[test]
    fn any_chunks_are_read_without_a_panic(chunks in vec(odd_chunk(), 0..6)) {
        let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        if let Ok(reply) = read_chunks([body.as_bytes()]).0 {
            let mut ids: Vec<&str> = reply.message.tool_calls().map(|call| &*call.id.0).collect();
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            prop_assert!(ids.len() == count && !ids.contains(&""), "{ids:?}");
        }
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
        dialect in dialect(),
    ) {
        let request = request(messages);
        prop_assert_eq!(encode(&request, &dialect), encode(&request.clone(), &dialect));
        let body = sent(&request, &dialect);
        let messages = body["messages"].as_array().unwrap();
        let mut awaited: Vec<String> = Vec::new();
        let mut last = "";
        for message in messages {
            let role = message["role"].as_str().unwrap();
            let content = &message["content"];
            match role {
                "tool" => {
                    prop_assert_eq!(&message["tool_call_id"], &awaited.remove(0));
                    prop_assert!(is_visible(content), "{}", message);
                }
                "user" => {
                    prop_assert!(last != "user");
                    prop_assert!(last != "tool" || !dialect.assistant_after_results);
                    prop_assert!(is_visible(content), "{}", message);
                }
                _ => {
                    prop_assert_eq!(role, "assistant");
                    prop_assert!(last != "assistant");
                    let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                    prop_assert!(is_visible(content) || content.is_null() && !calls.is_empty());
                    prop_assert_eq!(message.get("reasoning_content").is_some(),
                        dialect.returns_reasoning && message["content"] != "I have the results.");
                    for call in &calls {
                        let id = call["id"].as_str().unwrap();
                        prop_assert!(!id.is_empty());
                        prop_assert!(dialect.call_ids == CallIds::Any || id.len() == 9, "{id}");
                        let arguments = call["function"]["arguments"].as_str().unwrap();
                        prop_assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
                        awaited.push(id.to_owned());
                    }
                }
            }
            prop_assert!(role == "tool" || role == "assistant" || awaited.is_empty());
            last = role;
        }
        prop_assert!(awaited.is_empty());
        let marked = body.to_string().matches("\"cache_control\"").count();
        let allowed = if dialect.cache_marks { 3 } else { 0 };
        prop_assert!(marked <= allowed);
    }
}
