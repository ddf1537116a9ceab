//! Recorded requests by a raw client, which reads each reply to its end and understands no more of it
//! than it needs to find the tool calls.

use super::meter::Cost;
use super::part::ready;
use super::recording::Bodies;
use super::{Result, client};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

/// Makes the requests of many runs.
#[derive(Serialize, Deserialize)]
pub struct Raw {
    pub url: String,
    /// The folder with the bodies.
    pub bodies: PathBuf,
    /// How many runs.
    pub runs: usize,
    /// How many of them at a time.
    pub abreast: usize,
}

impl Raw {
    pub async fn run(self) -> Result<Cost> {
        let client = client::build()?;
        let bodies = Bodies::read(&self.bodies);
        let (turns, is_tree) = (bodies.run.len(), bodies.lead.is_some());
        let meter = ready().await?;
        let found = converse(&client, &self.url, bodies, self.runs, self.abreast).await?;
        let cost = meter.read();
        let tasks = if is_tree { self.runs } else { 0 };
        let expected = Found { tasks, reads: self.runs * (turns - 1), more: 0 };
        if found == expected { Ok(cost) } else { Err(format!("found {found:?}").into()) }
    }
}

/// Tool calls in replies.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// Children that the main agent called.
    tasks: usize,
    /// Files that runs read.
    reads: usize,
    /// Children that the main agent called in the end.
    more: usize,
}

/// Makes the requests of `runs`, so many of them `abreast`. If the bodies have those of a main agent,
/// its first one goes before all others, and its last one after them.
pub async fn converse(
    client: &reqwest::Client,
    url: &str,
    bodies: Bodies,
    runs: usize,
    abreast: usize,
) -> Result<Found> {
    let mut found = Found::default();
    let (first, last) = bodies.lead.unzip();
    if let Some(first) = first {
        found.tasks = ask(client, url, first, "Task").await?;
    }
    let (url, bodies): (Arc<str>, Arc<[Bytes]>) = (url.into(), bodies.run.into());
    let (begun, mut tasks) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    for _ in 0..abreast {
        let (client, bodies) = (client.clone(), bodies.clone());
        let (url, begun) = (url.clone(), begun.clone());
        tasks.spawn(async move {
            let mut reads = 0;
            while begun.fetch_add(1, Ordering::Relaxed) < runs {
                for body in &*bodies {
                    reads += ask(&client, &url, body.clone(), "Read").await?;
                }
            }
            Ok::<usize, Box<dyn std::error::Error + Send + Sync>>(reads)
        });
    }
    while let Some(done) = tasks.join_next().await {
        found.reads += done??;
    }
    if let Some(last) = last {
        found.more = ask(client, &url, last, "Task").await?;
    }
    Ok(found)
}

/// Sends a body. Returns how many calls of `tool` are in the reply.
async fn ask(client: &reqwest::Client, url: &str, body: Bytes, tool: &str) -> Result<usize> {
    let mut response = client::post(client, url, body).await?;
    let mut finder = Finder::default();
    while let Some(chunk) = response.chunk().await? {
        finder.push(&chunk)?;
    }
    let meant = |call: &&Call| call.name == tool && !call.input.is_empty();
    Ok(finder.calls.iter().filter(meant).count())
}

/// Finds tool calls in a stream of events.
#[derive(Default)]
struct Finder {
    line: Vec<u8>,
    calls: Vec<Call>,
}

struct Call {
    name: String,
    input: String,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(borrow)]
    content_block: Named<'a>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    delta: Piece<'a>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    partial_json: Cow<'a, str>,
}

impl Finder {
    fn push(&mut self, chunk: &[u8]) -> Result<()> {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.line(&line)?;
                self.line = line;
                self.line.clear();
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        let Some(data) = line.strip_prefix(b"data: ") else { return Ok(()) };
        let text = std::str::from_utf8(data)?;
        if text.contains("\"tool_use\"") && text.contains("content_block_start") {
            let Start { content_block } = serde_json::from_str(text)?;
            self.calls.push(Call { name: content_block.name.into_owned(), input: String::new() });
        } else if text.contains("input_json_delta") {
            let Delta { delta } = serde_json::from_str(text)?;
            let call = self.calls.last_mut().ok_or("a piece of no call")?;
            call.input.push_str(&delta.partial_json);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_however_the_stream_is_cut() {
        let stream = concat!(
            "event: content_block_start\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Read\",\"input\":{}}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"file\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\":1}\"}}\n\n",
        );
        for size in [1, 7, 4096] {
            let mut finder = Finder::default();
            for chunk in stream.as_bytes().chunks(size) {
                finder.push(chunk).unwrap();
            }
            let found: Vec<(&str, &str)> =
                finder.calls.iter().map(|call| (&*call.name, &*call.input)).collect();
            assert_eq!(found, [("Read", "{\"file\":1}")]);
        }
    }
}
