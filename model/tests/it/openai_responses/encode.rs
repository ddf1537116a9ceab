//! Requests from transcripts.

use posse_agent::Request;
use posse_model::wire::{Dialect, EffortStyle, Target, TopEffort, Wire, Written, openai_responses};
use posse_protocol::{
    Effect, Effort, Extra, Message, Part, Price, Role, Thinking, ToolCall, ToolResult, ToolSpec,
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

/// The ways of a provider whose models reason.
pub fn reasoning() -> Dialect {
    Dialect { effort: EffortStyle::Reasoning, output_schema: true, ..Dialect::default() }
}

/// The bytes of a request to a provider with these ways.
pub fn encode_for(request: &Request, dialect: &Dialect) -> Vec<u8> {
    openai_responses::encode(
        request,
        Target { model: "gpt-test", dialect, written: &Written::default() },
    )
    .unwrap()
}

/// The bytes of a request to a plain provider.
pub fn encode(request: &Request) -> Vec<u8> {
    encode_for(request, &Dialect::default())
}

/// The body of a request to a plain provider, as JSON.
pub fn body_of(request: &Request) -> Value {
    serde_json::from_slice(&encode(request)).unwrap()
}

/// The input that `messages` make.
pub fn input_of(messages: Vec<Message>) -> Value {
    body_of(&request(messages))["input"].clone()
}

/// A message of the model.
pub fn assistant(parts: Vec<Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

/// A message of the user's side.
pub fn user(parts: Vec<Part>) -> Message {
    Message::new(Role::User, parts)
}

/// A call of `Read`.
pub fn call(id: &str, input: Value) -> Part {
    let extra = Extra::default();
    Part::ToolCall(ToolCall { id: id.into(), name: "Read".to_owned(), input, extra })
}

/// A result of one text.
pub fn result(id: &str, text: &str) -> Part {
    result_of(id, vec![Part::text(text)], false)
}

/// A result of these parts.
pub fn result_of(id: &str, parts: Vec<Part>, is_error: bool) -> Part {
    Part::ToolResult(ToolResult { call: id.into(), parts, is_error, extra: Extra::default() })
}

/// Reasoning, signed or not.
pub fn thinking(signature: Option<&str>) -> Part {
    let signature = signature.map(str::to_owned);
    Part::Thinking(Thinking { text: "hm".to_owned(), signature, extra: Extra::default() })
}

fn image() -> Part {
    Part::Image { media_type: "image/png".to_owned(), data: "iVBO".to_owned() }
}

fn document(name: &str) -> Part {
    let media_type = "application/pdf".to_owned();
    Part::Document { media_type, name: name.to_owned(), data: "JVBE".to_owned() }
}

fn tool(name: &str, schema: Value) -> ToolSpec {
    ToolSpec::new(name, format!("Does {name}."), Effect::Read, schema)
}

/// Encodes `messages` and expects this input.
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(input_of(messages), expected);
}

#[test]
fn the_wire_has_its_name_its_path_and_its_codec() {
    let wire: Wire = serde_json::from_value(json!("openai-responses")).unwrap();
    assert_eq!((wire.name(), wire.path("any").as_str()), ("openai-responses", "/responses"));
    let request = request(vec![Message::user("a")]);
    let target =
        Target { model: "gpt-test", dialect: &Dialect::default(), written: &Written::default() };
    assert_eq!(wire.encode(&request, target).unwrap(), encode(&request));
    let mut decoder = wire.decoder();
    decoder.document(br#"{"id":"resp_1","output":[]}"#, &|_| {}).unwrap();
    let reply = decoder.finish(&Price::default()).unwrap();
    assert_eq!(reply.message, Message::from_model("openai-responses", vec![]));
}

#[test]
fn a_whole_request_has_these_bytes() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let answer = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let request = Request {
        system: "Be brief.".into(),
        tools: Arc::new([tool("Read", schema), tool("Now", json!({"type": "object"}))]),
        effort: Some(Effort::High),
        output_schema: Some(Arc::new(answer)),
        ..request(vec![
            Message::user("Look at \"a\"."),
            assistant(vec![
                thinking(Some("gAAA")),
                Part::text("Reading."),
                call("c1", json!({"path": "a", "b": [1, null]})),
            ]),
            user(vec![result("c1", "no\nsuch file"), Part::text("Well?")]),
        ])
    };
    let expected = concat!(
        r#"{"model":"gpt-test","store":false,"stream":true,"max_output_tokens":1000,"include":["reasoning.encrypted_content"],"#,
        r#""reasoning":{"effort":"high","summary":"auto"},"#,
        r#""text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},"strict":true}},"#,
        r#""prompt_cache_key":"posse-0ece0cedef065a1b","#,
        r#""tools":[{"type":"function","name":"Read","description":"Does Read.","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false},"#,
        r#"{"type":"function","name":"Now","description":"Does Now.","parameters":{"type":"object","properties":{}},"strict":false}],"#,
        r#""instructions":"Be brief.","#,
        r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Look at \"a\"."}]},"#,
        r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"},"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Reading.","annotations":[]}]},"#,
        r#"{"type":"function_call","call_id":"c1","name":"Read","arguments":"{\"path\":\"a\",\"b\":[1,null]}"},"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"no\nsuch file"},"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Well?"}]}]}"#,
    );
    let bytes = encode_for(&request, &reasoning());
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);
    assert_eq!(encode_for(&request.clone(), &reasoning()), bytes);
}

