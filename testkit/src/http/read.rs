//! Reads requests from a connection: heads, bodies by length and in chunks, within caps.

use super::{After, BodyWanted, Framing, MAX_BODY, MAX_HEAD, Request, Version};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const READ_SIZE: usize = 4 * 1024;
const MAX_HEADERS: usize = 100;

/// Bytes that were read from a connection and belong to no request yet.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
}

/// Why no request could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The client left, between requests or within one.
    #[error("the client closed the connection")]
    Closed,
    /// The client gets an error, and the connection ends.
    #[error("{reason}")]
    Refused { status: u16, reason: String },
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        ReadError::Closed
    }
}

fn refuse<T>(status: u16, reason: impl Into<String>) -> Result<T, ReadError> {
    Err(ReadError::Refused { status, reason: reason.into() })
}

/// How a request gives the length of its body.
enum Length {
    Known(usize),
    Chunked,
}

impl Reader {
    /// Reads the next request.
    pub(crate) async fn request(&mut self, stream: &mut TcpStream) -> Result<Request, ReadError> {
        let (mut request, head) = loop {
            if let Some(parsed) = parse_head(&self.buffer)? {
                break parsed;
            }
            if self.buffer.len() >= MAX_HEAD {
                return refuse(431, format!("the head of the request exceeds {MAX_HEAD} bytes"));
            }
            self.fill(stream).await?;
        };
        self.consume(head);
        let length = body_length(&request)?;
        let waits_for_leave = match length {
            Length::Known(length) => self.buffer.len() < length,
            Length::Chunked => self.buffer.is_empty(),
        };
        if waits_for_leave
            && request
                .header("expect")
                .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
        {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        request.body = match length {
            Length::Known(length) => self.known(stream, length).await?,
            Length::Chunked => self.chunked(stream).await?,
        };
        Ok(request)
    }

    async fn known(&mut self, stream: &mut TcpStream, length: usize) -> Result<Vec<u8>, ReadError> {
        let buffered = length.min(self.buffer.len());
        let mut body = Vec::with_capacity(length);
        body.extend_from_slice(&self.buffer[..buffered]);
        self.consume(buffered);
        // Straight into the body, without a second copy.
        let mut rest = stream.take((length - buffered) as u64);
        while body.len() < length {
            if rest.read_buf(&mut body).await? == 0 {
                return Err(ReadError::Closed);
            }
        }
        Ok(body)
    }

    async fn chunked(&mut self, stream: &mut TcpStream) -> Result<Vec<u8>, ReadError> {
        let mut body = Vec::new();
        loop {
            let size = self.chunk_size(stream).await?;
            if size == 0 {
                break;
            }
            if body.len() + size > MAX_BODY {
                return too_large();
            }
            while self.buffer.len() < size + 2 {
                self.fill(stream).await?;
            }
            body.extend_from_slice(&self.buffer[..size]);
            if &self.buffer[size..size + 2] != b"\r\n" {
                return refuse(400, "a chunk of the body is longer than its size says");
            }
            self.consume(size + 2);
        }
        // Trailers are read to find the end of the request, and otherwise ignored.
        let mut trailers = 0;
        loop {
            let line = self.line(stream).await?;
            trailers += line;
            if line == 2 {
                return Ok(body);
            }
            if trailers > MAX_HEAD {
                return refuse(431, format!("the trailers exceed {MAX_HEAD} bytes"));
            }
        }
    }

    async fn chunk_size(&mut self, stream: &mut TcpStream) -> Result<usize, ReadError> {
        loop {
            match httparse::parse_chunk_size(&self.buffer) {
                Ok(httparse::Status::Complete((consumed, size))) => {
                    self.consume(consumed);
                    return usize::try_from(size).or_else(|_| too_large());
                }
                Ok(httparse::Status::Partial) if self.buffer.len() < MAX_HEAD => {
                    self.fill(stream).await?;
                }
                _ => return refuse(400, "a chunk of the body has no valid size"),
            }
        }
    }

    /// Consumes a line and returns its length, its end included.
    async fn line(&mut self, stream: &mut TcpStream) -> Result<usize, ReadError> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                self.consume(end + 2);
                return Ok(end + 2);
            }
            if self.buffer.len() > MAX_HEAD {
                return refuse(431, format!("the trailers exceed {MAX_HEAD} bytes"));
            }
            self.fill(stream).await?;
        }
    }

    async fn fill(&mut self, stream: &mut TcpStream) -> Result<(), ReadError> {
        self.buffer.reserve(READ_SIZE);
        match stream.read_buf(&mut self.buffer).await? {
            0 => Err(ReadError::Closed),
            _ => Ok(()),
        }
    }

    fn consume(&mut self, count: usize) {
        self.buffer.drain(..count);
    }
}

fn too_large<T>() -> Result<T, ReadError> {
    refuse(413, format!("the body of the request exceeds {MAX_BODY} bytes"))
}

/// The request without its body, and the length of its head; none while bytes are missing.
fn parse_head(buffer: &[u8]) -> Result<Option<(Request, usize)>, ReadError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(buffer) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return refuse(431, format!("the request has more than {MAX_HEADERS} headers"));
        }
        Err(error) => return refuse(400, format!("the head of the request is no HTTP: {error}")),
    };
    let headers: Vec<(String, String)> = parsed
        .headers
        .iter()
        .map(|header| {
            let value = String::from_utf8_lossy(header.value).into_owned();
            (header.name.to_ascii_lowercase(), value)
        })
        .collect();
    let method = parsed.method.unwrap_or_default().to_owned();
    let version = match parsed.version {
        Some(0) => Version::Http10,
        _ => Version::Http11,
    };
    let options = headers.iter().filter(|(name, _)| name == "connection");
    let has_close = options
        .flat_map(|(_, value)| value.split(','))
        .any(|option| option.trim().eq_ignore_ascii_case("close"));
    // Without chunks the end of a stream is that of the connection, so the old version gets one
    // response each.
    let after = match version {
        Version::Http11 if !has_close => After::KeepAlive,
        _ => After::Close,
    };
    let body = if method == "HEAD" { BodyWanted::No } else { BodyWanted::Yes };
    let target = parsed.path.unwrap_or_default().to_owned();
    let framing = Framing { version, after, body };
    Ok(Some((Request { method, target, headers, body: Vec::new(), framing }, head)))
}

fn body_length(request: &Request) -> Result<Length, ReadError> {
    let values = |name: &'static str| {
        let found = request.headers.iter().filter(move |(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    };
    let mut lengths = values("content-length");
    let length = lengths.next();
    if let Some(coding) = values("transfer-encoding").next() {
        if length.is_some() {
            return refuse(400, "the request has both a content-length and a transfer-encoding");
        }
        if !coding.eq_ignore_ascii_case("chunked") {
            return refuse(501, format!("transfer-encoding {coding:?} is not known; use chunked"));
        }
        return Ok(Length::Chunked);
    }
    let Some(length) = length else {
        return Ok(Length::Known(0));
    };
    if lengths.any(|other| other != length) {
        return refuse(400, "the request has two content-lengths that differ");
    }
    // `parse` alone would take a sign.
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return refuse(400, format!("content-length {length:?} is no number"));
    }
    match length.parse() {
        Ok(length) if length <= MAX_BODY => Ok(Length::Known(length)),
        _ => too_large(),
    }
}
