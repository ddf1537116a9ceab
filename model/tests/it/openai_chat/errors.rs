//! Errors inside an answer that had begun well.

use super::transcripts::{chunk, end, read, read_document, stream};
use posse_model::fault::{Fault, Kind};
use serde_json::{Value, json};

/// Expects a fault of `kind` whose reason has `words`, from `event` in a stream or as a document.
fn check(event: Value, kind: Kind, words: &str) {
    let events = [chunk(json!({"content": "So far"})), event.to_string()];
    let faults = [read(&stream(&events)), read_document(&event.to_string()).0];
    for fault in faults.map(Result::unwrap_err) {
        assert_eq!(fault.kind, kind, "{fault:?}");
        assert!(fault.reason.contains(words), "{fault:?}");
    }
}

/// The same for an error object.
fn check_error(error: Value, kind: Kind, words: &str) {
    check(json!({"error": error}), kind, words);
}

#[test]
fn errors_are_told_apart_by_type_and_code() {
    let check = |kind: &str, code: Value, expected: Kind| {
        check_error(json!({"message": "no", "type": kind, "code": code}), expected, "no");
    };
    check("server_error", Value::Null, Kind::Overloaded(None));
    check("InternalServerError", json!(500), Kind::Overloaded(None));
    check("", json!("overloaded"), Kind::Overloaded(None));
    check("", json!(502), Kind::Overloaded(None));
    check("", json!("503"), Kind::Overloaded(None));
    check("requests", json!("rate_limit_exceeded"), Kind::RateLimited(None));
    check("RateLimitError", Value::Null, Kind::RateLimited(None));
    check("", json!(429), Kind::RateLimited(None));
    check("insufficient_quota", json!("insufficient_quota"), Kind::Rejected);
    check("", json!(402), Kind::Rejected);
    check("", json!(401), Kind::Unauthorised);
    check("invalid_request_error", json!("invalid_api_key"), Kind::Unauthorised);
    check("authentication_error", Value::Null, Kind::Unauthorised);
    check("invalid_request_error", Value::Null, Kind::Rejected);
    check("BadRequestError", json!(400), Kind::Rejected);
    check("invalid_request_error", json!("model_not_found"), Kind::Rejected);
    check("invalid_request_error", json!("context_length_exceeded"), Kind::ContextOverflow);
    check("", json!(413), Kind::ContextOverflow);
    check("invalid_request_error", json!("tool_use_failed"), Kind::Malformed);
    check("something_new", json!(20015), Kind::Overloaded(None));
}

#[test]
fn a_transcript_that_does_not_fit_is_known_by_its_words() {
    for words in [
        "This model's maximum context length is 131072 tokens.",
        "the request exceeds the available context size, try increasing it",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Your request exceeded model token limit: 262144 (requested: 300000)",
        "Range of input length should be [1, 129024]",
        "Prompt exceeds max length",
        "Please reduce the length of the messages or completion.",
        "`inputs` tokens + `max_new_tokens` must be <= 131073",
    ] {
        for code in [json!(400), json!(500), Value::Null] {
            let error = json!({"message": words, "type": "invalid_request_error", "code": code});
            check_error(error, Kind::ContextOverflow, words);
        }
    }
}

#[test]
fn errors_have_many_forms() {
    let overloaded = Kind::Overloaded(None);
    check(json!({"error": "CUDA error: out of memory"}), overloaded, "CUDA error");
    check(json!({"error": {"odd": true}}), overloaded, "odd");
    check(
        json!({"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "code": "1300"}),
        Kind::RateLimited(None),
        "1300: Rate limit exceeded",
    );
    let router = json!({"code": 502, "message": "Provider returned error",
        "metadata": {"raw": "upstream is down", "provider_name": "X"}});
    let words = "502: Provider returned error: upstream is down";
    check_error(router.clone(), overloaded, words);
    let choice = json!({"index": 0, "delta": {"content": ""}, "finish_reason": "error"});
    check(json!({"id": "g", "error": router, "choices": [choice]}), overloaded, words);
    let choice = json!({"index": 0, "delta": {}, "finish_reason": "error", "error": router});
    check(json!({"id": "g", "choices": [choice]}), overloaded, words);
    check(json!({"x_groq": {"error": router}, "choices": []}), overloaded, words);
}

#[test]
fn a_reply_that_ends_in_a_failure_is_none() {
    for reason in ["error", "network_error", "insufficient_system_resource"] {
        let fault = read(&stream(&[chunk(json!({"content": "x"})), end(reason)])).unwrap_err();
        assert_eq!(fault.kind, Kind::Overloaded(None), "{fault:?}");
        assert!(fault.reason.contains(reason), "{fault:?}");
    }
}

#[test]
fn an_event_named_error_is_one_whatever_it_holds() {
    let body = "event: error\ndata: {\"message\":\"busy\",\"code\":429}\n\n";
    let fault = read(body).unwrap_err();
    assert_eq!((fault.kind, fault.reason.as_str()), (Kind::RateLimited(None), "429: busy"));
    let body = "event: error\ndata: {\"error\":{\"message\":\"busy\"}}\n\n";
    assert_eq!(read(body).unwrap_err().reason, "busy");
}

#[test]
fn an_error_that_is_null_is_none() {
    let mut event: Value = serde_json::from_str(&chunk(json!({"content": "x"}))).unwrap();
    event["error"] = Value::Null;
    let reply = read(&stream(&[event.to_string(), end("stop")])).unwrap();
    assert_eq!(reply.message.text(), "x");
}

#[test]
fn the_words_of_a_refusal_are_found_wherever_a_vendor_puts_them() {
    let check = |status: u16, body: Value, kind: Kind, words: &str| {
        let fault = Fault::of_status(status, None, body.to_string().as_bytes());
        assert_eq!((fault.kind, fault.reason), (kind, format!("HTTP {status}: {words}")));
    };
    check(400, json!({"error": "model not loaded"}), Kind::Rejected, "model not loaded");
    let order = json!({"object": "error", "message": "Unexpected role", "code": "3230"});
    check(400, order, Kind::Rejected, "Unexpected role");
    let router = json!({"error": {"code": 400, "message": "Provider returned error",
        "metadata": {"raw": "prompt is too long"}}});
    let words = "Provider returned error: prompt is too long";
    check(400, router, Kind::ContextOverflow, words);
    let words = "`inputs` tokens + `max_new_tokens` must be <= 131073";
    check(422, json!({"error": {"message": words}}), Kind::ContextOverflow, words);
    check(400, json!({"detail": 5}), Kind::Rejected, "{\"detail\":5}");
}
