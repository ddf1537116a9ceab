//! HTTP/1.1 by hand, for control over every byte. Requests are read whole. Responses take as few
//! writes as their pauses allow.

mod read;
mod response;

pub(crate) use read::{ReadError, Reader};
pub(crate) use response::{
    EventKind, Events, Payload, Response, begin_chunked, encode, end_chunked, head, push_chunk,
};

/// The most bytes that the head of a request may have.
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// The most bytes that the body of a request may have, as on the real API.
pub(crate) const MAX_BODY: usize = 32 * 1024 * 1024;

/// One request, complete. Names of headers are in lower case.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) framing: Framing,
}

/// What the client allows the response and the connection to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Framing {
    pub(crate) version: Version,
    pub(crate) after: After,
    pub(crate) body: BodyWanted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Knows no chunks: a stream ends when the connection does.
    Http10,
    Http11,
}

/// What happens to the connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    KeepAlive,
    Close,
}

/// Whether the response has a body: that to HEAD has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyWanted {
    Yes,
    No,
}

impl Request {
    /// The first value of the header with this lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The target without its query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}
