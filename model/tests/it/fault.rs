//! Faults, and the words they are told in.

use posse_agent::ModelError;
use posse_model::fault::{Fault, Kind, MAX_REASON_CHARS, Subject, retry_after};
use std::time::Duration;

const KEY: &str = "sk-ant-secret-0123456789";

fn error(fault: Fault) -> ModelError {
    let subject =
        Subject { model: "anthropic/claude-test", key: KEY, key_source: "ANTHROPIC_API_KEY" };
    fault.into_error(subject)
}

fn body(message: &str) -> Vec<u8> {
    let error = serde_json::json!({"type": "invalid_request_error", "message": message});
    serde_json::json!({"type": "error", "error": error}).to_string().into_bytes()
}

#[test]
fn answers_are_told_apart_by_their_status() {
    let check = |status: u16, message: &str, kind: Kind| {
        assert_eq!(Fault::of_status(status, None, &body(message)).kind, kind, "{status}");
    };
    for status in [401, 403] {
        check(status, "invalid x-api-key", Kind::Unauthorised);
    }
    for status in [302, 400, 402, 404, 405, 422] {
        check(status, "no", Kind::Rejected);
    }
    for status in [408, 500, 502, 503, 504, 529] {
        check(status, "Overloaded", Kind::Overloaded(None));
    }
    check(429, "slow down", Kind::RateLimited(None));
    check(413, "Request exceeds the maximum size", Kind::ContextOverflow);
    check(400, "prompt is too long: 214000 tokens > 200000 maximum", Kind::ContextOverflow);
    let limit = "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000";
    check(400, limit, Kind::ContextOverflow);
}

#[test]
fn words_name_the_status_the_reason_and_the_next_step() {
    let check = |status: u16, body: &[u8], expected: &str| {
        assert_eq!(error(Fault::of_status(status, None, body)).to_string(), expected);
    };
    check(
        401,
        &body("invalid x-api-key"),
        "anthropic/claude-test does not accept the key: HTTP 401: invalid x-api-key; check ANTHROPIC_API_KEY",
    );
    check(
        404,
        &body("model: claude-test"),
        "anthropic/claude-test rejected the request: HTTP 404: model: claude-test; check the name of the model and the base URL",
    );
    check(502, b"", "anthropic/claude-test is overloaded or in trouble: HTTP 502");
    check(
        503,
        b"<h1>\x1b[31mno\r\n</h1>\xff",
        "anthropic/claude-test is overloaded or in trouble: HTTP 503: <h1> [31mno </h1>\u{fffd}",
    );
}

#[test]
fn words_are_short_and_never_have_the_key() {
    for length in [0, 100, 460, 470, 480, 490, 500, 10_000] {
        let words = format!("{} {KEY} {KEY} tail", "x".repeat(length));
        let ModelError::Unauthorised { reason, .. } =
            error(Fault::of_status(401, None, &body(&words)))
        else {
            panic!("not what 401 means");
        };
        assert!(reason.chars().count() <= MAX_REASON_CHARS, "{length}");
        assert!(!reason.contains("sk-ant"), "{length}: {reason}");
        assert!(reason.ends_with("; check ANTHROPIC_API_KEY"));
    }
}

#[test]
fn a_wait_is_read_from_seconds_and_dates_and_is_never_long() {
    let now = 784_111_777; // Sun, 06 Nov 1994 08:49:37 GMT
    let check = |value: &str, seconds: Option<u64>| {
        let expected = seconds.map(Duration::from_secs);
        assert_eq!(retry_after(value, None, now), expected, "{value}");
    };
    check("7", Some(7));
    check(" 0 ", Some(0));
    check("86400", Some(86_400));
    check("99999999999999999999999999", Some(86_400));
    check("Sun, 06 Nov 1994 08:50:07 GMT", Some(30));
    check("Sun, 06 Nov 1994 08:00:00 GMT", Some(0));
    check("Fri, 01 Jan 2100 00:00:00 GMT", Some(86_400));
    check("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400));
    for value in ["", "-1", "nan", "inf", "soon", "Sun, 99 Nov 1994 08:50:07 GMT"] {
        check(value, None);
    }
    let date = Some("Sun, 06 Nov 1994 08:50:00 GMT");
    let wait = retry_after("Sun, 06 Nov 1994 08:50:07 GMT", date, 0);
    assert_eq!(wait, Some(Duration::from_secs(7)));
}
