//! OpenAI Chat Completions: the shape of its streams, and what it refuses.

use crate::client::start;
use crate::wires::{Form, Talk, data};
use posse_testkit::{Reply, Script, Wire};
use serde_json::{Value, json};

async fn answer(body: &Value) -> (u16, Value) {
    let fake = start(Script::always(Reply::text("fine"))).await;
    let request =
        Talk::new(Wire::OpenAiChat).request(&crate::client::client(), &fake, Form::Document);
    let response = request.body(body.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Checks that `body` is refused because of `param`, with a message that contains `part`.
async fn check(body: Value, param: &str, part: &str) {
    let (status, document) = answer(&body).await;
    assert_eq!(status, 400, "{document}");
    let error = &document["error"];
    assert_eq!(error["type"], "invalid_request_error");
    assert_eq!(error["param"].as_str().unwrap_or_default(), param, "{document}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(part), "{message:?} does not contain {part:?}");
}

async fn check_messages(messages: Value, param: &str, part: &str) {
    check(json!({"model": "m", "messages": messages}), param, part).await;
}

async fn check_fine(body: Value) {
    let (status, document) = answer(&body).await;
    assert_eq!(status, 200, "{document}");
}

fn user() -> Value {
    json!({"role": "user", "content": "x"})
}

fn calls(ids: &[&str]) -> Value {
    let function = json!({"name": "Read", "arguments": "{}"});
    let call = |id: &&str| json!({"id": id, "type": "function", "function": function});
    let calls: Vec<Value> = ids.iter().map(call).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

#[tokio::test]
async fn a_stream_has_the_chunks_of_the_real_api_in_their_order() {
    let reply = Reply::thinking("ab").and_text("cd").and_tool_call("List", json!({"p": 1}));
    let fake = start(Script::always(reply)).await;
    let response = Talk::saying(Wire::OpenAiChat, "x").send(&fake, Form::Stream).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let text = response.text().await.unwrap();
    let deltas: Vec<Value> = data(&text)
        .iter()
        .filter_map(|chunk| serde_json::from_str::<Value>(chunk).ok())
        .filter_map(|chunk| chunk["choices"].get(0).map(|choice| choice["delta"].clone()))
        .collect();
    let arguments =
        |piece: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]});
    let call = json!({
        "index": 0,
        "id": "call_0_0",
        "type": "function",
        "function": {"name": "List", "arguments": ""},
    });
    let expected = [
        json!({"role": "assistant", "content": "", "refusal": null}),
        json!({"reasoning_content": "a"}),
        json!({"reasoning_content": "b"}),
        json!({"content": "c"}),
        json!({"content": "d"}),
        json!({"tool_calls": [call]}),
        arguments("{\"p\""),
        arguments(":1}"),
        json!({}),
    ];
    assert_eq!(deltas, expected);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
}

#[tokio::test]
async fn usage_is_streamed_only_to_those_who_ask_for_it() {
    let fake = start(Script::always(Reply::text("x"))).await;
    let talk = Talk::saying(Wire::OpenAiChat, "x").with("stream_options", json!(null));
    let text = talk.send(&fake, Form::Stream).await.text().await.unwrap();
    assert!(!text.contains("usage"), "{text}");
    let asking = Talk::saying(Wire::OpenAiChat, "x");
    let text = asking.send(&fake, Form::Stream).await.text().await.unwrap();
    let chunks = data(&text);
    let last: Value = serde_json::from_str(chunks[chunks.len() - 2]).unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn fields_that_are_missing_or_wrong_are_named() {
    check(json!({"messages": [user()]}), "", "must provide a model").await;
    check(json!({"model": "m"}), "messages", "Missing required parameter").await;
    check_messages(json!([]), "messages", "empty array").await;
    check_messages(json!([{"content": "x"}]), "messages[0].role", "Missing required").await;
    let wizard = json!([{"role": "wizard", "content": "x"}]);
    check_messages(wizard, "messages[0].role", "Invalid value: 'wizard'").await;
    let silent = json!([{"role": "user", "content": null}]);
    check_messages(silent, "messages.[0].content", "expected a string, got null").await;
    let with = |key: &str, value: Value| {
        let mut body = json!({"model": "m", "messages": [user()]});
        body[key] = value;
        body
    };
    check(with("max_tokens", json!(0)), "max_tokens", "Expected a value >= 1").await;
    let part = "only allowed when 'stream' is enabled";
    check(with("stream_options", json!({})), "stream_options", part).await;
    let mut both = with("max_tokens", json!(5));
    both["max_completion_tokens"] = json!(5);
    check(both, "max_tokens", "at the same time").await;
    let mut thinker = with("max_tokens", json!(5));
    thinker["model"] = json!("gpt-5-mini");
    check(thinker, "max_tokens", "Use 'max_completion_tokens' instead").await;
}

#[tokio::test]
async fn every_call_is_answered_right_after_it() {
    check_fine(json!({"model": "m", "messages": [
        {"role": "system", "content": "s"}, user(), calls(&["a", "b"]), result("b"), result("a"),
        {"role": "assistant", "content": "done"}, user(), {"role": "developer", "content": "d"},
    ]}))
    .await;
    let part = "did not have response messages: b";
    let open = json!([user(), calls(&["a", "b"]), result("a")]);
    check_messages(open, "messages.[3].role", part).await;
    let late = json!([user(), calls(&["b"]), user(), result("b")]);
    check_messages(late, "messages.[2].role", part).await;
    let stray = json!([user(), result("a")]);
    check_messages(stray, "messages.[1].role", "must be a response to a preceeding").await;
    let other = json!([user(), calls(&["a"]), result("z"), result("a")]);
    check_messages(other, "messages.[2].tool_call_id", "'z' not found").await;
    let twice = json!([user(), calls(&["a"]), result("a"), result("a")]);
    check_messages(twice, "messages.[3].tool_call_id", "answered already").await;
    let nameless = json!([user(), calls(&["a"]), {"role": "tool", "content": "x"}]);
    check_messages(nameless, "messages.[2].tool_call_id", "must have a 'tool_call_id'").await;
    let same = json!([user(), calls(&["a"]), result("a"), calls(&["a"]), result("a")]);
    check_messages(same, "messages.[3]", "Duplicate value").await;
}

#[tokio::test]
async fn calls_have_ids_names_and_text_for_arguments() {
    let place = "messages[1].tool_calls[0]";
    let cases = [
        ("/id", json!(null), "id", "Missing required"),
        ("/id", json!("x".repeat(41)), "id", "maximum length 40"),
        ("/type", json!(null), "type", "Missing required"),
        ("/function/name", json!("a.b"), "function.name", "does not match pattern"),
        ("/function/name", json!("n".repeat(65)), "function.name", "maximum length 64"),
        ("/function/arguments", json!(null), "function.arguments", "Missing required"),
        ("/function/arguments", json!({}), "function.arguments", "but got an object instead"),
    ];
    for (pointer, value, param, part) in cases {
        let mut message = calls(&["a"]);
        *message["tool_calls"][0].pointer_mut(pointer).unwrap() = value;
        check_messages(json!([user(), message, result("a")]), &format!("{place}.{param}"), part)
            .await;
    }
    let none = json!({"role": "assistant", "content": "x", "tool_calls": []});
    check_messages(json!([user(), none]), "messages[1].tool_calls", "empty array").await;
}

#[tokio::test]
async fn images_and_files_belong_to_users() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}});
    let file = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:x"}});
    let text = json!({"type": "text", "text": "look"});
    check_fine(json!({"model": "m", "messages": [
        {"role": "user", "content": [text, image, file]},
    ]}))
    .await;
    let at = "messages[0].content[0]";
    let with = |part: Value| json!([{"role": "user", "content": [part]}]);
    check_messages(with(json!({"type": "hologram"})), &format!("{at}.type"), "'hologram'").await;
    check_messages(with(json!({"type": "text"})), &format!("{at}.text"), "Missing").await;
    let bare = json!({"type": "image_url", "image_url": "https://example.com/a.png"});
    check_messages(with(bare), &format!("{at}.image_url"), "expected an object").await;
    check_messages(json!([{"role": "user", "content": []}]), "messages[0].content", "empty").await;
    let mut shown = result("a");
    shown["content"] = json!([image]);
    let part = "but this message with role 'tool'";
    check_messages(json!([user(), calls(&["a"]), shown]), "messages.[2].content", part).await;
}

#[tokio::test]
async fn offered_tools_have_names_and_schemas() {
    let with = |tools: Value| json!({"model": "m", "messages": [user()], "tools": tools});
    let tool = |function: Value| with(json!([{"type": "function", "function": function}]));
    check(with(json!([])), "tools", "empty array").await;
    check(with(json!([{"name": "a"}])), "tools[0].type", "Missing required").await;
    let flat = json!([{"type": "function", "name": "a"}]);
    check(with(flat), "tools[0].function", "Missing required").await;
    check(tool(json!({})), "tools[0].function.name", "Missing required").await;
    check(tool(json!({"name": "a b"})), "tools[0].function.name", "does not match").await;
    let list = json!({"name": "a", "parameters": {"type": "array"}});
    check(tool(list), "tools[0].function.parameters", "got 'type: \"array\"'").await;
    let untyped = json!({"name": "a", "parameters": {}});
    check(tool(untyped), "tools[0].function.parameters", "got 'type: \"None\"'").await;
    check_fine(tool(json!({"name": "a", "parameters": {"type": "object"}}))).await;
    check_fine(tool(json!({"name": "a"}))).await;
}
