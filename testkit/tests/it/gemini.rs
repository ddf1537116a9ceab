//! Gemini generateContent: the shape of its streams, and what it refuses.

use crate::client::{client, start};
use crate::wires::{Form, Talk};
use posse_testkit::{Reply, Script, Wire};
use serde_json::{Value, json};

async fn answer(body: &Value) -> (u16, Value) {
    let fake = start(Script::always(Reply::text("fine"))).await;
    let request = Talk::new(Wire::Gemini).request(&client(), &fake, Form::Document);
    let response = request.body(body.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Checks that `body` is refused with a message that contains `part`.
async fn check(body: Value, part: &str) {
    let (status, document) = answer(&body).await;
    assert_eq!(status, 400, "{document}");
    let error = &document["error"];
    assert_eq!((&error["code"], &error["status"]), (&json!(400), &json!("INVALID_ARGUMENT")));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(part), "{message:?} does not contain {part:?}");
}

async fn check_contents(contents: Value, part: &str) {
    check(json!({"contents": contents}), part).await;
}

async fn check_fine(body: Value) {
    let (status, document) = answer(&body).await;
    assert_eq!(status, 200, "{document}");
}

fn user(part: Value) -> Value {
    json!({"role": "user", "parts": [part]})
}

fn says(text: &str) -> Value {
    user(json!({"text": text}))
}

fn model(parts: Value) -> Value {
    json!({"role": "model", "parts": parts})
}

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {}}})
}

fn response(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": "ok"}}})
}

fn declaring(declaration: Value) -> Value {
    json!({"contents": [says("x")], "tools": [{"functionDeclarations": [declaration]}]})
}

#[tokio::test]
async fn a_stream_has_the_chunks_of_the_real_api_in_their_order() {
    let reply = Reply::empty()
        .and_signed_thinking("ab", "c2ln")
        .and_text("cd")
        .and_tool_call("List", json!({"p": 1}));
    let fake = start(Script::always(reply)).await;
    let text =
        Talk::saying(Wire::Gemini, "x").send(&fake, Form::Stream).await.text().await.unwrap();
    let chunks: Vec<Value> = crate::wires::data(&text)
        .iter()
        .map(|chunk| serde_json::from_str(chunk).unwrap())
        .collect();
    let parts: Vec<&Value> =
        chunks.iter().map(|chunk| &chunk["candidates"][0]["content"]["parts"][0]).collect();
    let expected = [
        json!({"text": "a", "thought": true}),
        json!({"text": "b", "thought": true}),
        json!({"text": "c"}),
        json!({"text": "d"}),
        json!({"text": "", "thoughtSignature": "c2ln"}),
        json!({"functionCall": {"name": "List", "args": {"p": 1}}}),
        json!({"text": ""}),
    ];
    assert_eq!(parts, expected.iter().collect::<Vec<_>>());
    assert_eq!(chunks[0]["modelVersion"], "fake-1");
    assert_eq!(chunks[0]["responseId"], "fake_0");
}

#[tokio::test]
async fn a_signature_is_borne_by_what_follows_the_thinking() {
    let reply = Reply::empty()
        .and_signed_thinking("hm", "c2ln")
        .and_tool_call("Read", json!({}))
        .and_tool_call("List", json!({}));
    let fake = start(Script::always(reply)).await;
    let document = Talk::saying(Wire::Gemini, "x").document(&fake).await;
    let expected = json!([
        {"text": "hm", "thought": true},
        {"functionCall": {"name": "Read", "args": {}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "List", "args": {}}},
    ]);
    assert_eq!(document["candidates"][0]["content"]["parts"], expected);
}

