//! Answers that are not quite what was asked for, and what is made of them.

use crate::anthropic::encode::request;
use crate::anthropic::transcripts::PLAIN;
use crate::server::{Server, Step, answer, streamed};
use posse_agent::{ModelError, Reply, Request};
use posse_protocol::{CallId, Extra, Message, Part, Role, ToolCall};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const PATIENT: Duration = Duration::from_secs(60);

async fn call(answer: Vec<u8>, request: Request) -> Result<Reply, ModelError> {
    let server = Server::start(vec![Step::Send(answer)]).await;
    server.model(PATIENT).call(request, &|_| {}, &CancellationToken::new()).await
}

async fn reply_to(headers: &str, body: &str) -> Result<Reply, ModelError> {
    call(answer("200 OK", headers, body), request(vec![Message::user("hi")])).await
}

#[tokio::test]
async fn a_whole_reply_in_place_of_a_stream_is_taken() {
    let body = json!({
        "type": "message", "id": "msg_1", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "All at once."}],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    });
    let headers = "content-type: application/json; charset=utf-8\r\nrequest-id: req_9\r\n";
    let reply = reply_to(headers, &body.to_string()).await.unwrap();
    assert_eq!(reply.message.text(), "All at once.");
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (3, 4));
    assert_eq!(reply.request_id.as_deref(), Some("req_9"));
}

#[tokio::test]
async fn a_refusal_that_claims_success_is_a_refusal() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let error = reply_to("content-type: application/json\r\n", body).await.unwrap_err();
    assert!(matches!(error, ModelError::Overloaded { .. }), "{error:?}");
}

#[tokio::test]
async fn a_stream_of_another_type_or_none_is_taken() {
    for headers in
        ["content-type: text/plain\r\n", "", "content-type: application/octet-stream\r\n"]
    {
        assert!(!reply_to(headers, PLAIN).await.unwrap().message.text().is_empty(), "{headers}");
    }
}

#[tokio::test]
async fn what_holds_no_event_is_malformed_and_shown() {
    let error = reply_to("content-type: text/plain\r\n", "the model is not loaded").await;
    let error = error.unwrap_err();
    assert!(matches!(error, ModelError::Malformed { .. }), "{error:?}");
    assert!(error.to_string().contains("it holds no event: the model is not loaded"), "{error}");
}

#[tokio::test]
async fn a_wait_in_milliseconds_and_an_account_that_is_empty_are_understood() {
    let limit = "429 Too Many Requests";
    let hello = || request(vec![Message::user("hi")]);
    let error = call(answer(limit, "retry-after-ms: 250\r\n", "{}"), hello()).await.unwrap_err();
    let wait = Duration::from_millis(250);
    assert!(matches!(error, ModelError::RetryAfter { after: Some(after), .. } if after == wait));
    let spent = r#"{"error":{"message":"no money","type":"insufficient_quota"}}"#;
    let error = call(answer(limit, "", spent), hello()).await.unwrap_err();
    assert!(matches!(error, ModelError::Rejected { .. }), "{error:?}");
}

/// A stream with a tool call for each of these ids and names.
fn calling(calls: &[(&str, &str)]) -> Vec<u8> {
    let mut events =
        String::from("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n");
    for (index, (id, name)) in calls.iter().enumerate() {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        let stop = json!({"type": "content_block_stop", "index": index});
        events.push_str(&format!("data: {start}\n\ndata: {stop}\n\n"));
    }
    let reason = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    events.push_str(&format!("data: {reason}\n\n"));
    events.push_str("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    streamed(&events)
}

fn ids(reply: &Reply) -> Vec<&str> {
    reply.message.tool_calls().map(|call| call.id.0.as_str()).collect()
}

#[tokio::test]
async fn calls_that_are_alike_are_told_apart_from_each_other_and_from_earlier_ones() {
    let earlier = ToolCall {
        id: CallId("call_0".to_owned()),
        name: "Read".to_owned(),
        input: json!({}),
        extra: Extra::default(),
    };
    let said = Message::new(Role::Assistant, vec![Part::ToolCall(earlier)]);
    let request = request(vec![Message::user("hi"), said, Message::user("go on")]);
    let answer = calling(&[("call_0", "Read"), ("call_0", "Read"), ("call_1", "Read")]);
    let reply = call(answer, request).await.unwrap();
    assert_eq!(ids(&reply), ["call_0_2", "call_0_3", "call_1"]);
}

#[tokio::test]
async fn a_call_without_a_name_can_only_be_asked_for_again() {
    let answer = calling(&[("call_0", " ")]);
    let error = call(answer, request(vec![Message::user("hi")])).await.unwrap_err();
    assert!(matches!(error, ModelError::Malformed { .. }), "{error:?}");
}
