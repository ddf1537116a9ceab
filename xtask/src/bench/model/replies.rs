//! Figures 1 and 3: what a streamed reply costs, and how many connections 3,000 of them take.

use super::server::{Seen, Server};
use super::wires::{Spoken, WIRES};
use crate::bench::Result;
use crate::bench::line::{Goal, Line, Samples, seconds, times};
use crate::bench::meter::Cost;
use crate::bench::process::Process;
use crate::bench::spine::Effort;

/// Requests made one after the other, and the text each is answered with: forty deltas.
const REQUESTS: usize = 3_000;
const SHORT: usize = 640;
/// A megabyte of deltas.
const LONG: usize = 1_000_000;
/// Replies of a megabyte in a round.
const LONG_REPLIES: usize = 10;

pub fn measure(effort: Effort) -> Result<()> {
    for wire in WIRES {
        let name = wire.name();
        let mut connections = 0;
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds() {
            let (posse, seen) = hear("hear", wire, REQUESTS, SHORT)?;
            let (raw, _) = hear("hear-raw", wire, REQUESTS, SHORT)?;
            connections = connections.max(seen.connections);
            short.push((posse.cpu, raw.cpu));
            let (posse, _) = hear("hear", wire, LONG_REPLIES, LONG)?;
            let (raw, _) = hear("hear-raw", wire, LONG_REPLIES, LONG)?;
            long.push((posse.cpu, raw.cpu));
        }
        compare(format!("replies: {name}, 40 deltas"), &short);
        compare(format!("replies: {name}, 1 MB of deltas"), &long);
        Line {
            name: format!("connections: {name}, 3,000 requests"),
            posse: connections.to_string(),
            raw: "–".to_owned(),
            ratio: "–".to_owned(),
            goal: Goal::at_most("1", connections as f64, 1.0),
        }
        .print();
    }
    Ok(())
}

/// What one of `replies` took, by the part `who`, and what the server saw.
fn hear(who: &str, wire: Spoken, replies: usize, bytes: usize) -> Result<(Cost, Seen)> {
    let server = Server::saying(bytes)?;
    let mut client = Process::part(&[
        who.to_owned(),
        format!("--url={}", server.url),
        format!("--wire={}", wire.name()),
        format!("--replies={replies}"),
        format!("--bytes={bytes}"),
    ])?;
    let cost = client.hear()?;
    client.wait()?;
    let seen = server.end()?;
    if seen.requests != replies + 1 {
        return Err(format!("{} requests in place of {}", seen.requests, replies + 1).into());
    }
    Ok((cost, seen))
}

fn compare(name: String, rounds: &[(f64, f64)]) {
    Line {
        name,
        posse: Samples::new(rounds.iter().map(|round| round.0).collect()).shown(seconds),
        raw: Samples::new(rounds.iter().map(|round| round.1).collect()).shown(seconds),
        ratio: Samples::ratios(rounds).shown(times),
        goal: Goal::None,
    }
    .print();
}
