//! Requests from transcripts.

use posse_agent::Request;
use posse_model::wire::{Dialect, Target, Written, anthropic};
use posse_protocol::{
    Effect, Extra, Message, Part, Role, Thinking, ToolCall, ToolResult, ToolSpec,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A request of `messages` with neither system prompt nor tools.
pub fn request(messages: Vec<Message>) -> Request {
    Request {
        system: "".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new([]),
        max_tokens: 1_000,
        effort: None,
        output_schema: None,
    }
}

/// The bytes of a request to a plain provider.
pub fn encode(request: &Request) -> Vec<u8> {
    let target =
        Target { model: "claude-test", dialect: &Dialect::default(), written: &Written::default() };
    anthropic::encode(request, target).unwrap()
}

/// The body of a request, as JSON.
pub fn body_of(request: &Request) -> Value {
    serde_json::from_slice(&encode(request)).unwrap()
}

/// The paths of all cache marks, in order.
pub fn marks(body: &Value) -> Vec<String> {
    fn walk(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match key.as_str() {
                        "cache_control" => found.push(path.to_owned()),
                        _ => walk(value, &format!("{path}/{key}"), found),
                    }
                }
            }
            Value::Array(list) => {
                for (position, value) in list.iter().enumerate() {
                    walk(value, &format!("{path}/{position}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(body, "", &mut found);
    found
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec::new(
        name,
        format!("Does {name}."),
        Effect::Read,
        json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    )
}

fn assistant(parts: Vec<Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

/// A call of `Read`.
pub fn call(id: &str, input: Value) -> Part {
    let extra = Extra::default();
    Part::ToolCall(ToolCall { id: id.into(), name: "Read".to_owned(), input, extra })
}

/// A result.
pub fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Part {
    Part::ToolResult(ToolResult { call: id.into(), parts, is_error, extra: Extra::default() })
}

/// Reasoning, perhaps signed.
pub fn thinking(signature: Option<&str>) -> Part {
    let signature = signature.map(str::to_owned);
    Part::Thinking(Thinking { text: "hm".to_owned(), signature, extra: Extra::default() })
}

/// A block of a provider.
pub fn opaque(wire: &str, value: Value) -> Part {
    Part::Opaque { wire: wire.to_owned(), value }
}

/// Encodes `messages` and expects these, marks left out.
pub fn check(messages: Vec<Message>, expected: Value) {
    fn unmark(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.shift_remove("cache_control");
                map.values_mut().for_each(unmark);
            }
            Value::Array(list) => list.iter_mut().for_each(unmark),
            _ => {}
        }
    }
    let mut body = body_of(&request(messages));
    unmark(&mut body);
    assert_eq!(body["messages"], expected);
}

#[test]
fn a_whole_request_has_these_bytes() {
    let image = Part::Image { media_type: "image/png".to_owned(), data: "iVBO".to_owned() };
    let request = Request {
        system: "Be brief.".into(),
        tools: Arc::new([tool("Read"), tool("Bash")]),
        ..request(vec![
            Message::user("Look at \"a\"."),
            assistant(vec![
                thinking(Some("sig")),
                Part::text("Reading."),
                call("c1", json!({"path": "a", "b": [1, null]})),
            ]),
            Message::new(
                Role::User,
                vec![result("c1", vec![Part::text("no\nsuch file"), image], true)],
            ),
        ])
    };
    let expected = concat!(
        r#"{"model":"claude-test","max_tokens":1000,"stream":true,"#,
        r#""tools":[{"name":"Read","description":"Does Read.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}},"#,
        r#"{"name":"Bash","description":"Does Bash.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}],"#,
        r#""system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"#,
        r#""messages":[{"role":"user","content":[{"type":"text","text":"Look at \"a\".","cache_control":{"type":"ephemeral"}}]},"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"Reading."},"#,
        r#"{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a","b":[1,null]}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":["#,
        r#"{"type":"text","text":"no\nsuch file"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}],"#,
        r#""cache_control":{"type":"ephemeral"}}]}]}"#,
    );
    let bytes = encode(&request);
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);
    assert_eq!(encode(&request.clone()), bytes);
}

#[test]
fn neighbours_of_one_role_become_one_message_with_results_first() {
    check(
        vec![
            Message::user("one"),
            Message::user("two"),
            assistant(vec![Part::text("a")]),
            assistant(vec![call("c1", json!({})), call("c2", json!({}))]),
            Message::user("meanwhile"),
            Message::new(Role::User, vec![result("c1", vec![Part::text("1")], false)]),
            Message::new(Role::User, vec![result("c2", vec![], false)]),
        ],
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "c1", "name": "Read", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "Read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1",
                 "content": [{"type": "text", "text": "1"}]},
                {"type": "tool_result", "tool_use_id": "c2"},
                {"type": "text", "text": "meanwhile"}]},
        ]),
    );
}

