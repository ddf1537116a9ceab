//! What is in the heads of requests and answers: limits, names, what a dialect needs.

use crate::anthropic::encode::request;
use crate::anthropic::transcripts::PLAIN;
use crate::server::{KEY, Server, Step, answer, streamed};
use posse_agent::{Model, Reply};
use posse_model::{Catalog, Keys, Models, Options};
use posse_protocol::Message;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn model(url: &str, name: &str) -> Arc<dyn Model> {
    let keys = Keys::default()
        .with("ANTHROPIC_API_KEY", KEY)
        .with("ANTHROPIC_BASE_URL", url)
        .with("OPENAI_API_KEY", KEY)
        .with("OPENAI_BASE_URL", url);
    let options = Options { stall: Duration::from_secs(60), ..Options::default() };
    Models::new(Catalog::built_in(), keys, options).resolve(name).unwrap()
}

async fn call(model: &dyn Model) -> Reply {
    let asked = request(vec![Message::user("hi")]);
    model.call(asked, &|_| {}, &CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn limits_and_the_request_s_name_are_in_the_reply() {
    let reply = json!({"id": "resp_1", "object": "response", "status": "completed",
        "model": "gpt-6-sol", "output": [{"type": "message", "id": "msg_1", "role": "assistant",
        "status": "completed", "content": [{"type": "output_text", "text": "hello"}]}],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}});
    let headers = "content-type: application/json\r\nx-request-id: req_9\r\n\
                   x-ratelimit-limit-requests: 100\r\nx-ratelimit-remaining-requests: 99\r\n\
                   x-ratelimit-reset-requests: 6ms\r\nx-ratelimit-limit-tokens: 1000\r\n\
                   x-ratelimit-remaining-tokens: 250\r\nx-ratelimit-reset-tokens: 6m0s\r\n";
    let server =
        Server::start(vec![Step::Send(answer("200 OK", headers, &reply.to_string()))]).await;
    let reply = call(&*model(&server.url, "openai/gpt-6-sol")).await;
    assert_eq!(reply.request_id.as_deref(), Some("req_9"));
    let limits = reply.rate_limits.unwrap();
    let told = (limits.requests_left, limits.tokens_left, limits.resets_in_ms);
    assert_eq!(told, (Some(99), Some(250), Some(360_000)));
}

#[tokio::test]
async fn a_provider_that_says_nothing_of_its_limits_has_none() {
    let server = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    assert_eq!(call(&*model(&server.url, "claude-sonnet-4-5")).await.rate_limits, None);
}

#[tokio::test]
async fn a_model_that_binds_its_reasoning_gets_the_header_that_this_needs() {
    let server = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    for name in ["claude-sonnet-4-5", "opus", "sonnet", "haiku", "fable"] {
        call(&*model(&server.url, name)).await;
    }
    for (index, request) in server.requests().iter().enumerate() {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let bound = head.contains("anthropic-beta: thinking-binding-controls-2026-08-01\r\n");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(bound, index > 0, "{head}");
        assert_eq!(!body["thinking"]["block_binding"].is_null(), index > 0, "{body}");
    }
}
