//! An HTTP proxy for confined commands that may talk to some hosts.
//!
//! The proxy resolves a name once, and connects to an address that it has checked. It rejects requests
//! to hosts that were not granted, and nothing of them leaves the machine. Commands find the proxy
//! through the usual environment variables.

use super::{Class, Lookup, class_here, system_lookup};
use posse_protocol::{Network, host_name};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The maximum number of bytes of a request's head.
const HEAD: usize = 32 << 10;
/// How long a client may take to send it, and a server to accept the connection.
const PATIENCE: Duration = Duration::from_secs(15);
/// The maximum number of connections at the same time.
const CONNECTIONS: usize = 64;

/// Forwards requests to the hosts that a run may talk to.
#[derive(Clone)]
pub struct Proxy {
    network: Arc<Network>,
    lookup: Lookup,
}

/// A running proxy. Dropping it stops the proxy and closes all connections.
pub struct Listening {
    _tasks: JoinSet<()>,
}

/// Why a request is not forwarded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("400 the request cannot be understood: {0}")]
    Unclear(&'static str),
    #[error("403 {host} is not among the hosts that this run may talk to")]
    NotGranted { host: String },
    #[error("403 {host} is not spoken to: {address} is not an address of the public internet")]
    Inward { host: String, address: IpAddr },
    #[error("502 {host} cannot be reached: {reason}")]
    Unreachable { host: String, reason: String },
}

/// The target of a request.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    host: String,
    port: u16,
    /// The head to send to the server; `None` for a tunnel.
    head: Option<Vec<u8>>,
}

impl Proxy {
    /// Creates a proxy that allows what `network` allows.
    pub fn new(network: Network) -> Proxy {
        Proxy { network: Arc::new(network), lookup: system_lookup() }
    }

    /// Accepts connections at the socket `path`, which must not exist.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn listen(self, path: &Path) -> io::Result<Listening> {
        let listener = UnixListener::bind(path)?;
        let mut tasks = JoinSet::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        tasks.spawn(async move {
            let mut clients = JoinSet::new();
            loop {
                let Ok(place) = places.clone().acquire_owned().await else { return };
                let Ok((client, _)) = listener.accept().await else { return };
                let proxy = self.clone();
                clients.spawn(async move {
                    proxy.serve(client).await;
                    drop(place);
                });
                while clients.try_join_next().is_some() {}
            }
        });
        Ok(Listening { _tasks: tasks })
    }

    /// Serves one connection to its end.
    async fn serve(&self, mut client: impl AsyncRead + AsyncWrite + Unpin) {
        let served = async {
            let (head, rest) = timeout(PATIENCE, read_head(&mut client))
                .await
                .map_err(|_| Refusal::Unclear("it is not whole after 15 s"))??;
            let wanted = understand(&head)?;
            let mut server = self.connect(&wanted.host, wanted.port).await?;
            let broken = |error: io::Error| Refusal::Unreachable {
                host: wanted.host.clone(),
                reason: error.to_string(),
            };
            match &wanted.head {
                None => client
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await
                    .map_err(broken)?,
                Some(head) => server.write_all(head).await.map_err(broken)?,
            }
            server.write_all(&rest).await.map_err(broken)?;
            // Either side may end it, in any way.
            let _ = copy_bidirectional(&mut client, &mut server).await;
            Ok(())
        };
        let refused: Result<(), Refusal> = served.await;
        if let Err(refusal) = refused {
            let text = refusal.to_string();
            let (status, reason) = text.split_at(3);
            let answer = format!(
                "HTTP/1.1 {status} Refused\r\ncontent-type: text/plain\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\nposse:{reason}\n",
                reason.len() + 7
            );
            let _ = timeout(PATIENCE, client.write_all(answer.as_bytes())).await;
            let _ = client.shutdown().await;
        }
    }

    /// Connects to `host` if it is granted and its address is allowed.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Refusal> {
        if !self.network.allows(host) {
            return Err(Refusal::NotGranted { host: host.to_owned() });
        }
        let unreachable = |reason: String| Refusal::Unreachable { host: host.to_owned(), reason };
        let literal: Option<IpAddr> = host.parse().ok();
        let addresses = match literal {
            Some(address) => vec![address],
            None => timeout(PATIENCE, (self.lookup)(host.to_owned()))
                .await
                .map_err(|_| unreachable("its name is not found in time".to_owned()))?
                .map_err(|error| unreachable(error.to_string()))?,
        };
        // A grant that names `localhost` or a literal address explicitly includes inward addresses. A
        // granted name that resolves to an inward address was not meant so.
        let named =
            matches!(&*self.network, Network::Hosts(hosts) if hosts.iter().any(|it| it == host));
        let inward_is_meant = named && (literal.is_some() || host == "localhost");
        for address in &addresses {
            let fits = match class_here(*address) {
                Class::Public => true,
                Class::Loopback | Class::Private => inward_is_meant,
                Class::Never => false,
            };
            if !fits {
                return Err(Refusal::Inward { host: host.to_owned(), address: *address });
            }
        }
        let mut reason = "its name has no address".to_owned();
        for address in addresses {
            match timeout(PATIENCE, TcpStream::connect(SocketAddr::new(address, port))).await {
                Ok(Ok(server)) => return Ok(server),
                Ok(Err(error)) => reason = error.to_string(),
                Err(_) => reason = "no answer within 15 s".to_owned(),
            }
        }
        Err(unreachable(reason))
    }
}

