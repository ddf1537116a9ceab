//! Replies in both forms, and that the two say the same.

use crate::client::{ask, body, client, events, post, says, start, streaming};
use posse_testkit::{Reply, Script, Usage};
use serde_json::{Value, json};

/// Puts the message together that a stream tells in pieces.
fn folded(text: &str) -> Value {
    let events = events(text);
    let mut message = Value::Null;
    let mut inputs = String::new();
    for (name, data) in &events {
        assert_eq!(data["type"], name.as_str());
        let index = data["index"].as_u64().map(|index| index as usize);
        match name.as_str() {
            "message_start" => message = data["message"].clone(),
            "content_block_start" => {
                let content = message["content"].as_array_mut().unwrap();
                assert_eq!(index, Some(content.len()));
                content.push(data["content_block"].clone());
                inputs.clear();
            }
            "content_block_delta" => {
                let block = &mut message["content"][index.unwrap()];
                let delta = &data["delta"];
                let mut append = |key: &str| {
                    let piece = delta[key].as_str().unwrap();
                    block[key] = json!(format!("{}{piece}", block[key].as_str().unwrap()));
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => append("text"),
                    "thinking_delta" => append("thinking"),
                    "signature_delta" => append("signature"),
                    "input_json_delta" => inputs.push_str(delta["partial_json"].as_str().unwrap()),
                    other => panic!("unexpected delta {other}"),
                }
            }
            "content_block_stop" if !inputs.is_empty() => {
                message["content"][index.unwrap()]["input"] =
                    serde_json::from_str(&inputs).unwrap();
            }
            "message_delta" => {
                for (key, value) in data["delta"].as_object().unwrap() {
                    message[key] = value.clone();
                }
                message["usage"]["output_tokens"] = data["usage"]["output_tokens"].clone();
            }
            "content_block_stop" | "ping" | "message_stop" => {}
            other => panic!("unexpected event {other}"),
        }
    }
    assert_eq!(events.last().unwrap().0, "message_stop");
    message
}

/// Checks that `reply` comes as `expected`, in both forms.
async fn check(reply: Reply, expected: Value) {
    let fake = start(Script::always(reply)).await;
    // Usage follows the length of the body: both ask for the form they want.
    let mut plain = says("hello");
    plain["stream"] = json!(null);
    let (status, document) = ask(&fake, &plain).await;
    assert_eq!(status, 200);
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&document[key], value, "{key} of {document}");
    }
    let response = post(&client(), &fake, &streaming(says("hello"))).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.headers()["request-id"], "req_fake_000002");
    assert_eq!(folded(&response.text().await.unwrap()), document);
}

#[tokio::test]
async fn a_text_comes_whole_and_in_pieces() {
    check(
        Reply::text("Grüße, \"world\" 🦀\n\twith a line that is long enough for several pieces"),
        json!({
            "id": "msg_fake_0",
            "type": "message",
            "role": "assistant",
            "model": "fake-1",
            "content": [{
                "type": "text",
                "text": "Grüße, \"world\" 🦀\n\twith a line that is long enough for several pieces",
            }],
            "stop_reason": "end_turn",
            "stop_sequence": null,
        }),
    )
    .await;
}

#[tokio::test]
async fn tool_calls_come_with_ids_inputs_and_their_stop_reason() {
    let input =
        json!({"file_path": "a\\\"b\n\u{1}é漢.rs", "depth": -1.5e3, "all": [true, null, {}]});
    check(
        Reply::text("I look.")
            .and_tool_call("Read", input.clone())
            .and_tool_call("List", json!({}))
            .and_tool_call_with_id("call-7", "Grep", json!({"pattern": "x"})),
        json!({
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_0_0", "name": "Read", "input": input},
                {"type": "tool_use", "id": "toolu_0_1", "name": "List", "input": {}},
                {"type": "tool_use", "id": "call-7", "name": "Grep", "input": {"pattern": "x"}},
            ],
            "stop_reason": "tool_use",
        }),
    )
    .await;
}

#[tokio::test]
async fn blocks_keep_the_order_they_were_added_in() {
    let redacted = json!({"type": "redacted_thinking", "data": "c2VjcmV0"});
    check(
        Reply::thinking("First I think for a while.")
            .and_raw(redacted.clone())
            .and_text("Then I speak.")
            .and_signed_thinking("Then again.", "own-signature"),
        json!({"content": [
            {
                "type": "thinking",
                "thinking": "First I think for a while.",
                "signature": "ZmFrZS1zaWduYXR1cmU=",
            },
            redacted,
            {"type": "text", "text": "Then I speak."},
            {"type": "thinking", "thinking": "Then again.", "signature": "own-signature"},
        ]}),
    )
    .await;
}