#[tokio::test]
async fn without_server_sent_events_a_stream_is_an_array_that_grows() {
    let fake = start(Script::always(Reply::text("hello there"))).await;
    let talk = Talk::saying(Wire::Gemini, "x");
    let url = format!("{}/v1beta/models/fake-1:streamGenerateContent?key=k", fake.url());
    let request = client().post(url).body(talk.body(Form::Stream).to_string());
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json; charset=UTF-8");
    let chunks: Vec<Value> = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert!(chunks.len() > 2);
    let text = |chunk: &Value| {
        chunk["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(chunks.iter().map(text).collect::<String>(), "hello there");
}

#[tokio::test]
async fn the_model_is_that_of_the_path() {
    let fake = start(Script::always(Reply::text("x"))).await;
    let talk = Talk { model: "gemini-9".to_owned(), ..Talk::saying(Wire::Gemini, "x") };
    assert_eq!(talk.document(&fake).await["modelVersion"], "gemini-9");
    assert_eq!(fake.request(1).model(), "gemini-9");
}

#[tokio::test]
async fn names_are_known_in_both_spellings_and_no_others_are() {
    check_fine(json!({
        "contents": [{"role": "user", "parts": [
            {"inline_data": {"mime_type": "image/png", "data": "eA=="}},
            {"inlineData": {"mimeType": "application/pdf", "data": "eA=="}},
            {"fileData": {"fileUri": "x"}},
        ]}],
        "system_instruction": {"parts": [{"text": "s"}]},
        "generation_config": {"max_output_tokens": 5, "thinkingConfig": {"includeThoughts": true}},
        "toolConfig": {}, "safetySettings": [],
    }))
    .await;
    check(json!({"contents": [says("x")], "stream": true}), "Unknown name \"stream\"").await;
    let unknown = user(json!({"text": "x", "cache_control": {}}));
    check_contents(json!([unknown]), "Unknown name \"cache_control\"").await;
}

#[tokio::test]
async fn contents_have_roles_and_parts_that_are_something() {
    check(json!({}), "contents is not specified").await;
    check_contents(json!([]), "contents is not specified").await;
    check_fine(json!({"contents": [{"parts": [{"text": "x"}]}]})).await;
    let assistant = json!({"role": "assistant", "parts": [{"text": "x"}]});
    check_contents(json!([says("x"), assistant]), "Please use a valid role: user, model.").await;
    let none = json!([{"role": "user", "parts": []}]);
    check_contents(none, "contents[0].parts: contents.parts must not be empty").await;
    let part = "contents[0].parts[0].data: required oneof field 'data'";
    check_contents(json!([user(json!({}))]), part).await;
    let bare = user(json!({"inlineData": {"data": "eA=="}}));
    check_contents(json!([bare]), "contents[0].parts[0].inline_data").await;
    let body = json!({"contents": [says("x")], "generationConfig": {"maxOutputTokens": 0}});
    check(body, "max_output_tokens must be positive").await;
}

#[tokio::test]
async fn function_calls_and_responses_follow_each_other() {
    check_fine(json!({"contents": [
        says("x"),
        model(json!([{"text": "I look"}, call("a"), call("b")])),
        {"role": "user", "parts": [response("b"), response("a")]},
        model(json!([call("a")])),
        user(response("a")),
        model(json!([{"text": "done"}])),
        says("y"),
    ]}))
    .await;
    let count = "number of function response parts is equal to the number of function call parts";
    let short = json!([says("x"), model(json!([call("a"), call("b")])), user(response("a"))]);
    check_contents(short, count).await;
    check_contents(json!([says("x"), model(json!([call("a")])), says("y")]), count).await;
    check_contents(json!([says("x"), model(json!([call("a")]))]), count).await;
    let stray = json!([says("x"), user(response("a"))]);
    check_contents(stray, "function response turn comes immediately after a function call").await;
    let first = json!([model(json!([call("a")])), user(response("a"))]);
    check_contents(first, "function call turn comes immediately after a user turn").await;
    let other = json!([says("x"), model(json!([call("a")])), user(response("b"))]);
    check_contents(other, "function response `b` answers a function call").await;
    let named = |id: &str| {
        let mut call = call("a");
        call["functionCall"]["id"] = json!("1");
        let mut response = response("a");
        response["functionResponse"]["id"] = json!(id);
        json!([says("x"), model(json!([call])), user(response)])
    };
    check_fine(json!({"contents": named("1")})).await;
    check_contents(named("2"), "function response `a` answers").await;
}

#[tokio::test]
async fn function_calls_have_names_and_objects() {
    let nameless = user(json!({"functionResponse": {"response": {}}}));
    let contents = json!([says("x"), model(json!([call("a")])), nameless]);
    check_contents(contents, "contents[2].parts[0].function_response.name: Name cannot").await;
    let text = user(json!({"functionResponse": {"name": "a", "response": "ok"}}));
    let contents = json!([says("x"), model(json!([call("a")])), text]);
    check_contents(contents, "'contents[2].parts[0].function_response.response'").await;
    let list = json!({"functionCall": {"name": "a", "args": []}});
    let contents = json!([says("x"), model(json!([list])), user(response("a"))]);
    check_contents(contents, "'contents[1].parts[0].function_call.args'").await;
}

#[tokio::test]
async fn declared_functions_have_names_and_schemas_of_the_providers_own() {
    let with = |parameters: Value| declaring(json!({"name": "a", "parameters": parameters}));
    check_fine(with(json!({
        "type": "OBJECT",
        "properties": {"p": {"type": "array", "items": {"anyOf": [{"type": "string"}]}}},
        "required": ["p"],
    })))
    .await;
    let at = "tools[0].function_declarations[0].parameters";
    let strict = json!({"type": "object", "additionalProperties": false});
    check(with(strict), &format!("Unknown name \"additionalProperties\" at '{at}'")).await;
    let deep = json!({"type": "object", "properties": {"p": {"$ref": "x"}}});
    check(with(deep), &format!("Unknown name \"$ref\" at '{at}.properties[0].value'")).await;
    let missing = json!({"type": "object", "properties": {}, "required": ["p"]});
    check(with(missing), &format!("{at}.required[0]: property is not defined")).await;
    let list = json!({"type": "object", "properties": {"p": {"type": "array"}}});
    check(with(list), &format!("{at}.properties[0].value.items: missing field")).await;
    check(with(json!({"type": ["string", "null"]})), "not repeating").await;
    check(declaring(json!({"name": "1a"})), "Invalid function name").await;
    check(declaring(json!({"name": "a", "strict": true})), "Unknown name \"strict\"").await;
    let both = json!({"name": "a", "parameters": {"type": "object"}, "parametersJsonSchema": {}});
    check(declaring(both), "exclude each other").await;
    let twice = json!({"contents": [says("x")], "tools": [
        {"functionDeclarations": [{"name": "a"}]}, {"functionDeclarations": [{"name": "a"}]},
    ]});
    check(twice, "Duplicate function declaration found: a").await;
}
