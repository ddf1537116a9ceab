//! Requests: everything around the transcript, and how each part is written.

use super::transcripts::{
    call, contents_of, encode, error, image, model, request, result, thinking,
};
use posse_agent::Request;
use posse_model::wire::{Dialect, EffortStyle, Gemini, Target, Wire, Written, gemini};
use posse_protocol::{Effect, Effort, Message, Part, Role, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

fn tool(name: &str, schema: Value) -> ToolSpec {
    ToolSpec::new(name, format!("Does {name}."), Effect::Read, schema)
}

/// Encodes `messages` and expects these contents.
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(contents_of(messages, Gemini::Two), expected);
}

/// The `generationConfig` of a request to a model with this dialect.
fn config(request: &Request, dialect: &Dialect) -> Value {
    let bytes = gemini::encode(
        request,
        Target { model: "gemini-test", dialect, written: &Written::default() },
    )
    .unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    body["generationConfig"].clone()
}

#[test]
fn a_whole_request_has_these_bytes() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"path": {"type": "string", "minLength": 1}},
        "additionalProperties": false,
    });
    let request = Request {
        system: "Be brief.".into(),
        tools: Arc::new([tool("Read", schema), tool("Now", Value::Null)]),
        ..request(vec![
            Message::user("Look at \"a\"."),
            model(vec![
                thinking("hm", Some("sig=")),
                Part::text("Reading."),
                call("c1", json!({"path": "a", "b": [1, null]})),
            ]),
            Message::new(Role::User, vec![error("c1", "no\nsuch file"), Part::text("go on")]),
        ])
    };
    let expected = concat!(
        r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"#,
        r#""tools":[{"functionDeclarations":[{"name":"Read","description":"Does Read.","parametersJsonSchema":"#,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"path":{"type":"string","minLength":1}},"additionalProperties":false}},"#,
        r#"{"name":"Now","description":"Does Now."}]}],"#,
        r#""contents":[{"role":"user","parts":[{"text":"Look at \"a\"."}]},"#,
        r#"{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"sig="},{"text":"Reading."},"#,
        r#"{"functionCall":{"id":"c1","name":"Read","args":{"path":"a","b":[1,null]}}}]},"#,
        r#"{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"Read","response":{"error":"no\nsuch file"}}},"#,
        r#"{"text":"go on"}]}],"#,
        r#""generationConfig":{"maxOutputTokens":1000}}"#,
    );
    let bytes = encode(&request, Gemini::Two);
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);
    assert_eq!(encode(&request.clone(), Gemini::Two), bytes);
}