#[tokio::test]
async fn a_message_may_be_empty() {
    check(Reply::empty(), json!({"content": [], "stop_reason": "end_turn"})).await;
    check(Reply::text(""), json!({"content": [{"type": "text", "text": ""}]})).await;
}

#[tokio::test]
async fn stop_reason_and_usage_can_be_claimed() {
    let usage = Usage {
        input_tokens: Some(7),
        output_tokens: Some(9),
        cache_creation_input_tokens: Some(11),
        cache_read_input_tokens: Some(13),
    };
    check(
        Reply::text("cut of").stop_reason("max_tokens").usage(usage),
        json!({
            "stop_reason": "max_tokens",
            "usage": {
                "input_tokens": 7,
                "cache_creation_input_tokens": 11,
                "cache_read_input_tokens": 13,
                "output_tokens": 9,
            },
        }),
    )
    .await;
}

#[tokio::test]
async fn usage_follows_the_bytes_asked_and_the_characters_said() {
    let fake = start(Script::always(Reply::text("äöüäö"))).await;
    let request = says("hello");
    let (_, document) = ask(&fake, &request).await;
    assert_eq!(document["usage"]["input_tokens"], request.to_string().len().div_ceil(4));
    assert_eq!(document["usage"]["output_tokens"], 2);
}

#[tokio::test]
async fn a_stream_has_the_events_of_the_real_api_in_their_order() {
    let fake =
        start(Script::always(Reply::text("hi").and_tool_call("List", json!({"p": 1})))).await;
    let response = post(&client(), &fake, &streaming(says("hello"))).send().await.unwrap();
    let text = response.text().await.unwrap();
    let names: Vec<String> = events(&text).into_iter().map(|(name, _)| name).collect();
    let (start, delta, stop) = ("content_block_start", "content_block_delta", "content_block_stop");
    let expected = [
        "message_start",
        start,
        "ping",
        delta,
        delta,
        stop,
        start,
        delta,
        delta,
        delta,
        stop,
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, expected);
    assert!(
        text.starts_with("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{")
    );
}

#[tokio::test]
async fn a_long_stream_has_pings_and_no_piece_is_lost() {
    let long = "0123456789 é ".repeat(500);
    let fake = start(Script::always(Reply::text(&long))).await;
    let response = post(&client(), &fake, &streaming(says("hello"))).send().await.unwrap();
    let text = response.text().await.unwrap();
    assert!(events(&text).iter().filter(|(name, _)| name == "ping").count() > 3);
    assert_eq!(folded(&text)["content"][0]["text"], long);
}

#[tokio::test]
async fn places_in_texts_and_inputs_are_filled_from_the_request() {
    let reply = Reply::text("{{turn}}: {{last_user}} → {{last_tool_result}} {{other}} {{{turn}}}")
        .and_tool_call("Write", json!({"content": "{{last_tool_result}}", "n": "{{turn}}"}));
    let fake = start(Script::always(reply)).await;
    let (_, document) = ask(
        &fake,
        &body(json!([
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "R", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "say \"hi\"\n"}]},
            ]},
        ])),
    )
    .await;
    let text = "1: one\ntwo → say \"hi\"\n {{other}} {1}";
    assert_eq!(document["content"][0]["text"], text);
    assert_eq!(document["content"][1]["input"], json!({"content": "say \"hi\"\n", "n": "1"}));
}

#[tokio::test]
async fn errors_come_with_their_type_status_and_headers() {
    let cases = [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ];
    for (status, kind) in cases {
        let reply = Reply::error(status, "as \"scripted\"").header("Retry-After", "7");
        let fake = start(Script::always(reply)).await;
        for request in [says("hello"), streaming(says("hello"))] {
            let response = post(&client(), &fake, &request).send().await.unwrap();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers()["retry-after"], "7");
            assert_eq!(response.headers()["content-type"], "application/json");
            let request_id = response.headers()["request-id"].to_str().unwrap().to_owned();
            let document: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            let expected = json!({
                "type": "error",
                "error": {"type": kind, "message": "as \"scripted\""},
                "request_id": request_id,
            });
            assert_eq!(document, expected);
        }
    }
    let fake = start(Script::always(Reply::error_of_type(418, "teapot_error", "short"))).await;
    assert_eq!(crate::client::error(&fake, &says("x"), 418, "teapot_error").await, "short");
}