/// The head of a request with its empty line, and the bytes after it.
async fn read_head(client: &mut (impl AsyncRead + Unpin)) -> Result<(Vec<u8>, Vec<u8>), Refusal> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = client.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            return Err(Refusal::Unclear("it has no end"));
        }
        bytes.extend_from_slice(&buffer[..count]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        if bytes.len() > HEAD {
            return Err(Refusal::Unclear("its head is too long"));
        }
    }
}

/// Parses the head of a request.
fn understand(head: &[u8]) -> Result<Wanted, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; 96];
    let mut request = httparse::Request::new(&mut headers);
    let unclear = Refusal::Unclear("it is not HTTP");
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        _ => return Err(unclear),
    }
    let (Some(method), Some(target)) = (request.method, request.path) else { return Err(unclear) };
    if method.eq_ignore_ascii_case("CONNECT") {
        let (host, port) = authority(target, None)?;
        return Ok(Wanted { host, port, head: None });
    }
    let rest = target
        .strip_prefix("http://")
        .ok_or(Refusal::Unclear("the proxy takes CONNECT, and http:// addresses"))?;
    let slash = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, port) = authority(&rest[..slash], Some(80))?;
    let path = match &rest[slash..] {
        "" => "/".to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_owned(),
    };
    let mut sent = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", &rest[..slash]).into_bytes();
    for header in request.headers.iter() {
        let name = header.name.to_ascii_lowercase();
        // Use the host that was checked, and allow one request per connection.
        if name == "host" || name == "connection" || name.starts_with("proxy-") {
            continue;
        }
        sent.extend_from_slice(name.as_bytes());
        sent.extend_from_slice(b": ");
        sent.extend_from_slice(header.value);
        sent.extend_from_slice(b"\r\n");
    }
    sent.extend_from_slice(b"connection: close\r\n\r\n");
    Ok(Wanted { host, port, head: Some(sent) })
}

