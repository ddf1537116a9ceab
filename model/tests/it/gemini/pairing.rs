//! Calls and results: each call is followed by its result, whoever made it.

use super::transcripts::{call, contents_of, model, result};
use posse_model::wire::Gemini;
use posse_protocol::{Extra, Message, Part, Role, Text, Thinking, ToolCall};
use serde_json::{Map, Value, json};

/// The name and output of every `functionResponse` in a content, and the texts after them.
fn answers(content: &Value) -> Vec<String> {
    let parts = content["parts"].as_array().unwrap().iter();
    parts
        .map(|part| match part["functionResponse"].as_object() {
            Some(response) => response["response"].to_string(),
            None => part["text"].as_str().unwrap().to_owned(),
        })
        .collect()
}

fn done(id: &str, text: &str) -> Part {
    result(id, vec![Part::text(text)])
}

#[test]
fn results_come_first_and_in_the_order_of_the_calls() {
    let messages = vec![
        Message::user("go"),
        model(vec![call("c1", json!({})), Part::text("and"), call("c2", json!({}))]),
        Message::user("meanwhile"),
        Message::new(Role::User, vec![done("c2", "2")]),
        Message::new(Role::User, vec![done("c1", "1")]),
    ];
    let sent = contents_of(messages, Gemini::Two);
    assert_eq!(answers(&sent[2]), [r#"{"output":"1"}"#, r#"{"output":"2"}"#, "meanwhile"]);
}

#[test]
fn a_call_without_a_result_is_answered_all_the_same() {
    let lost = r#"{"error":"no result was recorded"}"#;
    let calls = || model(vec![call("c1", json!({})), call("c2", json!({}))]);
    let messages =
        vec![Message::user("go"), calls(), Message::new(Role::User, vec![done("c2", "2")])];
    assert_eq!(answers(&contents_of(messages, Gemini::Two)[2]), [lost, r#"{"output":"2"}"#]);
    let sent = contents_of(vec![Message::user("go"), calls()], Gemini::Two);
    assert_eq!(answers(&sent[2]), [lost, lost]);
}

#[test]
fn a_result_without_a_call_is_told_as_text() {
    let messages = vec![
        Message::new(Role::User, vec![done("c0", "early"), Part::text("go")]),
        model(vec![call("c1", json!({}))]),
        Message::new(Role::User, vec![done("c1", "1"), done("c1", "again"), done("c9", "stray")]),
    ];
    let sent = contents_of(messages, Gemini::Two);
    let note = "(The result of an earlier call:)";
    assert_eq!(answers(&sent[0]), [note, "early", "go"]);
    assert_eq!(answers(&sent[2]), [r#"{"output":"1"}"#, note, "again", note, "stray"]);
}

#[test]
fn calls_with_the_same_id_get_their_own_results() {
    let turn = |first: &str, second: &str| {
        [
            model(vec![call("c", json!({})), call("c", json!({}))]),
            Message::new(Role::User, vec![done("c", first), done("c", second)]),
        ]
    };
    let mut messages = vec![Message::user("go")];
    messages.extend(turn("1", "2"));
    messages.extend(turn("3", "4"));
    let sent = contents_of(messages, Gemini::Two);
    assert_eq!(answers(&sent[2]), [r#"{"output":"1"}"#, r#"{"output":"2"}"#]);
    assert_eq!(answers(&sent[4]), [r#"{"output":"3"}"#, r#"{"output":"4"}"#]);
}

fn extra(fields: Value) -> Extra {
    let fields: Map<String, Value> = serde_json::from_value(fields).unwrap();
    Extra::from(fields)
}

/// A reply with everything that only its own provider understands, as it came over `wire`.
fn reply(wire: &str) -> Message {
    let signed = json!({"part": {"thoughtSignature": "c2ln", "hint": 1}, "functionCall": {"p": 2}});
    let pieces = json!({"pieces": [{"length": 2, "fields": {"thoughtSignature": "dA=="}}]});
    let tool_call = |id: &str, extra: Extra| {
        let name = "Read".to_owned();
        Part::ToolCall(ToolCall { id: id.into(), name, input: json!({}), extra })
    };
    let parts = vec![
        Part::Thinking(Thinking {
            text: "hm".to_owned(),
            signature: Some("dGg=".to_owned()),
            extra: Extra::default(),
        }),
        Part::Text(Text { text: "hi".to_owned(), extra: extra(pieces) }),
        Part::Opaque { wire: wire.to_owned(), value: json!({"novel": 1}) },
        tool_call("c1", extra(signed)),
        tool_call("posse_r_0", Extra::default()),
    ];
    Message::from_model(wire, parts)
}

fn sent(wire: &str, rules: Gemini) -> Value {
    let results = vec![done("c1", "1"), done("posse_r_0", "2")];
    contents_of(vec![Message::user("go"), reply(wire), Message::new(Role::User, results)], rules)
}

#[test]
fn what_the_provider_gave_goes_back_to_it() {
    let own = sent("gemini", Gemini::Three);
    let expected = json!([
        {"text": "hm", "thought": true, "thoughtSignature": "dGg="},
        {"text": "hi", "thoughtSignature": "dA=="},
        {"novel": 1},
        {"functionCall": {"id": "c1", "name": "Read", "args": {}, "p": 2},
         "thoughtSignature": "c2ln", "hint": 1},
        {"functionCall": {"name": "Read", "args": {}}},
    ]);
    assert_eq!(own[1]["parts"], expected);
    let expected = json!([
        {"functionResponse": {"id": "c1", "name": "Read", "response": {"output": "1"}}},
        {"functionResponse": {"name": "Read", "response": {"output": "2"}}},
    ]);
    assert_eq!(own[2]["parts"], expected);
}

#[test]
fn what_another_provider_gave_stays_here() {
    let call = json!({"functionCall": {"name": "Read", "args": {}}});
    let foreign = sent("anthropic", Gemini::Two);
    assert_eq!(foreign[1]["parts"], json!([{"text": "hi"}, call, call]));
    let response = |output: &str| json!({"functionResponse": {"name": "Read", "response": {"output": output}}});
    assert_eq!(foreign[2]["parts"], json!([response("1"), response("2")]));
}

#[test]
fn a_call_nobody_signed_is_excused_where_signatures_are_wanted() {
    let call = json!({"functionCall": {"name": "Read", "args": {}}});
    let mut excused = call.clone();
    excused["thoughtSignature"] = "skip_thought_signature_validator".into();
    let foreign = sent("anthropic", Gemini::Three);
    assert_eq!(foreign[1]["parts"], json!([{"text": "hi"}, excused, call]));
}

#[test]
fn a_reply_of_which_nothing_may_be_sent_is_left_out() {
    let foreign = Message::from_model(
        "anthropic",
        vec![Part::Opaque { wire: "anthropic".to_owned(), value: json!({"type": "x"}) }],
    );
    let sent = contents_of(vec![Message::user("a"), foreign, Message::user("b")], Gemini::Three);
    assert_eq!(sent, json!([{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]));
}
