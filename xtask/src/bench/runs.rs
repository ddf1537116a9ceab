//! Figure 1: many runs at once, against a raw client that makes the same calls.

use super::Result;
use super::line::{Goal, Line, Samples, Verdict, seconds, times};
use super::load::Loaded;
use super::meter::Cost;
use super::process::Process;
use super::requests::Requests;
use super::serve::{FILES, Server};
use super::spine::Effort;
use std::time::Duration;

/// What the model takes before it replies.
pub const LATENCY: Duration = Duration::from_millis(200);

pub fn measure(requests: &Requests, effort: Effort) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        rounds.push((raw(requests, 1_000)?, posse(requests, 1_000)?.cost));
    }
    compare("runs: 1,000, wall", &rounds, |cost| cost.wall, Some(("≤ 1.15 × raw", 1.15)));
    compare("runs: 1,000, processor", &rounds, |cost| cost.cpu, Some(("≤ 8 × raw", 8.0)));

    let count = 10_000;
    let theirs = raw(requests, count)?;
    let ours = posse(requests, count)?;
    let all = ours.completed == count && ours.stored == count;
    let verdict = if all { Verdict::Met } else { Verdict::NotMet };
    Line {
        name: "runs: 10,000, completed".to_owned(),
        posse: format!("{} told, {} stored", ours.completed, ours.stored),
        raw: format!("{count}"),
        ratio: "–".to_owned(),
        goal: Goal::Stated("none lost".to_owned(), verdict),
    }
    .print();
    let rounds = [(theirs, ours.cost)];
    compare("runs: 10,000, wall", &rounds, |cost| cost.wall, None);
    compare("runs: 10,000, processor", &rounds, |cost| cost.cpu, None);
    Ok(())
}

/// Prints what each round has cost a raw client and Posse, in this order.
pub fn compare(
    name: &str,
    rounds: &[(Cost, Cost)],
    of: impl Fn(&Cost) -> f64,
    goal: Option<(&str, f64)>,
) {
    let pairs: Vec<(f64, f64)> = rounds.iter().map(|(raw, posse)| (of(posse), of(raw))).collect();
    let ratio = Samples::ratios(&pairs);
    Line {
        name: name.to_owned(),
        posse: Samples::new(pairs.iter().map(|pair| pair.0).collect()).shown(seconds),
        raw: Samples::new(pairs.iter().map(|pair| pair.1).collect()).shown(seconds),
        ratio: ratio.shown(times),
        goal: match goal {
            Some((words, most)) => Goal::at_most(words, ratio.median(), most),
            None => Goal::None,
        },
    }
    .print();
}

fn raw(requests: &Requests, runs: usize) -> Result<Cost> {
    let server = Server::start("reads", LATENCY)?;
    let mut client = raw_client(requests, &server.url, runs)?;
    client.tell("go")?;
    let cost = client.hear()?;
    client.wait()?;
    server.end(runs * (FILES.len() + 1))?;
    Ok(cost)
}

fn posse(requests: &Requests, runs: usize) -> Result<Loaded> {
    let server = Server::start("reads", LATENCY)?;
    let folder = tempfile::tempdir()?;
    let mut client = posse_client(requests, &server.url, runs, &folder)?;
    client.tell("go")?;
    let loaded = client.hear()?;
    client.wait()?;
    server.end(runs * (FILES.len() + 1))?;
    Ok(loaded)
}

/// A raw client, ready to go.
pub fn raw_client(requests: &Requests, url: &str, runs: usize) -> Result<Process> {
    let mut client = Process::part(&[
        "raw".to_owned(),
        format!("--url={url}"),
        format!("--bodies={}", requests.bodies().display()),
        format!("--runs={runs}"),
    ])?;
    client.hear::<String>()?;
    Ok(client)
}

/// A runtime with its database in `folder`, ready to go.
pub fn posse_client(
    requests: &Requests,
    url: &str,
    runs: usize,
    folder: &tempfile::TempDir,
) -> Result<Process> {
    let mut client = Process::part(&[
        "load".to_owned(),
        format!("--url={url}"),
        format!("--db={}", folder.path().join("runs.db").display()),
        format!("--workspace={}", requests.workspace().display()),
        format!("--runs={runs}"),
    ])?;
    client.hear::<String>()?;
    Ok(client)
}
