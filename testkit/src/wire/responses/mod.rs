//! The OpenAI Responses wire, without the state that the real one can keep: every request brings
//! its whole conversation.

mod anatomy;
mod check;
mod document;
mod events;
mod reasoning;
mod request;

use super::dialogue::{self, Dialogue, Voice, Witness};
use super::openai;
use super::provider::Provider;
use super::refusal::Refusal;
use super::value::Content;
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
use document::Encrypted;
use request::Responses;

/// The wire, as the server speaks it.
#[derive(Debug)]
pub(super) struct OpenAiResponses;

impl Provider for OpenAiResponses {
    fn is_at(&self, path: &str) -> bool {
        path.ends_with("/responses")
    }

    fn place(&self) -> &'static str {
        "…/responses"
    }

    fn converse(&self, exchange: &Exchange<'_>, note: &mut Note) -> Result<Performance, Refusal> {
        dialogue::converse::<Responses<'_>>(exchange, note)
    }

    fn look(&self, request: &Request, look: &mut dyn FnMut(&Ask<'_>)) {
        dialogue::look::<Responses<'_>>(request, look);
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

impl<'a> Dialogue<'a> for Responses<'a> {
    const WIRE: Wire = Wire::OpenAiResponses;
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

    fn check_reasoning(&self, witness: &Witness<'_>) -> Result<(), Refusal> {
        reasoning::check(self, witness)
    }

    fn ask<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b> {
        self.said(request, body)
    }

    fn prompt(&self) -> Prompt {
        let mut prompt = Prompt::default();
        for tool in self.tools.iter().flatten() {
            prompt.push(tool.source);
        }
        prompt.push(self.instructions.as_deref().unwrap_or_default());
        if let Some(Content::Text(text)) = &self.input {
            prompt.push(text);
        }
        for item in self.items() {
            prompt.push(item.source);
        }
        prompt
    }

    fn wants_stream(&self) -> Option<bool> {
        self.stream
    }

    fn document(&self, voice: &Voice<'_>) -> String {
        document::response(voice, self.encrypted())
    }

    fn events(&self, voice: &Voice<'_>) -> Events {
        events::events(voice, self.encrypted())
    }

    fn trace(spoken: &Spoken<'_>) -> Trace {
        reasoning::trace(spoken)
    }
}

impl Responses<'_> {
    fn encrypted(&self) -> Encrypted {
        match self.wants_encrypted_reasoning() {
            true => Encrypted::Given,
            false => Encrypted::KeptBack,
        }
    }
}
