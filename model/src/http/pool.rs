//! Connections: which client a call goes through, and who may be spoken to over TLS.
//!
//! A client is one HTTP/2 connection to each host that offers it. Calls beyond a server's limit of
//! streams would wait inside that connection for others that take minutes, so a client takes only
//! a few calls at once and further ones go through the next. Plain `http` stays with HTTP/1.1.

use crate::fault::{Fault, Kind};
use reqwest::{Client, ClientBuilder};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use url::Url;

/// How long a connection may take to come about.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Calls that one HTTP/2 connection carries at once. Servers allow 100 and more as a rule; what
/// reqwest does not tell is what this one allows, so this is well below any limit in use.
const CALLS_AT_ONCE: usize = 8;

/// A model may think for minutes without a word. If so the connection is asked whether it still
/// lives, and given up when it does not answer.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Makes the rules of TLS: whom to trust.
type Trust = Box<dyn Fn() -> Result<ClientConfig, rustls::Error> + Send + Sync>;

/// All clients of the process. They are made when a call first needs them.
pub(super) struct Pool {
    plain: OnceLock<Result<Client, String>>,
    secure: Mutex<Vec<Line>>,
    trust: Trust,
    /// What `trust` made, once it was needed.
    tls: OnceLock<Result<ClientConfig, String>>,
}

/// A client for TLS, and how many calls it carries.
struct Line {
    client: Client,
    calls: Arc<AtomicUsize>,
}

/// A call's place in a connection, given back when it is dropped.
pub(super) struct Seat(Option<Arc<AtomicUsize>>);

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(calls) = &self.0 {
            calls.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Default for Pool {
    /// Trusts what the system trusts.
    fn default() -> Self {
        Pool::trusting(Box::new(|| {
            Ok(tls_builder()?.with_platform_verifier()?.with_no_client_auth())
        }))
    }
}

impl Pool {
    fn trusting(trust: Trust) -> Self {
        let (plain, secure, tls) = (OnceLock::new(), Mutex::default(), OnceLock::new());
        Pool { plain, secure, trust, tls }
    }

    /// The client for a call of `url`, and the call's seat in it.
    pub(super) fn client_for(&self, url: &Url) -> Result<(Client, Seat), Fault> {
        let found = match url.scheme() {
            "http" => self.plain.get_or_init(plain).clone().map(|client| (client, Seat(None))),
            _ => self.secure_line(),
        };
        found.map_err(|reason| {
            Fault::new(Kind::Unreachable, format!("the HTTP client cannot be made: {reason}"))
        })
    }

    /// The first client with a free seat, so that calls one after the other share a connection.
    fn secure_line(&self) -> Result<(Client, Seat), String> {
        let mut lines = self.secure.lock().unwrap_or_else(PoisonError::into_inner);
        let free = lines.iter().position(|line| line.calls.load(Ordering::Relaxed) < CALLS_AT_ONCE);
        let index = match free {
            Some(index) => index,
            None => {
                let tls = self.tls.get_or_init(|| (self.trust)().map_err(|e| e.to_string()));
                let client = secure(tls.clone()?)?;
                lines.push(Line { client, calls: Arc::default() });
                lines.len() - 1
            }
        };
        let line = &lines[index];
        // Only whoever holds the lock counts up.
        line.calls.fetch_add(1, Ordering::Relaxed);
        Ok((line.client.clone(), Seat(Some(line.calls.clone()))))
    }
}

/// The client that never speaks TLS, and so trusts nobody.
fn plain() -> Result<Client, String> {
    let nobody = rustls::RootCertStore::empty();
    let tls = tls_builder().map_err(|error| error.to_string())?;
    let tls = tls.with_root_certificates(nobody).with_no_client_auth();
    let client = usual(tls).http1_only().retry(reqwest::retry::never());
    client.build().map_err(|error| super::root_cause(&error))
}

/// A client that speaks HTTP/2 where it is offered. What a server refuses unread, because it closes
/// an old connection, it sends again by itself; nothing else.
fn secure(mut tls: ClientConfig) -> Result<Client, String> {
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = usual(tls)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(false);
    client.build().map_err(|error| super::root_cause(&error))
}

fn usual(tls: ClientConfig) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        // Nothing is asked for compressed: events are small and must not wait in a compressor.
        .gzip(false)
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("posse/", env!("CARGO_PKG_VERSION")))
}

fn tls_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error>
{
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

#[cfg(test)]
mod tests;
