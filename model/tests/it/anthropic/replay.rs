//! What a provider sent goes back as it was.

use super::encode::{body_of, request};
use super::transcripts::{RICH, RICH_CONTENT, read, reply_of};
use posse_protocol::{CallId, Extra, Message, Part, Role, ToolResult};
use serde_json::{Value, json};

/// The content that is sent back for a reply, with the results of its calls after it.
fn sent_back(body: &str) -> Value {
    let reply = read(body).unwrap().message;
    let results = reply.tool_calls().map(|call| {
        Part::ToolResult(ToolResult {
            call: CallId(call.id.0.clone()),
            parts: vec![Part::text("done")],
            is_error: false,
            extra: Extra::default(),
        })
    });
    let results: Vec<Part> = results.chain([Part::text("go on")]).collect();
    let messages = vec![Message::user("hello"), reply, Message::new(Role::User, results)];
    body_of(&request(messages))["messages"][1]["content"].clone()
}

#[test]
fn a_reply_is_sent_back_block_by_block_with_every_field() {
    let expected: Value = serde_json::from_str(RICH_CONTENT).unwrap();
    assert_eq!(sent_back(RICH), expected);
}

#[test]
fn a_stored_reply_is_sent_back_just_the_same() {
    let reply = read(RICH).unwrap().message;
    let stored = serde_json::to_string(&reply).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), reply);
}

#[test]
fn keys_go_back_in_the_order_they_came() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"novel","z":1,"a":{"y":1,"b":2},"m":null}}"#;
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let content = sent_back(&reply_of(&[start, stop], "end_turn"));
    let expected = r#"[{"type":"novel","z":1,"a":{"y":1,"b":2},"m":null}]"#;
    assert_eq!(content.to_string(), expected);
}

#[test]
fn deltas_nobody_knows_are_added_to_their_block() {
    let events = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"So "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"far."}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Hi"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"mood_delta","text":{"is":"odd"},"mood":"calm"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
    ];
    let content = sent_back(&reply_of(&events, "end_turn"));
    let expected = json!([
        {"type": "compaction", "content": "So far."},
        {"type": "text", "text": "Hi", "mood": "calm"},
    ]);
    assert_eq!(content, expected);
}
