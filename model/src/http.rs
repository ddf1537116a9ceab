//! The one HTTP client of the process, and reading from it under watch.
//!
//! Owns connections, TLS, timeouts and the watchdog. Knows no wire format; follows no redirect
//! and uses no proxy of the environment, so a key goes only where it was meant to go.

use crate::fault::{self, Fault, Kind};
use bytes::Bytes;
use reqwest::header::{self, HeaderMap};
use reqwest::{Client, Method, Request, Response};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use std::error::Error;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, Sleep};
use url::Url;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How much of the body of an error is read, and for how long.
const MAX_ERROR_BYTES: usize = 64 << 10;
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for the end of a body whose last event has come.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// The shared HTTP client: cheap to make, cheap to clone, connections in one pool.
///
/// What costs time, the system's root certificates above all, is loaded at the first request
/// that needs it. A plain `http://` base URL never does.
#[derive(Clone, Default)]
pub(crate) struct Http {
    clients: Arc<Clients>,
}

#[derive(Default)]
struct Clients {
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

/// A new client with its own pool. One per process is right.
pub(crate) fn client() -> Http {
    Http::default()
}

impl Http {
    fn client_for(&self, url: &Url) -> Result<&Client, Fault> {
        let client = match url.scheme() {
            "http" => self.clients.plain.get_or_init(|| build(plain_tls())),
            _ => self.clients.secure.get_or_init(|| build(system_tls())),
        };
        client.as_ref().map_err(|reason| {
            Fault::new(Kind::Unreachable, format!("the HTTP client cannot be made: {reason}"))
        })
    }

    /// Sends `body` and returns the answer when its head has come, whatever its status.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: &HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, Fault> {
        let mut request = Request::new(Method::POST, url.clone());
        *request.headers_mut() = headers.clone();
        *request.body_mut() = Some(body.into());
        self.client_for(url)?.execute(request).await.map_err(|error| {
            let host = url.host_str().unwrap_or_default();
            let port = url.port_or_known_default().unwrap_or_default();
            let reason = match error.is_connect() && error.is_timeout() {
                true => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
                false => root_cause(&error),
            };
            Fault {
                kind: Kind::Unreachable,
                reason: format!("{host}:{port}: {reason}"),
                hint: "; check the network and the base URL",
            }
        })
    }
}

fn build(tls: Result<ClientConfig, rustls::Error>) -> Result<Client, String> {
    let mut tls = tls.map_err(|error| error.to_string())?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Client::builder()
        .tls_backend_preconfigured(tls)
        // Over HTTP/2 all calls would share one connection, and those beyond its limit of
        // streams (often 100) would wait for others that take minutes.
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        // Nothing is asked for compressed: events are small and must not wait in a compressor.
        .gzip(false)
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("posse/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| root_cause(&error))
}

fn tls_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error>
{
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

/// TLS that trusts what the system trusts.
fn system_tls() -> Result<ClientConfig, rustls::Error> {
    Ok(tls_builder()?.with_platform_verifier()?.with_no_client_auth())
}

/// TLS that trusts nobody, for a client that never speaks it.
fn plain_tls() -> Result<ClientConfig, rustls::Error> {
    let nobody = rustls::RootCertStore::empty();
    Ok(tls_builder()?.with_root_certificates(nobody).with_no_client_auth())
}

/// What lies at the bottom of an error; the layers above it only repeat where it passed.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Turns an answer that is no event stream into the fault it tells of.
pub(crate) async fn expect_events(mut response: Response) -> Result<Response, Fault> {
    let status = response.status();
    if !status.is_success() {
        let retry_after = retry_after(response.headers());
        let body = error_body(&mut response).await;
        return Err(Fault::of_status(status.as_u16(), retry_after, &body));
    }
    let media_type = text_of(response.headers(), header::CONTENT_TYPE);
    let encoding = text_of(response.headers(), header::CONTENT_ENCODING);
    let unasked = encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
    let reason = match (media_type, unasked) {
        (_, Some(encoding)) => format!("it is compressed with {encoding}, which nobody asked for"),
        (Some(media_type), _) if !is_event_stream(media_type) => {
            let media_type = media_type.to_owned();
            let body = error_body(&mut response).await;
            let body = String::from_utf8_lossy(&body);
            format!("it is {media_type} instead of an event stream: {body}")
        }
        _ => return Ok(response),
    };
    Err(Fault { kind: Kind::Malformed, reason, hint: "; check the base URL" })
}

fn is_event_stream(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

fn text_of(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
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

/// The next bytes of the body; `None` at its end.
pub(crate) async fn chunk(response: &mut Response) -> Result<Option<Bytes>, Fault> {
    response.chunk().await.map_err(|error| Fault::new(Kind::Cut, root_cause(&error)))
}

/// Reads a body to its end, so that its connection can be used again. Gives up soon.
pub(crate) async fn drain(mut response: Response) {
    let reading = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
}

/// Notices that a stream makes no progress.
pub(crate) struct Watchdog {
    patience: Duration,
    progress_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Watchdog {
    /// Barks when nothing has moved for `patience`, counted from now.
    pub(crate) fn new(patience: Duration) -> Self {
        let timer = Box::pin(tokio::time::sleep(patience));
        Watchdog { patience, progress_at: Instant::now(), timer }
    }

    /// Notes that something has moved.
    pub(crate) fn moved(&mut self) {
        // The timer stays as it is and is set anew only when it fires: this is called often.
        self.progress_at = Instant::now();
    }

    /// Fails when nothing has moved for too long, even though bytes may have come.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match self.progress_at.elapsed() < self.patience {
            true => Ok(()),
            false => Err(Fault::new(Kind::Stalled(self.patience), "")),
        }
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
