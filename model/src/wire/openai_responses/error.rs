//! Errors inside an answer with status 200, sorted by what can be done about them.

use crate::fault::{Fault, Kind, is_overflow, retry_after};
use serde_json::Value;
use std::time::Duration;

/// The fault of an error event, a failed reply or an error document.
///
/// The detail is under `error`, or, as the wire's own description has it, beside the type.
pub(super) fn fault(told: &Value) -> Fault {
    let detail = told.get("error").filter(|error| !error.is_null()).unwrap_or(told);
    let word = |key: &str| match detail.get(key) {
        Some(Value::String(word)) => word.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let message = detail.as_str().map_or_else(|| word("message"), str::to_owned);
    let (code, class) = (word("code"), word("type"));
    // The type of the event itself says nothing.
    let mut names = [code, class].into_iter().filter(|name| !matches!(&**name, "" | "error"));
    let known = names.clone().find_map(|name| kind_of(&name, &message));
    let name = names.next().unwrap_or_default();
    let kind = match known {
        Some(kind) => kind,
        None if is_overflow(&message) => Kind::ContextOverflow,
        // A failure without a reason is trouble of the provider, not of the request.
        None if name.is_empty() && message.is_empty() => Kind::Overloaded(None),
        None => Kind::Rejected,
    };
    let reason = match (name.is_empty(), message.is_empty()) {
        (true, true) => "the vendor gives no reason".to_owned(),
        (true, false) => message,
        (false, true) => name,
        (false, false) => format!("{name}: {message}"),
    };
    Fault::new(kind, reason)
}

/// The meaning of a code or type of error, if it is known. Some gateways give a status code.
fn kind_of(name: &str, message: &str) -> Option<Kind> {
    Some(match name {
        "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" | "429" => {
            Kind::RateLimited(asked_wait(message))
        }
        "server_error"
        | "server_is_overloaded"
        | "overloaded_error"
        | "api_error"
        | "internal_error"
        | "internal_server_error"
        | "service_unavailable"
        | "slow_down"
        | "timeout"
        | "vector_store_timeout"
        | "408"
        | "500"
        | "502"
        | "503"
        | "504"
        | "529" => Kind::Overloaded(asked_wait(message)),
        "invalid_api_key" | "authentication_error" | "permission_error" | "401" | "403" => {
            Kind::Unauthorised
        }
        "context_length_exceeded" | "request_too_large" | "413" => Kind::ContextOverflow,
        // Sent with the status of a rate limit, but waiting does not help.
        "insufficient_quota" | "billing_hard_limit_reached" => Kind::Rejected,
        _ => return None,
    })
}

/// The wait that the words ask for: "try again in 1m2.5s", "in 350ms", "in 20 seconds".
fn asked_wait(message: &str) -> Option<Duration> {
    let (_, mut rest) = message.split_once("try again in ")?;
    let mut seconds = None;
    while rest.starts_with(|first: char| first.is_ascii_digit()) {
        let end = rest.find(|each: char| !each.is_ascii_digit() && each != '.')?;
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after.find(|each: char| !each.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let scale = match unit {
            "ms" => 0.001,
            "s" | "second" | "seconds" => 1.0,
            "m" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            _ => return None,
        };
        seconds = Some(seconds.unwrap_or(0.0) + number.parse::<f64>().ok()? * scale);
        rest = after;
    }
    retry_after(&seconds?.to_string(), None, 0)
}