#[test]
fn the_path_names_the_model_and_asks_for_events() {
    let check = |model: &str, path: &str| assert_eq!(Wire::Gemini.path(model), path);
    check("gemini-2.5-pro", "/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    check("a?b#c:d%e é", "/models/a%3Fb%23c%3Ad%25e%20%C3%A9:streamGenerateContent?alt=sse");
}

#[test]
fn neighbours_of_one_role_become_one_content() {
    check(
        vec![
            Message::user("one"),
            Message::user("two"),
            model(vec![Part::text("a")]),
            model(vec![Part::text(""), Part::text("b")]),
            Message::user("three"),
        ],
        json!([
            {"role": "user", "parts": [{"text": "one"}, {"text": "two"}]},
            {"role": "model", "parts": [{"text": "a"}, {"text": "b"}]},
            {"role": "user", "parts": [{"text": "three"}]},
        ]),
    );
}

#[test]
fn what_the_provider_would_refuse_is_left_out() {
    check(
        vec![
            Message::user("hello"),
            model(vec![Part::text(" \n")]),
            Message::new(Role::User, vec![Part::text(""), thinking("x", None), Part::text("hm?")]),
            model(vec![
                thinking("", None),
                thinking("so", None),
                Part::Opaque { wire: "openai".to_owned(), value: json!({"type": "reasoning"}) },
                Part::Opaque { wire: "gemini".to_owned(), value: json!({"novel": 1}) },
                Part::Opaque { wire: "gemini".to_owned(), value: json!(null) },
            ]),
            Message::new(Role::User, vec![call("c", json!({}))]),
            Message::user("good"),
        ],
        json!([
            {"role": "user", "parts": [{"text": "hello"}, {"text": "hm?"}]},
            {"role": "model", "parts": [{"text": "so", "thought": true}, {"novel": 1}]},
            {"role": "user", "parts": [{"text": "good"}]},
        ]),
    );
}

#[test]
fn a_reply_of_thoughts_alone_leaves_no_gap() {
    check(
        vec![Message::user("a"), model(vec![thinking("hm", Some("s"))]), Message::user("b")],
        json!([{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]),
    );
}

#[test]
fn a_transcript_that_begins_with_the_model_gets_a_beginning() {
    check(
        vec![model(vec![Part::text("a")]), Message::user("b")],
        json!([
            {"role": "user", "parts": [{"text": "(The beginning of this conversation is not shown.)"}]},
            {"role": "model", "parts": [{"text": "a"}]},
            {"role": "user", "parts": [{"text": "b"}]},
        ]),
    );
}

#[test]
fn arguments_that_are_no_object_are_wrapped_into_one() {
    let messages = vec![
        Message::user("a"),
        model(vec![call("c", json!("{\"path\":"))]),
        Message::new(Role::User, vec![error("c", "not JSON")]),
    ];
    let sent = contents_of(messages, Gemini::Two);
    let args = &sent[1]["parts"][0]["functionCall"]["args"];
    assert_eq!(args, &json!({"raw_input": "{\"path\":"}));
}

#[test]
fn pictures_and_documents_are_inline_data() {
    let document = Part::Document {
        media_type: "application/pdf".to_owned(),
        name: "report.pdf".to_owned(),
        data: "JVBE".to_owned(),
    };
    check(
        vec![Message::new(Role::User, vec![image("image/png"), document, Part::text("what?")])],
        json!([{"role": "user", "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
            {"text": "report.pdf:"},
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}},
            {"text": "what?"},
        ]}]),
    );
}

#[test]
fn media_of_results_is_inside_them_where_that_is_allowed() {
    let document = Part::Document {
        media_type: "application/pdf".to_owned(),
        name: "a.pdf".to_owned(),
        data: "JVBE".to_owned(),
    };
    let parts =
        vec![Part::text("a"), image("image/png"), document, Part::text("b"), image("image/gif")];
    let messages = vec![
        Message::user("look"),
        model(vec![call("c", json!({})), call("d", json!({}))]),
        Message::new(Role::User, vec![result("c", parts), result("d", vec![])]),
    ];
    let png = json!({"inlineData": {"mimeType": "image/png", "data": "iVBO"}});
    let gif = json!({"inlineData": {"mimeType": "image/gif", "data": "iVBO"}});
    let pdf = json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}});
    let note = json!({"text": "Attached to the result of Read:"});
    let empty =
        json!({"functionResponse": {"id": "d", "name": "Read", "response": {"output": ""}}});
    let response = json!({"id": "c", "name": "Read", "response": {"output": "a\nb"}});
    let outside = json!([{"functionResponse": response}, empty, note, png, pdf, gif]);
    assert_eq!(contents_of(messages.clone(), Gemini::Two)[2]["parts"], outside);
    let mut response = response;
    response["parts"] = json!([png, pdf]);
    let inside = json!([{"functionResponse": response}, empty, note, gif]);
    assert_eq!(contents_of(messages, Gemini::Three)[2]["parts"], inside);
}

