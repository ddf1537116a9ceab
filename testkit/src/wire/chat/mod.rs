//! The OpenAI Chat Completions wire, which most vendors and local servers speak.

mod anatomy;
mod check;
mod document;
mod events;
mod request;

use super::dialogue::{self, Dialogue, Voice, Witness};
use super::openai;
use super::provider::Provider;
use super::refusal::Refusal;
use super::{Exchange, Note};
use crate::ask::Ask;
use crate::ask::Wire;
use crate::cache::Caching;
use crate::http::{Events, Request};
use crate::issued::Trace;
use crate::performance::Performance;
use crate::prompt::Prompt;
use crate::spoken::Spoken;
use crate::turnstile::Quota;
use request::Chat;

/// The wire, as the server speaks it.
#[derive(Debug)]
pub(super) struct OpenAiChat;

impl Provider for OpenAiChat {
    fn is_at(&self, path: &str) -> bool {
        path.ends_with("/chat/completions")
    }

    fn place(&self) -> &'static str {
        "…/chat/completions"
    }

    fn converse(&self, exchange: &Exchange<'_>, note: &mut Note) -> Result<Performance, Refusal> {
        dialogue::converse::<Chat<'_>>(exchange, note)
    }

    fn look(&self, request: &Request, look: &mut dyn FnMut(&Ask<'_>)) {
        dialogue::look::<Chat<'_>>(request, look);
    }

    fn error(&self, refusal: &Refusal, _: &str) -> String {
        openai::error(refusal)
    }

    fn headers(&self, status: u16, request_id: &str) -> Vec<(String, String)> {
        openai::headers(status, request_id)
    }

    fn quota(&self, quota: &Quota) -> Vec<(&'static str, String)> {
        openai::quota(quota)
    }
}

impl<'a> Dialogue<'a> for Chat<'a> {
    const WIRE: Wire = Wire::OpenAiChat;
    const CACHING: Caching = Caching::Automatic;

    fn key(request: &Request) -> Result<&str, Refusal> {
        openai::key(request)
    }

    fn read(_: &'a Request, body: &'a str) -> Result<Self, Refusal> {
        serde_json::from_str(body).map_err(|error| openai::unreadable(&error))
    }

    fn check(&self) -> Result<(), Refusal> {
        check::check(self)
    }

    /// Reasoning has no signature here, and no place among messages that are sent.
    fn check_reasoning(&self, _: &Witness<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn ask<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b> {
        self.said(request, body)
    }

    fn prompt(&self) -> Prompt {
        let mut prompt = Prompt::default();
        for tool in self.tools.iter().flatten() {
            prompt.push(tool.source);
        }
        for message in self.messages.iter().flatten() {
            prompt.push(message.source);
        }
        prompt
    }

    fn wants_stream(&self) -> Option<bool> {
        self.stream
    }

    fn document(&self, voice: &Voice<'_>) -> String {
        document::completion(voice)
    }

    fn events(&self, voice: &Voice<'_>) -> Events {
        let options = self.stream_options.as_ref();
        let usage = match options.and_then(|options| options.include_usage) {
            Some(true) => events::UsageChunk::Wanted,
            _ => events::UsageChunk::Unwanted,
        };
        events::events(voice, usage)
    }

    fn trace(_: &Spoken<'_>) -> Trace {
        Trace::default()
    }
}
