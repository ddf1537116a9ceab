//! From a method and a path to what is asked for. Vendors put the same endpoints under prefixes
//! of their own, so only the end of a path counts.

use super::models::List;
use crate::ask::Wire;
use crate::http::Request;

/// What is served, for those who look elsewhere.
pub(super) fn served() -> String {
    let places = Wire::ALL.map(|wire| super::provider(wire).place());
    let [first @ .., last] = &places;
    let first = first.join(", ");
    format!("the fake model serves POST {first} and {last}, and GET …/models")
}

/// What a request is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// A model is asked something.
    Talk(Wire),
    Models(List),
    Model(List, &'a str),
    /// The version of the server, as Ollama tells it.
    Version,
    /// The method that would be right.
    WrongMethod(Wire, &'static str),
    Unknown,
}

pub(super) fn of(request: &Request) -> Route<'_> {
    let path = request.path();
    if let Some(wire) = talk(path) {
        return match request.method.as_str() {
            "POST" => Route::Talk(wire),
            _ => Route::WrongMethod(wire, "POST"),
        };
    }
    let list = List::wanted_by(request);
    let found = if path.ends_with("/models") {
        Route::Models(list)
    } else if path.ends_with("/api/tags") {
        Route::Models(List::Ollama)
    } else if path.ends_with("/api/version") {
        Route::Version
    } else if let Some((_, name)) = path.split_once("/models/") {
        Route::Model(list, name)
    } else {
        return Route::Unknown;
    };
    match request.method.as_str() {
        "GET" | "HEAD" => found,
        _ => Route::WrongMethod(list.wire(), "GET"),
    }
}

/// The wire that is spoken at this path.
pub(super) fn talk(path: &str) -> Option<Wire> {
    Wire::ALL.into_iter().find(|wire| super::provider(*wire).is_at(path))
}
