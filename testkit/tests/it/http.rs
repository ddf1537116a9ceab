//! HTTP itself, byte by byte.

use crate::client::{client, post, says, start, streaming};
use posse_testkit::{FakeModel, Reply, Script, StartError};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HEAD: &str =
    "POST /v1/messages HTTP/1.1\r\nHost: fake\r\nX-Api-Key: k\r\nAnthropic-Version: v\r\n";

async fn fake() -> FakeModel {
    start(Script::always(Reply::text("said: {{last_user}}"))).await
}

/// Sends `bytes` and returns everything until the server closes the connection.
async fn exchange(fake: &FakeModel, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(fake.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Reads one response that has a length, and returns its head and body.
async fn response(stream: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        bytes.push(byte[0]);
        if bytes.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let head = String::from_utf8(bytes).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn with_length(body: &str) -> String {
    format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn chunked(body: &str, size: usize) -> String {
    let mut out = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    for chunk in body.as_bytes().chunks(size) {
        let chunk = std::str::from_utf8(chunk).unwrap();
        out.push_str(&format!("{:x};ext=1\r\n{chunk}\r\n", chunk.len()));
    }
    out.push_str("0\r\nX-Trailer: t\r\n\r\n");
    out
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let fake = fake().await;
    let client = client();
    for number in 0..20 {
        let request = says(&number.to_string());
        let request = if number % 2 == 0 { request } else { streaming(request) };
        let text = post(&client, &fake, &request).send().await.unwrap().text().await.unwrap();
        assert!(text.contains("said"), "{text}");
    }
    assert_eq!((fake.connections(), fake.count()), (1, 20));
}

#[tokio::test]
async fn requests_are_captured_as_they_came() {
    let fake = fake().await;
    let client = client();
    for text in ["first", "second"] {
        let request = post(&client, &fake, &says(text)).header("X-Test", text);
        request.send().await.unwrap().text().await.unwrap();
    }
    let captured = fake.requests();
    assert_eq!(captured.iter().map(|request| request.number).collect::<Vec<_>>(), [1, 2]);
    let second = &captured[1];
    assert_eq!((second.method.as_str(), second.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(second.header("x-test"), Some("second"));
    assert_eq!(second.body["messages"][0]["content"], "second");
    assert_eq!(second.raw, says("second").to_string().into_bytes());
    // What is refused is captured too.
    post(&client, &fake, &Value::Null).body("no json").send().await.unwrap();
    assert_eq!(fake.requests()[2].body, Value::Null);
    assert_eq!(fake.requests()[2].raw, b"no json");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let fake = fake().await;
    let two = with_length(&says("one").to_string()) + &chunked(&says("two").to_string(), 10);
    let mut stream = TcpStream::connect(fake.address()).await.unwrap();
    stream.write_all(two.as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.1.contains("said: one"));
    assert!(response(&mut stream).await.1.contains("said: two"));
}

#[tokio::test]
async fn a_request_may_come_byte_by_byte() {
    let fake = fake().await;
    let body = says("slowly").to_string();
    for bytes in [with_length(&body), chunked(&body, 7)] {
        let mut stream = TcpStream::connect(fake.address()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        for byte in bytes.as_bytes() {
            stream.write_all(&[*byte]).await.unwrap();
        }
        assert!(response(&mut stream).await.1.contains("said: slowly"));
    }
    assert_eq!(fake.requests()[0].raw, fake.requests()[1].raw);
}

#[tokio::test]
async fn a_long_body_arrives_whole_in_both_codings() {
    let fake = fake().await;
    let body = says(&"long ".repeat(200_000)).to_string();
    for bytes in [with_length(&body), chunked(&body, 100_000)] {
        let mut stream = TcpStream::connect(fake.address()).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        assert!(response(&mut stream).await.0.starts_with("HTTP/1.1 200 OK\r\n"));
    }
    assert!(fake.requests().iter().all(|request| request.raw == body.as_bytes()));
}

#[tokio::test]
async fn a_client_that_asks_for_leave_to_send_gets_it() {
    let fake = fake().await;
    let body = says("patient").to_string();
    let head = format!("{HEAD}Expect: 100-continue\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut stream = TcpStream::connect(fake.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut leave = [0; 25];
    stream.read_exact(&mut leave).await.unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.1.contains("said: patient"));
}

#[tokio::test]
async fn a_connection_closes_when_the_client_says_so() {
    let fake = fake().await;
    let body = says("bye").to_string();
    let request = with_length(&body).replacen("Host", "Connection: close\r\nHost", 1);
    let text = exchange(&fake, request.as_bytes()).await;
    assert!(text.contains("connection: close\r\n") && text.contains("said: bye"), "{text}");
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_a_stream_without_chunks() {
    let fake = fake().await;
    let body = streaming(says("old")).to_string();
    let text = exchange(&fake, with_length(&body).replacen("1.1", "1.0", 1).as_bytes()).await;
    assert!(!text.contains("chunked"), "{text}");
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(body.starts_with("event: message_start\n"), "{body}");
    assert!(body.ends_with("{\"type\":\"message_stop\"}\n\n"), "{body}");
}

#[tokio::test]
async fn a_stream_is_sent_in_a_chunk_for_each_event() {
    let fake = fake().await;
    let body = streaming(says("x")).to_string();
    let request = with_length(&body).replacen("Host", "Connection: close\r\nHost", 1);
    let text = exchange(&fake, request.as_bytes()).await;
    let (head, mut rest) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    loop {
        let (size, after) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let (chunk, after) = after.split_at(size);
        if size == 0 {
            assert_eq!(after, "\r\n");
            break;
        }
        assert!(chunk.starts_with("event: ") && chunk.ends_with("\n\n"), "{chunk:?}");
        rest = after.strip_prefix("\r\n").unwrap();
    }
}

#[tokio::test]
async fn the_answer_to_head_has_no_body() {
    let fake = fake().await;
    let text = exchange(&fake, b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 404 Not Found\r\n") && text.ends_with("\r\n\r\n"), "{text}");
}

/// Checks that `bytes` are refused with `status`, by a document that contains `part`.
async fn check_refused(bytes: String, status: u16, part: &str) {
    let text = exchange(&fake().await, bytes.as_bytes()).await;
    assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let document: Value = serde_json::from_str(body).unwrap();
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains(part), "{message}");
}

#[tokio::test]
async fn requests_that_cannot_be_read_are_refused_with_a_reason() {
    check_refused("no http\r\n\r\n".into(), 400, "is no HTTP").await;
    let header = format!("X-Long: {}\r\n", "x".repeat(1000));
    check_refused(format!("{HEAD}{}\r\n", header.repeat(99)), 431, "exceeds 65536 bytes").await;
    check_refused(format!("{HEAD}{}\r\n", "X: y\r\n".repeat(200)), 431, "more than 100").await;
    check_refused(format!("{HEAD}Content-Length: +5\r\n\r\n"), 400, "is no number").await;
    check_refused(format!("{HEAD}Content-Length: 99999999999\r\n\r\n"), 413, "exceeds").await;
    let differ = "Content-Length: 5\r\nContent-Length: 6\r\n\r\n";
    check_refused(format!("{HEAD}{differ}"), 400, "differ").await;
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    check_refused(format!("{HEAD}{both}"), 400, "both").await;
    check_refused(format!("{HEAD}Transfer-Encoding: gzip\r\n\r\n"), 501, "use chunked").await;
    let chunks = "Transfer-Encoding: chunked\r\n\r\n";
    check_refused(format!("{HEAD}{chunks}zz\r\n"), 400, "no valid size").await;
    check_refused(format!("{HEAD}{chunks}2\r\nabcd\r\n0\r\n\r\n"), 400, "longer than").await;
    check_refused(format!("{HEAD}{chunks}fffffff\r\n"), 413, "exceeds").await;
}

#[tokio::test]
async fn a_client_that_leaves_within_a_request_is_no_request() {
    let fake = fake().await;
    let mut stream = TcpStream::connect(fake.address()).await.unwrap();
    stream.write_all(format!("{HEAD}Content-Length: 50\r\n\r\nabc").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut nothing = Vec::new();
    stream.read_to_end(&mut nothing).await.unwrap();
    assert!(nothing.is_empty());
    assert_eq!(fake.count(), 0);
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let fake = fake().await;
    let script = Script::always(Reply::text("x"));
    let error = FakeModel::start_on(script, fake.address()).await.unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }));
    assert!(error.to_string().contains(&fake.address().to_string()), "{error}");
}
