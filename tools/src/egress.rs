//! Outgoing requests to addresses from settings or users, such as webhooks.
//!
//! A name is resolved and checked once, and the connection goes to exactly the address that was
//! checked. So a name whose address changes gains nothing. Redirects are not followed, and the proxy
//! settings of the environment are ignored. This module knows nothing about its callers.

mod address;
mod proxy;

pub use address::{Class, class_here, class_of};
pub use proxy::{Listening, Proxy};

use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use std::collections::HashMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// Which addresses a request may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressPolicy {
    /// Addresses of the public internet, with TLS.
    #[default]
    Public,
    /// Also private networks with TLS, and this machine even without TLS.
    Private,
}

/// Why a request was not sent, or got no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// The URL cannot be used.
    #[error("the address cannot be used: {0}")]
    Unusable(&'static str),
    /// The host has an address that is not allowed.
    #[error("{host} is not spoken to: {address} {reason}")]
    Refused {
        /// The host of the request.
        host: String,
        /// The refused address of that host.
        address: IpAddr,
        /// Why the address is refused.
        reason: &'static str,
    },
    /// No server can be reached there.
    #[error("{host}: {reason}")]
    Unreachable {
        /// The host and port.
        host: String,
        /// Why it cannot be reached.
        reason: String,
    },
}

/// The head of a reply. Its body is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// How long the server asks to wait, as it wrote it.
    pub retry_after: Option<String>,
}

type Found = Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;
/// Resolves a name to addresses.
type Lookup = Arc<dyn Fn(String) -> Found + Send + Sync>;

/// Sends requests. Cheap to clone; requests with the same reach share connections.
#[derive(Clone)]
pub struct Egress {
    lookup: Lookup,
    clients: Arc<Mutex<HashMap<(AddressPolicy, Scheme), Client>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scheme {
    Plain,
    Secure,
}

/// How long it may take to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl Default for Egress {
    /// Resolves names as the system does.
    fn default() -> Self {
        Egress::with_lookup(system_lookup())
    }
}

/// Resolves names as the system does.
fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

impl Egress {
    fn with_lookup(lookup: Lookup) -> Self {
        Egress { lookup, clients: Arc::default() }
    }

    /// Posts `body` to `url` and returns the status and headers of the reply, whatever its status is.
    ///
    /// # Errors
    /// If the address is not allowed, or no server replies within `timeout`.
    pub async fn post(
        &self,
        url: &Url,
        reach: AddressPolicy,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<Reply, EgressError> {
        let scheme = check(url, reach)?;
        let place = place_of(url);
        let unreachable = |reason: String| EgressError::Unreachable { host: place.clone(), reason };
        let client = self.client(reach, scheme).map_err(unreachable)?;
        let mut request = Request::new(Method::POST, url.clone());
        *request.headers_mut() = header_map(headers)?;
        *request.body_mut() = Some(body.into());
        *request.timeout_mut() = Some(timeout);
        let sent = client.execute(request).await.map_err(|error| {
            if let Some(refused) = refusal(&error) {
                return refused.clone();
            }
            unreachable(match error.is_timeout() {
                true => format!("no answer within {} s", timeout.as_secs_f64()),
                false => root_cause(&error),
            })
        })?;
        let retry_after = sent.headers().get("retry-after").and_then(|it| it.to_str().ok());
        Ok(Reply { status: sent.status().as_u16(), retry_after: retry_after.map(str::to_owned) })
    }

    fn client(&self, reach: AddressPolicy, scheme: Scheme) -> Result<Client, String> {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&(reach, scheme)) {
            return Ok(client.clone());
        }
        let guard = Guard { lookup: self.lookup.clone(), reach, scheme };
        let client = client(guard).map_err(|error| root_cause(&*error))?;
        clients.insert((reach, scheme), client.clone());
        Ok(client)
    }
}

/// Checks what can be checked about a URL before its name is resolved.
///
/// # Errors
/// If the URL is not allowed with this reach, whatever address its name has.
pub fn judge(url: &Url, reach: AddressPolicy) -> Result<(), EgressError> {
    check(url, reach).map(|_| ())
}

fn check(url: &Url, reach: AddressPolicy) -> Result<Scheme, EgressError> {
    let scheme = match (url.scheme(), reach) {
        ("https", _) => Scheme::Secure,
        ("http", AddressPolicy::Private) => Scheme::Plain,
        ("http", AddressPolicy::Public) => {
            return Err(EgressError::Unusable(
                "it is not https, without which only this machine may be spoken to",
            ));
        }
        _ => return Err(EgressError::Unusable("it is not https")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EgressError::Unusable("it holds a user name or a password"));
    }
    let host = url.host().ok_or(EgressError::Unusable("it names no host"))?;
    // A literal address is not resolved, so the resolver would not check it.
    match host {
        Host::Ipv4(address) => permit(&host.to_string(), address.into(), reach, scheme)?,
        Host::Ipv6(address) => permit(&host.to_string(), address.into(), reach, scheme)?,
        Host::Domain(_) => {}
    }
    Ok(scheme)
}