#[test]
fn a_model_that_is_not_known_to_reason_is_not_asked_to() {
    let mut request = request(vec![Message::user("a")]);
    request.effort = Some(Effort::High);
    request.output_schema = Some(Arc::new(json!({"type": "object"})));
    let keys: Vec<String> = body_of(&request).as_object().unwrap().keys().cloned().collect();
    let expected = ["model", "store", "stream", "max_output_tokens", "prompt_cache_key", "input"];
    assert_eq!(keys, expected);
}

#[test]
fn efforts_have_names_and_the_greatest_is_the_dialect_s() {
    let effort = |effort: Option<Effort>, top_effort: TopEffort| {
        let request = Request { effort, ..request(vec![]) };
        let bytes = encode_for(&request, &Dialect { top_effort, ..reasoning() });
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        body["reasoning"].clone()
    };
    let named = |name: &str| json!({"effort": name, "summary": "auto"});
    assert_eq!(effort(None, TopEffort::High), Value::Null);
    assert_eq!(effort(Some(Effort::Low), TopEffort::Max), named("low"));
    assert_eq!(effort(Some(Effort::Medium), TopEffort::Max), named("medium"));
    assert_eq!(effort(Some(Effort::High), TopEffort::Max), named("high"));
    assert_eq!(effort(Some(Effort::Max), TopEffort::High), named("high"));
    assert_eq!(effort(Some(Effort::Max), TopEffort::Xhigh), named("xhigh"));
    assert_eq!(effort(Some(Effort::Max), TopEffort::Max), named("max"));
}

#[test]
fn a_cap_too_small_for_the_wire_is_raised_to_its_smallest() {
    let cap = |max_tokens| {
        let request = Request { max_tokens, ..request(vec![]) };
        body_of(&request)["max_output_tokens"].as_u64().unwrap()
    };
    assert_eq!([cap(1), cap(16), cap(17)], [16, 16, 17]);
}

