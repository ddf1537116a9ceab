//! Connections: which client a call uses, and which TLS certificates are trusted.
//!
//! A client has one HTTP/2 connection to each host that offers it. Calls beyond a server's limit of
//! streams would wait in that connection for calls that take minutes. So each client gets only a
//! few calls at once, and further ones use the next client. Plain `http` uses HTTP/1.1.

use crate::fault::{Fault, Kind};
use parking_lot::Mutex;
use reqwest::{Client, ClientBuilder};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use url::Url;

/// How long a connection may take to come about.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Calls that one HTTP/2 connection carries at once. Most servers allow 100 or more. reqwest does
/// not say what a server allows, so this is well below all limits in use.
const CALLS_AT_ONCE: usize = 8;

/// A model may think for minutes without output. Then the client pings the connection, and closes
/// it if there is no answer.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Makes the TLS settings: which certificates to trust.
type Trust = Box<dyn Fn() -> Result<ClientConfig, rustls::Error> + Send + Sync>;

/// All clients of the process. They are made when a call first needs them.
pub(super) struct Pool {
    plain: OnceLock<Result<Client, String>>,
    secure: Mutex<Vec<Line>>,
    trust: Trust,
    /// The result of `trust`, made at its first use.
    tls: OnceLock<Result<ClientConfig, String>>,
}

/// A client for TLS, and how many calls it carries.
struct Line {
    client: Client,
    calls: Arc<AtomicUsize>,
}

