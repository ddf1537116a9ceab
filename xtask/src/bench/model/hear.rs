//! Hearing streamed replies, one after the other: by a model of Posse, and by a raw client.

use super::wires::{HEADERS, Spoken, request};
use crate::bench::line::say;
use crate::bench::meter::{Cost, Meter};
use crate::bench::{Result, client};
use bytes::Bytes;
use posse::protocol::Delta;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// Calls a model again and again
#[derive(clap::Args)]
pub struct Hear {
    #[command(flatten)]
    what: What,
}

/// Makes the same requests by a raw client
#[derive(clap::Args)]
pub struct HearRaw {
    #[command(flatten)]
    what: What,
}

#[derive(clap::Args)]
struct What {
    /// The address of the server
    #[arg(long)]
    url: String,
    /// Which wire
    #[arg(long, value_enum)]
    wire: Spoken,
    /// How many replies, after one that opens the connection
    #[arg(long)]
    replies: usize,
    /// The length of each text
    #[arg(long)]
    bytes: usize,
}

impl Hear {
    pub async fn run(self) -> Result<()> {
        let What { url, wire, replies, bytes } = self.what;
        let model = wire.model(&url)?;
        let heard = AtomicUsize::new(0);
        let listen = |delta: Delta| {
            if let Delta::Text { text } = delta {
                heard.fetch_add(text.len(), Ordering::Relaxed);
            }
        };
        let never = CancellationToken::new();
        model.call(request(), &listen, &never).await?;
        let meter = Meter::start();
        for _ in 0..replies {
            let reply = model.call(request(), &listen, &never).await?;
            if reply.message.text().len() != bytes {
                return Err("a reply is not what was said".into());
            }
        }
        let cost = meter.read();
        if heard.into_inner() != (replies + 1) * bytes {
            return Err("a delta was lost".into());
        }
        tell(cost, replies)
    }
}

impl HearRaw {
    pub async fn run(self) -> Result<()> {
        let What { url, wire, replies, bytes } = self.what;
        let client = client::build()?;
        let (url, body) = (wire.url(&url), Bytes::from(wire.body()?));
        read(&client, &url, body.clone()).await?;
        let meter = Meter::start();
        for _ in 0..replies {
            if read(&client, &url, body.clone()).await? < bytes {
                return Err("a reply is not what was said".into());
            }
        }
        tell(meter.read(), replies)
    }
}

fn tell(cost: Cost, replies: usize) -> Result<()> {
    let count = replies as f64;
    let each = Cost { wall: cost.wall / count, cpu: cost.cpu / count };
    say(&serde_json::to_string(&each)?);
    Ok(())
}

/// Reads a reply to its end, and understands nothing of it: how many bytes it has.
async fn read(client: &reqwest::Client, url: &str, body: Bytes) -> Result<usize> {
    let mut response = post(client, url, body).await?;
    let mut count = 0;
    while let Some(chunk) = response.chunk().await? {
        count += chunk.len();
    }
    Ok(count)
}

async fn post(client: &reqwest::Client, url: &str, body: Bytes) -> Result<reqwest::Response> {
    let request = HEADERS
        .iter()
        .fold(client.post(url), |request, (name, value)| request.header(*name, *value));
    Ok(request.body(body).send().await?.error_for_status()?)
}

/// The whole body of one reply of the server at `address`.
pub async fn fetch(wire: Spoken, address: &str) -> Result<Vec<u8>> {
    let client = client::build()?;
    let mut response = post(&client, &wire.url(address), wire.body()?.into()).await?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
