//! A proxy between clients and a server on a Unix socket. It cuts, holds and delays connections,
//! and can lead to another server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The most bytes in one piece.
const PIECE: usize = 64 * 1024;

/// Listens on a loopback address until it is dropped. Each connection is passed on to the server.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    road: watch::Sender<Road>,
    _accepting: JoinSet<()>,
}

/// What happens to bytes between clients and the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    /// They pass.
    #[default]
    Free,
    /// Each piece, in both directions, passes after this time.
    Slow(Duration),
    /// They wait. Connections stay open, and nobody hears anything.
    Held,
    /// Those of clients pass. As soon as the server answers, the connection is cut: what the client
    /// asked for has happened, and it does not know.
    Unanswered,
    /// New connections are closed at once.
    Closed,
}

#[derive(Clone, Debug)]
struct Road {
    server: PathBuf,
    traffic: Traffic,
    /// The number of cuts so far. Connections of before the last one are closed.
    cuts: u64,
}

impl Proxy {
    /// Starts a proxy on a free port of 127.0.0.1, in front of the server on the socket `server`.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start(server: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let road = Road { server: server.to_owned(), traffic: Traffic::Free, cuts: 0 };
        let (road, seen) = watch::channel(road);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, seen));
        Ok(Proxy { address, road, _accepting: accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections.
    pub fn cut(&self) {
        self.road.send_modify(|road| road.cuts += 1);
    }

    /// Changes what happens to bytes, of existing connections too.
    pub fn set(&self, traffic: Traffic) {
        self.road.send_modify(|road| road.traffic = traffic);
    }

    /// Leads new connections to another server, and closes the existing ones.
    pub fn lead_to(&self, server: &Path) {
        self.road.send_modify(|road| {
            server.clone_into(&mut road.server);
            road.cuts += 1;
        });
    }
}

async fn accept(listener: TcpListener, road: watch::Receiver<Road>) {
    let mut connections = JoinSet::new();
    loop {
        // No file descriptor may be free for a moment.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        connections.spawn(pass(client, Arc::new(road.clone())));
    }
}

/// Passes a connection on until either side closes it, or it is cut.
async fn pass(client: TcpStream, road: Arc<watch::Receiver<Road>>) {
    let (server, cuts) = {
        let road = road.borrow();
        if road.traffic == Traffic::Closed {
            return;
        }
        (road.server.clone(), road.cuts)
    };
    // A client of a server that is not there loses its connection.
    let Ok(server) = UnixStream::connect(server).await else { return };
    let _ = client.set_nodelay(true);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut is_cut = (*road).clone();
    tokio::select! {
        _ = is_cut.wait_for(|road| road.cuts != cuts) => {}
        _ = copy(from_client, to_server, &road, Side::Client) => {}
        _ = copy(from_server, to_client, &road, Side::Server) => {}
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    road: &watch::Receiver<Road>,
    side: Side,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        let mut road = road.clone();
        let released = road.wait_for(|road| road.traffic != Traffic::Held).await;
        let traffic = released.map_or(Traffic::Free, |road| road.traffic);
        match traffic {
            Traffic::Slow(delay) => tokio::time::sleep(delay).await,
            Traffic::Unanswered if side == Side::Server => return Ok(()),
            _ => {}
        }
        to.write_all(&piece[..read]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tokio::net::UnixListener;

    /// A server that says everything twice, behind a proxy.
    async fn echo(folder: &Path, name: &str) -> PathBuf {
        let socket = folder.join(name);
        let listener = UnixListener::bind(&socket).unwrap();
        let name = name.to_owned();
        #[expect(clippy::disallowed_methods, reason = "a server of a test, which ends with it")]
        tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let name = name.clone();
                connections.spawn(async move {
                    let mut said = [0; 8];
                    while let Ok(read @ 1..) = stream.read(&mut said).await {
                        let answer = format!("{name}:{}", String::from_utf8_lossy(&said[..read]));
                        let _ = stream.write_all(answer.as_bytes()).await;
                    }
                });
            }
        });
        socket
    }

    async fn ask(stream: &mut TcpStream, text: &str) -> String {
        let mut answer = [0; 64];
        let _ = stream.write_all(text.as_bytes()).await;
        match stream.read(&mut answer).await {
            Ok(read) => String::from_utf8_lossy(&answer[..read]).into_owned(),
            Err(_) => String::new(),
        }
    }

    #[tokio::test]
    async fn connections_are_passed_on_cut_and_led_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (echo(folder.path(), "a").await, echo(folder.path(), "b").await);
        let proxy = Proxy::start(&a).await.unwrap();
        let connect = || TcpStream::connect(proxy.address());
        let mut first = connect().await.unwrap();
        assert_eq!(ask(&mut first, "x").await, "a:x");
        proxy.cut();
        assert_eq!(ask(&mut first, "x").await, "");
        let mut second = connect().await.unwrap();
        assert_eq!(ask(&mut second, "y").await, "a:y");
        proxy.lead_to(&b);
        assert_eq!(ask(&mut second, "y").await, "");
        let mut third = connect().await.unwrap();
        assert_eq!(ask(&mut third, "z").await, "b:z");
        proxy.set(Traffic::Closed);
        assert_eq!(ask(&mut connect().await.unwrap(), "z").await, "");
        assert_eq!(ask(&mut third, "z").await, "b:z", "existing connections stay");
    }

    #[tokio::test]
    async fn bytes_wait_are_late_or_are_never_answered() {
        let folder = tempfile::tempdir().unwrap();
        let proxy = Proxy::start(&echo(folder.path(), "a").await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        let delay = Duration::from_millis(30);
        proxy.set(Traffic::Slow(delay));
        let begun = Instant::now();
        assert_eq!(ask(&mut stream, "x").await, "a:x");
        assert!(begun.elapsed() >= delay * 2);
        proxy.set(Traffic::Held);
        {
            let mut asking = Box::pin(ask(&mut stream, "y"));
            assert!(tokio::time::timeout(delay, &mut asking).await.is_err());
            proxy.set(Traffic::Free);
            assert_eq!(asking.await, "a:y");
        }
        proxy.set(Traffic::Unanswered);
        assert_eq!(ask(&mut stream, "z").await, "");
    }
}
