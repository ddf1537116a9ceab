//! What the parts of its chunks are, and its words for troubles.

use super::Gemini;
use crate::script::fault::{Anatomy, Trouble};
use serde_json::{Value, json};

impl Anatomy for Gemini {
    fn is_call(&self, data: &Value) -> bool {
        let parts = data["candidates"][0]["content"]["parts"].as_array();
        parts.into_iter().flatten().any(|part| !part["functionCall"].is_null())
    }

    fn is_stop(&self, data: &Value) -> bool {
        data["candidates"][0]["finishReason"].is_string()
    }

    fn text<'a>(&self, data: &'a mut Value) -> Option<&'a mut Value> {
        let parts = data.pointer_mut("/candidates/0/content/parts")?.as_array_mut()?;
        let spoken = parts.iter_mut().find(|part| part["thought"] != true);
        spoken.and_then(|part| part.get_mut("text"))
    }

    fn stop_place(&self, _: &Value) -> &'static str {
        "/candidates/0/finishReason"
    }

    fn length_word(&self) -> &'static str {
        "MAX_TOKENS"
    }

    fn ping(&self) -> Value {
        json!({"candidates": [{"content": {"role": "model"}, "index": 0}]})
    }

    fn unknown(&self) -> Value {
        json!({"auraMetadata": {"colour": "blue"}})
    }

    fn trouble(&self, trouble: Trouble) -> (u16, Value) {
        let (code, status, message) = words(trouble);
        (code, json!({"error": {"code": code, "message": message, "status": status}}))
    }
}

/// Code, status and message.
fn words(trouble: Trouble) -> (u16, &'static str, &'static str) {
    match trouble {
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
        Trouble::Key => (401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
        Trouble::Permission => (403, "PERMISSION_DENIED", "The caller does not have permission"),
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