/// Returns an error if `address`, which belongs to `host`, is not allowed.
fn permit(
    host: &str,
    address: IpAddr,
    reach: AddressPolicy,
    scheme: Scheme,
) -> Result<(), EgressError> {
    let reason = match (class_here(address), reach, scheme) {
        (Class::Loopback, AddressPolicy::Private, _) => return Ok(()),
        (Class::Private, AddressPolicy::Private, Scheme::Secure) => return Ok(()),
        (Class::Public, _, Scheme::Secure) => return Ok(()),
        (Class::Never, _, _) => "is a reserved address, or one for the machines of a provider",
        (Class::Loopback, AddressPolicy::Public, _) => "is this machine",
        (Class::Private, AddressPolicy::Public, _) => "is in a private network",
        (Class::Private | Class::Public, _, Scheme::Plain) => "is not this machine: use https",
    };
    Err(EgressError::Refused { host: host.to_owned(), address, reason })
}

/// A resolver that returns only allowed addresses.
struct Guard {
    lookup: Lookup,
    reach: AddressPolicy,
    scheme: Scheme,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, scheme, host) = (self.reach, self.scheme, name.as_str().to_owned());
        let looking = (self.lookup)(host.clone());
        Box::pin(async move {
            let found = looking.await?;
            // One refused address condemns the whole name: an honest name has none.
            for address in &found {
                permit(&host, *address, reach, scheme)?;
            }
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

fn client(guard: Guard) -> Result<Client, Box<dyn Error + Send + Sync>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let tls = match guard.scheme {
        Scheme::Secure => tls.with_platform_verifier()?.with_no_client_auth(),
        // Never uses TLS, so it trusts no certificate and need not read those of the system.
        Scheme::Plain => {
            tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
        }
    };
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(guard))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .gzip(false)
        .referer(false)
        // Each server gets at most a few requests an hour, so connections need not stay open.
        .pool_idle_timeout(Duration::from_secs(30))
        .connect_timeout(CONNECT_TIMEOUT)
        .http1_only()
        .retry(reqwest::retry::never())
        .user_agent(concat!("posse/", env!("CARGO_PKG_VERSION")))
        .build()?;
    Ok(client)
}

