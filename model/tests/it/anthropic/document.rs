//! Replies that are no stream.

use super::transcripts::{RICH, RICH_CONTENT, read, read_document};
use posse_model::fault::Kind;
use posse_protocol::{Delta, Stop};
use serde_json::{Value, json};

/// A reply with this content.
fn body(content: Value, stop_reason: Value) -> String {
    let usage = json!({"input_tokens": 12, "cache_creation_input_tokens": 340,
        "cache_read_input_tokens": 5600, "output_tokens": 89, "service_tier": "standard"});
    json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content,
        "stop_reason": stop_reason, "usage": usage})
    .to_string()
}

#[test]
fn a_document_gives_the_same_reply_as_its_stream() {
    let content = serde_json::from_str(RICH_CONTENT).unwrap();
    let (reply, shown) = read_document(&body(content, json!("tool_use")));
    assert_eq!(reply, read(RICH));
    let thinking = Delta::Thinking { text: "First, look.".to_owned() };
    let text = Delta::Text { text: "It is warm — très chaud 🌡.".to_owned() };
    assert_eq!(shown, [thinking, text]);
}

#[test]
fn a_document_needs_no_reason_to_stop() {
    let check = |content: Value, stop: Stop| {
        assert_eq!(read_document(&body(content, Value::Null)).0.unwrap().stop, stop);
    };
    check(json!([{"type": "text", "text": "a"}]), Stop::End);
    check(json!([{"type": "tool_use", "id": "c", "name": "Read", "input": {}}]), Stop::ToolUse);
}

#[test]
fn the_last_call_of_a_document_that_was_cut_off_is_dropped() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"a": 1}});
    let cut = body(json!([call("c1"), call("c2")]), json!("max_tokens"));
    let message = read_document(&cut).0.unwrap().message;
    let ids: Vec<&str> = message.tool_calls().map(|call| call.id.0.as_str()).collect();
    assert_eq!(ids, ["c1"]);
}

#[test]
fn a_document_may_be_an_error() {
    let check = |body: Value, kind: Kind, words: &str| {
        let fault = read_document(&body.to_string()).0.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault:?}");
        assert!(fault.reason.contains(words), "{fault:?}");
    };
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    check(json!({"type": "error", "error": error}), Kind::Overloaded(None), "Overloaded");
    check(json!({"error": "no such route"}), Kind::Overloaded(None), "no such route");
    check(json!({"type": "message"}), Kind::Malformed, "has no content");
    check(json!([1]), Kind::Malformed, "cannot be read");
    check(json!({"content": [{"text": "a"}]}), Kind::Malformed, "without a type");
}
