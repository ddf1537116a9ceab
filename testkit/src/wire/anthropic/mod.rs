//! The Anthropic Messages wire: checks a request as the real API would, has the script answer
//! it, and writes the answer as a document or as a stream of events.

mod check;
mod document;
mod events;
mod request;

use crate::connection::Performance;
use crate::http::{Events, Payload, Request, Response};
use crate::script::{Body, Book, Reply};
use crate::spoken::Spoken;
use request::MessagesRequest;

pub(super) const PATH: &str = "/v1/messages";

/// The wire, while it answers one request.
pub(super) struct Wire {
    pub(super) request_id: String,
}

impl Wire {
    pub(super) fn answer(&self, request: &Request, book: &Book) -> Performance {
        if request.header("x-api-key").is_none_or(str::is_empty) {
            return self.error(401, "x-api-key header is required").into();
        }
        if request.header("anthropic-version").is_none() {
            return self.error(400, "anthropic-version: header is required").into();
        }
        let Ok(body) = std::str::from_utf8(&request.body) else {
            return self.error(400, "The request body is not valid UTF-8").into();
        };
        let messages: MessagesRequest<'_> = match serde_json::from_str(body) {
            Ok(messages) => messages,
            Err(error) => {
                let reason = format!("The request body is not valid: {error}");
                return self.error(400, &reason).into();
            }
        };
        if let Err(reason) = check::check(&messages) {
            return self.error(400, &reason).into();
        }
        let ask = messages.ask(&request.headers, body);
        let reply = match book.choose(&ask) {
            Ok(reply) => reply,
            Err(reason) => return self.error(400, &reason).into(),
        };
        let response = match &reply.body {
            Body::Error { status, kind, message } => {
                let kind = kind.as_deref().unwrap_or_else(|| error_type(*status));
                self.error_of(*status, kind, message)
            }
            Body::Message { blocks, stop_reason, usage } => {
                let spoken = Spoken::new(&ask, blocks, stop_reason.as_deref(), usage);
                let voice = Voice { turn: ask.turn, model: ask.model, spoken };
                match messages.stream {
                    Some(true) => self.stream(events::events(&voice)),
                    _ => self.document(200, document::message(&voice)),
                }
            }
        };
        perform(reply, response)
    }

    /// An error with the type that goes with its status.
    pub(super) fn error(&self, status: u16, message: &str) -> Response {
        self.error_of(status, error_type(status), message)
    }

    fn error_of(&self, status: u16, kind: &str, message: &str) -> Response {
        self.document(status, document::error(kind, message, &self.request_id))
    }

    fn document(&self, status: u16, body: String) -> Response {
        let headers = self.headers("application/json");
        Response { status, headers, payload: Payload::Document(body) }
    }

    fn stream(&self, events: Events) -> Response {
        let mut headers = self.headers("text/event-stream; charset=utf-8");
        headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
        Response { status: 200, headers, payload: Payload::Events(events) }
    }

    fn headers(&self, content_type: &str) -> Vec<(String, String)> {
        vec![
            ("content-type".to_owned(), content_type.to_owned()),
            ("request-id".to_owned(), self.request_id.clone()),
        ]
    }
}

/// What is said, and the names it is said under.
struct Voice<'a> {
    turn: usize,
    model: &'a str,
    spoken: Spoken<'a>,
}

impl Voice<'_> {
    /// Follows from the place in the conversation, as the ids of tool calls do.
    fn message_id(&self) -> String {
        format!("msg_fake_{}", self.turn)
    }

    fn stop_reason(&self) -> &str {
        let usual = if self.spoken.calls_tools() { "tool_use" } else { "end_turn" };
        self.spoken.stop_reason.unwrap_or(usual)
    }
}

fn perform(reply: &Reply, mut response: Response) -> Performance {
    for (name, value) in &reply.headers {
        response.headers.retain(|(set, _)| set != name);
        response.headers.push((name.clone(), value.clone()));
    }
    Performance {
        response,
        latency: reply.latency,
        token_delay: reply.token_delay,
        held_by: reply.held_by.clone(),
        held_after: reply.held_after.clone(),
    }
}

fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}
