//! A provider's own words for its troubles, as documents and as events within a stream.

use super::Wire;
use super::anatomy;
use serde_json::{Value, json};

/// What a provider complains about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    RateLimit,
    Quota,
    Overload,
    Internal,
    Unavailable,
    Timeout,
    Key,
    Permission,
    UnknownModel,
    TooLarge,
    Overflow,
    BadRequest,
}

/// A trouble as OpenAI puts it: status, type, code, message.
type Detail = (u16, &'static str, Option<&'static str>, &'static str);

impl Trouble {
    /// The status that the provider gives it.
    pub(super) fn status(self, wire: Wire) -> u16 {
        match (wire, self) {
            (Wire::Anthropic, _) => self.anthropic().0,
            (Wire::OpenAiChat | Wire::OpenAiResponses, _) => self.openai(wire).0,
            (Wire::Gemini, _) => self.gemini().0,
        }
    }

    /// The document that comes with the status.
    pub(super) fn document(self, wire: Wire) -> Value {
        match wire {
            Wire::Anthropic => {
                let (_, kind, message) = self.anthropic();
                let error = json!({"type": kind, "message": message});
                json!({"type": "error", "error": error, "request_id": "req_fake_fault"})
            }
            Wire::OpenAiChat | Wire::OpenAiResponses => {
                let (_, kind, code, message) = self.openai(wire);
                let error = json!({"message": message, "type": kind, "param": null, "code": code});
                json!({ "error": error })
            }
            Wire::Gemini => {
                let (code, status, message) = self.gemini();
                json!({"error": {"code": code, "message": message, "status": status}})
            }
        }
    }

    /// The event that tells of it within a stream.
    pub(super) fn event(self, wire: Wire) -> Vec<u8> {
        let data = match wire {
            Wire::Anthropic => {
                let (_, kind, message) = self.anthropic();
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Wire::OpenAiResponses => {
                let (_, kind, code, message) = self.openai(wire);
                let code = code.unwrap_or(kind);
                json!({"type": "error", "code": code, "message": message, "param": null})
            }
            Wire::OpenAiChat | Wire::Gemini => self.document(wire),
        };
        anatomy::event(wire, &data)
    }

    fn anthropic(self) -> (u16, &'static str, &'static str) {
        match self {
            Trouble::RateLimit => (
                429,
                "rate_limit_error",
                "This request would exceed the rate limit for your organization of 50 requests per minute.",
            ),
            Trouble::Quota => (
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
            ),
            Trouble::Overload => (529, "overloaded_error", "Overloaded"),
            Trouble::Internal => (500, "api_error", "Internal server error"),
            Trouble::Unavailable => (503, "api_error", "Service unavailable"),
            Trouble::Timeout => (504, "timeout_error", "The request timed out"),
            Trouble::Key => (401, "authentication_error", "invalid x-api-key"),
            Trouble::Permission => (
                403,
                "permission_error",
                "Your API key does not have permission to use the specified resource",
            ),
            Trouble::UnknownModel => (404, "not_found_error", "model: claude-none"),
            Trouble::TooLarge => {
                (413, "request_too_large", "Request exceeds the maximum allowed number of bytes")
            }
            Trouble::Overflow => {
                (400, "invalid_request_error", "prompt is too long: 204918 tokens > 200000 maximum")
            }
            Trouble::BadRequest => {
                (400, "invalid_request_error", "temperature: Input should be less than 1")
            }
        }
    }

    fn openai(self, wire: Wire) -> Detail {
        match self {
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
            Trouble::Overflow if wire == Wire::OpenAiResponses => (
                400,
                "invalid_request_error",
                Some("context_length_exceeded"),
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            Trouble::Overflow => (
                400,
                "invalid_request_error",
                Some("context_length_exceeded"),
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. Please reduce the length of the messages.",
            ),
            Trouble::BadRequest => (
                400,
                "invalid_request_error",
                Some("unsupported_value"),
                "Unsupported value: 'temperature' does not support 7 with this model.",
            ),
        }
    }

    fn gemini(self) -> (u16, &'static str, &'static str) {
        match self {
            Trouble::RateLimit => {
                (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")
            }
            Trouble::Quota => (
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            Trouble::Overload => {
                (529, "UNAVAILABLE", "The model is overloaded. Please try again later.")
            }
            Trouble::Internal => (500, "INTERNAL", "An internal error has occurred."),
            Trouble::Unavailable => (503, "UNAVAILABLE", "The service is currently unavailable."),
            Trouble::Timeout => {
                (504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.")
            }
            Trouble::Key => {
                (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
            }
            Trouble::Permission => {
                (403, "PERMISSION_DENIED", "The caller does not have permission")
            }
            Trouble::UnknownModel => {
                (404, "NOT_FOUND", "models/gemini-none is not found for API version v1beta")
            }
            Trouble::TooLarge => {
                (413, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.")
            }
            Trouble::Overflow => (
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            Trouble::BadRequest => (
                400,
                "INVALID_ARGUMENT",
                "Invalid value at 'generation_config.temperature' (TYPE_FLOAT), \"warm\"",
            ),
        }
    }
}
