//! What children cost that take over a long conversation. Tokens are counted as a provider with a
//! prompt cache does, and nothing is timed: the figure is the same on every machine.

use crate::bench::Result;
use crate::bench::line::{Line, times};
use crate::bench::load::config;
use posse::protocol::{Context, Event};
use posse::store::{Filter, Kin};
use posse::{AgentRights, AgentSpec, AgentStart, RunSpec, Runtime, Seq};
use posse_testkit::{Conversation, FakeModel, Reply, Rule, Script, When};
use serde_json::json;
use std::time::Duration;

/// Files that the parent reads, together about 50,000 tokens.
const FILES: usize = 10;
const CHILDREN: usize = 8;
/// The price of a token that is written to the cache or read from it, against one that is neither.
const WRITTEN: f64 = 1.25;
const READ: f64 = 0.1;

pub async fn measure() -> Result<()> {
    for (whose, agent, most) in [("the same agent", "lead", 1.2), ("another agent", "other", 2.1)] {
        let Bill { contexts, tokens } = bill(agent).await?;
        let line =
            Line::new(format!("forks: {CHILDREN} for {whose}"), format!("{contexts:.2} contexts"));
        line.raw(format!("{CHILDREN} of {tokens} tokens without a cache"))
            .ratio(times(contexts / CHILDREN as f64))
            .goal(format!("≤ {most} contexts"), contexts <= most)
            .print();
    }
    Ok(())
}

/// The cost of the children.
struct Bill {
    /// In prices of one context without a cache.
    contexts: f64,
    /// Tokens of one context.
    tokens: u64,
}

async fn bill(agent: &str) -> Result<Bill> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace)?;
    for number in 0..FILES {
        let line = format!("A line of file {number} that is as long as a line of code may be.\n");
        std::fs::write(workspace.join(number.to_string()), line.repeat(17_300 / line.len()))?;
    }
    let fake = FakeModel::start(script(agent)).await?;
    let config = config(&folder.path().join("runs.db"), &fake.url(), CHILDREN + 1);
    for name in ["lead", "other"] {
        config.definitions.agents.set(AgentSpec {
            description: "Does a part".to_owned(),
            instructions: format!("You are {name}."),
            rights: AgentRights::to_call(["Read", "Task"]),
            start: AgentStart { context: Context::Fork, ..AgentStart::default() },
            ..AgentSpec::new(name.parse()?)
        });
    }
    let runtime = Runtime::open(config).await?;
    let run = runtime.start(RunSpec::new("lead".parse()?, "Look at it all.", &workspace)).await?;
    let outcome = run.outcome().await?;
    let below = Filter { kin: Kin::ChildrenOf(run.id()), limit: CHILDREN + 1, ..Filter::default() };
    let (mut tokens, mut calls, mut price) = (0, 0, 0.0);
    for row in runtime.list(&below).await? {
        for record in runtime.read(row.id, Seq::ZERO, usize::MAX).await? {
            let Event::ModelReplied(replied) = record.event else { continue };
            let usage = replied.usage;
            tokens = usage.all_input_tokens().max(tokens);
            calls += 1;
            price += usage.input_tokens as f64
                + WRITTEN * usage.cache_write_tokens as f64
                + READ * usage.cache_read_tokens as f64;
        }
    }
    runtime.shutdown().await;
    fake.shutdown().await;
    if !outcome.is_completed() || calls != CHILDREN {
        return Err(format!("{calls} calls of {CHILDREN} children: {outcome}").into());
    }
    Ok(Bill { contexts: price / tokens as f64, tokens })
}

/// A parent that reads all the files, one a turn, and then hands its conversation to children.
fn script(agent: &str) -> Script {
    let reads = (0..FILES).map(|number| {
        Reply::text("I read on.").and_tool_call("Read", json!({"file_path": number.to_string()}))
    });
    let calls = (0..CHILDREN).map(|number| {
        let prompt = format!("Your part is {number}.");
        json!({"description": "Do a part", "prompt": prompt, "subagent_type": agent})
    });
    let calls = calls.fold(Reply::empty(), |reply, call| reply.and_tool_call("Task", call));
    let replies = reads.chain([calls, Reply::text("All is done.")]);
    // If children did not wait for each other, all would have asked before the first is answered.
    let part = Reply::text("My part is done.").latency(Duration::from_secs(1));
    Script::new()
        .rule(Rule::when(When::any().last_user_contains("Your part")).reply(part))
        .conversation(replies.fold(Conversation::when(When::any()), Conversation::reply))
}
