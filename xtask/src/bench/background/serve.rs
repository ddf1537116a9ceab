//! The fake model of runs in the background: sessions that start children and wait, children that
//! look at a file and answer. It outlives those whom it serves, and says how much it was asked.

use super::Size;
use crate::bench::Result;
use crate::bench::line::say;
use crate::bench::process::{Process, next_order};
use crate::bench::serve::{FILES, Seen};
use posse_testkit::{Conversation, FakeModel, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::time::Duration;

/// Serves sessions and their children until told to end
#[derive(clap::Args)]
pub struct ServeCrowd {
    /// How many sessions
    #[arg(long)]
    sessions: usize,
    /// How many children each starts
    #[arg(long)]
    children: usize,
    /// Before each reply
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// Some answers fail, and some commands hang
    #[arg(long)]
    rough: bool,
}

/// What a session is told, and nobody else.
pub const LEAD: &str = "Have all of it looked at, in the background, and tell what came of it.";
/// What a child is told.
const FOLLOW: &str = "Look at the first file and say whether all is there.";
/// What a child is told whose provider fails.
const UNLUCKY: &str = "Look at the first file, whatever the provider says.";
/// What a child is told whose command hangs.
const HUNG: &str = "Run the command that never ends, then say so.";

/// Children that are started with one reply.
const AT_ONCE: usize = 50;
/// How long a command may hang, in milliseconds.
const DEADLINE_MS: u64 = 2_000;

/// The script. With trouble, one of twenty children meets a fault of its provider (and makes its
/// call again), and one of a hundred a command that hangs until its deadline.
pub fn script(size: Size, latency: Duration, rough: bool) -> Script {
    let last = |text: &str| Reply::text(text).latency(latency);
    let calls: Vec<Value> = (0..size.children).map(|number| call(number, rough)).collect();
    let lead = calls.chunks(AT_ONCE).map(|calls| {
        let calls = calls.iter().cloned();
        let begin = Reply::empty().latency(latency);
        calls.fold(begin, |reply, call| reply.and_tool_call("spawn_subagent", call))
    });
    let lead = lead.fold(Conversation::when(said(LEAD)), Conversation::reply);
    let look = Reply::text("I look.").and_tool_call("Read", json!({"file_path": FILES[0]}));
    let hang = json!({"command": "sleep 600", "timeout": DEADLINE_MS});
    let mut script = Script::new();
    let faults = size.runs() / 20;
    for (share, fault) in [
        (5, Reply::error(529, "overloaded")),
        (3, Reply::error(500, "an error")),
        (2, Reply::text("half of an").fault("cut-after-text")),
    ] {
        let times = (faults * share / 10) as u64;
        script = script.rule(Rule::when(said(UNLUCKY)).reply(fault.latency(latency)).times(times));
    }
    let hung = Reply::text("I run it.").and_tool_call("Bash", hang).latency(latency);
    script
        .conversation(Conversation::when(said(HUNG)).reply(hung))
        .conversation(lead.reply(last("I wait for them.")))
        .rule(Rule::when(said(LEAD)).reply(last("I have heard of them.")))
        .conversation(
            Conversation::when(When::any())
                .reply(look.latency(latency))
                .reply(last("I have seen it, and it is all there.")),
        )
}

fn said(prompt: &str) -> When {
    When::any().first_user_contains(prompt)
}

fn call(number: usize, rough: bool) -> Value {
    let (task, agent) = match number % 100 {
        7 if rough => (HUNG, "general-purpose"),
        unlucky if rough && unlucky % 20 == 3 => (UNLUCKY, "explore"),
        _ => (FOLLOW, "explore"),
    };
    let label = format!("part {number}");
    json!({"task": task, "label": label, "agentId": agent, "announce": "collect"})
}

impl ServeCrowd {
    pub async fn run(self) -> Result<()> {
        let size = Size { sessions: self.sessions, children: self.children };
        let script = script(size, Duration::from_millis(self.latency_ms), self.rough);
        let fake = FakeModel::start(script.without_capture().without_cache()).await?;
        say(&json!(fake.url()).to_string());
        let seen = || {
            let (requests, refused, abandoned) = (fake.count(), fake.refused(), fake.abandoned());
            serde_json::to_string(&Seen { requests, refused, abandoned })
        };
        while let Some(order) = next_order().await? {
            say(&seen()?);
            if order == "end" {
                break;
            }
        }
        fake.shutdown().await;
        Ok(())
    }
}

/// The fake model from outside.
pub struct Server {
    process: Process,
    pub url: String,
}

impl Server {
    pub fn smooth(size: Size, latency: Duration) -> Result<Self> {
        Self::start(size, latency, None)
    }

    pub fn rough(size: Size, latency: Duration) -> Result<Self> {
        Self::start(size, latency, Some("--rough"))
    }

    fn start(size: Size, latency: Duration, option: Option<&str>) -> Result<Self> {
        let mut arguments = vec!["serve-crowd".to_owned()];
        arguments.extend(size.arguments());
        arguments.push(format!("--latency-ms={}", latency.as_millis()));
        arguments.extend(option.map(str::to_owned));
        let mut process = Process::part(&arguments)?;
        let url = process.hear()?;
        Ok(Server { process, url })
    }

    /// Requests so far.
    pub fn requests(&mut self) -> Result<usize> {
        self.process.tell("count")?;
        Ok(self.process.hear::<Seen>()?.requests)
    }

    /// Ends it, and says what it has seen.
    pub fn end(mut self) -> Result<Seen> {
        self.process.tell("end")?;
        let seen = self.process.hear()?;
        self.process.wait()?;
        Ok(seen)
    }
}
