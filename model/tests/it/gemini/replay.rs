//! What a provider sent goes back as it was.

use super::transcripts::{RICH, RICH_PARTS, contents_of, read, reply_of, result};
use posse_model::wire::Gemini;
use posse_protocol::{Message, Part, Role};
use serde_json::{Value, json};

/// The parts that are sent back for a reply, with the results of its calls after it.
fn sent_back(reply: Message) -> Value {
    let results = reply.tool_calls().map(|call| result(&call.id.0, vec![Part::text("done")]));
    let results: Vec<Part> = results.chain([Part::text("go on")]).collect();
    let messages = vec![Message::user("hello"), reply, Message::new(Role::User, results)];
    contents_of(messages, Gemini::Three)[1]["parts"].clone()
}

#[test]
fn a_reply_is_sent_back_part_by_part_with_every_field() {
    let expected: Value = serde_json::from_str(RICH_PARTS).unwrap();
    assert_eq!(sent_back(read(RICH).unwrap().message), expected);
}

#[test]
fn a_stored_reply_is_sent_back_just_the_same() {
    let reply = read(RICH).unwrap().message;
    let stored = serde_json::to_string(&reply).unwrap();
    let restored: Message = serde_json::from_str(&stored).unwrap();
    assert_eq!(restored, reply);
    assert_eq!(sent_back(restored), sent_back(reply));
}

#[test]
fn a_signature_goes_back_on_the_part_it_came_on() {
    let check = |parts: Value| {
        assert_eq!(sent_back(read(&reply_of(parts.clone(), "STOP")).unwrap().message), parts);
    };
    check(json!([{"text": "a", "thoughtSignature": "MQ=="}]));
    check(json!([{"text": "a"}, {"text": "b", "thoughtSignature": "MQ=="}]));
    check(json!([{"text": "a", "thoughtSignature": "MQ=="}, {"text": "b"}]));
    check(
        json!([{"text": "é", "thoughtSignature": "MQ=="}, {"text": "ß", "thoughtSignature": "Mg=="}]),
    );
    check(json!([{"text": "a"}, {"text": "", "thoughtSignature": "MQ=="}]));
    check(json!([{"text": "", "thoughtSignature": "MQ=="}]));
    check(json!([
        {"text": "a", "thought": true},
        {"text": "", "thought": true, "thoughtSignature": "MQ=="},
        {"text": "b", "thought": true, "thoughtSignature": "Mg=="},
        {"text": "c"},
    ]));
    check(json!([
        {"functionCall": {"id": "1", "name": "A", "args": {}}, "thoughtSignature": "MQ=="},
        {"functionCall": {"id": "2", "name": "B", "args": {}}},
        {"text": "c", "thoughtSignature": "Mw=="},
    ]));
}

#[test]
fn a_signature_without_a_part_goes_back_on_an_empty_text() {
    let reply =
        read(&reply_of(json!([{"text": "a"}, {"thoughtSignature": "MQ=="}]), "STOP")).unwrap();
    let expected = json!([{"text": "a"}, {"text": "", "thoughtSignature": "MQ=="}]);
    assert_eq!(sent_back(reply.message), expected);
}

#[test]
fn keys_go_back_in_the_order_they_came() {
    let parts = r#"[{"novel":{"z":1,"a":{"y":1,"b":2},"m":null},"thoughtSignature":"MQ==","k":0}]"#;
    let reply = read(&reply_of(serde_json::from_str(parts).unwrap(), "STOP")).unwrap();
    assert_eq!(sent_back(reply.message).to_string(), parts);
}

#[test]
fn notes_that_do_not_fit_their_text_are_not_followed() {
    let check = |pieces: Value| {
        let stored = json!({"role": "assistant", "wire": "gemini",
            "parts": [{"type": "text", "text": "é!", "pieces": pieces}]});
        let reply: Message = serde_json::from_value(stored).unwrap();
        assert_eq!(sent_back(reply), json!([{"text": "é!"}]), "{pieces}");
    };
    let signed = |length: Value| json!({"length": length, "fields": {"thoughtSignature": "MQ=="}});
    check(json!([signed(json!(1)), signed(json!(2))]));
    check(json!([signed(json!(2))]));
    check(json!([signed(json!(9))]));
    check(json!([signed(json!(-1))]));
    check(json!([signed(json!("3"))]));
    check(json!([]));
    check(json!("odd"));
}
