//! Errors inside an answer with a good status.

use crate::fault::{Fault, Kind, error_words, is_overflow};
use serde_json::Value;

/// The fault of `error`: an object with `message`, `type` and `code`, or a text.
pub(super) fn fault_of(error: &Value) -> Fault {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let words = error_words(error).unwrap_or_else(|| error.to_string());
    let code = match &error["code"] {
        Value::Number(code) => code.to_string(),
        other => text(other),
    };
    let name = text(&error["type"]);
    let kind = kind_of(&code, &name, &words);
    let label = if code.is_empty() { name } else { code };
    let colon = if label.is_empty() { "" } else { ": " };
    Fault::new(kind, format!("{label}{colon}{words}"))
}

/// What an error is by its code (a status, or a name), the name of its type, and its words.
///
/// Any other error counts as trouble of the provider, because it had accepted the request.
fn kind_of(code: &str, name: &str, words: &str) -> Kind {
    let names = [code.to_lowercase(), name.to_lowercase()];
    let names_any =
        |signs: &[&str]| names.iter().any(|name| signs.iter().any(|sign| name.contains(sign)));
    let status = code.parse::<u16>().ok().filter(|status| (300..600).contains(status));
    if names_any(&["context_length"]) || is_overflow(words) {
        Kind::ContextOverflow
    } else if names_any(&["quota", "billing", "balance", "not_found", "content_policy"]) {
        Kind::Rejected
    } else if names_any(&["rate_limit", "ratelimit", "too_many_requests"]) {
        Kind::RateLimited(None)
    } else if names_any(&["auth", "api_key", "permission"]) {
        Kind::Unauthorised
    } else if names_any(&["tool_use_failed", "json_validate_failed"]) {
        // The model made a mistake, and the provider does not send its output. A retry may work.
        Kind::Malformed
    } else if let Some(status) = status {
        Kind::of_status(status, None, words)
    } else if names_any(&["invalid", "bad_request", "badrequest", "unsupported"]) {
        Kind::Rejected
    } else {
        Kind::Overloaded(None)
    }
}
