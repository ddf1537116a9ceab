//! Figure 6: what a turn costs as the transcript grows, against the bytes it sends.

use super::Result;
use super::line::{Goal, Line, Samples, seconds, times};
use super::process::Process;
use super::serve::{NOTES, Server};
use super::spine::Effort;
use super::talk::{SIZES, Turn};
use std::time::Duration;

/// Requests of each size that the raw client makes.
const REQUESTS: usize = 200;
/// Long runs of one round.
const RUNS: usize = 8;

pub fn measure(effort: Effort) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        rounds.push((posse()?, raw()?));
    }
    for (index, (messages, _)) in SIZES.iter().enumerate() {
        let ours = Samples::new(rounds.iter().map(|round| round.0[index].cpu).collect());
        let theirs = Samples::new(rounds.iter().map(|round| round.1[index].cpu).collect());
        let pairs: Vec<(f64, f64)> =
            rounds.iter().map(|(posse, raw)| (posse[index].cpu, raw[index].cpu)).collect();
        Line {
            name: format!("turns: processor at {messages} messages"),
            posse: format!("{}, {}", ours.shown(seconds), per_megabyte(&rounds[0].0[index], &ours)),
            raw: format!(
                "{}, {}",
                theirs.shown(seconds),
                per_megabyte(&rounds[0].1[index], &theirs)
            ),
            ratio: Samples::ratios(&pairs).shown(times),
            goal: Goal::None,
        }
        .print();
    }
    let growth = Samples::new(rounds.iter().map(|(posse, _)| growth(posse)).collect());
    Line {
        name: "turns: growth of the slope".to_owned(),
        posse: growth.shown(times),
        raw: Samples::new(rounds.iter().map(|(_, raw)| self::growth(raw)).collect()).shown(times),
        ratio: "–".to_owned(),
        goal: Goal::at_most("linear in bytes (≤ 1.5)", growth.median(), 1.5),
    }
    .print();
    Ok(())
}

fn per_megabyte(turn: &Turn, cpu: &Samples) -> String {
    format!("{}/MB", seconds(cpu.median() / (turn.bytes / 1e6)))
}

/// What another byte costs between the two largest sizes, against what it costs up to there: 1
/// when cost is linear in bytes, about 4 if it were quadratic.
fn growth(turns: &[Turn]) -> f64 {
    let slope = |from: &Turn, to: &Turn| (to.cpu - from.cpu) / (to.bytes - from.bytes);
    match turns {
        [first, _, third, fourth] => slope(third, fourth) / slope(first, third),
        _ => f64::NAN,
    }
}

fn posse() -> Result<Vec<Turn>> {
    let server = Server::start("notes", Duration::ZERO)?;
    let folder = tempfile::tempdir()?;
    let mut client = Process::part(&[
        "talk".to_owned(),
        format!("--url={}", server.url),
        format!("--db={}", folder.path().join("runs.db").display()),
        format!("--workspace={}", folder.path().display()),
        format!("--runs={RUNS}"),
    ])?;
    let turns = client.hear()?;
    client.wait()?;
    server.end(RUNS * (NOTES + 1))?;
    Ok(turns)
}

fn raw() -> Result<Vec<Turn>> {
    let server = Server::start("notes", Duration::ZERO)?;
    let mut client = Process::part(&[
        "talk-raw".to_owned(),
        format!("--url={}", server.url),
        format!("--requests={REQUESTS}"),
    ])?;
    let turns = client.hear()?;
    client.wait()?;
    server.end(SIZES.len() * (REQUESTS + 1))?;
    Ok(turns)
}