/// The host, normalized for comparison, and the port of `text`.
fn authority(text: &str, usual: Option<u16>) -> Result<(String, u16), Refusal> {
    const NO_HOST: Refusal = Refusal::Unclear("it names no host");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(NO_HOST)?;
            (host, after.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port > 0),
        None => usual,
    };
    let port = port.ok_or(Refusal::Unclear("it names no port"))?;
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok((address.to_string(), port));
    }
    let host = host_name(host).ok_or(NO_HOST)?;
    // Some resolvers take a number for an address: 0x7f.1, 2130706433.
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.chars().all(|c| c.is_ascii_digit()) || last.starts_with("0x");
    if numeric { Err(NO_HOST) } else { Ok((host, port)) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn hosts(names: &[&str]) -> Network {
        Network::Hosts(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// A proxy that resolves every name to `addresses`.
    fn proxy(network: Network, addresses: &[&str]) -> Proxy {
        let found: Vec<IpAddr> = addresses.iter().map(|it| it.parse().unwrap()).collect();
        let lookup: Lookup = Arc::new(move |_| {
            let found = found.clone();
            Box::pin(async move { Ok(found) })
        });
        Proxy { network: Arc::new(network), lookup }
    }

    async fn answer(proxy: &Proxy, request: &str) -> String {
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let serving = proxy.serve(theirs);
        let asking = async {
            ours.write_all(request.as_bytes()).await.unwrap();
            ours.shutdown().await.unwrap();
            let mut answer = String::new();
            ours.read_to_string(&mut answer).await.unwrap();
            answer
        };
        tokio::join!(serving, asking).1
    }

    /// Answers one connection and returns what it received. A refused request never arrives here.
    async fn echo() -> (u16, JoinSet<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut seen = vec![0; 4096];
            let count = socket.read(&mut seen).await.unwrap();
            seen.truncate(count);
            socket.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").await.unwrap();
            seen
        });
        (port, serving)
    }

    #[tokio::test]
    async fn what_is_granted_is_reached_and_told_only_what_it_should_be() {
        let (port, mut serving) = echo().await;
        let proxy = Proxy::new(hosts(&["127.0.0.1"]));
        let request = format!(
            "GET http://127.0.0.1:{port}/a?b HTTP/1.1\r\nHost: evil.example\r\n\
             Proxy-Authorization: secret\r\nX-Kept: yes\r\n\r\n"
        );
        assert!(answer(&proxy, &request).await.ends_with("hello"));
        let seen = String::from_utf8(serving.join_next().await.unwrap().unwrap()).unwrap();
        assert_eq!(
            seen,
            format!(
                "GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-kept: yes\r\n\
                 connection: close\r\n\r\n"
            )
        );
    }

    #[tokio::test]
    async fn a_tunnel_carries_what_is_sent_through_it() {
        let (port, mut serving) = echo().await;
        let proxy = Proxy::new(hosts(&["localhost"]));
        let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nfirst bytes");
        let answer = answer(&proxy, &request).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("hello"), "{answer}");
        assert_eq!(serving.join_next().await.unwrap().unwrap(), b"first bytes");
    }

    #[tokio::test]
    async fn a46_a51_hosts_are_compared_whole_and_only_sound_names_count() {
        let proxy = proxy(hosts(&["allowed.org", "*.below.org"]), &["203.0.113.1"]);
        for host in [
            "evil.org",
            "allowed.org.evil.net",
            "evilallowed.org",
            "below.org",
            "user@evil.org",
            "allowed.org@evil.org",
            "evil.org%00.allowed.org",
            "evil.org\0.allowed.org",
            "allowed.org#.evil.org",
            "2130706433",
            "0x7f.1",
            "127.1",
            "[::ffff:127.0.0.1]",
        ] {
            let answer = answer(&proxy, &format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n")).await;
            let status = answer.get(9..12).unwrap_or_default();
            assert!(["400", "403"].contains(&status), "{host:?}: {answer}");
        }
    }

    #[tokio::test]
    async fn a47_a48_a_granted_name_that_leads_inwards_leads_nowhere() {
        for inward in [
            "127.0.0.1",
            "10.0.0.7",
            "169.254.169.254",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
        ] {
            let proxy = proxy(hosts(&["allowed.org"]), &["203.0.113.1", inward]);
            let answer = answer(&proxy, "CONNECT allowed.org:443 HTTP/1.1\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{inward}: {answer}");
        }
    }

    #[tokio::test]
    async fn all_public_hosts_are_just_those() {
        let any = || Network::of("*").unwrap();
        assert!(any().allows("anything.org"));
        for inward in ["10.0.0.1", "127.0.0.1", "169.254.1.1"] {
            let proxy = proxy(any(), &[inward]);
            let answer = answer(&proxy, "CONNECT anything.org:443 HTTP/1.1\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{inward}: {answer}");
        }
        let proxy = Proxy::new(any());
        for host in ["127.0.0.1", "169.254.169.254", "localhost"] {
            let request = format!("CONNECT {host}:80 HTTP/1.1\r\n\r\n");
            assert!(answer(&proxy, &request).await.starts_with("HTTP/1.1 403 "), "{host}");
        }
        let some = Network::of("example.org").unwrap();
        assert_eq!(any().meet(&some), some);
        assert_eq!(any().meet(&hosts(&["localhost", "10.0.0.1"])), Network::Off);
    }

    #[tokio::test]
    async fn a52_an_empty_list_allows_nothing() {
        for network in [hosts(&[]), Network::Off] {
            let proxy = proxy(network, &["203.0.113.1"]);
            let answer = answer(&proxy, "CONNECT allowed.org:443 HTTP/1.1\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        }
    }

    #[tokio::test]
    async fn a55_a_request_without_end_is_cut_off() {
        let proxy = proxy(Network::Open, &["203.0.113.1"]);
        let long = format!("GET http://a.org/ HTTP/1.1\r\nx: {}", "y".repeat(HEAD));
        assert!(answer(&proxy, &long).await.starts_with("HTTP/1.1 400 "));
        assert!(answer(&proxy, "").await.starts_with("HTTP/1.1 400 "));
        assert!(answer(&proxy, "SSH-2.0-x\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    }
}
