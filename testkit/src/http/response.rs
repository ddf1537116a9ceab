//! Responses as bytes: a document in one piece, or a stream of events in chunks.

use super::{After, BodyWanted, Framing, Version};

/// What answers a request, before it is put on the wire.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Payload,
}

#[derive(Debug)]
pub(crate) enum Payload {
    Document(String),
    Events(Events),
}

/// The events of a stream, already in text.
#[derive(Debug, Default)]
pub(crate) struct Events {
    text: String,
    /// Where each event ends.
    ends: Vec<(usize, EventKind)>,
}

/// The kind of an event, for the pace of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A piece of content.
    Delta,
    Other,
}

impl Events {
    /// Room for text: an event is written here and then ended.
    pub(crate) fn text(&mut self) -> &mut String {
        &mut self.text
    }

    /// Ends the event that was written last.
    pub(crate) fn end(&mut self, kind: EventKind) {
        self.ends.push((self.text.len(), kind));
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, EventKind)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(&self.ends).map(|(start, (end, kind))| (&self.text[start..*end], *kind))
    }
}

/// A whole response in one buffer.
pub(crate) fn encode(
    status: u16,
    headers: &[(String, String)],
    body: &str,
    framing: Framing,
) -> Vec<u8> {
    let mut out = head("HTTP/1.1", status, headers, framing.after);
    out.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    if framing.body == BodyWanted::Yes {
        out.push_str(body);
    }
    out.into_bytes()
}

/// The head of a response whose body comes in pieces.
pub(crate) fn begin_chunked(
    status: u16,
    headers: &[(String, String)],
    framing: Framing,
) -> Vec<u8> {
    let mut out = head("HTTP/1.1", status, headers, framing.after);
    if framing.version == Version::Http11 {
        out.push_str("transfer-encoding: chunked\r\n");
    }
    out.push_str("\r\n");
    out.into_bytes()
}

/// One piece of such a body.
pub(crate) fn push_chunk(out: &mut Vec<u8>, piece: &str, version: Version) {
    if version == Version::Http10 {
        out.extend_from_slice(piece.as_bytes());
        return;
    }
    out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
    out.extend_from_slice(piece.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The end of such a body.
pub(crate) fn end_chunked(out: &mut Vec<u8>, version: Version) {
    if version == Version::Http11 {
        out.extend_from_slice(b"0\r\n\r\n");
    }
}

/// The head of a response, without the header for the end of its body and without the blank line.
pub(crate) fn head(
    version: &str,
    status: u16,
    headers: &[(String, String)],
    after: After,
) -> String {
    let mut out = String::with_capacity(1024);
    out.push_str(&format!("{version} {status} {}\r\n", phrase(status)));
    for (name, value) in headers {
        out.push_str(name);
        out.push_str(": ");
        out.push_str(value);
        out.push_str("\r\n");
    }
    if after == After::Close {
        out.push_str("connection: close\r\n");
    }
    out
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Error",
    }
}