/// A call's place in a connection, given back when it is dropped.
pub(super) struct ConnectionSlot(Option<Arc<AtomicUsize>>);

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if let Some(calls) = &self.0 {
            calls.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Default for Pool {
    /// Trusts the certificates of the system.
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

    /// Prepares what takes long for the first call of `url`: the client, or the certificates.
    pub(super) fn get_ready(&self, url: &Url) {
        match url.scheme() {
            "http" => {
                self.plain.get_or_init(plain);
            }
            _ => {
                self.tls.get_or_init(|| self.make_tls());
            }
        }
    }

    fn make_tls(&self) -> Result<ClientConfig, String> {
        (self.trust)().map_err(|error| error.to_string())
    }

    /// The client for a call of `url`, and the call's seat in it.
    pub(super) fn client_for(&self, url: &Url) -> Result<(Client, ConnectionSlot), Fault> {
        let found = match url.scheme() {
            "http" => {
                self.plain.get_or_init(plain).clone().map(|client| (client, ConnectionSlot(None)))
            }
            _ => self.secure_line(),
        };
        found.map_err(|reason| {
            Fault::new(Kind::Unreachable, format!("the HTTP client cannot be made: {reason}"))
        })
    }

    /// The first client with a free seat, so that calls one after the other share a connection.
    fn secure_line(&self) -> Result<(Client, ConnectionSlot), String> {
        let mut lines = self.secure.lock();
        let free = lines.iter().position(|line| line.calls.load(Ordering::Relaxed) < CALLS_AT_ONCE);
        let index = match free {
            Some(index) => index,
            None => {
                let tls = self.tls.get_or_init(|| self.make_tls());
                let client = secure(tls.clone()?)?;
                lines.push(Line { client, calls: Arc::default() });
                lines.len() - 1
            }
        };
        let line = &lines[index];
        // Only the holder of the lock increases it.
        line.calls.fetch_add(1, Ordering::Relaxed);
        Ok((line.client.clone(), ConnectionSlot(Some(line.calls.clone()))))
    }
}

/// The client without TLS.
fn plain() -> Result<Client, String> {
    let nobody = rustls::RootCertStore::empty();
    let tls = tls_builder().map_err(|error| error.to_string())?;
    let tls = tls.with_root_certificates(nobody).with_no_client_auth();
    let client = usual(tls).http1_only().retry(reqwest::retry::never());
    client.build().map_err(|error| super::root_cause(&error))
}

/// A client that speaks HTTP/2 where it is offered. It repeats only requests that a server refused
/// unread because it closes an old connection.
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
        // Without compression: events are small and must not wait in a compressor.
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
mod tests {
    use super::super::Http;
    use super::*;
    use bytes::Bytes;
    use reqwest::header::HeaderMap;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use std::sync::atomic::AtomicUsize;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Barrier;
    use tokio::task::JoinSet;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::server::TlsStream;

    const ROOT: &[u8] = include_bytes!("../../tests/tls/root.pem");
    const CHAIN: &[u8] = include_bytes!("../../tests/tls/server.pem");
    const KEY: &[u8] = include_bytes!("../../tests/tls/server.key");

    /// The most streams that the server lets a connection have.
    const STREAMS: u32 = 10;

    /// A way out that trusts the server of these tests.
    fn http() -> Http {
        let trust: Trust = Box::new(|| {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(ROOT).unwrap())?;
            Ok(tls_builder()?.with_root_certificates(roots).with_no_client_auth())
        });
        Http { pool: Arc::new(Pool::trusting(trust)), cassette: None }
    }

    struct Server {
        url: Url,
        connections: Arc<AtomicUsize>,
        _accepting: JoinSet<()>,
    }

    impl Server {
        /// Speaks TLS with these protocols; each connection is served by `serve`.
        async fn start<F: Future<Output = ()> + Send + 'static>(
            protocols: &[&[u8]],
            serve: impl Fn(TlsStream<TcpStream>) -> F + Send + 'static,
        ) -> Self {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let mut config = rustls::ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(
                    vec![CertificateDer::from_pem_slice(CHAIN).unwrap()],
                    PrivateKeyDer::from_pem_slice(KEY).unwrap(),
                )
                .unwrap();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("https://{}/v1", listener.local_addr().unwrap()).parse().unwrap();
            let connections = Arc::new(AtomicUsize::new(0));
            let counter = connections.clone();
            let mut accepting = JoinSet::new();
            accepting.spawn(async move {
                let mut open = JoinSet::new();
                while let Ok((socket, _)) = listener.accept().await {
                    let Ok(stream) = acceptor.accept(socket).await else { continue };
                    counter.fetch_add(1, Ordering::SeqCst);
                    open.spawn(serve(stream));
                }
            });
            Server { url, connections, _accepting: accepting }
        }

        /// One that speaks HTTP/2 and answers when `all` requests are there.
        async fn of_streams(all: usize) -> Self {
            let barrier = Arc::new(Barrier::new(all));
            Server::start(&[b"h2", b"http/1.1"], move |stream| {
                let barrier = barrier.clone();
                async move {
                    let mut builder = h2::server::Builder::new();
                    let builder = builder.max_concurrent_streams(STREAMS);
                    // A client that needs one connection may have begun several.
                    let handshake = builder.handshake::<_, Bytes>(stream).await;
                    let Ok(mut connection) = handshake else { return };
                    let mut answering = JoinSet::new();
                    while let Some(Ok((_, mut answer))) = connection.accept().await {
                        let barrier = barrier.clone();
                        answering.spawn(async move {
                            barrier.wait().await;
                            let head = http::Response::new(());
                            let mut body = answer.send_response(head, false).unwrap();
                            body.send_data(Bytes::from_static(b"hello"), true).unwrap();
                        });
                    }
                }
            })
            .await
        }
    }

    async fn ask(http: &Http, url: &Url) -> (reqwest::Version, Vec<u8>) {
        let posted = http.post("none", url, &HeaderMap::new(), Bytes::from_static(b"{}")).await;
        let mut response = posted.unwrap_or_else(|fault| panic!("{fault:?}"));
        let (version, mut body) = (response.version(), Vec::new());
        while let Some(chunk) = response.chunk().await.unwrap() {
            body.extend_from_slice(&chunk);
        }
        (version, body)
    }

    #[tokio::test]
    async fn no_call_waits_for_another_whatever_the_server_s_limit_of_streams() {
        const CALLS: usize = 120;
        let server = Server::of_streams(CALLS).await;
        let http = http();
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let (http, url) = (http.clone(), server.url.clone());
            calls.spawn(async move { ask(&http, &url).await });
        }
        let patience = Duration::from_secs(60);
        let answers = tokio::time::timeout(patience, calls.join_all()).await;
        let answers = answers.expect("all calls are there at once");
        let expected = (reqwest::Version::HTTP_2, b"hello".to_vec());
        assert!(answers.iter().all(|answer| *answer == expected), "{answers:?}");
        let lines = http.pool.secure.lock().len();
        assert_eq!(lines, CALLS / CALLS_AT_ONCE, "connections grow with the calls");
    }

    #[tokio::test]
    async fn calls_one_after_the_other_share_one_connection_of_http_2() {
        let server = Server::of_streams(1).await;
        let http = http();
        for _ in 0..50 {
            assert_eq!(ask(&http, &server.url).await.0, reqwest::Version::HTTP_2);
        }
        assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_server_that_only_speaks_http_1_1_is_spoken_to_in_that() {
        let server = Server::start(&[b"http/1.1"], |mut stream| async move {
            let mut seen = Vec::new();
            while stream.read_buf(&mut seen).await.is_ok_and(|count| count > 0) {
                if seen.ends_with(b"\r\n\r\n{}") {
                    seen.clear();
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
                    stream.write_all(answer).await.unwrap();
                }
            }
        })
        .await;
        let http = http();
        for _ in 0..3 {
            let expected = (reqwest::Version::HTTP_11, b"hello".to_vec());
            assert_eq!(ask(&http, &server.url).await, expected);
        }
        assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_server_that_nobody_vouches_for_is_not_spoken_to() {
        let server = Server::of_streams(1).await;
        let (http, headers) = (Http::default(), HeaderMap::new());
        let fault = http.post("none", &server.url, &headers, Bytes::new()).await.err().unwrap();
        assert_eq!(fault.kind, Kind::Unreachable);
        assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    }
}
