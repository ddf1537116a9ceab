//! The Gemini generateContent wire.

mod anatomy;
mod check;
mod document;
mod events;
mod reasoning;
mod request;
mod schema;

use super::dialogue::{self, Dialogue, Voice, Witness};
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
use request::{Framing, Generate};

/// The wire, as the server speaks it.
#[derive(Debug)]
pub(super) struct Gemini;

// It names its requests in the document, and its limits nowhere.
impl Provider for Gemini {
    fn is_at(&self, path: &str) -> bool {
        model_at(path).is_some()
    }

    fn place(&self) -> &'static str {
        "…/models/{model}:generateContent"
    }

    fn converse(&self, exchange: &Exchange<'_>, note: &mut Note) -> Result<Performance, Refusal> {
        dialogue::converse::<Generate<'_>>(exchange, note)
    }

    fn look(&self, request: &Request, look: &mut dyn FnMut(&Ask<'_>)) {
        dialogue::look::<Generate<'_>>(request, look);
    }

    fn error(&self, refusal: &Refusal, _: &str) -> String {
        document::error(refusal)
    }

    fn document_type(&self) -> &'static str {
        "application/json; charset=UTF-8"
    }
}

impl<'a> Dialogue<'a> for Generate<'a> {
    const WIRE: Wire = Wire::Gemini;
    const CACHING: Caching = Caching::Automatic;

    fn key(request: &Request) -> Result<&str, Refusal> {
        let query = || query(request).find_map(|pair| pair.strip_prefix("key="));
        let bearer = || request.header("authorization")?.strip_prefix("Bearer ");
        let key = request.header("x-goog-api-key").or_else(query).or_else(bearer);
        key.filter(|key| !key.is_empty()).ok_or_else(|| {
            Refusal::new(
                403,
                "Method doesn't allow unregistered callers (callers without established \
                 identity). Please use API Key or other form of API consumer identity to call \
                 this API.",
            )
        })
    }

    fn read(request: &'a Request, body: &'a str) -> Result<Self, Refusal> {
        let (model, verb) = model_at(request.path())
            .ok_or_else(|| Refusal::new(404, "the path names no model and method"))?;
        let framing = match query(request).any(|pair| pair == "alt=sse") {
            true => Framing::ServerSentEvents,
            false => Framing::Array,
        };
        let body = serde_json::from_str(body).map_err(|error| check::unreadable(&error))?;
        Ok(Generate { model, verb, framing, body })
    }

    fn check(&self) -> Result<(), Refusal> {
        check::check(self).map_err(Refusal::invalid)
    }

    fn check_reasoning(&self, witness: &Witness<'_>) -> Result<(), Refusal> {
        reasoning::check(self, witness).map_err(Refusal::invalid)
    }

    fn ask<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b> {
        self.said(request, body)
    }

    fn prompt(&self) -> Prompt {
        let mut prompt = Prompt::default();
        if let Some(system) = &self.body.system_instruction {
            prompt.push(system.source);
        }
        for tool in self.body.tools.iter().flatten() {
            prompt.push(tool.source);
        }
        for content in self.contents() {
            prompt.push(content.source);
        }
        prompt
    }

    fn wants_stream(&self) -> Option<bool> {
        Some(self.verb == Verb::Stream)
    }

    fn stream_type(&self) -> &'static str {
        match self.framing {
            Framing::ServerSentEvents => "text/event-stream",
            Framing::Array => "application/json; charset=UTF-8",
        }
    }

    fn document(&self, voice: &Voice<'_>) -> String {
        document::response(voice)
    }

    fn events(&self, voice: &Voice<'_>) -> Events {
        events::events(voice, self.framing)
    }

    fn trace(spoken: &Spoken<'_>) -> Trace {
        reasoning::trace(spoken)
    }
}

/// The pairs of a request's query.
fn query(request: &Request) -> impl Iterator<Item = &str> {
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    query.split('&')
}

/// The model and the verb of a path such as `/v1beta/models/gemini-pro:generateContent`.
fn model_at(path: &str) -> Option<(&str, Verb)> {
    let (_, rest) = path.rsplit_once("/models/")?;
    let (model, verb) = rest.rsplit_once(':')?;
    match verb {
        "generateContent" => Some((model, Verb::Generate)),
        "streamGenerateContent" => Some((model, Verb::Stream)),
        _ => None,
    }
}

/// What a Gemini model is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Generate,
    Stream,
}
