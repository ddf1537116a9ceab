//! What it costs to hand a long conversation over: children read the provider's cache.
//!
//! The fake model counts as a provider does: what a request writes to the cache can be read once
//! its answer has begun.

use crate::bench::{Bench, eventually, within};
use crate::delegation::{children, task};
use posse::protocol::{Context, Event, Usage};
use posse::{AgentRights, AgentSpec, AgentStart, RunSpec};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use serde_json::json;
use std::time::Duration;

/// Files that the parent reads, together about 50,000 tokens.
const FILES: usize = 10;
const CHILDREN: usize = 8;

/// A parent that reads all the files, one a turn, and then hands its conversation to children,
/// whose answers `gate` holds.
fn script(agent: &str, gate: &Gate) -> Script {
    let reads = (0..FILES).map(|number| {
        Reply::text("I read on.").and_tool_call("Read", json!({"file_path": format!("{number}")}))
    });
    let calls = (0..CHILDREN).map(|number| task(agent, &format!("your part is {number}")));
    let calls =
        calls.fold(Reply::text("Who helps?"), |reply, call| reply.and_tool_call("Task", call));
    let replies = reads.chain([calls, Reply::text("done")]);
    let part = Reply::text("my part is done").held_by(gate);
    Script::new()
        .rule(Rule::when(When::any().last_user_contains("your part")).reply(part))
        .conversation(replies.fold(Conversation::when(When::any()), Conversation::reply))
}

/// An agent whose children take over what was said, whatever it is called.
fn forking(name: &str) -> AgentSpec {
    AgentSpec {
        description: "Does a part".to_owned(),
        instructions: format!("You are {name}."),
        rights: AgentRights::to_call(["Read", "Task"]),
        start: AgentStart { context: Context::Fork, ..AgentStart::default() },
        ..AgentSpec::new(name.parse().unwrap())
    }
}

/// What tokens cost against those that no cache has to do with.
fn price(usage: &Usage) -> f64 {
    usage.input_tokens as f64
        + 1.25 * usage.cache_write_tokens as f64
        + 0.1 * usage.cache_read_tokens as f64
}

/// Checks what the children bill when the parent `lead` hands its conversation to `agent`, against
/// one of their contexts at full price.
async fn check(agent: &str, most: f64) {
    let gate = Gate::new();
    let bench = Bench::with(script(agent, &gate), |config| {
        for name in ["lead", "other"] {
            config.definitions.agents.set(forking(name));
        }
        config
    })
    .await;
    for number in 0..FILES {
        let line = format!("A line of file {number} that is as long as a line of code may be.\n");
        bench.write(&number.to_string(), &line.repeat(17_300 / line.len()));
    }
    let spec = RunSpec { agent: "lead".parse().unwrap(), ..bench.spec("lead") };
    let run = bench.runtime.start(spec).await.unwrap();
    // The first is answered when all others are about to ask: those that do not wait for its
    // answer have asked by then, and read nothing of what it writes.
    eventually(async || {
        let mut asking = 0;
        for row in children(&bench, run.id()).await {
            asking += usize::from(bench.kinds(row.id).await.contains(&"model_called"));
        }
        asking == CHILDREN
    })
    .await;
    within(gate.wait_for_held(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.open();
    assert!(within(run.outcome()).await.unwrap().is_completed());
    bench.fake.assert_nothing_refused();
    let rows = children(&bench, run.id()).await;
    assert_eq!(rows.len(), CHILDREN);
    let mut contexts = Vec::new();
    let mut bill = 0.0;
    for row in rows {
        for record in bench.log(row.id).await {
            if let Event::ModelReplied(replied) = record.event {
                contexts.push(replied.usage.all_input_tokens());
                bill += price(&replied.usage);
            }
        }
    }
    assert_eq!(contexts.len(), CHILDREN);
    let context = contexts.iter().max().copied().unwrap();
    assert!((50_000..60_000).contains(&context), "a child begins with {context} tokens");
    let bill = bill / context as f64;
    assert!(bill <= most, "{CHILDREN} children of `{agent}` bill {bill:.3} contexts");
}

#[tokio::test]
async fn eight_forks_of_the_same_agent_bill_less_than_one_context_and_a_fifth() {
    check("lead", 1.2).await;
}

#[tokio::test]
async fn eight_forks_of_another_agent_share_what_the_first_of_them_writes() {
    check("other", 2.1).await;
}
