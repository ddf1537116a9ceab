//! Calls over real sockets.

use crate::anthropic::encode::request;
use crate::anthropic::transcripts::{PLAIN, RICH, RICH_CONTENT};
use crate::server::{KEY, STREAM_HEAD, Server, Step, answer, begun, chunk, model_at, streamed};
use posse_agent::{Model, ModelError, Reply};
use posse_protocol::{Delta, Message, Role, Stop, Usd};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const PATIENT: Duration = Duration::from_secs(60);

/// The first half of [`PLAIN`]: everything up to its text.
fn half() -> &'static str {
    let end = PLAIN.find("event: content_block_stop").unwrap();
    &PLAIN[..end]
}

async fn call(model: &dyn Model) -> Result<Reply, ModelError> {
    model.call(request(vec![Message::user("hi")]), &|_| {}, &CancellationToken::new()).await
}

/// Calls a server that answers with `steps`, and returns the error.
async fn error_after(steps: Vec<Step>) -> ModelError {
    let server = Server::start(steps).await;
    call(&*server.model(PATIENT)).await.unwrap_err()
}

async fn error_of(status: &str, headers: &str, body: &str) -> ModelError {
    error_after(vec![Step::Send(answer(status, headers, body))]).await
}

#[tokio::test]
async fn a_call_sends_the_key_and_the_transcript_and_returns_the_reply() {
    let server = Server::start(vec![Step::Send(streamed(RICH))]).await;
    let model = server.model(PATIENT);
    let shown = Mutex::new(Vec::new());
    let show = |delta: Delta| shown.lock().unwrap().push(delta);
    let mut first = request(vec![Message::user("hi")]);
    first.max_tokens = 1_000_000;
    let reply = model.call(first, &show, &CancellationToken::new()).await.unwrap();
    assert_eq!(reply.stop, Stop::ToolUse);
    assert_eq!(reply.request_id.as_deref(), Some("req_7"));
    let cost = Usd(12 * 3_000 + 340 * 3_750 + 5_600 * 300 + 89 * 15_000);
    assert_eq!(reply.usage.cost, cost);
    let shown = shown.into_inner().unwrap();
    let mut counted = shown.iter().filter_map(|delta| match delta {
        Delta::Counted { usage } => Some((usage.all_input_tokens(), usage.output_tokens)),
        _ => None,
    });
    assert_eq!(
        counted.next_back(),
        Some((12 + 340 + 5_600, 89)),
        "what the provider counts is told"
    );
    let is_unshown = |it: &&Delta| matches!(it, Delta::Counted { .. } | Delta::Called { .. });
    assert_eq!(shown.iter().filter(|it| !is_unshown(it)).count(), 3);
    let called = |it: &Delta| if let Delta::Called { bytes } = it { *bytes } else { 0 };
    assert!(shown.iter().map(called).sum::<usize>() > 0, "the input of a call is counted");

    let next = request(vec![Message::user("hi"), reply.message, Message::user("go on")]);
    model.call(next, &|_| {}, &CancellationToken::new()).await.unwrap();
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
    for header in [
        &format!("x-api-key: {KEY}"),
        "anthropic-version: 2023-06-01",
        "content-type: application/json",
        "accept: text/event-stream",
    ] {
        assert!(head.contains(header), "{head}");
    }
    assert!(!head.contains("accept-encoding"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (&body["model"], &body["max_tokens"]),
        (&"claude-sonnet-4-5".into(), &64_000.into())
    );
    let (_, body) = requests[1].split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let expected: Value = serde_json::from_str(RICH_CONTENT).unwrap();
    assert_eq!(body["messages"][1]["content"], expected);
}

#[tokio::test]
async fn a_base_url_may_have_a_path() {
    let server = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    for base in ["/gateway/", "/gateway"] {
        let model = model_at(&format!("{}{base}", server.url), PATIENT);
        assert_eq!(call(&*model).await.unwrap().message.text(), "Hello.");
    }
    for request in server.requests() {
        assert!(request.starts_with("POST /gateway/v1/messages "), "{request}");
    }
}

#[tokio::test]
async fn fifty_calls_in_a_row_use_one_connection() {
    let server = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    let model = server.model(PATIENT);
    for _ in 0..50 {
        call(&*model).await.unwrap();
    }
    assert_eq!(server.requests().len(), 50);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_end_that_comes_late_still_leaves_the_connection_usable() {
    let (body, last) = PLAIN.split_at(PLAIN.len() - 1);
    let end = format!("{}0\r\n\r\n", chunk(last)).into_bytes();
    let server = Server::start(vec![Step::Send(begun(body)), Step::Send(end)]).await;
    let model = server.model(PATIENT);
    for _ in 0..10 {
        call(&*model).await.unwrap();
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_that_never_ends_does_not_hold_up_its_reply() {
    let server = Server::start(vec![Step::Send(begun(PLAIN)), Step::Hold]).await;
    let started = Instant::now();
    assert_eq!(call(&*server.model(PATIENT)).await.unwrap().message.text(), "Hello.");
    assert!(started.elapsed() < Duration::from_secs(10));
    server.gone.notified().await;
}

#[tokio::test]
async fn many_calls_at_once_all_get_their_reply() {
    let server = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    let model = server.model(PATIENT);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let model = model.clone();
        calls.spawn(async move { call(&*model).await.unwrap().message.role });
    }
    let roles = calls.join_all().await;
    assert_eq!(roles, vec![Role::Assistant; 200]);
}

#[tokio::test]
async fn statuses_are_classified_with_the_words_of_the_provider() {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"x","message":"no \u001b[31m{KEY}\n here"}}}}"#
    );
    let error = error_of("401 Unauthorized", "", &body).await;
    assert!(matches!(error, ModelError::Unauthorised { .. }), "{error:?}");
    assert!(error.to_string().ends_with("HTTP 401: no [31m[key] here; check ANTHROPIC_API_KEY"));
    let error = error_of("400 Bad Request", "", &body).await;
    assert!(matches!(error, ModelError::Rejected { .. }), "{error:?}");
    let error = error_of("529 Overloaded", "", &body).await;
    assert!(matches!(error, ModelError::Overloaded { .. }), "{error:?}");
    let error = error_of("413 Too Large", "", "").await;
    assert!(matches!(error, ModelError::ContextOverflow { .. }), "{error:?}");
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let after = |error: ModelError| match error {
        ModelError::RetryAfter { after, .. } => after,
        other => panic!("{other:?}"),
    };
    let seconds = |number| Some(Duration::from_secs(number));
    let limit = "429 Too Many Requests";
    assert_eq!(after(error_of(limit, "retry-after: 7\r\n", "{}").await), seconds(7));
    assert_eq!(after(error_of(limit, "retry-after: 999999\r\n", "{}").await), seconds(86_400));
    assert_eq!(after(error_of(limit, "", "{}").await), None);
    let dates =
        "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:50:00 GMT\r\n";
    assert_eq!(after(error_of(limit, dates, "{}").await), seconds(23));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    let location = format!("location: {}/v1/messages\r\n", target.url);
    let error = error_of("307 Temporary Redirect", &location, "").await;
    assert!(matches!(error, ModelError::Rejected { .. }), "{error:?}");
    assert!(error.to_string().contains("redirects are not followed"), "{error}");
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn an_answer_that_is_no_event_stream_is_malformed() {
    let check = async |headers: &str, words: &str| {
        let error = error_of("200 OK", headers, "<h1>Welcome</h1>").await;
        assert!(matches!(error, ModelError::Malformed { .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    };
    check("content-type: text/html\r\n", "it is a page for people: <h1>").await;
    check("content-encoding: gzip\r\n", "compressed with gzip").await;
}

#[tokio::test]
async fn a_reply_with_tool_calls_without_end_is_refused_at_once() {
    let event =
        |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let with = |count: usize| {
        let mut body = PLAIN[..PLAIN.find("event: content_block_start").unwrap()].to_owned();
        for index in 0..count {
            let call = json!({"type": "tool_use", "id": "same", "name": "Read", "input": {}});
            body += &event(
                json!({"type": "content_block_start", "index": index, "content_block": call}),
            );
            body += &event(json!({"type": "content_block_stop", "index": index}));
        }
        let delta = json!({"stop_reason": "tool_use"});
        let usage = json!({"output_tokens": 1});
        body += &event(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        body + &event(json!({"type": "message_stop"}))
    };
    let server = Server::start(vec![Step::Send(streamed(&with(256)))]).await;
    let reply = call(&*server.model(PATIENT)).await.unwrap();
    let ids: HashSet<_> = reply.message.tool_calls().map(|call| call.id.0.clone()).collect();
    assert_eq!(ids.len(), 256);
    let error = error_after(vec![Step::Send(streamed(&with(20_000)))]).await;
    assert!(error.to_string().contains("20000 tool calls, more than 10000"), "{error}");
}

#[tokio::test]
async fn a_body_that_ends_too_early_is_cut() {
    let cut = |error: ModelError| assert!(matches!(error, ModelError::Cut { .. }), "{error:?}");
    let head = "content-type: text/event-stream\r\n";
    cut(error_of("200 OK", head, half()).await);
    cut(error_of("200 OK", head, "").await);
    cut(error_after(vec![Step::Send(begun(half())), Step::Close]).await);
    let longer = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n{head}\r\n{}", half());
    cut(error_after(vec![Step::Send(longer.into_bytes()), Step::Close]).await);
}

#[tokio::test]
async fn an_error_event_in_a_stream_ends_the_call() {
    let event = r#"event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}

"#;
    let error = error_after(vec![Step::Send(streamed(&format!("{}{event}", half())))]).await;
    assert!(matches!(error, ModelError::Overloaded { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = call(&*model_at(&format!("http://{address}"), PATIENT)).await.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { sent: false, .. }), "{error:?}");
    let words = error.to_string();
    assert!(words.contains(&address.to_string()) && words.contains("refused"), "{words}");
    let error = error_after(vec![Step::Close]).await;
    assert!(matches!(error, ModelError::Unreachable { sent: true, .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let answering = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.read_u8().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        socket.read_to_end(&mut Vec::new()).await
    };
    let model = model_at(&url, PATIENT);
    let (ended, _) = tokio::join!(call(&*model), answering);
    let error = ended.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn silence_and_pings_alone_are_a_stall() {
    let stall = Duration::from_millis(150);
    let ping = chunk("event: ping\ndata: {\"type\":\"ping\"}\n\n").into_bytes();
    let unknown = chunk("event: news\ndata: {\"type\":\"news\"}\n\n").into_bytes();
    let pause = Duration::from_millis(10);
    let begun = Step::Send(begun(half()));
    for steps in [
        vec![Step::Hold],
        vec![begun.clone(), Step::Hold],
        vec![begun.clone(), Step::Repeat(ping, pause)],
        vec![begun.clone(), Step::Repeat(unknown, pause)],
        vec![begun, Step::Repeat(chunk("x").into_bytes(), pause)],
    ] {
        let server = Server::start(steps).await;
        let started = Instant::now();
        let error = call(&*server.model(stall)).await.unwrap_err();
        assert!(matches!(error, ModelError::Stalled { after, .. } if after == stall), "{error:?}");
        assert!(started.elapsed() >= stall);
    }
}

#[tokio::test]
async fn a_slow_stream_that_moves_is_no_stall() {
    let delta = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n";
    let server = Server::start(vec![
        Step::Send(begun(half())),
        Step::Repeat(chunk(delta).into_bytes(), Duration::from_millis(20)),
    ])
    .await;
    let model = server.model(Duration::from_secs(1));
    let shown = Mutex::new(0);
    let cancel = CancellationToken::new();
    let show = |_| {
        let mut shown = shown.lock().unwrap();
        *shown += 1;
        if *shown == 60 {
            cancel.cancel();
        }
    };
    let ended = model.call(request(vec![Message::user("hi")]), &show, &cancel).await;
    assert!(matches!(ended, Err(ModelError::Cancelled)), "{ended:?}");
}

#[tokio::test]
async fn cancelling_ends_a_call_at_once_and_closes_its_connection() {
    for steps in [vec![Step::Hold], vec![Step::Send(begun(half())), Step::Hold]] {
        let streams = steps.len() > 1;
        let server = Server::start(steps).await;
        let model = server.model(PATIENT);
        let cancel = CancellationToken::new();
        let text = Notify::new();
        let show = |_| text.notify_one();
        let calling = model.call(request(vec![Message::user("hi")]), &show, &cancel);
        let cancelling = async {
            if streams {
                text.notified().await;
            }
            cancel.cancel();
        };
        let (ended, ()) = tokio::join!(calling, cancelling);
        assert!(matches!(ended, Err(ModelError::Cancelled)), "{ended:?}");
        if streams {
            server.gone.notified().await;
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_starts_sends_nothing() {
    let server = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    let model = server.model(PATIENT);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let ended = model.call(request(vec![Message::user("hi")]), &|_| {}, &cancel).await;
    assert!(matches!(ended, Err(ModelError::NotSent)), "{ended:?}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn endless_events_and_endless_replies_are_refused() {
    let check = async |piece: String, words: &str| {
        let piece = chunk(&piece).into_bytes();
        let steps = vec![
            Step::Send(STREAM_HEAD.as_bytes().to_vec()),
            Step::Send(chunk(half()).into_bytes()),
            Step::Repeat(piece, Duration::ZERO),
        ];
        let error = error_after(steps).await;
        assert!(matches!(error, ModelError::Malformed { .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    };
    check("x".repeat(1 << 20), "an event is larger than 8 MiB").await;
    let text = "a".repeat(1 << 20);
    let delta = format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    );
    check(delta, "it is larger than 32 MiB").await;
}