fn header_map(headers: &[(&'static str, String)]) -> Result<HeaderMap, EgressError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let value = HeaderValue::from_str(value)
            .map_err(|_| EgressError::Unusable("a header cannot be written"))?;
        map.insert(HeaderName::from_static(name), value);
    }
    Ok(map)
}

/// The host and port of `url`. Its other parts may contain secrets and must not be shown.
fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

/// The error of the resolver, if that caused `error`.
fn refusal(error: &reqwest::Error) -> Option<&EgressError> {
    let mut cause: &dyn Error = error;
    loop {
        if let Some(refused) = cause.downcast_ref() {
            return Some(refused);
        }
        cause = cause.source()?;
    }
}

fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const SOON: Duration = Duration::from_secs(20);

    async fn post(egress: &Egress, url: &str, reach: AddressPolicy) -> Result<Reply, EgressError> {
        let url = Url::parse(url).unwrap();
        egress.post(&url, reach, &[("webhook-id", "x".to_owned())], b"{}".to_vec(), SOON).await
    }

    /// Resolves every name to the next of these lists of addresses, one list for each lookup.
    fn changing(answers: Vec<Vec<&str>>) -> (Egress, Arc<AtomicUsize>) {
        let answers: Vec<Vec<IpAddr>> = answers
            .into_iter()
            .map(|all| all.into_iter().map(|one| one.parse().unwrap()).collect())
            .collect();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let lookup: Lookup = Arc::new(move |_| {
            let at = count.fetch_add(1, Ordering::SeqCst);
            let found = answers[at.min(answers.len() - 1)].clone();
            Box::pin(async move { Ok(found) })
        });
        (Egress::with_lookup(lookup), asked)
    }

    /// Sends `answer` to each connection, and counts connections.
    async fn server(answer: &'static str) -> (u16, Arc<AtomicUsize>, tokio::task::JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut seen = vec![0; 4096];
                let _ = socket.read(&mut seen).await;
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        (port, count, serving)
    }

    #[tokio::test]
    async fn private_addresses_are_refused_however_they_are_written() {
        let egress = Egress::default();
        let hosts = [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:10.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[fe80::1]",
            "[fc00::1]",
            "[ff02::1]",
            "localhost",
        ];
        for host in hosts {
            let refused = post(&egress, &format!("https://{host}:9/"), AddressPolicy::Public).await;
            assert!(matches!(refused, Err(EgressError::Refused { .. })), "{host}: {refused:?}");
        }
    }

    #[tokio::test]
    async fn metadata_and_link_local_addresses_are_refused_even_where_private_ones_are_allowed() {
        let egress = Egress::default();
        for host in ["169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "[fe80::1]"] {
            let refused = post(&egress, &format!("https://{host}/"), AddressPolicy::Private).await;
            assert!(matches!(refused, Err(EgressError::Refused { .. })), "{host}: {refused:?}");
        }
    }

    #[tokio::test]
    async fn only_this_machine_is_spoken_to_in_the_clear_and_only_where_that_is_allowed() {
        let (port, count, _serving) = server("HTTP/1.1 204 No Content\r\n\r\n").await;
        let egress = Egress::default();
        for host in ["127.0.0.1", "localhost"] {
            let url = format!("http://{host}:{port}/");
            let refused = post(&egress, &url, AddressPolicy::Public).await;
            assert!(matches!(refused, Err(EgressError::Unusable(_))), "{refused:?}");
        }
        assert_eq!(count.load(Ordering::SeqCst), 0);
        let url = format!("http://127.0.0.1:{port}/");
        assert_eq!(post(&egress, &url, AddressPolicy::Private).await.unwrap().status, 204);
        for host in ["10.0.0.1", "1.1.1.1"] {
            let refused = post(&egress, &format!("http://{host}/"), AddressPolicy::Private).await;
            assert!(matches!(refused, Err(EgressError::Refused { .. })), "{refused:?}");
        }
        for url in ["ftp://example.com/", "https://user:pw@example.com/"] {
            let refused = post(&egress, url, AddressPolicy::Private).await;
            assert!(matches!(refused, Err(EgressError::Unusable(_))), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn a49_a_name_that_points_inside_is_refused_and_so_is_one_of_which_a_part_does() {
        for addresses in [vec!["10.0.0.1"], vec!["1.1.1.1", "127.0.0.1"], vec!["::ffff:10.0.0.1"]] {
            let (egress, asked) = changing(vec![addresses.clone()]);
            let refused = post(&egress, "https://example.com/", AddressPolicy::Public).await;
            let Err(EgressError::Refused { host, .. }) = &refused else {
                panic!("{addresses:?}: {refused:?}");
            };
            assert_eq!(host, "example.com");
            assert_eq!(asked.load(Ordering::SeqCst), 1);
        }
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once_and_the_address_that_was_judged_is_the_one_connected_to() {
        let (port, count, _serving) = server("HTTP/1.1 204 No Content\r\n\r\n").await;
        // Code that resolves twice would check the first answer and connect to the second.
        let (egress, asked) = changing(vec![vec!["127.0.0.1"], vec!["127.0.0.2"]]);
        let url = format!("http://hook.test:{port}/");
        assert_eq!(post(&egress, &url, AddressPolicy::Private).await.unwrap().status, 204);
        assert_eq!((asked.load(Ordering::SeqCst), count.load(Ordering::SeqCst)), (1, 1));
        let (egress, _) = changing(vec![vec!["1.1.1.1"], vec!["127.0.0.1"]]);
        let url = format!("http://hook.test:{port}/");
        let refused = post(&egress, &url, AddressPolicy::Private).await;
        assert!(matches!(refused, Err(EgressError::Refused { .. })), "{refused:?}");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_and_not_followed() {
        let (inner, untouched, _inside) = server("HTTP/1.1 204 No Content\r\n\r\n").await;
        let moved = format!("HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{inner}/\r\n\r\n");
        let (port, _, _serving) = server(moved.leak()).await;
        let url = format!("http://127.0.0.1:{port}/");
        assert_eq!(
            post(&Egress::default(), &url, AddressPolicy::Private).await.unwrap().status,
            307
        );
        assert_eq!(untouched.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn what_cannot_be_reached_is_told_without_the_path() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let url = format!("http://127.0.0.1:{port}/token-in-the-path?and=query");
        let error =
            post(&Egress::default(), &url, AddressPolicy::Private).await.unwrap_err().to_string();
        assert!(error.contains(&format!("127.0.0.1:{port}: ")), "{error}");
        assert!(!error.contains("token") && !error.contains("query"), "{error}");
    }
}
