//! OpenAI Responses: the shape of its streams, and what it refuses.

use crate::client::{client, events, start};
use crate::wires::{Form, Talk, heard};
use posse_testkit::{Reply, Script, Wire};
use serde_json::{Value, json};

async fn answer(body: &Value) -> (u16, Value) {
    let fake = start(Script::always(Reply::text("fine"))).await;
    let request = Talk::new(Wire::OpenAiResponses).request(&client(), &fake, Form::Document);
    let response = request.body(body.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Checks that `body` is refused because of `param`, with a message that contains `part`.
async fn check(body: Value, param: &str, part: &str) {
    let (status, document) = answer(&body).await;
    assert_eq!(status, 400, "{document}");
    let error = &document["error"];
    assert_eq!(error["param"].as_str().unwrap_or_default(), param, "{document}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(part), "{message:?} does not contain {part:?}");
}

async fn check_input(input: Value, param: &str, part: &str) {
    check(json!({"model": "m", "input": input}), param, part).await;
}

async fn check_fine(body: Value) {
    let (status, document) = answer(&body).await;
    assert_eq!(status, 200, "{document}");
}

fn user() -> Value {
    json!({"role": "user", "content": "x"})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "ok"})
}

#[tokio::test]
async fn a_stream_has_the_events_of_the_real_api_in_their_order() {
    let reply = Reply::thinking("ab").and_text("cd").and_tool_call("List", json!({"p": 1}));
    let fake = start(Script::always(reply)).await;
    let response = Talk::saying(Wire::OpenAiResponses, "x").send(&fake, Form::Stream).await;
    let text = response.text().await.unwrap();
    let events = events(&text);
    let names: Vec<&str> =
        events.iter().map(|(name, _)| name.strip_prefix("response.").unwrap()).collect();
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(names, expected);
    let delta = &events[11].1;
    let expected = json!({
        "type": "response.output_text.delta",
        "sequence_number": 11,
        "item_id": "msg_fake_0_1",
        "output_index": 1,
        "content_index": 0,
        "logprobs": [],
        "delta": "c",
    });
    assert_eq!(delta, &expected);
}

#[tokio::test]
async fn reasoning_is_encrypted_for_those_who_ask_for_it() {
    let fake = start(Script::always(Reply::thinking("hm").and_text("so"))).await;
    let talk = Talk::saying(Wire::OpenAiResponses, "x");
    let reasoning = |document: &Value| document["output"][0].clone();
    let item = reasoning(&talk.document(&fake).await);
    assert_eq!(item["summary"], json!([{"type": "summary_text", "text": "hm"}]));
    assert!(item["encrypted_content"].is_string(), "{item}");
    let talk = talk.with("include", json!([]));
    assert!(reasoning(&talk.document(&fake).await)["encrypted_content"].is_null());
}

#[tokio::test]
async fn a_response_can_fail_and_says_so() {
    let fake = start(Script::always(Reply::text("x").stop_reason("failed"))).await;
    let talk = Talk::saying(Wire::OpenAiResponses, "x");
    let document = talk.streamed(&fake).await;
    assert_eq!(heard(Wire::OpenAiResponses, &document).stop, "failed");
    assert_eq!(document["error"]["code"], "server_error");
}

#[tokio::test]
async fn input_may_be_one_text() {
    check_fine(json!({"model": "m", "input": "hello"})).await;
    let fake = start(Script::always(Reply::text("{{last_user}}, {{turn}}"))).await;
    let talk = Talk::new(Wire::OpenAiResponses).with("input", json!("hello"));
    assert_eq!(talk.heard(&fake).await.text, "hello, 0");
}

#[tokio::test]
async fn fields_that_are_missing_or_wrong_are_named() {
    check(json!({"input": "x"}), "model", "Missing required parameter").await;
    check(json!({"model": "m"}), "input", "Missing required parameter").await;
    let with = |key: &str, value: Value| {
        let mut body = json!({"model": "m", "input": "x"});
        body[key] = value;
        body
    };
    check(with("max_output_tokens", json!(15)), "max_output_tokens", "value >= 16").await;
    let part = "Previous response with id 'resp_1' not found";
    check(with("previous_response_id", json!("resp_1")), "previous_response_id", part).await;
    check_fine(with("previous_response_id", json!(null))).await;
    check_input(json!([{"role": "wizard", "content": "x"}]), "input[0].role", "'wizard'").await;
    check_input(json!([{"type": "message", "content": "x"}]), "input[0].role", "Missing").await;
    check_input(json!([{"role": "user"}]), "input[0].content", "Missing").await;
}

#[tokio::test]
async fn content_is_of_the_kind_that_its_speaker_has() {
    let said = |role: &str, part: Value| json!([{"role": role, "content": [part]}]);
    let at = "input[0].content[0]";
    let text = |kind: &str| json!({"type": kind, "text": "x"});
    check_input(said("user", text("text")), at, "Supported values are: 'input_text'").await;
    check_input(said("assistant", text("input_text")), at, "'output_text', 'refusal'").await;
    let bare = said("user", json!({"type": "input_text"}));
    check_input(bare, &format!("{at}.text"), "Missing").await;
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,eA=="});
    let file = json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:x"});
    let mut shown = output("a");
    shown["output"] = json!([text("input_text"), image]);
    check_fine(json!({"model": "m", "input": [
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [text("input_text"), image, file]},
        {"role": "assistant", "content": [text("output_text")]},
        call("a"),
        shown,
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ]}))
    .await;
}

