//! Figure 4: how many requests the fake model answers in a second.

use super::server::Server;
use super::wires::{HEADERS, Spoken, WIRES};
use crate::bench::Result;
use crate::bench::line::{Goal, Line, Samples, Verdict, rate, say};
use crate::bench::process::Process;
use crate::bench::spine::Effort;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Connections that ask at once.
const CONNECTIONS: usize = 32;
/// What is answered.
const TEXT: usize = 32;
/// How a streamed body ends.
const END: &[u8] = b"0\r\n\r\n";
/// What is wanted.
const GOAL: f64 = 20_000.0;

/// Asks a server as fast as it answers
#[derive(clap::Args)]
pub struct Flood {
    /// Its address
    #[arg(long)]
    url: String,
    /// Which wire
    #[arg(long, value_enum)]
    wire: Spoken,
    /// For how long
    #[arg(long)]
    seconds: u64,
}

impl Flood {
    pub async fn run(self) -> Result<()> {
        let address = self.url.trim_start_matches("http://").to_owned();
        let request = request(self.wire, &self.url)?;
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
        say(&answered.to_string());
        Ok(())
    }
}

/// A request as bytes on a connection. What wraps them costs nothing then.
fn request(wire: Spoken, address: &str) -> Result<Vec<u8>> {
    let url = wire.url(address);
    let path = url.strip_prefix(address).ok_or("a URL of another server")?;
    let body = wire.body()?;
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
    let length = if effort == Effort::Quick { 1 } else { 3 };
    for wire in WIRES {
        let (mut shared, mut own) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds() {
            let server = Server::saying(TEXT)?;
            let mut flood = Process::part(&[
                "flood".to_owned(),
                format!("--url={}", server.url),
                format!("--wire={}", wire.name()),
                format!("--seconds={length}"),
            ])?;
            let answered: f64 = flood.hear()?;
            flood.wait()?;
            let seen = server.end()?;
            shared.push(answered / length as f64);
            own.push(answered / (seen.cpu / 2.0));
        }
        let own = Samples::new(own);
        let verdict = if own.median() >= GOAL { Verdict::Met } else { Verdict::NotMet };
        Line {
            name: format!("fake model: {}", wire.name()),
            posse: own.shown(rate),
            raw: format!("{} beside the asker", Samples::new(shared).shown(rate)),
            ratio: "–".to_owned(),
            goal: Goal::Stated("≥ 20,000/s on 2 cores".to_owned(), verdict),
        }
        .print();
    }
    Ok(())
}
