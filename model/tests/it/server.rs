//! A tiny HTTP/1.1 server on a real socket that answers as it is told.

use posse_agent::Model;
use posse_model::{Catalog, Keys, Models, Options};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The key that tests send.
pub const KEY: &str = "sk-ant-secret-0123456789";

/// What the server does after it has read a request.
#[derive(Clone)]
pub enum Step {
    /// Writes these bytes.
    Send(Vec<u8>),
    /// Writes these bytes again and again, until the client goes away.
    Repeat(Vec<u8>, Duration),
    /// Writes nothing more until the client goes away.
    Hold,
    /// Closes the connection.
    Close,
}

/// A running server; gone when dropped.
pub struct Server {
    pub url: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Notified when a client has gone away during `Hold` or `Repeat`.
    pub gone: Arc<Notify>,
    _accepting: JoinSet<()>,
}

impl Server {
    /// A server that answers every request with `steps`.
    pub async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let gone = Arc::new(Notify::new());
        let mut accepting = JoinSet::new();
        let (counter, seen, left) = (connections.clone(), requests.clone(), gone.clone());
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                open.spawn(serve(socket, steps.clone(), seen.clone(), left.clone()));
            }
        });
        Server { url, connections, requests, gone, _accepting: accepting }
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The requests so far, head and body, as text.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|bytes| String::from_utf8(bytes.clone()).unwrap()).collect()
    }

    /// A model that is served here and may stall for `stall`.
    pub fn model(&self, stall: Duration) -> Arc<dyn Model> {
        model_at(&self.url, stall)
    }
}

/// A model that is served at `url`.
pub fn model_at(url: &str, stall: Duration) -> Arc<dyn Model> {
    let keys = Keys::default().with("ANTHROPIC_API_KEY", KEY).with("ANTHROPIC_BASE_URL", url);
    let models = Models::new(Catalog::built_in(), keys, Options { stall, ..Options::default() });
    models.resolve("claude-sonnet-4-5").unwrap()
}

async fn serve(
    mut socket: TcpStream,
    steps: Vec<Step>,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    gone: Arc<Notify>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await {
        requests.lock().unwrap().push(request);
        for step in &steps {
            match step {
                Step::Send(bytes) => socket.write_all(bytes).await.unwrap(),
                Step::Repeat(bytes, pause) => {
                    while socket.write_all(bytes).await.is_ok() {
                        tokio::time::sleep(*pause).await;
                    }
                    gone.notify_one();
                    return;
                }
                Step::Hold => {
                    let _ = socket.read(&mut [0; 1]).await;
                    gone.notify_one();
                    return;
                }
                Step::Close => return,
            }
        }
    }
}

/// Reads one request, head and body; `None` when the client is done.
async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            // What only asks has no body.
            let length = head.split_once("content-length: ").map_or("0", |(_, length)| length);
            let length: usize = length.lines().next()?.trim().parse().ok()?;
            let total = end + 4 + length;
            if buffer.len() >= total {
                return Some(buffer.drain(..total).collect());
            }
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

/// An answer with a body of known length.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

/// The head of an answer whose body comes in chunks.
pub const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_7\r\ntransfer-encoding: chunked\r\n\r\n";

/// A piece of a body that comes in chunks.
pub fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

/// A whole answer that streams `body`.
pub fn streamed(body: &str) -> Vec<u8> {
    format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(body)).into_bytes()
}

/// The beginning of an answer that streams, `body` so far.
pub fn begun(body: &str) -> Vec<u8> {
    format!("{STREAM_HEAD}{}", chunk(body)).into_bytes()
}
