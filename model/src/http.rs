//! The only HTTP client for providers, with a watchdog for streams.
//!
//! It owns connections, timeouts and the watchdog, and calls a cassette. It knows no wire format.
//! It follows no redirect and uses no proxy of the environment, so that a key goes only to its
//! provider.

mod facts;
mod pool;
mod response;

pub(crate) use facts::{Limit, Limits, limits, request_id};
pub(crate) use response::Response;

use crate::cassette::{Cassette, ExchangeRecording};
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

/// The address of a server, without its secret parts.
pub(crate) fn address(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// How much of the body of an error is read, and for how long.
const MAX_ERROR_BYTES: usize = 64 << 10;
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// A header that some send beside or in place of `Retry-After`.
const RETRY_AFTER_MS: header::HeaderName = header::HeaderName::from_static("retry-after-ms");

/// How long a reply may take in all.
const LONGEST_REPLY: Duration = Duration::from_secs(2 * 3600);

/// How long to wait for the end of a body whose last event has come.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// The HTTP client: cheap to make and to clone, with one pool of connections.
///
/// It loads the root certificates of the system at the first request that needs them. A plain
/// `http://` base URL never does.
#[derive(Clone, Default)]
pub(crate) struct Http {
    pool: Arc<Pool>,
    cassette: Option<Cassette>,
}

/// A new client with its own pool. One for each process is enough.
pub(crate) fn client() -> Http {
    Http::default()
}

impl Http {
    /// The same, with a cassette that records or replays all posts.
    pub(crate) fn with_cassette(self, cassette: Cassette) -> Self {
        Http { cassette: Some(cassette), ..self }
    }

    /// The cassette, if there is one.
    pub(crate) fn cassette(&self) -> Option<&Cassette> {
        self.cassette.as_ref()
    }

    /// Makes the client for calls of `url`. If that fails, the first call reports it.
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
        // A body that is sent once: of a body that it can send again, the client keeps a copy until
        // the answer comes.
        *request.body_mut() = Some(Body::wrap(Full::new(body)));
        self.send(request, take).await
    }

    /// Asks for what is at `url` and returns the answer when its head has come.
    pub(crate) async fn get(&self, url: &Url, headers: &HeaderMap) -> Result<Response, Fault> {
        let mut request = Request::new(Method::GET, url.clone());
        *request.headers_mut() = headers.clone();
        self.send(request, None).await
    }

    async fn send(
        &self,
        request: Request,
        mut take: Option<ExchangeRecording>,
    ) -> Result<Response, Fault> {
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

/// The innermost cause of an error. The outer ones only add where it happened.
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

/// The body of a success.
pub(crate) enum Answer {
    /// Events, or a body that may be events: not every provider declares the type.
    Events(Response),
    /// A whole reply, from a provider that does not stream.
    Document(Response),
}

/// The body of a success, or the fault of any other answer.
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

/// As much of the body of an error as comes in time.
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
    // After the time limit, the part that has come is enough.
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
    /// Fails when nothing has moved for `patience`, counted from now.
    pub(crate) fn new(patience: Duration) -> Self {
        let timer = Box::pin(tokio::time::sleep(patience));
        let now = Instant::now();
        Watchdog { patience, began_at: now, progress_at: now, timer }
    }

    /// Notes that something has moved.
    pub(crate) fn moved(&mut self) {
        // This is called often, so the timer is set again only when it fires.
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
