//! Wire formats: a request's path says which one it speaks.

mod anthropic;

use crate::connection::Performance;
use crate::http::{Request, Response};
use crate::script::Book;

/// What answers `request`, the `number`th one.
pub(crate) fn answer(request: &Request, book: &Book, number: usize) -> Performance {
    let wire = anthropic::Wire { request_id: format!("req_fake_{number:06}") };
    match (request.path(), request.method.as_str()) {
        (anthropic::PATH, "POST") => wire.answer(request, book),
        (anthropic::PATH, method) => {
            let reason = format!("{method} is not allowed on {}; use POST", anthropic::PATH);
            wire.error(405, &reason).into()
        }
        (path, _) => {
            let reason =
                format!("nothing is served at {path}; the fake model serves {}", anthropic::PATH);
            wire.error(404, &reason).into()
        }
    }
}

/// What answers a request that could not even be read.
pub(crate) fn refusal(status: u16, reason: &str) -> Response {
    anthropic::Wire { request_id: "req_fake_unread".to_owned() }.error(status, reason)
}
