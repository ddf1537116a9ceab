//! Faults of a call, sorted by what can be done about them.
//!
//! It reads status codes, error bodies and `Retry-After`, and cleans the texts of providers before
//! they are shown. It does no I/O, and decides nothing about retries.

use crate::sse::TooLong;
use posse_agent::ModelError;
use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;

/// The longest wait that a provider can ask for. The caller may have less patience.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// The most characters of a message of a provider that are passed on.
pub const MAX_REASON_CHARS: usize = 500;

/// The kind of a fault, as [`ModelError`] distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The provider wants fewer requests; perhaps it says how long to wait.
    RateLimited(Option<Duration>),
    /// The provider is in trouble; perhaps it says how long to wait.
    Overloaded(Option<Duration>),
    /// The provider will always refuse this request.
    Rejected,
    /// The provider does not accept the key.
    Unauthorised,
    /// The transcript does not fit.
    ContextOverflow,
    /// There was no connection, so nothing was sent.
    Unreachable,
    /// The machine answered that nothing listens at this port.
    Refused,
    /// The connection broke before an answer began.
    Unanswered,
    /// Nothing came for this long.
    Stalled(Duration),
    /// The reply ended too early.
    Cut,
    /// The reply is not what the wire format says.
    Malformed,
}

impl Kind {
    /// Returns the kind for a `status` other than success, with the message that came with it.
    pub(crate) fn of_status(status: u16, retry_after: Option<Duration>, words: &str) -> Self {
        match status {
            401 | 403 => Kind::Unauthorised,
            400 if words.contains("API key not valid") => Kind::Unauthorised,
            429 => Kind::RateLimited(retry_after),
            413 => Kind::ContextOverflow,
            400 | 422 if is_overflow(words) => Kind::ContextOverflow,
            408 | 500.. => Kind::Overloaded(retry_after),
            _ => Kind::Rejected,
        }
    }
}

/// A failed call, before its model is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: Kind,
    /// The reason, as the provider sent it: it may be long, and contain anything.
    pub reason: String,
    /// What to do; may be empty.
    pub hint: &'static str,
}

/// The model that a fault is about.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The model, as `vendor/name`.
    pub model: &'a str,
    /// The key, which must not appear in any text.
    pub key: &'a str,
    /// Where the key comes from, for example the name of an environment variable.
    pub key_source: &'a str,
}

impl Fault {
    /// Creates a fault.
    pub fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Fault { kind, reason: reason.into(), hint: "" }
    }

    /// Returns the error for this model, with a clean and short text.
    pub fn into_error(self, subject: Subject<'_>) -> ModelError {
        let model = subject.model.to_owned();
        let hint = match self.kind {
            Kind::Unauthorised => format!("; check {}", subject.key_source),
            _ => self.hint.to_owned(),
        };
        // The key is removed before the text is shortened, because half a key is secret, too.
        let words = without(&self.reason, subject.key);
        let reason = shorten(&words, MAX_REASON_CHARS.saturating_sub(hint.len())) + &hint;
        match self.kind {
            Kind::RateLimited(after) => ModelError::RetryAfter { model, after, reason },
            Kind::Overloaded(after) => ModelError::Overloaded { model, after, reason },
            Kind::Rejected => ModelError::Rejected { model, reason },
            Kind::Unauthorised => ModelError::Unauthorised { model, reason },
            Kind::ContextOverflow => ModelError::ContextOverflow { model, reason },
            Kind::Unreachable | Kind::Refused => {
                ModelError::Unreachable { model, reason, sent: false }
            }
            Kind::Unanswered => ModelError::Unreachable { model, reason, sent: true },
            Kind::Stalled(after) => ModelError::Stalled { model, after },
            Kind::Cut => ModelError::Cut { model, reason },
            Kind::Malformed => ModelError::Malformed { model, reason },
        }
    }

    /// Returns the fault for an answer with this `status`, which is not a success, and this `body`.
    pub fn of_status(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let words = error_message(body);
        let retry_after = retry_after.or_else(|| retry_delay(body));
        let kind = match is_quota_spent(body) {
            true => Kind::Rejected,
            false => Kind::of_status(status, retry_after, &words),
        };
        let hint = match status {
            300..=399 => "; redirects are not followed: set the base URL to the final address",
            404 => "; check the name of the model and the base URL",
            _ => "",
        };
        let colon = if words.trim().is_empty() { "" } else { ": " };
        Fault { kind, reason: format!("HTTP {status}{colon}{words}"), hint }
    }

    /// Returns the fault for an error event in a stream, by the `kind` that the provider gives.
    pub fn of_error_event(kind: &str, message: &str) -> Self {
        let found = match kind {
            "overloaded_error" | "api_error" | "timeout_error" => Kind::Overloaded(None),
            "rate_limit_error" => Kind::RateLimited(None),
            "authentication_error" | "permission_error" => Kind::Unauthorised,
            "request_too_large" => Kind::ContextOverflow,
            "invalid_request_error" if is_overflow(message) => Kind::ContextOverflow,
            _ => Kind::Rejected,
        };
        Fault::new(found, format!("{kind}: {message}"))
    }
}

