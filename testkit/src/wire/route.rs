//! From a method and a path to what is asked for. Vendors put the same endpoints under prefixes
//! of their own, so only the end of a path counts.

use super::models::List;
use crate::ask::Wire;
use crate::http::Request;

/// What is served, for those who look elsewhere.
pub(super) const SERVED: &str = "the fake model serves POST …/v1/messages, …/chat/completions, \
                                 …/responses and …/models/{model}:generateContent, and GET …/models";

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
    let talk = if path.ends_with("/v1/messages") {
        Some(Wire::Anthropic)
    } else if path.ends_with("/chat/completions") {
        Some(Wire::OpenAiChat)
    } else if path.ends_with("/responses") {
        Some(Wire::OpenAiResponses)
    } else if gemini_model(path).is_some() {
        Some(Wire::Gemini)
    } else {
        None
    };
    if let Some(wire) = talk {
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

/// The model and the verb of a path such as `/v1beta/models/gemini-pro:generateContent`.
pub(super) fn gemini_model(path: &str) -> Option<(&str, GeminiVerb)> {
    let (_, rest) = path.rsplit_once("/models/")?;
    let (model, verb) = rest.rsplit_once(':')?;
    match verb {
        "generateContent" => Some((model, GeminiVerb::Generate)),
        "streamGenerateContent" => Some((model, GeminiVerb::Stream)),
        _ => None,
    }
}

/// What a Gemini model is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GeminiVerb {
    Generate,
    Stream,
}
