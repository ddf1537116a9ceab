//! What both wires of OpenAI share: keys, errors, names, and the words for what is wrong.

pub(super) mod trouble;

use super::headers::{header, limits};
use super::refusal::Refusal;
use super::value::Shape;
use crate::http::Request;
use crate::json::push_string;
use crate::turnstile::Quota;
use serde_json::Value;

/// When everything here was made: the first second of 2025.
pub(super) const CREATED: u64 = 1_735_689_600;

pub(super) fn key(request: &Request) -> Result<&str, Refusal> {
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    // Azure's way.
    let key = bearer.or_else(|| request.header("api-key")).filter(|key| !key.is_empty());
    key.ok_or_else(|| {
        Refusal::new(
            401,
            "You didn't provide an API key. You need to provide your API key in an Authorization \
             header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
        )
    })
}

/// The id of a request and the limits of the account.
pub(super) fn headers(status: u16, request_id: &str) -> Vec<(String, String)> {
    let own = [
        ("x-request-id", request_id),
        ("openai-organization", "org-fake"),
        ("openai-version", "2020-10-01"),
    ];
    let limits = limits(status).into_iter().flat_map(|(what, limit, left)| {
        [("limit", &*limit), ("remaining", &*left), ("reset", "0s")]
            .map(|(of, value)| header(&format!("x-ratelimit-{of}-{what}"), value))
    });
    own.into_iter().map(|(name, value)| header(name, value)).chain(limits).collect()
}

/// How much of a span is left.
pub(super) fn quota(quota: &Quota) -> Vec<(&'static str, String)> {
    vec![
        ("x-ratelimit-limit-requests", quota.whole.to_string()),
        ("x-ratelimit-remaining-requests", quota.left.to_string()),
        ("x-ratelimit-reset-requests", format!("{}ms", quota.resets_in.as_millis())),
    ]
}

/// A body that is no request.
pub(super) fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::invalid(format!("We could not parse the JSON body of your request: {error}"))
}

/// The document that goes with an HTTP error.
pub(super) fn error(refusal: &Refusal) -> String {
    let (kind, code) = usual(refusal.status);
    let mut out = String::from(r#"{"error":{"message":"#);
    push_string(&mut out, &refusal.message);
    out.push_str(r#","type":"#);
    push_string(&mut out, refusal.kind.as_deref().unwrap_or(kind));
    out.push_str(r#","param":"#);
    push_optional(&mut out, refusal.param.as_deref());
    out.push_str(r#","code":"#);
    push_optional(&mut out, refusal.code.as_deref().or(code));
    out.push_str("}}");
    out
}

/// The type and code that go with a status.
fn usual(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}

pub(super) fn push_optional(out: &mut String, text: Option<&str>) {
    match text {
        Some(text) => push_string(out, text),
        None => out.push_str("null"),
    }
}

pub(super) fn missing(param: impl Into<String>) -> Refusal {
    let param = param.into();
    let message = format!("Missing required parameter: '{param}'.");
    Refusal::invalid(message).param(param).code("missing_required_parameter")
}

pub(super) fn empty_list(param: impl Into<String>) -> Refusal {
    let param = param.into();
    let message = format!(
        "Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty \
         array instead."
    );
    Refusal::invalid(message).param(param).code("empty_array")
}

pub(super) fn wrong_type(param: impl Into<String>, wanted: &str, found: Shape) -> Refusal {
    let (param, found) = (param.into(), found.described());
    let message =
        format!("Invalid type for '{param}': expected {wanted}, but got {found} instead.");
    Refusal::invalid(message).param(param).code("invalid_type")
}

pub(super) fn unsupported_value(param: impl Into<String>, found: &str, supported: &str) -> Refusal {
    let message = format!("Invalid value: '{found}'. Supported values are: {supported}.");
    Refusal::invalid(message).param(param).code("invalid_value")
}

/// Checks an integer that has a smallest value.
pub(super) fn check_minimum(param: &str, found: Option<i64>, least: i64) -> Result<(), Refusal> {
    match found {
        Some(found) if found < least => Err(Refusal::invalid(format!(
            "Invalid '{param}': integer below minimum value. Expected a value >= {least}, but got \
             {found} instead."
        ))
        .param(param)
        .code("integer_below_min_value")),
        _ => Ok(()),
    }
}

pub(super) fn check_length(param: String, text: &str, most: usize) -> Result<(), Refusal> {
    let length = text.chars().count();
    if length <= most {
        return Ok(());
    }
    let message = format!(
        "Invalid '{param}': string too long. Expected a string with maximum length {most}, but got \
         a string with length {length} instead."
    );
    Err(Refusal::invalid(message).param(param).code("string_above_max_length"))
}

/// Checks the name of a function.
pub(super) fn check_name(param: String, name: &str) -> Result<(), Refusal> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || !name.bytes().all(allowed) {
        let message = format!(
            "Invalid '{param}': string does not match pattern. Expected a string that matches the \
             pattern '^[a-zA-Z0-9_-]+$'."
        );
        return Err(Refusal::invalid(message).param(param).code("invalid_value"));
    }
    check_length(param, name, 64)
}

/// Checks the schema of a function's parameters, given its `type`.
pub(super) fn check_schema(param: String, name: &str, kind: Option<&Value>) -> Result<(), Refusal> {
    if kind.is_some_and(|kind| kind == "object") {
        return Ok(());
    }
    let found = match kind {
        Some(Value::String(kind)) => kind.clone(),
        Some(other) => other.to_string(),
        None => "None".to_owned(),
    };
    let message = format!(
        "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', \
         got 'type: \"{found}\"'."
    );
    Err(Refusal::invalid(message).param(param).code("invalid_function_parameters"))
}

/// Whether the model is one of those that think before they speak.
pub(super) fn is_reasoning_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["o1", "o3", "o4", "gpt-5"].iter().any(|family| name.starts_with(family))
}
