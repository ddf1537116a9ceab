//! The Anthropic Messages wire.

mod check;
mod document;
mod events;
mod prompt;
mod reasoning;
mod request;

pub(super) use document::error;
pub(super) use request::Messages;

use self::request::Turns;
use super::dialogue::{Dialogue, Voice, Witness};
use super::refusal::Refusal;
use crate::ask::Ask;
use crate::ask::Wire;
use crate::cache::Caching;
use crate::http::{Events, Request};
use crate::issued::Trace;
use crate::prompt::Prompt;
use crate::spoken::Spoken;

impl<'a> Dialogue<'a> for Messages<'a> {
    const WIRE: Wire = Wire::Anthropic;
    const CACHING: Caching = Caching::Marked;

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