#[tokio::test]
async fn every_call_has_its_output_and_every_output_its_call() {
    check_fine(json!({"model": "m", "input": [
        user(), call("a"), call("b"), output("b"), output("a"), user(),
    ]}))
    .await;
    let open = json!([user(), call("a"), call("b"), output("a")]);
    check_input(open, "input", "No tool output found for function call b.").await;
    let stray = json!([user(), output("a")]);
    check_input(stray, "input", "No tool call found for function call output with call_id a.")
        .await;
    let early = json!([user(), output("a"), call("a")]);
    check_input(early, "input", "No tool call found").await;
    let twice = json!([user(), call("a"), output("a"), output("a")]);
    check_input(twice, "input", "Duplicate output").await;
    let same = json!([user(), call("a"), output("a"), call("a"), output("a")]);
    check_input(same, "input", "Duplicate function call").await;
}

#[tokio::test]
async fn items_have_ids_names_and_text_for_arguments() {
    let with = |mut item: Value, key: &str, value: Value| {
        item[key] = value;
        json!([user(), item, output("a")])
    };
    let at = |key: &str| format!("input[1].{key}");
    let part = "Expected an ID that begins with 'fc'";
    check_input(with(call("a"), "id", json!("call_1")), &at("id"), part).await;
    check_input(with(call("a"), "call_id", json!(null)), &at("call_id"), "Missing").await;
    let long = json!("x".repeat(65));
    check_input(with(call("a"), "call_id", long), &at("call_id"), "maximum length 64").await;
    check_input(with(call("a"), "name", json!(null)), &at("name"), "Missing").await;
    check_input(with(call("a"), "name", json!("a.b")), &at("name"), "does not match").await;
    check_input(with(call("a"), "arguments", json!({})), &at("arguments"), "got an object").await;
    check_input(with(call("a"), "arguments", json!(null)), &at("arguments"), "Missing").await;
    let silent = json!([user(), call("a"), {"type": "function_call_output", "call_id": "a"}]);
    check_input(silent, "input[2].output", "Missing").await;
    let thought = json!({"type": "reasoning", "id": "rs_1"});
    check_input(json!([user(), thought]), "input[1].summary", "Missing").await;
    let message = json!({"type": "message", "id": "m1", "role": "assistant", "content": "x"});
    check_input(json!([user(), message]), "input[1].id", "begins with 'msg'").await;
}

#[tokio::test]
async fn tools_are_not_nested_as_on_the_other_wire() {
    let with = |tool: Value| json!({"model": "m", "input": "x", "tools": [tool]});
    let nested = json!({"type": "function", "function": {"name": "a"}});
    check(with(nested), "tools[0].name", "Missing required parameter: 'tools[0].name'.").await;
    check(with(json!({"name": "a"})), "tools[0].type", "Missing").await;
    let list = json!({"type": "function", "name": "a", "parameters": {"type": "array"}});
    check(with(list), "tools[0].parameters", "Invalid schema for function 'a'").await;
    check_fine(with(json!({"type": "web_search"}))).await;
}