impl From<TooLong> for Fault {
    fn from(error: TooLong) -> Self {
        Fault::new(Kind::Malformed, error.to_string())
    }
}

/// Returns the message of an error document, or the body itself.
fn error_message(body: &[u8]) -> Cow<'_, str> {
    let document = serde_json::from_slice::<Value>(first_of_list(body)).unwrap_or_default();
    let words = error_words(&document["error"]).or_else(|| error_words(&document));
    words.map_or_else(|| String::from_utf8_lossy(body), Cow::Owned)
}

/// Returns the message of an error, which is a text or an object with a `message`; a router adds
/// the message of the provider behind it.
pub(crate) fn error_words(error: &Value) -> Option<String> {
    let message = error.as_str().or_else(|| error["message"].as_str())?;
    Some(match error["metadata"]["raw"].as_str() {
        Some(raw) => format!("{message}: {raw}"),
        None => message.to_owned(),
    })
}

/// Returns the only element of a list. Gemini sends some errors in a list.
fn first_of_list(body: &[u8]) -> &[u8] {
    let inner = body.trim_ascii().strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    inner.unwrap_or(body)
}

/// Returns the wait in the details of an error document, as Gemini sends it, at most
/// [`MAX_RETRY_AFTER`].
fn retry_delay(body: &[u8]) -> Option<Duration> {
    let document: Value = serde_json::from_slice(first_of_list(body)).ok()?;
    let details = document.get("error")?.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    retry_after(delay.strip_suffix('s')?, None, 0)
}

/// True when the account has no money left, so that waiting does not help. OpenAI gives this the
/// status of a rate limit.
fn is_quota_spent(body: &[u8]) -> bool {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let spent = |key: &str| document["error"][key] == "insufficient_quota";
    spent("code") || spent("type")
}

/// True when the message says that the transcript is too long.
pub(crate) fn is_overflow(words: &str) -> bool {
    const SIGNS: &[&str] = &[
        "prompt is too long",
        "input is too long",
        "context limit",
        "context window",
        "context length",
        "context size",
        "maximum prompt length",
        "model token limit",
        "range of input length",
        "prompt exceeds max length",
        "reduce the length of the messages",
        "tokens + `max_new_tokens`",
        "exceeds the maximum number of tokens",
        "payload size exceeds",
    ];
    let words = words.to_lowercase();
    SIGNS.iter().any(|sign| words.contains(sign))
}

/// Returns the wait that a `Retry-After` header asks for, at most [`MAX_RETRY_AFTER`].
///
/// `value` is a number of seconds or an HTTP date. A date is compared with `date`, the `Date`
/// header of the answer, so that a wrong local clock does not matter. Without that header it is
/// compared with `now`, in seconds since 1970.
pub fn retry_after(value: &str, date: Option<&str>, now: i64) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        let usable = seconds.is_finite() && seconds >= 0.0;
        return usable.then(|| Duration::from_secs_f64(seconds.min(MAX_RETRY_AFTER.as_secs_f64())));
    }
    let until = http_date(value)?;
    let from = date.and_then(http_date).unwrap_or(now);
    let seconds = u64::try_from(until.saturating_sub(from)).unwrap_or(0);
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

fn http_date(text: &str) -> Option<i64> {
    match jiff::fmt::rfc2822::parse(text.trim()) {
        Ok(zoned) => Some(zoned.timestamp().as_second()),
        // Some servers mean "never" by the last days of the year 9999, which are out of range.
        Err(_) => (text.split_whitespace().nth(3) == Some("9999")).then_some(i64::MAX),
    }
}

/// Returns `text` without `key`. Short keys are placeholders for local servers, not secrets.
fn without<'a>(text: &'a str, key: &str) -> Cow<'a, str> {
    if key.len() >= 4 && text.contains(key) {
        Cow::Owned(text.replace(key, "[key]"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns `text` on one line, without control characters, at most `max_chars` long.
pub(crate) fn shorten(text: &str, max_chars: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut out = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > 4 * max_chars {
            break;
        }
    }
    if out.chars().count() > max_chars {
        let kept = max_chars.saturating_sub(1);
        let end = out.char_indices().nth(kept).map_or(out.len(), |(position, _)| position);
        out.truncate(end);
        out.push('…');
    }
    out
}
