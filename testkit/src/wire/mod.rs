//! Wire formats from the provider's side: a request's path says which one it speaks. Each reads
//! and checks a request as the real API does, has the script answer it, and writes the answer in
//! the provider's own words.

mod anthropic;
mod chat;
mod dialogue;
mod gemini;
mod headers;
mod models;
mod openai;
mod pieces;
mod refusal;
mod responses;
mod route;
mod value;

use crate::ask::Ask;
use crate::ask::Wire;
use crate::http::{Events, Payload, Request, Response};
use crate::performance::Performance;
use crate::script::Book;
use dialogue::{Dialogue, converse};
use refusal::Refusal;
use route::Route;

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
                let answered = match wire {
                    Wire::Anthropic => converse::<anthropic::Messages<'_>>(&exchange, &mut note),
                    Wire::OpenAiChat => converse::<chat::Chat<'_>>(&exchange, &mut note),
                    Wire::OpenAiResponses => {
                        converse::<responses::Responses<'_>>(&exchange, &mut note)
                    }
                    Wire::Gemini => converse::<gemini::Generate<'_>>(&exchange, &mut note),
                };
                answered.unwrap_or_else(|refusal| {
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
            let reason = format!("nothing is served at {}; {}", request.path(), route::SERVED);
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
    fn read<'a, D: Dialogue<'a>, T>(
        request: &'a Request,
        look: impl FnOnce(&Ask<'_>) -> T,
    ) -> Option<T> {
        let body = std::str::from_utf8(&request.body).ok()?;
        let dialogue = D::read(request, body).ok()?;
        Some(look(&dialogue.ask(request, body)))
    }
    match route::of(request) {
        Route::Talk(Wire::Anthropic) => read::<anthropic::Messages<'_>, T>(request, look),
        Route::Talk(Wire::OpenAiChat) => read::<chat::Chat<'_>, T>(request, look),
        Route::Talk(Wire::OpenAiResponses) => read::<responses::Responses<'_>, T>(request, look),
        Route::Talk(Wire::Gemini) => read::<gemini::Generate<'_>, T>(request, look),
        _ => None,
    }
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
                    quota.tell(wire, &mut performance.response);
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
                    quota.tell(wire, &mut response);
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
        let headers = headers::of_document(wire, 200, &self.request_id());
        Response { status: 200, headers, payload: Payload::Document(body) }
    }

    fn stream(&self, wire: Wire, media_type: &str, events: Events) -> Response {
        let headers = headers::of_stream(wire, media_type, &self.request_id());
        Response { status: 200, headers, payload: Payload::Events(events) }
    }
}

fn error(wire: Wire, refusal: &Refusal, request_id: &str) -> Response {
    let body = match wire {
        Wire::Anthropic => anthropic::error(refusal, request_id),
        Wire::OpenAiChat | Wire::OpenAiResponses => openai::error(refusal),
        Wire::Gemini => gemini::error(refusal),
    };
    let headers = headers::of_document(wire, refusal.status, request_id);
    Response { status: refusal.status, headers, payload: Payload::Document(body) }
}
