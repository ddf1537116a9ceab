//! Requests from transcripts, to a plain vendor.

use super::transcripts::{assistant, call, encode, image, messages_for, request, result, sent};
use posse_agent::Request;
use posse_model::wire::{Dialect, Wire};
use posse_protocol::{Effect, Extra, Message, Part, Role, Thinking, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

fn tool(name: &str) -> ToolSpec {
    ToolSpec::new(
        name,
        format!("Does {name}."),
        Effect::Read,
        json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    )
}

fn thinking(text: &str) -> Part {
    let text = text.to_owned();
    Part::Thinking(Thinking { text, signature: None, extra: Extra::default() })
}

fn user(parts: Vec<Part>) -> Message {
    Message::new(Role::User, parts)
}

/// Encodes `messages` and expects these.
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(messages_for(messages, &Dialect::default()), expected);
}

#[test]
fn it_is_found_by_name_below_the_base_url() {
    assert_eq!(serde_json::from_str::<Wire>("\"openai-chat\"").unwrap(), Wire::OpenaiChat);
    assert_eq!(Wire::OpenaiChat.name(), "openai-chat");
    assert_eq!(Wire::OpenaiChat.path("gpt-test"), "/chat/completions");
}

#[test]
fn a_whole_request_has_these_bytes() {
    let document = Part::Document {
        media_type: "application/pdf".to_owned(),
        name: "a.pdf".to_owned(),
        data: "JVBE".to_owned(),
    };
    let request = Request {
        system: "Be brief.".into(),
        tools: Arc::new([tool("Read"), tool("Bash")]),
        ..request(vec![
            user(vec![Part::text("Look at \"a\"."), image(), document]),
            assistant(vec![
                thinking("hm"),
                Part::text("Reading."),
                call("c1", json!({"path": "a", "b": [1, null]})),
            ]),
            user(vec![result("c1", vec![Part::text("no\nsuch file")], true)]),
        ])
    };
    let expected = concat!(
        r#"{"model":"gpt-test","max_tokens":1000,"stream":true,"stream_options":{"include_usage":true},"#,
        r#""tools":[{"type":"function","function":{"name":"Read","description":"Does Read.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}},"#,
        r#"{"type":"function","function":{"name":"Bash","description":"Does Bash.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],"#,
        r#""messages":[{"role":"system","content":"Be brief."},"#,
        r#"{"role":"user","content":[{"type":"text","text":"Look at \"a\"."},"#,
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}},"#,
        r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}}]},"#,
        r#"{"role":"assistant","content":"Reading.","tool_calls":[{"id":"c1","type":"function","function":"#,
        r#"{"name":"Read","arguments":"{\"path\":\"a\",\"b\":[1,null]}"}}]},"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"Error: no\nsuch file"}]}"#,
    );
    let bytes = encode(&request, &Dialect::default());
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);
    assert_eq!(encode(&request.clone(), &Dialect::default()), bytes);
}

#[test]
fn speakers_take_turns_and_results_follow_their_calls_in_order() {
    check(
        vec![
            Message::user("one"),
            Message::user("two"),
            assistant(vec![Part::text("a")]),
            assistant(vec![Part::text("b"), call("c1", json!({})), call("c2", json!({}))]),
            Message::user("meanwhile"),
            user(vec![result("c2", vec![], false)]),
            user(vec![result("c1", vec![Part::text("1"), Part::text("2")], false)]),
            assistant(vec![Part::text("so")]),
        ],
        json!([
            {"role": "user", "content": "one\n\ntwo"},
            {"role": "assistant", "content": "a\n\nb", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "1\n2"},
            {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
            {"role": "user", "content": "meanwhile"},
            {"role": "assistant", "content": "so"},
        ]),
    );
}

#[test]
fn a_call_without_a_result_gets_one_and_a_result_without_a_call_becomes_text() {
    let written = |id: &str| json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": "{}"}});
    let note = "(The result of an earlier call:)";
    let missing = "Error: no result was recorded";
    check(
        vec![
            Message::user("go"),
            user(vec![result("early", vec![Part::text("?")], false)]),
            assistant(vec![call("c1", json!({})), call("c2", json!({}))]),
            user(vec![result("c2", vec![Part::text("2")], false)]),
            user(vec![result("c2", vec![Part::text("again")], false)]),
            assistant(vec![call("c3", json!({}))]),
        ],
        json!([
            {"role": "user", "content": format!("go\n\n{note}\n\n?")},
            {"role": "assistant", "content": null, "tool_calls": [written("c1"), written("c2")]},
            {"role": "tool", "tool_call_id": "c1", "content": missing},
            {"role": "tool", "tool_call_id": "c2", "content": "2"},
            {"role": "user", "content": format!("{note}\n\nagain")},
            {"role": "assistant", "content": null, "tool_calls": [written("c3")]},
            {"role": "tool", "tool_call_id": "c3", "content": missing},
        ]),
    );
}

#[test]
fn pictures_in_results_follow_them_as_words_of_the_user() {
    let label = json!({"type": "text", "text": "What the call of Read returned:"});
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}});
    let sent = messages_for(
        vec![
            Message::user("go"),
            assistant(vec![call("c1", json!({})), call("c2", json!({}))]),
            user(vec![
                result("c1", vec![image()], false),
                result("c2", vec![Part::text("two"), image()], true),
                Part::text("and?"),
            ]),
            assistant(vec![call("c3", json!({}))]),
            user(vec![result("c3", vec![image()], false)]),
        ],
        &Dialect::default(),
    );
    assert_eq!(sent[2]["content"], "(what it returned follows)");
    assert_eq!(sent[3]["content"], "Error: two");
    let and = json!({"type": "text", "text": "and?"});
    let content = json!([label, picture, label, picture, and]);
    assert_eq!(sent[4], json!({"role": "user", "content": content}));
    assert_eq!(sent[6]["role"], "tool");
    assert_eq!(sent[7], json!({"role": "user", "content": [label, picture]}));
}

