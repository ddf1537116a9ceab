//! Requests that the real API would refuse.

use crate::client::{after, ask, body, client, error, post, says, start};
use posse_testkit::{FakeModel, Reply, Script};
use serde_json::{Value, json};

async fn fake() -> FakeModel {
    start(Script::always(Reply::text("fine"))).await
}

/// Checks that `request` is refused with a message that contains `part`.
async fn check(request: &Value, part: &str) {
    let message = error(&fake().await, request, 400, "invalid_request_error").await;
    assert!(message.contains(part), "{message:?} does not contain {part:?}");
}

async fn check_messages(messages: Value, part: &str) {
    check(&body(messages), part).await;
}

async fn check_fine(messages: Value) {
    let (status, document) = ask(&fake().await, &body(messages)).await;
    assert_eq!(status, 200, "{document}");
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

#[tokio::test]
async fn a_key_and_a_version_are_needed() {
    let fake = fake().await;
    let url = format!("{}/v1/messages", fake.url());
    let send = async |request: reqwest::RequestBuilder| {
        let response = request.body(says("x").to_string()).send().await.unwrap();
        let status = response.status().as_u16();
        let document: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        (status, document["error"]["type"].as_str().unwrap().to_owned())
    };
    let request = client().post(&url).header("anthropic-version", "2023-06-01");
    assert_eq!(send(request).await, (401, "authentication_error".to_owned()));
    let request = client().post(&url).header("x-api-key", "k");
    assert_eq!(send(request).await, (400, "invalid_request_error".to_owned()));
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let fake = fake().await;
    let response = client().get(format!("{}/v1/messages", fake.url())).send().await.unwrap();
    assert_eq!(response.status(), 405);
    let response = client().post(format!("{}/v1/other", fake.url())).send().await.unwrap();
    assert_eq!(response.status(), 404);
    assert!(response.text().await.unwrap().contains("not_found_error"));
    // A query is no other path.
    let url = format!("{}/v1/messages?beta=true", fake.url());
    let request = client().post(url).header("x-api-key", "k").header("anthropic-version", "v");
    let response = request.body(says("x").to_string()).send().await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_body_that_is_no_request_is_refused() {
    let fake = fake().await;
    for broken in ["", "{", "[]", r#"{"messages": 3}"#, r#"{"messages": [{"content": 3}]}"#] {
        let request = post(&client(), &fake, &Value::Null).body(broken);
        assert_eq!(request.send().await.unwrap().status(), 400, "{broken}");
    }
    let request = post(&client(), &fake, &Value::Null).body(vec![b'"', 0xff, b'"']);
    assert!(request.send().await.unwrap().text().await.unwrap().contains("UTF-8"));
}

#[tokio::test]
async fn fields_that_are_missing_are_named() {
    for (key, part) in [
        ("model", "model: Field required"),
        ("max_tokens", "max_tokens: Field required"),
        ("messages", "messages: Field required"),
    ] {
        let mut request = says("x");
        request.as_object_mut().unwrap().remove(key);
        check(&request, part).await;
    }
    let mut request = says("x");
    request["max_tokens"] = json!(0);
    check(&request, "max_tokens: Input should be greater than or equal to 1").await;
    check_messages(json!([{"content": "x"}]), "messages.0.role: Field required").await;
    check_messages(json!([{"role": "user"}]), "messages.0.content: Field required").await;
    check_messages(json!([user(json!([{"text": "x"}]))]), "messages.0.content.0.type").await;
}

#[tokio::test]
async fn messages_begin_with_the_user() {
    check_messages(json!([]), "messages: at least one message").await;
    check_messages(json!([assistant(json!("x"))]), "messages.0: first message").await;
    let system = json!({"role": "system", "content": "x"});
    check_messages(json!([user(json!("x")), system]), "messages.1.role: Unexpected role").await;
}

#[tokio::test]
async fn roles_need_not_alternate() {
    check_fine(json!([user(json!("a")), user(json!("b"))])).await;
    check_fine(json!([
        user(json!("a")),
        assistant(json!([call("t1")])),
        user(json!([result("t1")])),
        user(json!("b")),
    ]))
    .await;
}

#[tokio::test]
async fn empty_texts_are_refused() {
    let empty = json!({"type": "text", "text": ""});
    check_messages(
        json!([user(json!([empty]))]),
        "messages.0.content.0: text content blocks must be non-empty",
    )
    .await;
    check_messages(
        json!([user(json!(""))]),
        "messages.0: all messages must have non-empty content",
    )
    .await;
    check_messages(json!([user(json!([]))]), "messages.0: all messages").await;
    let blank = json!([user(json!("x")), assistant(json!(" \n")), user(json!("y"))]);
    check_messages(blank, "messages.1: text content blocks must contain non-whitespace").await;
    let mut within = result("t1");
    within["content"] = json!([empty]);
    let messages = json!([user(json!("x")), assistant(json!([call("t1")])), user(json!([within]))]);
    check_messages(messages, "messages.2.content.0.tool_result: text content").await;
    let mut request = says("x");
    request["system"] = json!([{"type": "text", "text": ""}]);
    check(&request, "system.0: text content").await;
}

#[tokio::test]
async fn a_final_assistant_text_does_not_end_in_whitespace() {
    let part = "messages.1: final assistant content cannot end with trailing whitespace";
    check_messages(json!([user(json!("x")), assistant(json!("The answer is "))]), part).await;
    let block = json!([{"type": "text", "text": "The answer is\n"}]);
    check_messages(json!([user(json!("x")), assistant(block)]), part).await;
    check_fine(json!([user(json!("x")), assistant(json!("The answer is"))])).await;
    check_fine(json!([user(json!("x")), assistant(json!("Ends so. ")), user(json!("y"))])).await;
}

#[tokio::test]
async fn every_call_is_answered_in_the_next_message_before_anything_else() {
    let part =
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t2";
    let text = json!({"type": "text", "text": "x"});
    let open = |next: Value| {
        json!([user(json!("x")), assistant(json!([text, call("t1"), call("t2")])), user(next)])
    };
    check_fine(open(json!([result("t2"), result("t1"), text]))).await;
    check_messages(open(json!([result("t1")])), part).await;
    check_messages(open(json!([result("t1"), text, result("t2")])), part).await;
    check_messages(open(json!("never mind")), "immediately after: t1, t2").await;
    check_messages(json!([user(json!("x")), assistant(json!([call("t2")]))]), part).await;
    let late = json!([
        user(json!("x")),
        assistant(json!([call("t2")])),
        user(json!("y")),
        user(json!([result("t2")])),
    ]);
    check_messages(late, part).await;
}

#[tokio::test]
async fn every_result_answers_a_call_of_the_message_before() {
    let part = "unexpected `tool_use_id` found in `tool_result` blocks: t9";
    check_messages(json!([user(json!([result("t9")]))]), &format!("messages.0.content.0: {part}"))
        .await;
    let stray = json!([
        user(json!("x")),
        assistant(json!([call("t1")])),
        user(json!([result("t1"), result("t9")]))
    ]);
    check_messages(stray, &format!("messages.2.content.1: {part}")).await;
    let twice = json!([
        user(json!("x")),
        assistant(json!([call("t1")])),
        user(json!([result("t1"), result("t1")]))
    ]);
    check_messages(twice, "messages.2.content.1: each tool_use must have a single result").await;
}

#[tokio::test]
async fn calls_have_unique_ids_names_and_objects_as_input() {
    let with = |call: Value| {
        json!([user(json!("x")), assistant(json!([call])), user(json!([result("t1")]))])
    };
    let mut list = call("t1");
    list["input"] = json!([]);
    check_messages(with(list), "messages.1.content.0.tool_use.input: Input should be").await;
    let mut bare = call("t1");
    bare.as_object_mut().unwrap().remove("name");
    check_messages(with(bare), "messages.1.content.0.tool_use.name: Field required").await;
    check_messages(with(call("a b")), "messages.1.content.0.tool_use.id: String should match")
        .await;
    let twice = json!([
        user(json!("x")),
        assistant(json!([call("t1"), call("t1")])),
        user(json!([result("t1")]))
    ]);
    check_messages(twice, "messages.1: `tool_use` ids must be unique: t1").await;
    check_messages(json!([user(json!([call("t1")]))]), "messages.0: `tool_use` blocks can only")
        .await;
    let unsigned = json!([{"type": "thinking", "thinking": "x"}]);
    check_messages(
        json!([user(json!("x")), assistant(unsigned)]),
        "thinking.signature: Field required",
    )
    .await;
}

#[tokio::test]
async fn offered_tools_have_unique_names_and_schemas() {
    let with = |tools: Value| {
        let mut request = says("x");
        request["tools"] = tools;
        request
    };
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    check(&with(json!([{"input_schema": {}}])), "tools.0.name: Field required").await;
    check(&with(json!([tool("a.b")])), "tools.0.custom.name: String should match").await;
    check(&with(json!([tool("a"), tool("a")])), "tools.1: Tool names must be unique").await;
    check(&with(json!([{"name": "a"}])), "tools.0.custom.input_schema").await;
    // The provider's own tools bring no schema.
    let request = with(json!([{"type": "web_search_20250305", "name": "web_search"}]));
    assert_eq!(ask(&fake().await, &request).await.0, 200);
}

#[tokio::test]
async fn blocks_of_other_kinds_pass() {
    check_fine(json!([
        user(json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}])),
        assistant(json!([
            {"type": "redacted_thinking", "data": "x"},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "error"}},
            {"type": "text", "text": "x"},
        ])),
        user(json!("go on")),
    ]))
    .await;
    // The transcript that an ordinary run makes.
    assert_eq!(ask(&fake().await, &after("go", 5, "r")).await.0, 200);
}