#[test]
fn how_hard_to_think_is_said_in_the_words_of_the_model() {
    let check = |effort: Option<Effort>, style: EffortStyle, max_tokens: u64, expected: Value| {
        let request = Request { effort, max_tokens, ..request(vec![Message::user("a")]) };
        let dialect = Dialect { effort: style, ..Dialect::default() };
        assert_eq!(config(&request, &dialect)["thinkingConfig"], expected, "{effort:?} {style:?}");
    };
    let thoughts = json!({"includeThoughts": true});
    let budget = |tokens: u64| json!({"includeThoughts": true, "thinkingBudget": tokens});
    let level = |level: &str| json!({"includeThoughts": true, "thinkingLevel": level});
    use EffortStyle::{None as Mute, ThinkingBudget, ThinkingLevel};
    check(Some(Effort::High), Mute, 65_536, Value::Null);
    check(None, ThinkingBudget, 65_536, thoughts.clone());
    check(Some(Effort::Low), ThinkingBudget, 65_536, budget(1_024));
    check(Some(Effort::Medium), ThinkingBudget, 65_536, budget(8_192));
    check(Some(Effort::High), ThinkingBudget, 65_536, budget(16_384));
    check(Some(Effort::Max), ThinkingBudget, 65_536, budget(24_576));
    check(Some(Effort::Max), ThinkingBudget, 8_000, budget(6_000));
    check(Some(Effort::Max), ThinkingBudget, 600, thoughts.clone());
    check(None, ThinkingLevel, 1, thoughts);
    check(Some(Effort::Low), ThinkingLevel, 1, level("LOW"));
    check(Some(Effort::Medium), ThinkingLevel, 1, level("MEDIUM"));
    check(Some(Effort::High), ThinkingLevel, 1, level("HIGH"));
    check(Some(Effort::Max), ThinkingLevel, 1, level("HIGH"));
}

#[test]
fn a_schema_for_the_answer_is_sent_where_it_is_taken() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let without = json!({"maxOutputTokens": 1_000});
    let with = json!({"maxOutputTokens": 1_000, "responseMimeType": "application/json",
        "responseJsonSchema": schema});
    let mut request =
        Request { output_schema: Some(Arc::new(schema)), ..request(vec![Message::user("a")]) };
    let refuses = Dialect::default();
    let two = Dialect { output_schema: true, ..Dialect::default() };
    let three = Dialect { gemini: Gemini::Three, ..two.clone() };
    assert_eq!(config(&request, &refuses), without);
    assert_eq!(config(&request, &two), with);
    assert_eq!(config(&request, &three), with);
    request.tools = Arc::new([tool("Read", json!({"type": "object"}))]);
    assert_eq!(config(&request, &two), without);
    assert_eq!(config(&request, &three), with);
}

#[test]
fn fields_of_a_later_version_in_what_people_said_stay_here() {
    let stored = r#"{"role":"user","parts":[{"type":"text","text":"hi","pieces":[{"length":2,"fields":{"x":1}}]}],"later":2}"#;
    let message: Message = serde_json::from_str(stored).unwrap();
    check(vec![message], json!([{"role": "user", "parts": [{"text": "hi"}]}]));
}

#[test]
fn each_turn_begins_with_the_bytes_of_the_turn_before() {
    for rules in [Gemini::Two, Gemini::Three] {
        let mut messages = vec![Message::user("start")];
        let mut before: Vec<u8> = Vec::new();
        for turn in 0..6 {
            let request = Request { system: "s".into(), ..request(messages.clone()) };
            let bytes = encode(&request, rules);
            assert!(bytes.starts_with(&before), "turn {turn}");
            // All up to the end of the last content.
            let end = bytes.windows(3).rposition(|bytes| bytes == b"}],").unwrap();
            before = bytes[..=end].to_vec();
            assert!(before.ends_with(b"]}"));
            let id = format!("c{turn}");
            messages.push(model(vec![thinking("hm", None), call(&id, json!({}))]));
            let results = vec![result(&id, vec![image("image/png")]), Part::text("note")];
            messages.push(Message::new(Role::User, results));
        }
    }
}
