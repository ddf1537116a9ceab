//! Transcripts that did not come about on this wire: other providers, lost results, documents.

use super::encode::{body_of, call, check, opaque, request, result, thinking};
use posse_protocol::{Extra, Message, Part, Role, Text, ToolCall};
use serde_json::{Map, Value, json};

fn extra() -> Extra {
    Extra::from(Map::from_iter([("later".to_owned(), json!(1))]))
}

/// A reply with everything that only its own provider understands, as it came over `wire`.
fn reply(wire: &str) -> Message {
    let parts = vec![
        thinking(Some("sig")),
        Part::Text(Text { text: "hi".to_owned(), extra: extra() }),
        opaque("anthropic", json!({"type": "novel"})),
        opaque("gemini", json!({"executableCode": {}})),
        Part::ToolCall(ToolCall {
            id: "c1".into(),
            name: "Read".to_owned(),
            input: json!({}),
            extra: extra(),
        }),
    ];
    Message::from_model(wire, parts)
}

fn sent(wire: &str) -> Value {
    let results = Message::new(Role::User, vec![result("c1", vec![Part::text("r")], false)]);
    body_of(&request(vec![Message::user("go"), reply(wire), results]))["messages"][1].clone()
}

#[test]
fn what_the_provider_gave_goes_back_to_it() {
    let expected = json!([
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "hi", "later": 1},
        {"type": "novel"},
        {"type": "tool_use", "id": "c1", "name": "Read", "input": {}, "later": 1},
    ]);
    assert_eq!(sent("anthropic")["content"], expected);
}

#[test]
fn what_another_provider_gave_stays_here() {
    let expected = json!([
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "c1", "name": "Read", "input": {}},
    ]);
    assert_eq!(sent("gemini")["content"], expected);
    assert_eq!(sent("openai-chat")["content"], expected);
}

#[test]
fn a_reply_of_which_nothing_may_be_sent_is_left_out() {
    let foreign =
        Message::from_model("gemini", vec![thinking(Some("s")), opaque("gemini", json!({}))]);
    check(
        vec![Message::user("a"), foreign, Message::user("b")],
        json!([{"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]),
    );
}

#[test]
fn ids_of_other_providers_are_written_as_the_wire_takes_them() {
    let check = |id: &str, written: &str| {
        let calls = Message::from_model("openai-chat", vec![call(id, json!({}))]);
        let results = Message::new(Role::User, vec![result(id, vec![], false)]);
        let body = body_of(&request(vec![Message::user("go"), calls, results]));
        assert_eq!(body["messages"][1]["content"][0]["id"], written);
        assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], written);
    };
    check("toolu_01-A", "toolu_01-A");
    check("functions.Read:0", "call_functions_2eRead_3a0");
    check("é", "call__c3_a9");
    check("", "call_");
}

#[test]
fn each_call_is_followed_by_its_result() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let use_of = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {}});
    let done = |id: &str, text: &str| result(id, vec![Part::text(text)], false);
    check(
        vec![
            Message::new(Role::Assistant, vec![call("c1", json!({})), call("c2", json!({}))]),
            Message::new(Role::User, vec![done("c2", "2"), done("c9", "stray")]),
            Message::new(Role::Assistant, vec![call("c3", json!({}))]),
        ],
        json!([
            {"role": "user", "content": [text("(The beginning of this conversation is not shown.)")]},
            {"role": "assistant", "content": [use_of("c1"), use_of("c2")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": true,
                 "content": [text("no result was recorded")]},
                {"type": "tool_result", "tool_use_id": "c2", "content": [text("2")]},
                text("(The result of an earlier call:)"),
                text("stray")]},
            {"role": "assistant", "content": [use_of("c3")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c3", "is_error": true,
                 "content": [text("no result was recorded")]}]},
        ]),
    );
}

#[test]
fn documents_are_blocks_of_their_own_in_messages_and_in_results() {
    let document = |name: &str| Part::Document {
        media_type: "application/pdf".to_owned(),
        name: name.to_owned(),
        data: "JVBE".to_owned(),
    };
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBE"});
    let named = json!({"type": "document", "source": source, "title": "a.pdf"});
    let nameless = json!({"type": "document", "source": source});
    let text = |text: &str| json!({"type": "text", "text": text});
    check(
        vec![
            Message::new(Role::User, vec![document("a.pdf"), document(" "), Part::text("read")]),
            Message::new(Role::Assistant, vec![call("c", json!({}))]),
            Message::new(
                Role::User,
                vec![result("c", vec![Part::text("1 page"), document("a.pdf")], false)],
            ),
        ],
        json!([
            {"role": "user", "content": [named, nameless, text("read")]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c", "name": "Read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [text("1 page"), named]}]},
        ]),
    );
}
