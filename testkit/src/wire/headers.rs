//! Response headers as each provider names them: the request's id and the limits of the account.

use super::provider::Provider;
use crate::http::Response;
use crate::turnstile::Quota;

/// Requests and tokens that the account may use in a minute; there is always some left, except
/// where the script says that there is not.
const REQUESTS: u32 = 4_000;
const TOKENS: u32 = 2_000_000;

/// The headers of a document.
pub(super) fn of_document(
    wire: &dyn Provider,
    status: u16,
    request_id: &str,
) -> Vec<(String, String)> {
    headers(wire, status, wire.document_type(), request_id)
}

/// The headers of a stream.
pub(super) fn of_stream(
    wire: &dyn Provider,
    content_type: &str,
    request_id: &str,
) -> Vec<(String, String)> {
    let mut headers = headers(wire, 200, content_type, request_id);
    headers.push(header("cache-control", "no-cache"));
    headers
}

/// Puts what is left of a span into the headers of a response.
pub(super) fn tell(quota: &Quota, wire: &dyn Provider, response: &mut Response) {
    for (name, value) in wire.quota(quota) {
        response.headers.retain(|(set, _)| set != name);
        response.headers.push((name.to_owned(), value));
    }
}

pub(super) fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// What the account is limited in: its name, how much it has in a minute, and how much is left.
pub(super) fn limits(status: u16) -> [(&'static str, String, String); 2] {
    let left = |limit: u32| if status == 429 { 0 } else { limit - 1 };
    [("requests", REQUESTS), ("tokens", TOKENS)]
        .map(|(what, limit)| (what, limit.to_string(), left(limit).to_string()))
}

fn headers(
    wire: &dyn Provider,
    status: u16,
    content_type: &str,
    request_id: &str,
) -> Vec<(String, String)> {
    let mut headers = vec![header("content-type", content_type)];
    headers.extend(wire.headers(status, request_id));
    headers
}
