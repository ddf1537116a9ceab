//! Errors inside a stream that began well.

use super::transcripts::{added, message, read, read_events};
use posse_model::fault::Kind;
use serde_json::{Value, json};
use std::time::Duration;

/// Reads a stream that ends with this event and expects a fault of `kind` for `reason`.
fn check_event(event: Value, kind: Kind, reason: &str) {
    let start = json!({"type": "response.created", "response": {"id": "r"}});
    let fault = read_events(&[start, added(0, message("m", "")), event]).unwrap_err();
    assert_eq!((fault.kind, fault.reason.as_str()), (kind, reason));
}

/// Expects that an error of `code` means `kind`, in each form in which errors come.
fn check(code: &str, message: &str, kind: Kind) {
    let reason = format!("{code}: {message}");
    let error = json!({"code": code, "message": message, "param": null});
    let flat = json!({"type": "error", "code": code, "message": message, "param": null});
    check_event(flat, kind, &reason);
    check_event(json!({"type": "error", "error": error}), kind, &reason);
    let failed = json!({"status": "failed", "error": error, "output": []});
    check_event(json!({"type": "response.failed", "response": failed}), kind, &reason);
    check_event(json!({"error": error}), kind, &reason);
}

#[test]
fn errors_are_told_apart_by_their_code() {
    for code in ["server_error", "server_is_overloaded", "slow_down", "503", "529"] {
        check(code, "later", Kind::Overloaded(None));
    }
    for code in ["rate_limit_exceeded", "too_many_requests", "429"] {
        check(code, "slow", Kind::RateLimited(None));
    }
    for code in ["invalid_api_key", "401"] {
        check(code, "who?", Kind::Unauthorised);
    }
    check("context_length_exceeded", "too much", Kind::ContextOverflow);
    let words = "Your input exceeds the context window of this model.";
    check("invalid_request_error", words, Kind::ContextOverflow);
    for code in ["invalid_prompt", "insufficient_quota", "something_new"] {
        check(code, "no", Kind::Rejected);
    }
}

#[test]
fn the_type_counts_where_the_code_says_nothing() {
    let error = |code: Value, kind: &str| json!({"type": "error", "error": {"type": kind, "code": code, "message": "m"}});
    check_event(error(Value::Null, "server_error"), Kind::Overloaded(None), "server_error: m");
    check_event(error(json!("odd"), "rate_limit_error"), Kind::RateLimited(None), "odd: m");
    let quota = error(json!("insufficient_quota"), "too_many_requests");
    check_event(quota, Kind::Rejected, "insufficient_quota: m");
    check_event(error(json!(502), "provider"), Kind::Overloaded(None), "502: m");
}

#[test]
fn the_wait_is_taken_from_the_words() {
    let check = |words: &str, wait: Option<u64>| {
        let message = format!("Rate limit reached. Please try again in {words}. Visit us.");
        let wait = wait.map(Duration::from_millis);
        let error = json!({"code": "rate_limit_exceeded", "message": message});
        let reason = format!("rate_limit_exceeded: {message}");
        let event = json!({"type": "error", "error": error});
        check_event(event, Kind::RateLimited(wait), &reason);
    };
    check("6.5s", Some(6_500));
    check("350ms", Some(350));
    check("1m2.5s", Some(62_500));
    check("20 seconds", Some(20_000));
    check("9h", Some(32_400_000));
    check("a while", None);
    check("5 parsecs", None);
    check("1.2.3s", None);
}

#[test]
fn an_error_without_words_is_the_provider_s_trouble() {
    let silent = "the vendor gives no reason";
    check_event(json!({"type": "error"}), Kind::Overloaded(None), silent);
    let failed =
        json!({"type": "response.failed", "response": {"status": "failed", "error": null}});
    check_event(failed, Kind::Overloaded(None), silent);
    check_event(json!({"type": "response.failed"}), Kind::Overloaded(None), silent);
    check_event(json!({"type": "error", "error": "Boom"}), Kind::Rejected, "Boom");
    check_event(json!({"error": {"message": "Boom"}}), Kind::Rejected, "Boom");
}

#[test]
fn an_error_event_is_known_by_its_name_too() {
    let fault =
        read("event: error\ndata: {\"error\":{\"code\":\"server_error\"}}\n\n").unwrap_err();
    assert_eq!((fault.kind, fault.reason.as_str()), (Kind::Overloaded(None), "server_error"));
}
