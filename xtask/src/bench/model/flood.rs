//! How many requests the fake model answers in a second.

use super::wires::{self, HEADERS, WIRES};
use crate::bench::harness::Effort;
use crate::bench::line::{Line, Samples, rate};
use crate::bench::part::{Process, ready};
use crate::bench::server::{Pace, Play, Server};
use crate::bench::{Part, Result};
use posse::model::wire::Wire;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Connections at a time.
const CONNECTIONS: usize = 32;
/// Bytes of the text of each answer.
const TEXT: usize = 32;
/// How a streamed body ends.
const END: &[u8] = b"0\r\n\r\n";
/// Requests a second.
const GOAL: f64 = 20_000.0;

/// Sends requests as fast as the server answers. Reports how many were answered.
#[derive(Serialize, Deserialize)]
pub struct Flood {
    /// The address of the server.
    address: String,
    wire: Wire,
    seconds: u64,
}

impl Flood {
    pub async fn run(self) -> Result<usize> {
        let address = self.address.trim_start_matches("http://").to_owned();
        let request = request(self.wire, &self.address)?;
        ready().await?;
        let end = Instant::now() + Duration::from_secs(self.seconds);
        let mut asking = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let (address, request) = (address.clone(), request.clone());
            asking.spawn(async move { ask(&address, &request, end).await });
        }
        let mut answered = 0;
        while let Some(count) = asking.join_next().await {
            answered += count??;
        }
        Ok(answered)
    }
}

/// A request as bytes on a connection, so that no HTTP client shares the time.
fn request(wire: Wire, address: &str) -> Result<Vec<u8>> {
    let url = wires::url(wire, address);
    let path = url.strip_prefix(address).ok_or("a URL of another server")?;
    let body = wires::body(wire)?;
    let mut head = format!("POST {path} HTTP/1.1\r\nhost: bench\r\n");
    for (name, value) in HEADERS {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    Ok([head.into_bytes(), body].concat())
}

async fn ask(address: &str, request: &[u8], end: Instant) -> std::io::Result<usize> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut answered, mut answer) = (0, Vec::with_capacity(16 << 10));
    while Instant::now() < end {
        stream.write_all(request).await?;
        answer.clear();
        while !answer.ends_with(END) {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(std::io::Error::other("an answer other than 200"));
        }
        answered += 1;
    }
    Ok(answered)
}

pub fn measure(effort: Effort) -> Result<()> {
    let seconds = effort.pick(1, 3);
    for wire in WIRES {
        let rounds: Vec<(f64, f64)> = effort.rounds(|| {
            let server = Server::start(Play::Text(TEXT), Pace::AtOnce)?;
            let address = server.url.clone();
            let answered = Process::report(&Part::Flood(Flood { address, wire, seconds }))?;
            let seen = server.end_after(answered)?;
            Ok((answered as f64 / (seen.cpu / 2.0), answered as f64 / seconds as f64))
        })?;
        let own = Samples::new(rounds.iter().map(|round| round.0));
        let line = Line::compared(format!("fake model: {}", wire.name()), &rounds, rate);
        line.against("beside the client")
            .ratio("–")
            .goal("≥ 20,000/s on 2 cores", own.median() >= GOAL)
            .print();
    }
    Ok(())
}
