//! Errors of the provider, and replies that are not what the wire says.

use super::transcripts::{read, stream};
use posse_model::fault::{Fault, Kind};
use serde_json::{Value, json};
use std::time::Duration;

/// Reads a stream of these chunks and expects a fault of `kind` whose reason has `words`.
pub fn check_fault(chunks: &[Value], kind: Kind, words: &str) {
    let fault = read(&stream(chunks)).unwrap_err();
    assert_eq!(fault.kind, kind, "{fault:?}");
    assert!(fault.reason.contains(words), "{fault:?}");
}

#[test]
fn a_reply_the_provider_threw_away_is_malformed() {
    for reason in ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"] {
        let end = json!({"finishReason": reason, "finishMessage": "print(default_api.read())"});
        check_fault(&[json!({"candidates": [end]})], Kind::Malformed, "default_api");
    }
    let end = json!({"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]});
    check_fault(&[end], Kind::Rejected, "it ended with MISSING_THOUGHT_SIGNATURE");
}

#[test]
fn a_call_without_a_name_or_in_pieces_is_malformed() {
    let bad = |call: Value, words: &str| {
        let candidate = json!({"content": {"parts": [{"functionCall": call}]}});
        check_fault(&[json!({"candidates": [candidate]})], Kind::Malformed, words);
    };
    bad(json!({"args": {}}), "without a name");
    bad(json!({"name": ""}), "without a name");
    bad(json!({"name": "Read", "willContinue": true}), "in pieces");
    bad(json!("Read"), "cannot be read");
}

#[test]
fn errors_inside_a_stream_are_told_apart() {
    let check = |code: u64, status: &str, message: &str, kind: Kind| {
        let error = json!({"error": {"code": code, "message": message, "status": status}});
        let text = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
        check_fault(&[text, error.clone()], kind, message);
        check_fault(&[json!([error])], kind, message);
    };
    check(429, "RESOURCE_EXHAUSTED", "quota", Kind::RateLimited(None));
    check(503, "UNAVAILABLE", "The model is overloaded.", Kind::Overloaded(None));
    check(500, "INTERNAL", "An internal error has occurred.", Kind::Overloaded(None));
    check(504, "DEADLINE_EXCEEDED", "too slow", Kind::Overloaded(None));
    check(499, "CANCELLED", "The operation was cancelled.", Kind::Overloaded(None));
    check(0, "UNAVAILABLE", "no code", Kind::Overloaded(None));
    check(401, "UNAUTHENTICATED", "no credentials", Kind::Unauthorised);
    check(403, "PERMISSION_DENIED", "not yours", Kind::Unauthorised);
    let key = "API key not valid. Please pass a valid API key.";
    check(400, "INVALID_ARGUMENT", key, Kind::Unauthorised);
    let too_long =
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
    check(400, "INVALID_ARGUMENT", too_long, Kind::ContextOverflow);
    check(400, "INVALID_ARGUMENT", "Invalid JSON payload received.", Kind::Rejected);
    check(400, "FAILED_PRECONDITION", "User location is not supported", Kind::Rejected);
    check(404, "NOT_FOUND", "models/x is not found", Kind::Rejected);
    check(0, "SOMETHING_NEW", "what", Kind::Rejected);
    check_fault(&[json!({"error": "odd"})], Kind::Overloaded(None), "odd");
    check_fault(&[json!({"error": {"code": 429}})], Kind::RateLimited(None), "429");
}

#[test]
fn an_error_says_when_to_try_again() {
    let check = |delay: &str, after: Option<Duration>| {
        let info =
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
        let details = json!([{"@type": "type.googleapis.com/google.rpc.Help"}, info]);
        let error = json!({"code": 429, "message": "quota", "details": details});
        check_fault(&[json!({"error": error})], Kind::RateLimited(after), "quota");
    };
    check("12s", Some(Duration::from_secs(12)));
    check("1.5s", Some(Duration::from_millis(1_500)));
    check("86400s", Some(Duration::from_secs(86_400)));
    check("soon", None);
    check("-3s", None);
}

#[test]
fn an_answer_that_failed_is_read_whether_or_not_it_is_a_list() {
    let info = json!({"retryDelay": "7s"});
    let error = json!({"error": {"code": 429, "message": "quota", "details": [info]}});
    for body in [error.to_string(), format!(" [{error}]\n")] {
        let fault = Fault::of_status(429, None, body.as_bytes());
        assert_eq!(fault.kind, Kind::RateLimited(Some(Duration::from_secs(7))));
        assert_eq!(fault.reason, "HTTP 429: quota");
        let header = Some(Duration::from_secs(3));
        let fault = Fault::of_status(503, header, body.as_bytes());
        assert_eq!(fault.kind, Kind::Overloaded(header));
    }
}

#[test]
fn what_the_wire_does_not_allow_is_malformed() {
    let bad = |data: &str| {
        let fault = read(&format!("data: {data}\n\n")).unwrap_err();
        assert_eq!(fault.kind, Kind::Malformed, "{data}");
        assert!(fault.reason.contains("a chunk cannot be read"), "{fault:?}");
    };
    bad("{nope");
    bad("\"text\"");
    bad("[1]");
    bad(r#"{"candidates":{}}"#);
    bad(r#"{"candidates":[{"content":{"parts":[{"text":5}]}}]}"#);
    bad(r#"{"candidates":[{"content":{"parts":["text"]}}]}"#);
    bad(&"[".repeat(100_000));
}
