//! The one way to a provider over HTTP, and reading from it under watch.
//!
//! Owns connections, timeouts and the watchdog; a cassette hears or speaks here. Knows no wire
//! format; follows no redirect and uses no proxy of the environment, so a key goes only where it
//! was meant to go.

mod facts;
mod pool;
mod response;

pub(crate) use facts::{Limit, Limits, limits, request_id};
pub(crate) use response::Response;

use crate::cassette::{Cassette, Take};
use crate::fault::{self, Fault, Kind};
use bytes::Bytes;
use http_body_util::Full;
use pool::{CONNECT_TIMEOUT, Pool};
use reqwest::header::{self, HeaderMap};
use reqwest::{Body, Method, Request};
use std::error::Error;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, Sleep};
use url::Url;

/// Where a server is, without what may be secret about it.
pub(crate) fn address(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// How much of the body of an error is read, and for how long.
const MAX_ERROR_BYTES: usize = 64 << 10;
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// What some send beside or in place of `Retry-After`.
const RETRY_AFTER_MS: header::HeaderName = header::HeaderName::from_static("retry-after-ms");

/// How long a reply may take, however steadily it comes.
const LONGEST_REPLY: Duration = Duration::from_secs(2 * 3600);

/// How long to wait for the end of a body whose last event has come.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// The way out: cheap to make, cheap to clone, connections in one pool.
///
/// What costs time, the system's root certificates above all, is loaded at the first request
/// that needs it. A plain `http://` base URL never does.
#[derive(Clone, Default)]
pub(crate) struct Http {
    pool: Arc<Pool>,
    cassette: Option<Cassette>,
}

/// A new way out with its own pool. One per process is right.
pub(crate) fn client() -> Http {
    Http::default()
}

impl Http {
    /// The same, with everything that is posted recorded or taken from a recording.
    pub(crate) fn with_cassette(self, cassette: Cassette) -> Self {
        Http { cassette: Some(cassette), ..self }
    }

    /// What is recorded or played.
    pub(crate) fn cassette(&self) -> Option<&Cassette> {
        self.cassette.as_ref()
    }

    /// Makes the client for calls of `url`. Whether it can be made is told by the first of them.
    pub(crate) fn get_ready(&self, url: &Url) {
        if !matches!(self.cassette, Some(Cassette::Replay(_))) {
            self.pool.get_ready(url);
        }
    }

    /// Sends `body`, which is of `wire`, and returns the answer when its head has come, whatever
    /// its status.
    pub(crate) async fn post(
        &self,
        wire: &'static str,
        url: &Url,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response, Fault> {
        let take = match &self.cassette {
            None => None,
            Some(Cassette::Recording(recording)) => Some(recording.begin(url, wire, &body)?),
            Some(Cassette::Replay(replay)) => {
                let (status, headers, playback) = replay.answer(url, wire, &body)?;
                return Ok(Response::played(status, headers, playback));
            }
        };
        let mut request = Request::new(Method::POST, url.clone());
        *request.headers_mut() = headers.clone();
        // As something that is sent once: of a body it could send again, the client keeps a copy, and
        // of its headers, until the answer comes.
        *request.body_mut() = Some(Body::wrap(Full::new(body)));
        self.send(request, take).await
    }

    /// Asks for what is at `url` and returns the answer when its head has come.
    pub(crate) async fn get(&self, url: &Url, headers: &HeaderMap) -> Result<Response, Fault> {
        let mut request = Request::new(Method::GET, url.clone());
        *request.headers_mut() = headers.clone();
        self.send(request, None).await
    }

    async fn send(&self, request: Request, mut take: Option<Take>) -> Result<Response, Fault> {
        let url = request.url().clone();
        let (client, seat) = self.pool.client_for(&url)?;
        let sent = client.execute(request).await;
        let sent = sent.map_err(|error| {
            let host = url.host_str().unwrap_or_default();
            let port = url.port_or_known_default().unwrap_or_default();
            let reason = match error.is_connect() && error.is_timeout() {
                true => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
                false => root_cause(&error),
            };
            let kind = match error.is_connect() || error.is_builder() {
                true if is_refused(&error) => Kind::Refused,
                true => Kind::Unreachable,
                false => Kind::Unanswered,
            };
            Fault {
                kind,
                reason: format!("{host}:{port}: {reason}"),
                hint: "; check the network and the base URL",
            }
        });
        match sent {
            Ok(response) => Ok(Response::live(response, seat, take)),
            Err(fault) => {
                if let Some(take) = &mut take {
                    take.failed(&fault);
                }
                Err(fault)
            }
        }
    }
}

/// What lies at the bottom of an error; the layers above it only repeat where it passed.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Whether the other side answered that nothing listens there.
fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return error.kind() == std::io::ErrorKind::ConnectionRefused;
        }
        cause = error.source();
    }
    false
}

