//! What every wire does with a request, in the order it is done.

use super::refusal::Refusal;
use super::{Exchange, Note};
use crate::ask::Ask;
use crate::ask::Wire;
use crate::cache::{Caching, Charge};
use crate::hash;
use crate::http::{Events, Request};
use crate::issued::Trace;
use crate::performance::Performance;
use crate::prompt::Prompt;
use crate::script::{Body, Book, KeyCheck, Reading, Reply};
use crate::seal;
use crate::spoken::Spoken;

/// A request of one wire, read from its body.
pub(super) trait Dialogue<'a>: Sized {
    const WIRE: Wire;
    const CACHING: Caching;
    /// How the ids of tool calls begin.
    const CALL_PREFIX: &'static str = "call";

    /// The key that the request brings, or how the real API says that there is none.
    fn key(request: &Request) -> Result<&str, Refusal>;

    /// Reads a request; `body` is its text.
    fn read(request: &'a Request, body: &'a str) -> Result<Self, Refusal>;

    /// Reads of a request what it takes to count its turns; all of it, where that is no trouble.
    fn glance(request: &'a Request, body: &'a str) -> Result<Self, Refusal> {
        Self::read(request, body)
    }

    /// Refuses what the real API refuses, where an agent's mistake would show.
    fn check(&self) -> Result<(), Refusal>;

    /// Refuses reasoning that does not come back as it was sent out.
    fn check_reasoning(&self, witness: &Witness<'_>) -> Result<(), Refusal>;

    /// The request as scripts see it.
    fn ask<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b>;

    /// What the model is given to read, in the order it is cached.
    fn prompt(&self) -> Prompt;

    /// Whether a stream is asked for.
    fn wants_stream(&self) -> Option<bool>;

    /// The media type of a stream.
    fn stream_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    /// The answer as one document.
    fn document(&self, voice: &Voice<'_>) -> String;

    /// The answer as a stream.
    fn events(&self, voice: &Voice<'_>) -> Events;

    /// A reply as it is known again when it comes back.
    fn trace(spoken: &Spoken<'_>) -> Trace;
}

/// What is said, and the names it is said under.
pub(super) struct Voice<'a> {
    pub(super) turn: usize,
    pub(super) model: &'a str,
    pub(super) spoken: Spoken<'a>,
}

impl Voice<'_> {
    /// The stop reason of the script, or one of the wire's own.
    pub(super) fn stop_reason<'b>(&'b self, calls: &'b str, ends: &'b str) -> &'b str {
        let usual = if self.spoken.calls_tools() { calls } else { ends };
        self.spoken.stop_reason.unwrap_or(usual)
    }
}

/// Who knows what was sent out.
pub(super) struct Witness<'a> {
    book: &'a Book,
    scope: u64,
}

impl Witness<'_> {
    /// Whether the signature was made here, for whatever it signs.
    pub(super) fn made(&self, signature: &str) -> bool {
        seal::is_genuine(signature) || self.book.has_signature(signature)
    }

    /// Whether the signature was made here for this text.
    pub(super) fn signed(&self, text: &str, signature: &str) -> bool {
        seal::of(text) == signature || self.book.has_signature(signature)
    }

    /// Whether a reply that looks like this one was sent out with other reasoning.
    pub(super) fn was_otherwise(&self, message: Trace) -> bool {
        self.book.issued().is_some_and(|issued| issued.was_otherwise(self.scope, message))
    }
}

/// Looks at a request, if it can be read.
pub(super) fn look<'a, D: Dialogue<'a>>(request: &'a Request, look: &mut dyn FnMut(&Ask<'_>)) {
    let Ok(body) = std::str::from_utf8(&request.body) else { return };
    if let Ok(dialogue) = D::read(request, body) {
        look(&dialogue.ask(request, body));
    }
}

/// Answers a request, or says why not.
pub(super) fn converse<'a, D: Dialogue<'a>>(
    exchange: &Exchange<'a>,
    note: &mut Note,
) -> Result<Performance, Refusal> {
    let (request, book) = (exchange.request, exchange.book);
    let key = match (D::key(request), book.keys()) {
        (Ok(key), _) => key,
        (Err(_), KeyCheck::Skipped) => "",
        (Err(refusal), KeyCheck::Needed) => return Err(refusal),
    };
    let Ok(body) = std::str::from_utf8(&request.body) else {
        return Err(Refusal::invalid("The request body is not valid UTF-8"));
    };
    let dialogue = match book.reading() {
        Reading::Whole => D::read(request, body)?,
        Reading::Turns => D::glance(request, body)?,
    };
    let ask = dialogue.ask(request, body);
    ask.model.clone_into(&mut note.model);
    let scope = hash::of(&[D::WIRE.name(), key, ask.model]);
    if book.reading() == Reading::Whole {
        dialogue.check()?;
        dialogue.check_reasoning(&Witness { book, scope })?;
    }
    let reply = book.choose(&ask).map_err(Refusal::invalid)?;
    Ok(play(exchange, &dialogue, &ask, scope, reply))
}

fn play<'a, D: Dialogue<'a>>(
    exchange: &Exchange<'a>,
    dialogue: &D,
    ask: &Ask<'_>,
    scope: u64,
    reply: &Reply,
) -> Performance {
    let mut written = None;
    let response = match &reply.body {
        Body::Error { status, kind, message } => {
            let refusal = Refusal::scripted(reply, *status, kind.as_deref(), message);
            exchange.error(D::WIRE, &refusal)
        }
        Body::Message { blocks, stop_reason, usage } => {
            let prompt = dialogue.prompt();
            let charge = match exchange.book.cache() {
                Some(cache) => {
                    let (charge, prefixes) = cache.charge(scope, D::CACHING, &prompt);
                    written = Some(prefixes);
                    charge
                }
                None => Charge::uncached(&prompt),
            };
            let stop = stop_reason.as_deref();
            let spoken = Spoken::new(ask, blocks, stop, usage, charge, D::CALL_PREFIX);
            // What a fault leaves of a reply cannot be known again.
            if let Some(issued) = exchange.book.issued().filter(|_| reply.faulty().is_none()) {
                issued.remember(scope, D::trace(&spoken));
            }
            let voice = Voice { turn: ask.turn, model: ask.model, spoken };
            match reply.streams(dialogue.wants_stream()) {
                true => {
                    let events = dialogue.events(&voice);
                    exchange.stream(D::WIRE, dialogue.stream_type(), events)
                }
                false => exchange.document(D::WIRE, dialogue.document(&voice)),
            }
        }
    };
    Performance::new(reply, response, written)
}
