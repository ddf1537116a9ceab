//! A request as it arrived, and its content in any wire format.

use crate::ask::Wire;
use crate::ask::{Ask, joined};
use crate::http::Request;
use crate::script::When;
use crate::wire::{self, Note};
use serde_json::Value;
use std::sync::Arc;

/// A request as it arrived, and how it was answered.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Its place among all requests, counted from 1.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Names in lower case, and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, or null.
    pub body: Value,
    /// The body, byte for byte.
    pub raw: Vec<u8>,
    /// The wire format; none if the request was not for a model.
    pub wire: Option<Wire>,
    /// The status of the answer; none before the answer, or if a fault spoilt it.
    pub status: Option<u16>,
    request: Arc<Request>,
}

impl Captured {
    pub(crate) fn new(number: usize, request: Arc<Request>, note: Option<Note>) -> Self {
        Captured {
            number,
            method: request.method.clone(),
            path: request.target.clone(),
            headers: request.headers.clone(),
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
            raw: request.body.clone(),
            wire: note.as_ref().and_then(|note| note.wire),
            status: note.and_then(|note| note.status),
            request,
        }
    }

    /// The first value of the header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// The model that was asked.
    pub fn model(&self) -> String {
        self.look(|ask| ask.model.to_owned())
    }

    /// The system prompt.
    pub fn system(&self) -> String {
        self.look(|ask| ask.system.join("\n"))
    }

    /// The names of the tools that were offered.
    pub fn tools(&self) -> Vec<String> {
        self.look(|ask| ask.tools.iter().map(|name| (*name).to_owned()).collect())
    }

    /// The number of messages of the assistant in it.
    pub fn turn(&self) -> usize {
        self.look(|ask| ask.turn)
    }

    /// The text of the first user message that has text.
    pub fn first_user(&self) -> String {
        self.look(|ask| ask.first_user().into_owned())
    }

    /// The text of the last user message that has text.
    pub fn last_user(&self) -> String {
        self.look(|ask| ask.last_user().into_owned())
    }

    /// Every text and every tool result of its messages.
    pub fn texts(&self) -> Vec<String> {
        self.look(|ask| {
            let said = ask.messages.iter().flat_map(|said| {
                let results = said.results.iter().map(|pieces| joined(pieces).into_owned());
                std::iter::once(said.text().into_owned()).chain(results)
            });
            said.collect()
        })
    }

    /// The tool results that came after the last message of the assistant, in their order.
    pub fn tool_results(&self) -> Vec<String> {
        self.look(|ask| {
            let mut results: Vec<String> =
                ask.new_results().map(|result| result.into_owned()).collect();
            results.reverse();
            results
        })
    }

    /// Whether a rule with these conditions would answer it.
    pub fn fits(&self, when: &When) -> bool {
        self.look(|ask| when.unmet(ask).is_none())
    }

    /// The result of `look`; the default if this is not a request to a model.
    fn look<T: Default>(&self, look: impl FnOnce(&Ask<'_>) -> T) -> T {
        wire::look(&self.request, look).unwrap_or_default()
    }
}
