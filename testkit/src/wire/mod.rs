//! Wire formats from the provider's side: a request's path says which one it speaks. Each reads
//! and checks a request as the real API does, has the script answer it, and writes the answer in
//! the provider's own words. A wire is a folder here that implements [`Provider`], with the
//! `Anatomy` that faults need.

mod anthropic;
mod chat;
mod dialogue;
mod gemini;
mod headers;
mod models;
mod openai;
mod pieces;
mod provider;
mod refusal;
mod responses;
mod route;
mod value;

use crate::ask::Ask;
use crate::ask::Wire;
use crate::http::{Events, Payload, Request, Response};
use crate::performance::Performance;
use crate::script::Book;
use crate::script::fault::Anatomy;
use provider::Provider;
use refusal::Refusal;
use route::Route;

/// A wire from the provider's side.
fn provider(wire: Wire) -> &'static dyn Provider {
    match wire {
        Wire::Anthropic => &anthropic::Anthropic,
        Wire::OpenAiChat => &chat::OpenAiChat,
        Wire::OpenAiResponses => &responses::OpenAiResponses,
        Wire::Gemini => &gemini::Gemini,
    }
}

/// A wire as faults see it.
pub(crate) fn anatomy(wire: Wire) -> &'static dyn Anatomy {
    provider(wire)
}

/// The wire that is spoken at this path, or the one that strangers are answered in.
pub(crate) fn at(path: &str) -> Wire {
    route::talk(path).unwrap_or(Wire::Anthropic)
}

/// What answers a request, and what is to be noted about it.
pub(crate) struct Answer {
    pub(crate) performance: Performance,
    pub(crate) note: Note,
}

/// What a request turned out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// The wire it spoke; none when it asked for something else, such as a list of models.
    pub(crate) wire: Option<Wire>,
    pub(crate) model: String,
    /// None where a fault decides about it.
    pub(crate) status: Option<u16>,
    /// Why it was refused, not by the script but because it is wrong or nothing fits it.
    pub(crate) refused: Option<String>,
}

/// What answers `request`, the `number`th one.
pub(crate) fn answer(request: &Request, book: &Book, number: usize) -> Answer {
    let exchange = Exchange { request, book, number };
    let mut note = Note::default();
    let performance = match route::of(request) {
        Route::Talk(wire) => {
            note.wire = Some(wire);
            exchange.admit(wire, || {
                provider(wire).converse(&exchange, &mut note).unwrap_or_else(|refusal| {
                    let response = exchange.error(wire, &refusal);
                    note.refused = Some(refusal.message);
                    response.into()
                })
            })
        }
        Route::Models(list) => exchange.found(list.wire(), models::all(list, book.models())),
        Route::Model(list, name) => match models::one(list, book.models(), name) {
            Some(document) => exchange.found(list.wire(), document),
            None => {
                let reason = format!("the script knows no model {name:?}; name it in `models`");
                exchange.error(list.wire(), &Refusal::new(404, reason)).into()
            }
        },
        Route::Version => exchange.found(Wire::OpenAiChat, models::version()),
        Route::WrongMethod(wire, wanted) => {
            let (method, path) = (&request.method, request.path());
            let reason = format!("{method} is not allowed on {path}; use {wanted}");
            exchange.error(wire, &Refusal::new(405, reason)).into()
        }
        Route::Unknown => {
            let reason = format!("nothing is served at {}; {}", request.path(), route::served());
            exchange.error(Wire::Anthropic, &Refusal::new(404, reason)).into()
        }
    };
    // What a fault makes of it, only the client knows.
    note.status = performance.fault.is_none().then_some(performance.response.status);
    Answer { performance, note }
}

/// What answers a request that could not even be read.
pub(crate) fn refusal(status: u16, reason: &str) -> Response {
    error(Wire::Anthropic, &Refusal::new(status, reason), "req_fake_unread")
}

/// What `look` sees of a request, if it is one to a model that can be read.
pub(crate) fn look<T>(request: &Request, look: impl FnOnce(&Ask<'_>) -> T) -> Option<T> {
    let Route::Talk(wire) = route::of(request) else { return None };
    let (mut look, mut seen) = (Some(look), None);
    provider(wire).look(request, &mut |ask| seen = look.take().map(|look| look(ask)));
    seen
}

/// One request, and what it is answered from.
struct Exchange<'a> {
    request: &'a Request,
    book: &'a Book,
    number: usize,
}

impl Exchange<'_> {
    fn request_id(&self) -> String {
        format!("req_fake_{:06}", self.number)
    }

    /// What `answer` says, if the server takes the request; else that there are too many.
    fn admit(&self, wire: Wire, answer: impl FnOnce() -> Performance) -> Performance {
        match self.book.turnstile().enter() {
            Ok(seat) => {
                let mut performance = answer();
                if let Some(quota) = seat.quota {
                    headers::tell(&quota, provider(wire), &mut performance.response);
                }
                Performance { seat: Some(seat), ..performance }
            }
            Err(full) => {
                let mut refusal = Refusal::new(429, "there are too many requests; come back later");
                // A document has whole seconds; the header has what is meant.
                refusal.retry_after = full
                    .retry_after
                    .map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
                let mut response = self.error(wire, &refusal);
                if let Some(wait) = full.retry_after {
                    let seconds = wait.as_secs_f64().to_string();
                    response.headers.push(("retry-after".to_owned(), seconds));
                }
                if let Some(quota) = full.quota {
                    headers::tell(&quota, provider(wire), &mut response);
                }
                response.into()
            }
        }
    }

    fn error(&self, wire: Wire, refusal: &Refusal) -> Response {
        error(wire, refusal, &self.request_id())
    }

    fn found(&self, wire: Wire, document: String) -> Performance {
        self.document(wire, document).into()
    }

    fn document(&self, wire: Wire, body: String) -> Response {
        let headers = headers::of_document(provider(wire), 200, &self.request_id());
        Response { status: 200, headers, payload: Payload::Document(body) }
    }

    fn stream(&self, wire: Wire, media_type: &str, events: Events) -> Response {
        let headers = headers::of_stream(provider(wire), media_type, &self.request_id());
        Response { status: 200, headers, payload: Payload::Events(events) }
    }
}

fn error(wire: Wire, refusal: &Refusal, request_id: &str) -> Response {
    let wire = provider(wire);
    let body = wire.error(refusal, request_id);
    let headers = headers::of_document(wire, refusal.status, request_id);
    Response { status: refusal.status, headers, payload: Payload::Document(body) }
}
