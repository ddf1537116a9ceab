//! The Anthropic Messages wire.

mod anatomy;
mod check;
mod document;
mod events;
mod prompt;
mod reasoning;
mod request;

use super::dialogue::{self, Dialogue, Voice, Witness};
use super::headers::{header, limits};
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
use request::{Messages, Turns};

/// Long past, so that nobody waits for it.
const RESET: &str = "2025-01-01T00:00:00Z";

/// The wire, as the server speaks it.
#[derive(Debug)]
pub(super) struct Anthropic;

impl Provider for Anthropic {
    fn is_at(&self, path: &str) -> bool {
        path.ends_with("/v1/messages")
    }

    fn place(&self) -> &'static str {
        "…/v1/messages"
    }

    fn converse(&self, exchange: &Exchange<'_>, note: &mut Note) -> Result<Performance, Refusal> {
        dialogue::converse::<Messages<'_>>(exchange, note)
    }

    fn look(&self, request: &Request, look: &mut dyn FnMut(&Ask<'_>)) {
        dialogue::look::<Messages<'_>>(request, look);
    }

    fn error(&self, refusal: &Refusal, request_id: &str) -> String {
        document::error(refusal, request_id)
    }

    fn headers(&self, status: u16, request_id: &str) -> Vec<(String, String)> {
        let own = [("request-id", request_id), ("anthropic-organization-id", "org-fake")];
        let limits = limits(status).into_iter().flat_map(|(what, limit, left)| {
            [("limit", &*limit), ("remaining", &*left), ("reset", RESET)]
                .map(|(of, value)| header(&format!("anthropic-ratelimit-{what}-{of}"), value))
        });
        own.into_iter().map(|(name, value)| header(name, value)).chain(limits).collect()
    }

    fn quota(&self, quota: &Quota) -> Vec<(&'static str, String)> {
        vec![
            ("anthropic-ratelimit-requests-limit", quota.whole.to_string()),
            ("anthropic-ratelimit-requests-remaining", quota.left.to_string()),
            ("anthropic-ratelimit-requests-reset", quota.resets_at()),
        ]
    }
}

impl<'a> Dialogue<'a> for Messages<'a> {
    const WIRE: Wire = Wire::Anthropic;
    const CACHING: Caching = Caching::Marked;
    const CALL_PREFIX: &'static str = "toolu";

    fn key(request: &Request) -> Result<&str, Refusal> {
        let own = request.header("x-api-key");
        let bearer = || request.header("authorization")?.strip_prefix("Bearer ");
        let key = own.or_else(bearer).filter(|key| !key.is_empty());
        key.ok_or_else(|| Refusal::new(401, "x-api-key header is required"))
    }

    fn read(request: &'a Request, body: &'a str) -> Result<Self, Refusal> {
        if request.header("anthropic-version").is_none() {
            return Err(Refusal::invalid("anthropic-version: header is required"));
        }
        serde_json::from_str(body).map_err(unreadable)
    }

    fn glance(_: &'a Request, body: &'a str) -> Result<Self, Refusal> {
        serde_json::from_str::<Turns<'a>>(body).map(Turns::into_messages).map_err(unreadable)
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
        prompt::of(self)
    }

    fn wants_stream(&self) -> Option<bool> {
        self.stream
    }

    fn document(&self, voice: &Voice<'_>) -> String {
        document::message(voice)
    }

    fn events(&self, voice: &Voice<'_>) -> Events {
        events::events(voice)
    }

    fn trace(spoken: &Spoken<'_>) -> Trace {
        reasoning::trace(spoken)
    }
}

fn unreadable(error: serde_json::Error) -> Refusal {
    Refusal::invalid(format!("The request body is not valid: {error}"))
}
