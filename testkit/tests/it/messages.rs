//! Replies in both forms, and that the two say the same.

use crate::client::{ask, body, client, events, post, says, start, streaming};
use posse_testkit::{Reply, Script, Usage, Wire};
use serde_json::{Value, json};

fn folded(text: &str) -> Value {
    crate::wires::folded(Wire::Anthropic, text)
}

/// Checks that `reply` comes as `expected`, in both forms.
async fn check(reply: Reply, expected: Value) {
    let fake = start(Script::always(reply)).await;
    let (status, document) = ask(&fake, &says("hello")).await;
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
                "signature": "ZmFrZS1zaWduYXR1cmU6QFOL3LFG5LMR",
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
        reasoning_tokens: Some(5),
    };
    check(
        Reply::text("cut of").stop_reason("max_tokens").usage(usage),
        json!({
            "stop_reason": "max_tokens",
            "usage": {
                "input_tokens": 7,
                "cache_creation_input_tokens": 11,
                "cache_read_input_tokens": 13,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 11,
                    "ephemeral_1h_input_tokens": 0,
                },
                "output_tokens": 9,
                "output_tokens_details": {"thinking_tokens": 5},
                "service_tier": "standard",
            },
        }),
    )
    .await;
}

#[tokio::test]
async fn usage_follows_the_bytes_of_the_prompt_and_the_characters_said() {
    let fake = start(Script::always(Reply::thinking("hmm").and_text("äöüäö"))).await;
    let mut request = says("hello");
    request["system"] = json!("be brief");
    request["metadata"] = json!({"user_id": "is no part of the prompt"});
    let (_, document) = ask(&fake, &request).await;
    let prompt = "be briefuserhello";
    assert_eq!(document["usage"]["input_tokens"], prompt.len().div_ceil(4));
    assert_eq!(document["usage"]["output_tokens"], 2);
    assert_eq!(document["usage"]["output_tokens_details"]["thinking_tokens"], 1);
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
