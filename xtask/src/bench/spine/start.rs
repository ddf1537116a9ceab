//! From the start of the process to its first request on the wire.

use crate::bench::Result;
use crate::bench::line::{Line, Samples, seconds};
use crate::bench::part::{Guarded, posse, sibling};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

const REPETITIONS: usize = 20;
/// How long a process may take to make its request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The request of the small programs.
const BODY: &str = r#"{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"hello"}]}"#;

/// A reply that ends a run.
const REPLY: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude-sonnet-4-5\",\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello.\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

pub fn measure() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let folder = tempfile::tempdir()?;
    let home = folder.path();
    let work = home.join("work");
    std::fs::create_dir(&work)?;
    let posse = |database: &str| {
        let mut posse = posse(home, &url)?;
        posse.arg("--db").arg(home.join(database)).args(["run", "say hello", "--cwd"]).arg(&work);
        first_request(&listener, posse)
    };
    let one_row = || {
        let mut program = sibling("first-commit")?;
        program.args([&url, BODY]).arg(home.join("row.db"));
        first_request(&listener, program)
    };
    let raw = || {
        let mut program = sibling("first-request")?;
        program.args([&url, BODY]);
        first_request(&listener, program)
    };
    // Makes the databases, and brings all programs into the cache.
    posse("kept.db")?;
    one_row()?;
    raw()?;
    let (mut fresh, mut existing, mut least) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..REPETITIONS {
        let theirs = raw()?;
        fresh.push((posse(&format!("fresh-{round}.db"))?, theirs));
        let theirs = raw()?;
        existing.push((posse("kept.db")?, theirs));
        let theirs = raw()?;
        least.push((one_row()?, theirs));
    }
    for (name, rounds, most) in [
        ("start: fresh database", fresh, Some(2.0)),
        ("start: existing database", existing, Some(2.0)),
        ("start: one row stored, without Posse", least, None),
    ] {
        // Rounds are too short to be compared one by one.
        let median = |side: fn(&(f64, f64)) -> f64| Samples::new(rounds.iter().map(side)).median();
        let (posse, raw) = (median(|round| round.0), median(|round| round.1));
        let line = Line::compared(name, &rounds, seconds).ratio_of(posse, raw);
        line.at_most(most, "raw").print();
    }
    Ok(())
}

/// Seconds from the start of `program` to the first byte of its request. Answers it, and waits until
/// the program ends.
fn first_request(listener: &TcpListener, mut program: Command) -> Result<f64> {
    let began = Instant::now();
    let mut child = Guarded(program.spawn()?);
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.read_exact(&mut [0; 1])?;
    let took = began.elapsed();
    read_request(&mut stream)?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{REPLY}",
        REPLY.len()
    )?;
    child.wait()?;
    Ok(took.as_secs_f64())
}

/// Reads the rest of a request: its head, and a body of the length that the head says.
fn read_request(stream: &mut TcpStream) -> Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.ok_or("a request of unknown length")?.trim().parse()?;
            if body.len() >= length {
                return Ok(());
            }
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err("a request that ends in its middle".into());
        }
        request.extend_from_slice(&buffer[..count]);
    }
}
