//! A receiver of webhooks over real HTTP, with scripted answers. It keeps all requests.

use crate::gate::Gate;
use crate::http::{Reader, encode};
use crate::signal::{TimedOut, wait_for};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Listens on a loopback address until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

/// How a receiver answers a request.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    gate: Option<Gate>,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// The path, with its query.
    pub path: String,
    /// Names in lower case, and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub raw: Vec<u8>,
}

#[derive(Debug)]
struct Shared {
    answers: Vec<Answer>,
    received: Mutex<Vec<Received>>,
    arrived: Notify,
}

impl Answer {
    /// Answers with this status and nothing else.
    pub fn status(status: u16) -> Self {
        Answer { status, headers: Vec::new(), gate: None }
    }

    /// The same with a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same, once the gate is open.
    #[must_use]
    pub fn held_by(self, gate: &Gate) -> Self {
        Answer { gate: Some(gate.clone()), ..self }
    }
}

impl Received {
    /// The first value of the header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Receiver {
    /// Starts one that gives these answers in order, the last of them again and again; without
    /// any, 204.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let answers = answers.into_iter().collect();
        let shared = Shared { answers, received: Mutex::default(), arrived: Notify::new() };
        let shared = Arc::new(shared);
        let serving = shared.clone();
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serving.clone().serve(stream));
            }
        });
        Ok(Receiver { address, shared, _accepting: accepting })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, in the order they arrived.
    pub fn received(&self) -> Vec<Received> {
        self.shared.lock().clone()
    }

    /// Returns when at least `count` requests have arrived.
    ///
    /// # Errors
    /// When they do not come in time.
    pub async fn wait_for_requests(&self, count: usize) -> Result<(), TimedOut> {
        let arrived = || self.shared.lock().len();
        wait_for("webhooks", count, &self.shared.arrived, arrived, |seen| seen >= count).await
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Received>> {
        self.received.lock()
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let mut reader = Reader::default();
        while let Ok(request) = reader.request(&mut stream).await {
            let number = {
                let mut received = self.lock();
                received.push(Received {
                    path: request.target.clone(),
                    headers: request.headers.clone(),
                    raw: request.body.clone(),
                });
                received.len() - 1
            };
            self.arrived.notify_waiters();
            let answer = self.answers.get(number).or(self.answers.last()).cloned();
            let answer = answer.unwrap_or_else(|| Answer::status(204));
            if let Some(gate) = &answer.gate {
                gate.pass().await;
            }
            let bytes = encode(answer.status, &answer.headers, "", request.framing);
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}
