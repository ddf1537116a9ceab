//! A request of which only the turns are counted.

use super::{Messages, document, events, reasoning};
use crate::ask::Ask;
use crate::cache::Caching;
use crate::fault::Wire;
use crate::http::{Events, Request};
use crate::issued::Trace;
use crate::prompt::Prompt;
use crate::spoken::Spoken;
use crate::wire::dialogue::{Dialogue, Voice, Witness};
use crate::wire::refusal::Refusal;
use crate::wire::value::Text;
use serde::Deserialize;

/// What is read in place of [`Messages`].
pub(in crate::wire) struct Glance<'a> {
    body: &'a str,
    seen: Seen<'a>,
}

#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
    stream: Option<bool>,
    #[serde(borrow, default)]
    messages: Vec<Speaker<'a>>,
}

#[derive(Deserialize)]
struct Speaker<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
}

impl<'a> Dialogue<'a> for Glance<'a> {
    const WIRE: Wire = Wire::Anthropic;
    const CACHING: Caching = Caching::Marked;

    fn key(request: &Request) -> Result<&str, Refusal> {
        Messages::key(request)
    }

    fn read(_: &'a Request, body: &'a str) -> Result<Self, Refusal> {
        let seen = serde_json::from_str(body);
        let seen = seen.map_err(|error| Refusal::invalid(error.to_string()))?;
        Ok(Glance { body, seen })
    }

    fn check(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn check_reasoning(&self, _: &Witness<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn ask<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b> {
        let mut ask = Ask::new(Wire::Anthropic, request, body);
        let replies = self.seen.messages.iter().filter_map(|speaker| speaker.role.as_deref());
        ask.turn = replies.filter(|role| *role == "assistant").count();
        ask.model = self.seen.model.as_deref().unwrap_or_default();
        ask
    }

    fn prompt(&self) -> Prompt {
        let mut prompt = Prompt::default();
        prompt.push(self.body);
        prompt.end_block(None);
        prompt
    }

    fn wants_stream(&self) -> Option<bool> {
        self.seen.stream
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
