//! Many conversations by a raw client: the same requests as those of runs, streamed, read to the
//! end, and understood no further than it takes to find the tool calls.

use super::line::say;
use super::meter::Meter;
use super::process::next_order;
use super::{Result, client, requests};
use bytes::Bytes;
use serde::Deserialize;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Makes the requests of many runs at once
#[derive(clap::Args)]
pub struct Raw {
    /// The base URL
    #[arg(long)]
    url: String,
    /// The folder with the bodies
    #[arg(long)]
    bodies: PathBuf,
    /// How many at once
    #[arg(long)]
    runs: usize,
}

impl Raw {
    pub async fn run(self) -> Result<()> {
        let client = client::build()?;
        let bodies: Arc<[Bytes]> =
            requests::bodies(&self.bodies)?.into_iter().map(Bytes::from).collect();
        let url: Arc<str> = self.url.into();
        say("\"ready\"");
        next_order().await?;
        let meter = Meter::start();
        let mut tasks = JoinSet::new();
        for _ in 0..self.runs {
            let (client, bodies, url) = (client.clone(), bodies.clone(), url.clone());
            tasks.spawn(async move {
                converse(&client, &url, &bodies).await.map_err(|error| error.to_string())
            });
        }
        let mut calls = 0;
        while let Some(done) = tasks.join_next().await {
            calls += done??;
        }
        let cost = meter.read();
        if calls != self.runs * (bodies.len() - 1) {
            return Err(format!("{calls} tool calls were found").into());
        }
        say(&serde_json::to_string(&cost)?);
        Ok(())
    }
}

/// Sends one body after the other. Returns how many files the replies ask to read.
pub async fn converse(client: &reqwest::Client, url: &str, bodies: &[Bytes]) -> Result<usize> {
    let mut calls = 0;
    for body in bodies {
        calls += ask(client, url, body.clone(), "Read").await?;
    }
    Ok(calls)
}

/// Sends a body. Returns how many calls of `tool` are in the reply.
pub async fn ask(client: &reqwest::Client, url: &str, body: Bytes, tool: &str) -> Result<usize> {
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
