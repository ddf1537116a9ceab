//! The OpenAI Chat Completions wire, which most vendors and local servers speak.

mod check;
mod document;
mod events;
mod request;

pub(super) use request::Chat;

use super::dialogue::{Dialogue, Voice, Witness};
use super::openai;
use super::refusal::Refusal;
use crate::ask::Ask;
use crate::ask::Wire;
use crate::cache::Caching;
use crate::http::{Events, Request};
use crate::issued::Trace;
use crate::prompt::Prompt;
use crate::spoken::Spoken;

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