/// What a success brings.
pub(crate) enum Answer {
    /// Events, or what may well be some: not everybody says so.
    Events(Response),
    /// A whole reply, from a provider that does not stream.
    Document(Response),
}

/// Tells what a success brings, or turns the answer into the fault it tells of.
pub(crate) async fn expect_reply(mut response: Response) -> Result<Answer, Fault> {
    let status = response.status();
    if !status.is_success() {
        let retry_after = retry_after(response.headers());
        let body = error_body(&mut response).await;
        return Err(Fault::of_status(status.as_u16(), retry_after, &body));
    }
    let encoding = text_of(response.headers(), header::CONTENT_ENCODING);
    let unasked = encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
    let media_type = text_of(response.headers(), header::CONTENT_TYPE).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let reason = match (unasked, &*essence) {
        (Some(encoding), _) => {
            format!("it is compressed with {encoding}, which Posse did not ask for")
        }
        (None, "application/json") => return Ok(Answer::Document(response)),
        (None, "text/html") => {
            let body = error_body(&mut response).await;
            format!("it is a page for people: {}", String::from_utf8_lossy(&body))
        }
        (None, _) => return Ok(Answer::Events(response)),
    };
    Err(Fault { kind: Kind::Malformed, reason, hint: "; check the base URL" })
}

fn text_of(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    let milliseconds = text_of(headers, RETRY_AFTER_MS).and_then(|value| value.parse::<f64>().ok());
    if let Some(milliseconds) = milliseconds {
        return fault::retry_after(&(milliseconds / 1000.0).to_string(), None, now);
    }
    let value = text_of(headers, header::RETRY_AFTER)?;
    fault::retry_after(value, text_of(headers, header::DATE), now)
}

/// What can be had of a body that only explains an error.
async fn error_body(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
    };
    // Too late is as good as the end: what has come so far must do.
    let _ = tokio::time::timeout(ERROR_TIMEOUT, reading).await;
    body
}

/// The whole body, which may have `limit` bytes.
pub(crate) async fn body(mut response: Response, limit: usize) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await? {
        body.extend_from_slice(&bytes);
        if body.len() > limit {
            return Err(Fault::new(Kind::Malformed, format!("it is larger than {limit} bytes")));
        }
    }
    Ok(body)
}

/// Reads a body to its end, so that its connection can be used again. Gives up soon.
pub(crate) async fn drain(mut response: Response) {
    let reading = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
}

/// Notices that a stream makes no progress.
pub(crate) struct Watchdog {
    patience: Duration,
    began_at: Instant,
    progress_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Watchdog {
    /// Barks when nothing has moved for `patience`, counted from now.
    pub(crate) fn new(patience: Duration) -> Self {
        let timer = Box::pin(tokio::time::sleep(patience));
        let now = Instant::now();
        Watchdog { patience, began_at: now, progress_at: now, timer }
    }

    /// Notes that something has moved.
    pub(crate) fn moved(&mut self) {
        // The timer stays as it is and is set anew only when it fires: this is called often.
        self.progress_at = Instant::now();
    }

    /// Fails when nothing has moved for too long, even though bytes may have come.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let now = Instant::now();
        if now - self.progress_at >= self.patience {
            return Err(Fault::new(Kind::Stalled(self.patience), ""));
        }
        if now - self.began_at >= LONGEST_REPLY {
            let reason = format!("not complete after {} minutes", LONGEST_REPLY.as_secs() / 60);
            return Err(Fault::new(Kind::Malformed, reason));
        }
        Ok(())
    }

    /// Waits for `future`, but no longer than patience lasts.
    pub(crate) async fn watch<F: Future>(&mut self, future: F) -> Result<F::Output, Fault> {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                () = &mut self.timer => {
                    self.check()?;
                    self.timer.as_mut().reset(self.progress_at + self.patience);
                }
            }
        }
    }
}