#[test]
fn what_the_provider_would_refuse_is_left_out() {
    check(
        vec![
            Message::user("hello"),
            assistant(vec![Part::text("")]),
            Message::new(Role::User, vec![Part::text(" \n"), Part::text("still there?")]),
            assistant(vec![
                thinking(None),
                thinking(Some("s")),
                opaque("openai", json!({"type": "reasoning"})),
                Part::text("yes"),
                thinking(Some("last")),
                opaque("anthropic", json!({"type": "redacted_thinking", "data": "x"})),
            ]),
            Message::new(Role::User, vec![thinking(Some("s")), call("c", json!({}))]),
            Message::user("good"),
        ],
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "hello"}, {"type": "text", "text": "still there?"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "yes"}]},
            {"role": "user", "content": [{"type": "text", "text": "good"}]},
        ]),
    );
}

#[test]
fn a_reply_of_reasoning_alone_leaves_no_gap() {
    check(
        vec![Message::user("a"), assistant(vec![thinking(Some("s"))]), Message::user("b")],
        json!([{"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]),
    );
}

#[test]
fn arguments_that_are_no_object_are_wrapped_into_one() {
    check(
        vec![
            Message::user("a"),
            assistant(vec![call("c", json!("{\"path\":"))]),
            Message::new(Role::User, vec![result("c", vec![Part::text("not JSON")], true)]),
        ],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "Read",
                "input": {"raw_input": "{\"path\":"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c",
                "is_error": true, "content": [{"type": "text", "text": "not JSON"}]}]},
        ]),
    );
}

#[test]
fn fields_of_a_later_version_in_what_people_said_stay_here() {
    let stored = r#"{"role":"user","parts":[{"type":"text","text":"hi","later":1}],"later":2}"#;
    let message: Message = serde_json::from_str(stored).unwrap();
    check(vec![message], json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]));
}

#[test]
fn without_system_prompt_the_last_tool_is_marked() {
    let mut request = request(vec![Message::user("a")]);
    assert_eq!(marks(&body_of(&request)), ["/messages/0/content/0"]);
    request.tools = Arc::new([tool("Read"), tool("Bash")]);
    assert_eq!(marks(&body_of(&request)), ["/tools/1", "/messages/0/content/0"]);
    request.system = "Be brief.".into();
    assert_eq!(marks(&body_of(&request)), ["/system/0", "/messages/0/content/0"]);
}

#[test]
fn every_turn_keeps_the_last_mark_of_the_turn_before() {
    let mut messages = vec![Message::user("start")];
    let mut last_mark: Option<String> = None;
    for turn in 0..8 {
        let request = Request { system: "s".into(), ..request(messages.clone()) };
        let found = marks(&body_of(&request));
        assert!(found.len() <= 4, "{found:?}");
        assert_eq!(
            found.last().unwrap(),
            &format!("/messages/{}/content/1", 2 * turn)
                .replace("/messages/0/content/1", "/messages/0/content/0")
        );
        assert!(last_mark.is_none_or(|mark| found.contains(&mark)), "{found:?}");
        last_mark = found.last().cloned();
        let id = format!("c{turn}");
        messages.push(assistant(vec![call(&id, json!({}))]));
        let results = vec![result(&id, vec![Part::text("r")], false), Part::text("note")];
        messages.push(Message::new(Role::User, results));
    }
}
