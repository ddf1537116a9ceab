//! Refusals: status, headers and the provider's words.

use super::stream::{Asked, ask, faulty, read_all, request};
use serde_json::Value;

/// The status, the head and the document of a refusal; the same for a stream and a document.
async fn refusal(fault: &str) -> (u16, String, String) {
    let fake = faulty(fault).await;
    let mut answers = Vec::new();
    for asked in [Asked::Stream, Asked::Document] {
        let (bytes, _) = read_all(&mut ask(&fake, &request(asked)).await).await;
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head[9..12].parse().unwrap();
        let length = format!("content-length: {}", body.len());
        assert!(head.lines().any(|line| line == length), "{fault}: {head}");
        answers.push((status, head.to_owned(), body.to_owned()));
    }
    let document = answers.pop().unwrap();
    let stream = answers.pop().unwrap();
    assert_eq!((stream.0, &stream.2), (document.0, &document.2), "{fault}");
    stream
}

#[tokio::test]
async fn every_way_to_say_when_to_come_back() {
    for (fault, header) in [
        ("rate-limit", None),
        ("rate-limit-seconds", Some("retry-after: 1")),
        ("rate-limit-fraction", Some("retry-after: 0.05")),
        ("rate-limit-zero", Some("retry-after: 0")),
        ("rate-limit-date", Some("retry-after: Sun, 06 Nov 1994 08:49:38 GMT")),
        ("rate-limit-past-date", Some("retry-after: Sun, 06 Nov 1994 08:49:36 GMT")),
        ("rate-limit-huge", Some("retry-after: 86400")),
        ("rate-limit-negative", Some("retry-after: -5")),
        ("rate-limit-garbage", Some("retry-after: when the moon is full")),
        ("rate-limit-no-number", Some("retry-after: NaN")),
        ("rate-limit-milliseconds", Some("retry-after-ms: 50")),
        ("rate-limit-retry-info", None),
    ] {
        let (status, head, body) = refusal(fault).await;
        assert_eq!(status, 429, "{fault}");
        let said = head.lines().find(|line| line.starts_with("retry-after"));
        assert_eq!(said, header, "{fault}");
        let dated = head.contains("date: Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(dated, fault.ends_with("date"), "{fault}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"]["type"], "rate_limit_error", "{fault}");
        let delay = &body["error"]["details"][0]["retryDelay"];
        assert_eq!(*delay == "0.05s", fault == "rate-limit-retry-info");
    }
}

#[tokio::test]
async fn every_status_with_its_words() {
    for (fault, status, words) in [
        ("quota-exhausted", 400, "credit balance is too low"),
        ("overloaded", 529, "Overloaded"),
        ("server-error", 500, "Internal server error"),
        ("unavailable", 503, "unavailable"),
        ("gateway-timeout", 504, "timed out"),
        ("request-timeout", 408, "timed out"),
        ("bad-key", 401, "invalid x-api-key"),
        ("forbidden", 403, "does not have permission"),
        ("unknown-model", 404, "model: "),
        ("too-large", 413, "exceeds the maximum allowed number of bytes"),
        ("context-overflow", 400, "prompt is too long: 204918 tokens > 200000 maximum"),
        ("bad-request", 400, "temperature"),
    ] {
        let (found, _, body) = refusal(fault).await;
        assert_eq!(found, status, "{fault}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["type"], "error", "{fault}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{fault}: {message}");
    }
}

#[tokio::test]
async fn refusals_that_are_no_documents_of_the_provider() {
    let (status, head, body) = refusal("bad-gateway").await;
    assert_eq!(status, 502);
    assert!(head.contains("content-type: text/html"), "{head}");
    assert!(body.starts_with("<html>"), "{body}");
    assert_eq!(refusal("server-error-empty").await.2, "");
    assert_eq!(refusal("no-content").await.0, 204);
    let (status, head, body) = refusal("error-with-200").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/json") && body.contains("api_error"));
    assert!(refusal("html").await.2.contains("Sign in"));
    assert!(refusal("html-as-stream").await.1.contains("content-type: text/event-stream"));
    assert_eq!(refusal("empty").await.2, "");
    assert_eq!(refusal("json-list").await.2, "[]");
}
