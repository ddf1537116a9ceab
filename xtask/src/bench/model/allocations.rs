//! Allocations for each event of a stream.
//!
//! A small program with an allocator that counts does the counting, so that no other figure pays for it.

use super::hear::fetch;
use super::wires::WIRES;
use crate::bench::Result;
use crate::bench::line::Line;
use crate::bench::part::sibling;
use crate::bench::server::{Pace, Play, Server};
use serde::Deserialize;
use std::io::Write;
use std::process::Stdio;

/// The text that is said: a thousand deltas.
const TEXT: usize = 16_000;

/// What the program prints.
#[derive(Deserialize)]
struct Counted {
    events: f64,
    allocations: f64,
    bytes: f64,
}

pub async fn measure() -> Result<()> {
    for wire in WIRES {
        let server = Server::start(Play::Text(TEXT), Pace::AtOnce)?;
        let body = fetch(wire, &server.url).await?;
        server.end_after(1)?;
        let mut counter = sibling("count-allocations")?;
        counter.arg(serde_json::to_string(&wire)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = counter.spawn()?;
        child.stdin.take().ok_or("a process without an input")?.write_all(&body)?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err("count-allocations failed; see above".into());
        }
        let Counted { events, allocations, bytes } = serde_json::from_slice(&output.stdout)?;
        let posse = format!("{:.2}, {:.0} bytes", allocations / events, bytes / events);
        let line = Line::new(format!("allocations: {}, an event", wire.name()), posse);
        line.raw(format!("{events} events")).print();
    }
    Ok(())
}
