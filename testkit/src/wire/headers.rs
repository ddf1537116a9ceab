//! Response headers as each provider names them: the request's id and the limits of the account.

use crate::ask::Wire;

/// Requests and tokens that the account may use in a minute; there is always some left, except
/// where the script says that there is not.
const REQUESTS: u32 = 4_000;
const TOKENS: u32 = 2_000_000;
/// Long past, so that nobody waits for it.
const RESET: &str = "2025-01-01T00:00:00Z";

/// The headers of a document.
pub(super) fn of_document(wire: Wire, status: u16, request_id: &str) -> Vec<(String, String)> {
    let content_type = match wire {
        Wire::Gemini => "application/json; charset=UTF-8",
        _ => "application/json",
    };
    headers(wire, status, content_type, request_id)
}

/// The headers of a stream.
pub(super) fn of_stream(wire: Wire, content_type: &str, request_id: &str) -> Vec<(String, String)> {
    let mut headers = headers(wire, 200, content_type, request_id);
    headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
    headers
}

fn headers(wire: Wire, status: u16, content_type: &str, request_id: &str) -> Vec<(String, String)> {
    let mut headers = Vec::with_capacity(12);
    let mut push = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
    push("content-type", content_type);
    let left = |limit: u32| if status == 429 { 0 } else { limit - 1 };
    match wire {
        Wire::Anthropic => {
            push("request-id", request_id);
            push("anthropic-organization-id", "org-fake");
            for (what, limit) in [("requests", REQUESTS), ("tokens", TOKENS)] {
                push(&format!("anthropic-ratelimit-{what}-limit"), &limit.to_string());
                push(&format!("anthropic-ratelimit-{what}-remaining"), &left(limit).to_string());
                push(&format!("anthropic-ratelimit-{what}-reset"), RESET);
            }
        }
        Wire::OpenAiChat | Wire::OpenAiResponses => {
            push("x-request-id", request_id);
            push("openai-organization", "org-fake");
            push("openai-version", "2020-10-01");
            for (what, limit) in [("requests", REQUESTS), ("tokens", TOKENS)] {
                push(&format!("x-ratelimit-limit-{what}"), &limit.to_string());
                push(&format!("x-ratelimit-remaining-{what}"), &left(limit).to_string());
                push(&format!("x-ratelimit-reset-{what}"), "0s");
            }
        }
        // Names its requests in the document, and its limits nowhere.
        Wire::Gemini => {}
    }
    headers
}