#[test]
fn what_has_nothing_to_say_is_left_out() {
    check(
        vec![
            Message::user("hello"),
            assistant(vec![Part::text(" \n")]),
            user(vec![Part::text(""), Part::text("still there?")]),
            assistant(vec![thinking("hm")]),
            user(vec![thinking("hm"), call("c", json!({}))]),
            Message::user("well?"),
            assistant(vec![thinking("hm"), Part::text("yes")]),
            user(vec![Part::text("\t")]),
            assistant(vec![Part::text("really")]),
        ],
        json!([
            {"role": "user", "content": "hello\n\nstill there?\n\nwell?"},
            {"role": "assistant", "content": "yes\n\nreally"},
        ]),
    );
    let request = Request { system: " ".into(), ..request(vec![]) };
    assert_eq!(sent(&request, &Dialect::default())["messages"], json!([]));
}

#[test]
fn arguments_that_are_no_object_are_wrapped_into_one() {
    let arguments = |input: Value| {
        let messages = vec![Message::user("go"), assistant(vec![call("c", input)])];
        let sent = messages_for(messages, &Dialect::default());
        sent[1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap().to_owned()
    };
    assert_eq!(arguments(json!("{\"path\":")), r#"{"raw_input":"{\"path\":"}"#);
    assert_eq!(arguments(json!([1])), r#"{"raw_input":[1]}"#);
    assert_eq!(arguments(Value::Null), r#"{"raw_input":null}"#);
    assert_eq!(arguments(json!({"b": 1, "a": "é\u{1}"})), r#"{"b":1,"a":"é\u0001"}"#);
}

#[test]
fn a_schema_of_arguments_always_has_properties() {
    let bare = ToolSpec { schema: json!({"type": "object"}).into(), ..tool("Now") };
    let request = Request { tools: Arc::new([bare]), ..request(vec![]) };
    let tools = &sent(&request, &Dialect::default())["tools"];
    let expected = json!({"type": "object", "properties": {}});
    assert_eq!(tools[0]["function"]["parameters"], expected);
}

#[test]
fn names_that_a_model_made_up_become_names_the_wire_allows() {
    let name = |name: &str| {
        let call = json!({"type": "tool_call", "id": "c", "name": name, "input": {}});
        let call: Part = serde_json::from_value(call).unwrap();
        let messages = vec![Message::user("go"), assistant(vec![call])];
        let sent = messages_for(messages, &Dialect::default());
        sent[1]["tool_calls"][0]["function"]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(name("mcp__a-b_C9"), "mcp__a-b_C9");
    assert_eq!(name("functions.Read <é>"), "functions_Read____");
    assert_eq!(name(""), "unknown");
    assert_eq!(name(&"x".repeat(99)), "x".repeat(64));
}

#[test]
fn fields_of_a_later_version_in_what_people_said_stay_here() {
    let stored = r#"{"role":"user","parts":[{"type":"text","text":"hi","later":1}],"later":2}"#;
    let message: Message = serde_json::from_str(stored).unwrap();
    check(vec![message], json!([{"role": "user", "content": "hi"}]));
}

#[test]
fn a_longer_transcript_only_adds_to_what_was_sent_before() {
    let dialect = Dialect { returns_reasoning: true, ..Dialect::default() };
    let mut messages = vec![Message::user("start")];
    let mut before: Vec<Value> = Vec::new();
    for turn in 0..6 {
        let request = Request { system: "s".into(), ..request(messages.clone()) };
        let now = sent(&request, &dialect)["messages"].as_array().unwrap().clone();
        assert!(now.len() > before.len());
        assert_eq!(now[..before.len()], before[..], "turn {turn}");
        before = now;
        let id = format!("c{turn}");
        messages.push(assistant(vec![thinking("hm"), call(&id, json!({"turn": turn}))]));
        let mut parts = vec![result(&id, vec![Part::text("r"), image()], turn % 2 == 0)];
        if turn % 3 == 0 {
            parts.push(Part::text("note"));
        }
        messages.push(user(parts));
    }
}