#[test]
fn a_schema_is_promised_to_be_followed_only_where_that_can_be() {
    let strict = |schema: Value| {
        let request = Request { output_schema: Some(Arc::new(schema)), ..request(vec![]) };
        let body: Value = serde_json::from_slice(&encode_for(&request, &reasoning())).unwrap();
        body["text"]["format"]["strict"].as_bool().unwrap()
    };
    let object = |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"], "additionalProperties": false});
    assert!(strict(object(json!({"type": ["string", "null"], "description": "d"}))));
    assert!(strict(object(json!({"type": "array", "items": {"enum": ["x"]}}))));
    assert!(strict(object(json!({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/x"}]}))));
    assert!(strict(object(object(json!({"const": 1})))));
    assert!(!strict(json!({"type": "object"})));
    assert!(!strict(json!({"type": "array", "items": {"type": "string"}})));
    assert!(!strict(json!({"anyOf": [object(json!({"type": "string"}))]})));
    assert!(!strict(object(json!({"type": "object"}))));
    assert!(!strict(object(json!({"type": "string", "minLength": 1}))));
    assert!(!strict(object(json!({"$ref": "https://example.com/x"}))));
    assert!(!strict(object(json!(true))));
    let mut open = object(json!({"type": "string"}));
    open["additionalProperties"] = json!(true);
    assert!(!strict(open));
    let mut silent = object(json!({"type": "string"}));
    silent.as_object_mut().unwrap().shift_remove("additionalProperties");
    assert!(!strict(silent));
    let mut choice = object(json!({"type": "string"}));
    choice["anyOf"] = json!([{"type": "object", "properties": {}, "additionalProperties": false}]);
    assert!(!strict(choice));
    assert!(!strict(object(json!({"properties": {"b": {"type": "string"}}}))));
    let mut optional = object(json!({"type": "string"}));
    optional["required"] = json!([]);
    assert!(!strict(optional));
    let deep = (0..12).fold(json!({"type": "string"}), |inner, _| object(inner));
    assert!(!strict(deep));
}

#[test]
fn turns_of_a_run_share_a_cache_key_and_runs_do_not() {
    let key = |system: &str, messages: Vec<Message>| {
        let request = Request { system: system.into(), ..request(messages) };
        body_of(&request)["prompt_cache_key"].as_str().unwrap().to_owned()
    };
    let first = key("s", vec![Message::user("a")]);
    let second = vec![Message::user("a"), assistant(vec![Part::text("b")]), Message::user("c")];
    assert_eq!(first, key("s", second));
    assert_ne!(first, key("s", vec![Message::user("b")]));
    assert_ne!(first, key("sa", vec![Message::user("")]));
    assert!(first.len() <= 64);
}

#[test]
fn pictures_and_documents_are_sent_where_they_are() {
    let picture =
        json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBO"});
    let file = |name: &str| json!({"type": "input_file", "filename": name, "file_data": "data:application/pdf;base64,JVBE"});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    check(
        vec![
            user(vec![image(), Part::text("See."), document("a.pdf")]),
            assistant(vec![call("c1", json!({})), call("c2", json!({})), image()]),
            user(vec![
                result_of("c1", vec![Part::text("A:"), image(), Part::text(" ")], false),
                result_of("c2", vec![document(""), document("b.PDF"), document("c")], true),
            ]),
        ],
        json!([
            {"type": "message", "role": "user", "content": [picture, text("See."), file("a.pdf")]},
            {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "Read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [text("A:"), picture]},
            {"type": "function_call_output", "call_id": "c2",
             "output": [text("Error:"), file("document.pdf"), file("b.PDF"), file("c.pdf")]},
        ]),
    );
}

#[test]
fn results_are_text_and_say_that_they_are_errors() {
    let output = |parts: Vec<Part>, is_error: bool| {
        let messages = vec![
            assistant(vec![call("c", json!({}))]),
            user(vec![result_of("c", parts, is_error)]),
        ];
        input_of(messages)[1]["output"].clone()
    };
    let texts = || vec![Part::text("one"), Part::text("two")];
    assert_eq!(output(texts(), false), "one\ntwo");
    assert_eq!(output(texts(), true), "Error: one\ntwo");
    assert_eq!(output(vec![], false), "");
    assert_eq!(output(vec![], true), "Error: the tool gave no reason");
    assert_eq!(output(vec![call("x", json!({}))], false), "");
}

#[test]
fn what_the_provider_would_refuse_is_left_out() {
    check(
        vec![
            Message::user("hello"),
            assistant(vec![Part::text("")]),
            user(vec![Part::text(" \n"), Part::text("still there?")]),
            assistant(vec![
                thinking(None),
                thinking(Some("s")),
                Part::Opaque { wire: "anthropic".to_owned(), value: json!({"type": "x"}) },
                Part::text("yes"),
                thinking(Some("last")),
            ]),
            user(vec![thinking(Some("s")), call("c", json!({})), Part::text("good")]),
            assistant(vec![thinking(Some("alone"))]),
            user(vec![]),
        ],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "still there?"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "s"},
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "yes", "annotations": []}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "good"}]},
        ]),
    );
}

#[test]
fn a_provider_that_wants_unsigned_reasoning_gets_it() {
    let messages = vec![assistant(vec![thinking(None), Part::text("yes")])];
    let dialect = Dialect { returns_reasoning: true, ..Dialect::default() };
    let bytes = encode_for(&request(messages), &dialect);
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    let expected =
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]});
    assert_eq!(body["input"][0], expected);
}

#[test]
fn fields_of_a_later_version_in_what_people_said_stay_here() {
    let stored = r#"{"role":"user","parts":[{"type":"text","text":"hi","later":1,"item":{"id":"x"}}],"later":2}"#;
    let message: Message = serde_json::from_str(stored).unwrap();
    let content = json!([{"type": "input_text", "text": "hi"}]);
    check(vec![message], json!([{"type": "message", "role": "user", "content": content}]));
}
