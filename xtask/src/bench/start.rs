//! Figure 3: from the start of the process to its first request on the wire.

use super::Result;
use super::line::{Goal, Line, Samples, seconds, times};
use super::process::{command, sibling};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const REPETITIONS: usize = 20;
/// How long a process may take to ask.
const PATIENCE: Duration = Duration::from_secs(30);

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
    let work = folder.path().join("work");
    std::fs::create_dir(&work)?;
    let kept = folder.path().join("kept.db");
    let row = folder.path().join("row.db");
    // Made, and brought into the cache, before anything is measured.
    posse(&listener, &url, &kept, &work)?;
    one_row(&listener, &url, &row)?;
    raw(&listener, &url)?;
    let (mut fresh, mut existing, mut least) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..REPETITIONS {
        let theirs = raw(&listener, &url)?;
        let database = folder.path().join(format!("fresh-{round}.db"));
        fresh.push((posse(&listener, &url, &database, &work)?, theirs));
        let theirs = raw(&listener, &url)?;
        existing.push((posse(&listener, &url, &kept, &work)?, theirs));
        let theirs = raw(&listener, &url)?;
        least.push((one_row(&listener, &url, &row)?, theirs));
    }
    let figures = [
        ("start: fresh database", fresh, true),
        ("start: existing database", existing, true),
        ("start: one row stored, without Posse", least, false),
    ];
    for (name, rounds, has_goal) in figures {
        let posse = Samples::new(rounds.iter().map(|round| round.0).collect());
        let raw = Samples::new(rounds.iter().map(|round| round.1).collect());
        // Rounds are over too soon to be compared one by one.
        let ratio = posse.median() / raw.median();
        let goal = match has_goal {
            true => Goal::at_most("≤ 2 × raw", ratio, 2.0),
            false => Goal::None,
        };
        let (posse, raw) = (posse.shown(seconds), raw.shown(seconds));
        Line { name: name.to_owned(), posse, raw, ratio: times(ratio), goal }.print();
    }
    Ok(())
}

fn posse(listener: &TcpListener, url: &str, database: &Path, work: &Path) -> Result<f64> {
    let mut command = command(sibling("posse")?);
    command.arg("--db").arg(database).args(["run", "say hello", "--cwd"]).arg(work);
    command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "any");
    // Settings of whoever runs this must not matter.
    command.env("XDG_CONFIG_HOME", work);
    let began = Instant::now();
    answer(
        listener,
        began,
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?,
    )
}

fn raw(listener: &TcpListener, url: &str) -> Result<f64> {
    let mut command = command(sibling("first-request")?);
    command.arg(url);
    let began = Instant::now();
    answer(listener, began, command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
}

fn one_row(listener: &TcpListener, url: &str, database: &Path) -> Result<f64> {
    let mut command = command(sibling("first-commit")?);
    command.arg(url).arg(database);
    let began = Instant::now();
    answer(listener, began, command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
}

/// Waits for the first byte of a request, answers it, and sees the process end well.
fn answer(listener: &TcpListener, began: Instant, child: Child) -> Result<f64> {
    let mut child = Ended(child);
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut first = [0; 1];
    stream.read_exact(&mut first)?;
    let took = began.elapsed();
    read_request(&mut stream)?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{REPLY}",
        REPLY.len()
    )?;
    let status = child.0.wait()?;
    if !status.success() {
        return Err(format!("a process that was to make one request ended with {status}").into());
    }
    Ok(took.as_secs_f64())
}

/// Reads the rest of a request: its head, and as much of a body as that says.
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

/// A process that does not outlive its guard.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
