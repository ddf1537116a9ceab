//! The words of both wires of OpenAI for troubles.

use crate::script::fault::Trouble;
use serde_json::{Value, json};

/// Status, type, code and message.
type Words = (u16, &'static str, Option<&'static str>, &'static str);

/// The status and the document that tell of a trouble.
pub(in crate::wire) fn document((status, kind, code, message): Words) -> (u16, Value) {
    let error = json!({"message": message, "type": kind, "param": null, "code": code});
    (status, json!({ "error": error }))
}

/// A trouble as OpenAI puts it. `overflow` is what this wire says of a prompt that is too long.
pub(in crate::wire) fn words(trouble: Trouble, overflow: &'static str) -> Words {
    match trouble {
        Trouble::RateLimit => (
            429,
            "requests",
            Some("rate_limit_exceeded"),
            "Rate limit reached for requests. Limit: 3 / min. Please try again in 50ms.",
        ),
        Trouble::Quota => (
            429,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Trouble::Overload => (
            529,
            "server_error",
            Some("server_is_overloaded"),
            "The engine is currently overloaded, please try again later",
        ),
        Trouble::Internal => (
            500,
            "server_error",
            Some("server_error"),
            "The server had an error while processing your request. Sorry about that!",
        ),
        Trouble::Unavailable => {
            (503, "server_error", Some("server_error"), "Service temporarily unavailable")
        }
        Trouble::Timeout => (504, "server_error", Some("server_error"), "Gateway timeout"),
        Trouble::Key => (
            401,
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided. You can find your API key in your account.",
        ),
        Trouble::Permission => (
            403,
            "invalid_request_error",
            Some("unsupported_country_region_territory"),
            "Country, region, or territory not supported",
        ),
        Trouble::UnknownModel => (
            404,
            "invalid_request_error",
            Some("model_not_found"),
            "The model `gpt-none` does not exist or you do not have access to it.",
        ),
        Trouble::TooLarge => {
            (413, "invalid_request_error", None, "Maximum content size limit exceeded")
        }
        Trouble::Overflow => {
            (400, "invalid_request_error", Some("context_length_exceeded"), overflow)
        }
        Trouble::BadRequest => (
            400,
            "invalid_request_error",
            Some("unsupported_value"),
            "Unsupported value: 'temperature' does not support 7 with this model.",
        ),
    }
}
