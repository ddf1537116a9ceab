//! The benchmark of the governor: a main agent and a hundred children, against a provider that takes
//! ten requests at a time. Almost all of the time is waiting, so the server is in this process.

use super::line::{self, Goal, Line, Samples, seconds, times};
use super::load::{SETTLED, config};
use super::spine::{Effort, again, build};
use super::{Result, client, meter};
use bytes::Bytes;
use posse::store::{Filter, Kin};
use posse::{Pacing, RunSpec, Runtime, RuntimeConfig};
use posse_testkit::{Conversation, FakeModel, Reply, Rule, Script, When};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Measures how a provider is treated that takes less than is there
#[derive(clap::Args)]
pub struct Governor {
    /// One round of each
    #[arg(long)]
    quick: bool,
}

const CHILDREN: usize = 100;
const AT_ONCE: usize = 10;
/// How long the provider thinks.
const LATENCY: Duration = Duration::from_millis(500);
/// What it tells those that are too many: the least that a header of whole seconds can say.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// What the main agent is told, and what its children are told.
const LEAD: &str = "Have a hundred parts looked at.";
const LOOK: &str = "Look at your part.";

/// What became of one tree.
struct Treated {
    wall: f64,
    sent: usize,
    refused: usize,
    /// Children that did not complete.
    lost: usize,
}

impl Governor {
    pub fn run(self) -> Result<()> {
        if cfg!(debug_assertions) {
            build()?;
            return again();
        }
        meter::allow_open_files();
        line::say(&format!("{}\n", meter::machine()));
        line::head();
        let effort = if self.quick { Effort::Quick } else { Effort::Full };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(measure(effort))
    }
}

async fn measure(effort: Effort) -> Result<()> {
    let (mut paced, mut unpaced, mut ideal) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds() {
        ideal.push(raw().await?);
        paced.push(posse(Pacing::default()).await?);
        unpaced.push(posse(Pacing::Off).await?);
    }
    for (name, treated, goals) in
        [("with a governor", &paced, Some((1.25, 1.6))), ("without", &unpaced, None)]
    {
        let needed = CHILDREN + 2;
        let of = |figure: fn(&Treated) -> usize| {
            Samples::new(treated.iter().map(|it| figure(it) as f64).collect())
        };
        let count = |value: f64| format!("{value:.0}");
        let lost = of(|it| it.lost).shown(count);
        let sent = of(|it| it.sent);
        let goal = |words: &str, value: f64, most: Option<f64>| match most {
            Some(most) => Goal::at_most(&format!("{words} ≤ {most}"), value, most),
            None => Goal::None,
        };
        let ratio = sent.median() / needed as f64;
        Line {
            name: format!("{name}: requests"),
            posse: format!(
                "{} sent, {} refused",
                sent.shown(count),
                of(|it| it.refused).shown(count)
            ),
            raw: format!("{needed} needed"),
            ratio: times(ratio),
            goal: goal("sent ÷ needed", ratio, goals.map(|goals| goals.0)),
        }
        .print();
        Line {
            name: format!("{name}: children lost"),
            posse: lost,
            raw: "0".to_owned(),
            ratio: "–".to_owned(),
            goal: goal("lost", of(|it| it.lost).median(), goals.map(|_| 0.0)),
        }
        .print();
        let rounds: Vec<(f64, f64)> =
            treated.iter().zip(&ideal).map(|(it, ideal)| (it.wall, *ideal)).collect();
        let ratios = Samples::ratios(&rounds);
        Line {
            name: format!("{name}: wall"),
            posse: Samples::new(treated.iter().map(|it| it.wall).collect()).shown(seconds),
            raw: Samples::new(ideal.clone()).shown(seconds),
            ratio: ratios.shown(times),
            goal: goal("wall ÷ raw", ratios.median(), goals.map(|goals| goals.1)),
        }
        .print();
    }
    Ok(())
}

fn script() -> Script {
    let call = |number: usize| {
        let description = format!("Look at part {number}");
        json!({"description": description, "prompt": LOOK, "subagent_type": "explore"})
    };
    let calls = (1..=CHILDREN).map(call);
    let calls = calls.fold(Reply::empty(), |reply, call| reply.and_tool_call("Task", call));
    let lead = Conversation::when(When::any().first_user_contains(LEAD))
        .reply(calls.latency(LATENCY))
        .reply(Reply::text("All of it was looked at.").latency(LATENCY));
    let child = Rule::when(When::any()).reply(Reply::text("It is there.").latency(LATENCY));
    let script = Script::new().conversation(lead).rule(child);
    script.at_once(AT_ONCE).retry_after(RETRY_AFTER).without_capture().without_cache()
}

async fn posse(pacing: Pacing) -> Result<Treated> {
    let fake = FakeModel::start(script()).await?;
    let folder = tempfile::tempdir()?;
    let base = config(&folder.path().join("runs.db"), &fake.url(), CHILDREN + 1);
    let runtime = Runtime::open({
        let mut config: RuntimeConfig = base;
        config.models.pacing = pacing;
        config
    })
    .await?;
    tokio::time::sleep(SETTLED).await;
    let began = Instant::now();
    let spec = RunSpec::new("general-purpose".parse()?, LEAD, folder.path());
    let run = runtime.start(spec).await?;
    let outcome = run.outcome().await?;
    let wall = began.elapsed().as_secs_f64();
    let kin = Kin::ChildrenOf(run.id());
    let rows = runtime.list(&Filter { kin, limit: CHILDREN + 1, ..Filter::default() }).await?;
    let completed =
        rows.iter().filter(|row| row.state.outcome.as_deref() == Some("completed")).count();
    runtime.shutdown().await;
    let (sent, refused) = (fake.count(), fake.counts().status(429));
    fake.shutdown().await;
    if !outcome.is_completed() {
        return Err(format!("the main agent ended otherwise: {outcome}").into());
    }
    Ok(Treated { wall, sent, refused, lost: CHILDREN - completed })
}

/// The time of a client that knows what the provider takes, and sends no more.
async fn raw() -> Result<f64> {
    let fake = FakeModel::start(script()).await?;
    let (client, url): (_, Arc<str>) = (client::build()?, fake.url().into());
    let body = |text: &str| {
        let messages = json!([{"role": "user", "content": text}]);
        let body = json!({
            "model": "claude-sonnet-4-5", "max_tokens": 100, "stream": true, "messages": messages,
        });
        Bytes::from(body.to_string())
    };
    let began = Instant::now();
    ask(&client, &url, body(LEAD)).await?;
    let (slots, mut tasks) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for _ in 0..CHILDREN {
        let (client, url, slots, body) = (client.clone(), url.clone(), slots.clone(), body(LOOK));
        tasks.spawn(async move {
            let _slot = slots.acquire_owned().await?;
            ask(&client, &url, body).await
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    // The last request of the main agent, which is answered as slowly as its first.
    ask(&client, &url, body(LEAD)).await?;
    let wall = began.elapsed().as_secs_f64();
    if fake.counts().status(200) != CHILDREN + 2 {
        return Err("the raw client was refused".into());
    }
    fake.shutdown().await;
    Ok(wall)
}

async fn ask(client: &reqwest::Client, url: &str, body: Bytes) -> Result<()> {
    let mut response = client::post(client, url, body).await?;
    while response.chunk().await?.is_some() {}
    Ok(())
}
