//! The benchmark of the governor: a main agent and a hundred children, against a provider that takes
//! ten requests at a time. Almost all of the time is waiting, so the server is in this process.

use super::harness::Effort;
use super::line::{Line, Samples, seconds};
use super::load::{completed, open_with, spec};
use super::raw::converse;
use super::recording::Bodies;
use super::server::{FOLLOW, LEAD, lead};
use super::{Result, client};
use bytes::Bytes;
use posse::Pacing;
use posse::store::Kin;
use posse_testkit::{FakeModel, Reply, Rule, Script, When};
use serde_json::json;
use std::time::{Duration, Instant};

const CHILDREN: usize = 100;
const AT_ONCE: usize = 10;
/// Requests of the main agent and of all children.
const NEEDED: usize = CHILDREN + 2;
/// How long the provider thinks.
const LATENCY: Duration = Duration::from_millis(500);
/// What it tells the client with a request too many: the least that a header of whole seconds can say.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What became of one tree.
struct Treated {
    wall: f64,
    sent: usize,
    refused: usize,
    /// Children that did not complete.
    lost: usize,
}

pub async fn measure(effort: Effort) -> Result<()> {
    let (mut paced, mut unpaced) = (Vec::new(), Vec::new());
    for _ in 0..effort.pick(1, 3) {
        let raw = raw().await?;
        paced.push((posse(Pacing::default()).await?, raw));
        unpaced.push((posse(Pacing::Off).await?, raw));
    }
    let goals = (Some(1.25), Some(1.6));
    for (name, rounds, (most_sent, most_wall)) in
        [("with a governor", paced, goals), ("without", unpaced, (None, None))]
    {
        let of = |figure: fn(&Treated) -> usize| {
            Samples::new(rounds.iter().map(|(treated, _)| figure(treated) as f64))
        };
        let count = |value: f64| format!("{value:.0}");
        let (sent, refused, lost) = (of(|it| it.sent), of(|it| it.refused), of(|it| it.lost));
        let posse = format!("{} sent, {} refused", sent.shown(count), refused.shown(count));
        Line::new(format!("{name}: requests"), posse)
            .raw(format!("{NEEDED} needed"))
            .ratio_of(sent.median(), NEEDED as f64)
            .at_most(most_sent, "needed")
            .print();
        let line = Line::new(format!("{name}: children lost"), lost.shown(count)).raw("0");
        match most_sent {
            Some(_) => line.goal("none", lost.median() <= 0.0).print(),
            None => line.print(),
        }
        let walls: Vec<_> = rounds.iter().map(|(treated, raw)| (treated.wall, *raw)).collect();
        let line = Line::compared(format!("{name}: wall"), &walls, seconds);
        line.at_most(most_wall, "raw").print();
    }
    Ok(())
}

fn script() -> Script {
    let child = Rule::when(When::any()).reply(Reply::text("It is there.").latency(LATENCY));
    let script = Script::new().conversation(lead(CHILDREN, LATENCY)).rule(child);
    script.at_once(AT_ONCE).retry_after(RETRY_AFTER).without_capture().without_cache()
}

async fn posse(pacing: Pacing) -> Result<Treated> {
    let fake = FakeModel::start(script()).await?;
    let change = |config: &mut posse::RuntimeConfig| config.models.pacing = pacing;
    let (runtime, folder) = open_with(&fake.url(), CHILDREN + 1, change).await?;
    let began = Instant::now();
    let run = runtime.start(spec(LEAD, folder.path())?).await?;
    let outcome = run.outcome().await?;
    let wall = began.elapsed().as_secs_f64();
    let lost = CHILDREN - completed(&runtime, Kin::ChildrenOf(run.id())).await?;
    runtime.shutdown().await;
    let (sent, refused) = (fake.count(), fake.counts().status(429));
    fake.shutdown().await;
    if !outcome.is_completed() {
        return Err(format!("the main agent ended otherwise: {outcome}").into());
    }
    Ok(Treated { wall, sent, refused, lost })
}

/// Seconds that a client takes that knows the limit of the provider and keeps to it.
async fn raw() -> Result<f64> {
    let fake = FakeModel::start(script()).await?;
    let body = |text: &str| {
        let messages = json!([{"role": "user", "content": text}]);
        let body = json!({
            "model": "claude-sonnet-4-5", "max_tokens": 100, "stream": true, "messages": messages,
        });
        Bytes::from(body.to_string())
    };
    // The provider answers the last request of the main agent as slowly as its first.
    let bodies = Bodies { run: vec![body(FOLLOW)], lead: Some((body(LEAD), body(LEAD))) };
    let began = Instant::now();
    converse(&client::build()?, &fake.url(), bodies, CHILDREN, AT_ONCE).await?;
    let wall = began.elapsed().as_secs_f64();
    if fake.counts().status(200) != NEEDED {
        return Err("the raw client was refused".into());
    }
    fake.shutdown().await;
    Ok(wall)
}
