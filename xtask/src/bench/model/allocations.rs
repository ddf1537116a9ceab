//! Figure 2: allocations for each event of a stream.
//!
//! Counted by a little binary with an allocator that counts, so that no other figure pays for it.

use super::hear::fetch;
use super::server::Server;
use super::wires::WIRES;
use crate::bench::Result;
use crate::bench::line::{Goal, Line};
use crate::bench::process::{command, sibling};
use serde::Deserialize;
use std::io::Write;
use std::process::Stdio;

/// The text that is said: a thousand deltas.
const TEXT: usize = 16_000;

/// What the binary tells.
#[derive(Deserialize)]
struct Counted {
    events: f64,
    allocations: f64,
    bytes: f64,
}

pub fn measure() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for wire in WIRES {
        let server = Server::saying(TEXT)?;
        let body = runtime.block_on(fetch(wire, &server.url))?;
        server.end()?;
        let mut counter = command(sibling("count-allocations")?);
        counter.arg(wire.name()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = counter.spawn()?;
        child.stdin.take().ok_or("a process without an input")?.write_all(&body)?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err("count-allocations failed; see above".into());
        }
        let Counted { events, allocations, bytes } = serde_json::from_slice(&output.stdout)?;
        Line {
            name: format!("allocations: {}, an event", wire.name()),
            posse: format!("{:.2}, {:.0} bytes", allocations / events, bytes / events),
            raw: format!("{events} events"),
            ratio: "–".to_owned(),
            goal: Goal::None,
        }
        .print();
    }
    Ok(())
}
