//! Lists of the script's models, as each kind of server gives them.

use crate::ask::Wire;
use crate::http::Request;
use serde_json::{Value, json};

/// Tokens that each model claims to take and to give.
const INPUT_LIMIT: u32 = 200_000;
const OUTPUT_LIMIT: u32 = 64_000;

/// How a list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Anthropic,
    OpenAi,
    Gemini,
    Ollama,
}

impl List {
    /// The list that a request to `…/models` is for: they share their paths.
    pub(super) fn wanted_by(request: &Request) -> Self {
        let path = request.path();
        if request.header("anthropic-version").is_some() {
            List::Anthropic
        } else if path.contains("/openai/") {
            List::OpenAi
        } else if path.contains("/v1beta/") || request.header("x-goog-api-key").is_some() {
            List::Gemini
        } else {
            List::OpenAi
        }
    }

    /// Whose headers and errors go with it.
    pub(super) fn wire(self) -> Wire {
        match self {
            List::Anthropic => Wire::Anthropic,
            List::OpenAi | List::Ollama => Wire::OpenAiChat,
            List::Gemini => Wire::Gemini,
        }
    }
}

/// The list of all models.
pub(super) fn all(list: List, models: &[String]) -> String {
    let entries: Vec<Value> = models.iter().map(|name| entry(list, name)).collect();
    let document = match list {
        List::Anthropic => json!({
            "data": entries,
            "has_more": false,
            "first_id": models.first(),
            "last_id": models.last(),
        }),
        List::OpenAi => json!({"object": "list", "data": entries}),
        List::Gemini | List::Ollama => json!({"models": entries}),
    };
    document.to_string()
}

/// One model, if the script knows it.
pub(super) fn one(list: List, models: &[String], name: &str) -> Option<String> {
    models.iter().any(|known| known == name).then(|| entry(list, name).to_string())
}

/// What Ollama says when asked for its version.
pub(super) fn version() -> String {
    json!({"version": env!("CARGO_PKG_VERSION")}).to_string()
}

fn entry(list: List, name: &str) -> Value {
    match list {
        List::Anthropic => json!({
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2025-01-01T00:00:00Z",
            "max_input_tokens": INPUT_LIMIT,
            "max_tokens": OUTPUT_LIMIT,
        }),
        List::OpenAi => json!({
            "id": name,
            "object": "model",
            "created": super::openai::CREATED,
            "owned_by": "fake",
        }),
        List::Gemini => json!({
            "name": format!("models/{name}"),
            "displayName": name,
            "inputTokenLimit": INPUT_LIMIT,
            "outputTokenLimit": OUTPUT_LIMIT,
            "supportedGenerationMethods": ["generateContent"],
        }),
        List::Ollama => json!({
            "name": name,
            "model": name,
            "modified_at": "2025-01-01T00:00:00Z",
            "size": 0,
            "digest": "0".repeat(64),
            "details": {"format": "fake", "family": "fake", "parameter_size": "0B"},
        }),
    }
}
