//! What a provider sent goes back as it was, and nowhere else.

use super::transcripts::{RICH, messages_for, read, reply_of, results_of};
use posse_model::wire::Dialect;
use posse_protocol::{Message, Part};
use serde_json::{Value, json};

/// A vendor that takes back all it may have sent.
fn router() -> Dialect {
    Dialect { reasoning_details: true, extra_content: true, ..Dialect::default() }
}

/// The message that is sent back for `reply` to a vendor of this dialect.
fn sent_back(reply: &Message, dialect: &Dialect) -> Value {
    let messages = vec![Message::user("hello"), reply.clone(), results_of(reply)];
    messages_for(messages, dialect)[1].take()
}

#[test]
fn a_reply_is_sent_back_with_all_that_its_provider_wants_back() {
    let reply = read(RICH).unwrap().message;
    let expected = json!({
        "role": "assistant",
        "content": "It is warm — très chaud 🌡.",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "First, look.", "format": "anthropic-claude-v1",
             "index": 0, "signature": "EqQBCgIYAh=="},
            {"type": "reasoning.encrypted", "data": "EmwKAhgB", "z": 1, "a": null, "index": 1}],
        "tool_calls": [
            {"id": "toolu_1", "type": "function",
             "function": {"name": "Read", "arguments": "{\"path\":\"café\"}"},
             "extra_content": {"google": {"thought_signature": "c2ln"}}},
            {"id": "toolu_2", "type": "function",
             "function": {"name": "Bash", "arguments": "{\"command\":\"ls é\",\"a\":1}"}}],
    });
    assert_eq!(sent_back(&reply, &router()).to_string(), expected.to_string());
}

#[test]
fn a_stored_reply_is_the_same_reply() {
    let reply = read(RICH).unwrap().message;
    let stored = serde_json::to_string(&reply).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), reply);
}

#[test]
fn a_vendor_that_would_refuse_them_gets_no_fields_of_others() {
    let reply = read(RICH).unwrap().message;
    let sent = sent_back(&reply, &Dialect::default());
    let keys: Vec<&String> = sent.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["role", "content", "tool_calls"]);
    assert_eq!(sent["tool_calls"][0].get("extra_content"), None);
}

#[test]
fn what_another_wire_said_goes_on_as_text_and_calls_alone() {
    let reply = read(RICH).unwrap().message;
    let mut parts = reply.parts.clone();
    parts.push(Part::Opaque { wire: "gemini".to_owned(), value: json!({"x": 1}) });
    let foreign = Message::from_model("gemini", parts);
    let every = Dialect { returns_reasoning: true, ..router() };
    let mut expected = sent_back(&reply, &Dialect::default());
    expected["reasoning_content"] = json!(" ");
    assert_eq!(sent_back(&foreign, &every), expected);
    let unknown = Message { wire: None, ..reply.clone() };
    assert_eq!(sent_back(&unknown, &every), sent_back(&reply, &every));
}

#[test]
fn blocks_nobody_knows_go_back_in_their_place() {
    let reference = json!({"type": "reference", "reference_ids": [1], "a": {"z": 1, "b": 2}});
    let reply = reply_of(
        &[
            json!({"content": [{"type": "text", "text": "See "}]}),
            json!({"content": [{"type": "text", "text": "this"}, reference]}),
            json!({"content": "."}),
        ],
        "stop",
    );
    assert_eq!(reply.message.text(), "See this\n.");
    let content = &sent_back(&reply.message, &Dialect::default())["content"];
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = json!([text("See this"), reference, text(".")]);
    assert_eq!(content.to_string(), expected.to_string());
    let foreign = Message::from_model("gemini", reply.message.parts);
    let Value::String(content) = &sent_back(&foreign, &Dialect::default())["content"] else {
        panic!("a block of this wire from a message of another");
    };
    assert_eq!(content, "See this\n\n.");
}

#[test]
fn sources_of_a_text_are_kept_and_stay_here() {
    let reply = read(RICH).unwrap().message;
    let text = reply.parts.iter().find_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    let kept: Vec<_> = text.unwrap().extra.iter().collect();
    let url = json!({"url": "https://example.com", "title": "Weather"});
    let annotations = json!([{"type": "url_citation", "url_citation": url}]);
    assert_eq!(kept, [(&"annotations".to_owned(), &annotations)]);
}
