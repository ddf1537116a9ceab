//! What a streamed reply costs a model of Posse and a raw client, one reply after the other; and how
//! many connections 3,000 replies take.

use super::wires::{self, HEADERS, WIRES, request};
use crate::bench::harness::Effort;
use crate::bench::line::{Line, seconds};
use crate::bench::part::{Process, ready};
use crate::bench::server::{Pace, Play, Server};
use crate::bench::{Part, Result, client};
use bytes::Bytes;
use posse::model::wire::Wire;
use posse::protocol::Delta;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// Replies to hear, and the bytes of the text of each: forty deltas, and a megabyte of them.
const SHORT: (usize, usize) = (3_000, 640);
const LONG: (usize, usize) = (10, 1_000_000);

/// Calls a model again and again. Reports the seconds of processor time for each reply.
#[derive(Serialize, Deserialize)]
pub struct Hear {
    /// The address of the server.
    address: String,
    wire: Wire,
    /// How many replies, after one that opens the connection.
    replies: usize,
    /// The length of each text.
    bytes: usize,
}

impl Hear {
    pub async fn run(self) -> Result<f64> {
        let Hear { address, wire, replies, bytes } = self;
        let model = wires::model(wire, &address)?;
        let heard = AtomicUsize::new(0);
        let listen = |delta: Delta| {
            if let Delta::Text { text } = delta {
                heard.fetch_add(text.len(), Ordering::Relaxed);
            }
        };
        let never = CancellationToken::new();
        model.call(request(), &listen, &never).await?;
        let meter = ready().await?;
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
        Ok(cost.cpu / replies as f64)
    }

    /// The same requests by a raw client, which reads each reply and understands nothing of it.
    pub async fn run_raw(self) -> Result<f64> {
        let client = client::build()?;
        let (url, body) =
            (wires::url(self.wire, &self.address), Bytes::from(wires::body(self.wire)?));
        read(&client, &url, body.clone(), |_| ()).await?;
        let meter = ready().await?;
        for _ in 0..self.replies {
            let mut count = 0;
            read(&client, &url, body.clone(), |chunk| count += chunk.len()).await?;
            if count < self.bytes {
                return Err("a reply is not what was said".into());
            }
        }
        Ok(meter.read().cpu / self.replies as f64)
    }
}

/// Makes a request and reads the reply to its end.
async fn read(
    client: &reqwest::Client,
    url: &str,
    body: Bytes,
    mut each: impl FnMut(&[u8]),
) -> Result<()> {
    let request =
        HEADERS.iter().fold(client.post(url), |it, (name, value)| it.header(*name, *value));
    let mut response = request.body(body).send().await?.error_for_status()?;
    while let Some(chunk) = response.chunk().await? {
        each(&chunk);
    }
    Ok(())
}

/// The whole body of one reply of the server at `address`.
pub async fn fetch(wire: Wire, address: &str) -> Result<Vec<u8>> {
    let (url, mut body) = (wires::url(wire, address), Vec::new());
    let request = wires::body(wire)?.into();
    read(&client::build()?, &url, request, |chunk| body.extend_from_slice(chunk)).await?;
    Ok(body)
}

pub fn measure(effort: Effort) -> Result<()> {
    for wire in WIRES {
        let name = wire.name();
        let mut connections = 0;
        let (mut short, mut long) = (Vec::new(), Vec::new());
        effort.rounds(|| {
            for (size, rounds) in [(SHORT, &mut short), (LONG, &mut long)] {
                let (posse, opened) = hear(Part::Hear, wire, size)?;
                let (raw, _) = hear(Part::HearRaw, wire, size)?;
                rounds.push((posse, raw));
                connections = if size == SHORT { opened.max(connections) } else { connections };
            }
            Ok(())
        })?;
        Line::compared(format!("replies: {name}, 40 deltas"), &short, seconds).print();
        Line::compared(format!("replies: {name}, 1 MB of deltas"), &long, seconds).print();
        Line::new(format!("connections: {name}, 3,000 requests"), connections.to_string())
            .goal("1", connections <= 1)
            .print();
    }
    Ok(())
}

/// What one reply took, and how many connections the server saw.
fn hear(
    part: fn(Hear) -> Part,
    wire: Wire,
    (replies, bytes): (usize, usize),
) -> Result<(f64, usize)> {
    let server = Server::start(Play::Text(bytes), Pace::AtOnce)?;
    let hear = Hear { address: server.url.clone(), wire, replies, bytes };
    let took = Process::report(&part(hear))?;
    Ok((took, server.end_after(replies + 1)?.connections))
}
