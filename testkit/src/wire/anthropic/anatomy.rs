//! What the parts of its events are, and its words for troubles.

use super::Anthropic;
use crate::script::fault::{Anatomy, Trouble};
use serde_json::{Value, json};

impl Anatomy for Anthropic {
    fn names_events(&self) -> bool {
        true
    }

    fn is_call(&self, data: &Value) -> bool {
        data["delta"]["type"] == "input_json_delta"
    }

    fn is_stop(&self, data: &Value) -> bool {
        data["type"] == "message_delta"
    }

    fn text<'a>(&self, data: &'a mut Value) -> Option<&'a mut Value> {
        match data["delta"]["type"].as_str() {
            Some("text_delta") => data.pointer_mut("/delta/text"),
            _ => None,
        }
    }

    fn numbers<'a>(&self, data: &'a mut Value) -> Vec<&'a mut Value> {
        data.get_mut("index").into_iter().collect()
    }

    fn goes_on(&self, data: &Value) -> bool {
        data["type"] == "content_block_delta"
    }

    fn stop_place(&self, data: &Value) -> &'static str {
        if data["type"] == "message_delta" { "/delta/stop_reason" } else { "/stop_reason" }
    }

    fn no_call_word(&self) -> &'static str {
        "end_turn"
    }

    fn length_word(&self) -> &'static str {
        "max_tokens"
    }

    fn ping(&self) -> Value {
        json!({"type": "ping"})
    }

    fn unknown(&self) -> Value {
        json!({"type": "aura_delta", "aura": {"colour": "blue"}})
    }

    fn trouble(&self, trouble: Trouble) -> (u16, Value) {
        let (status, kind, message) = words(trouble);
        let error = json!({"type": kind, "message": message});
        (status, json!({"type": "error", "error": error, "request_id": "req_fake_fault"}))
    }

    fn trouble_event(&self, trouble: Trouble) -> Value {
        let (_, kind, message) = words(trouble);
        json!({"type": "error", "error": {"type": kind, "message": message}})
    }
}

/// Status, type and message.
fn words(trouble: Trouble) -> (u16, &'static str, &'static str) {
    match trouble {
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
