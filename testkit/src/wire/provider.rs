//! All that the server knows of one wire format. What faults know of it is its [`Anatomy`].

use super::refusal::Refusal;
use super::{Exchange, Note};
use crate::ask::Ask;
use crate::http::Request;
use crate::performance::Performance;
use crate::script::fault::Anatomy;
use crate::turnstile::Quota;

/// A wire format as a server speaks it.
pub(super) trait Provider: Anatomy {
    /// Whether it is spoken at `path`. Vendors put the same endpoints under prefixes of their own,
    /// so only the end of a path counts.
    fn is_at(&self, path: &str) -> bool;

    /// Such a path, for those who look elsewhere.
    fn place(&self) -> &'static str;

    /// Answers a request, or says why not: `dialogue::converse` with the wire's own requests.
    fn converse(&self, exchange: &Exchange<'_>, note: &mut Note) -> Result<Performance, Refusal>;

    /// Looks at a request, if it can be read: `dialogue::look` with the wire's own requests.
    fn look(&self, request: &Request, look: &mut dyn FnMut(&Ask<'_>));

    /// The document that tells of an error.
    fn error(&self, refusal: &Refusal, request_id: &str) -> String;

    /// The media type of a document.
    fn document_type(&self) -> &'static str {
        "application/json"
    }

    /// The id of the request and the limits of the account, where the provider has headers for them.
    fn headers(&self, _status: u16, _request_id: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The headers that tell how much of a span is left.
    fn quota(&self, _: &Quota) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
