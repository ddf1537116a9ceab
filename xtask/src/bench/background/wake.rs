//! A parent that waits until its child has ended: the time from the child's last reply to the parent's
//! next request. One pair at a time, so that nothing else is measured.

use super::smooth::spread;
use crate::bench::Result;
use crate::bench::harness::Effort;
use crate::bench::load::{open_with, spec};
use posse::{Runtime, RuntimeConfig, Status};
use posse_testkit::{Conversation, FakeModel, Gate, Reply, Script, When};
use serde_json::json;
use std::time::{Duration, Instant};

/// A parent and its child, and what holds their replies.
struct Pair {
    lead: String,
    follow: String,
    /// Holds the child's answer.
    child: Gate,
    /// Holds the reply to the request that the parent makes then.
    parent: Gate,
}

/// Measures a runtime whose configuration `change` has changed.
pub async fn measure(
    effort: Effort,
    name: &str,
    change: impl FnOnce(&mut RuntimeConfig),
) -> Result<()> {
    let pair = |number: usize| Pair {
        lead: format!("lead {number}."),
        follow: format!("follow {number}."),
        child: Gate::new(),
        parent: Gate::new(),
    };
    let pairs: Vec<Pair> = (0..effort.pick(20, 200)).map(pair).collect();
    let script = pairs.iter().fold(Script::new(), |script, pair| {
        let spawn = json!({"task": pair.follow, "agentId": "explore", "announce": "followup"});
        let woken = Reply::text("I have heard of it.").held_by(&pair.parent);
        script
            .conversation(
                Conversation::when(When::any().first_user_contains(&pair.lead))
                    .reply(Reply::tool_call("spawn_subagent", spawn))
                    .reply(Reply::text("I wait."))
                    .reply(woken),
            )
            .conversation(
                Conversation::when(When::any().first_user_contains(&pair.follow))
                    .reply(Reply::text("All is there.").held_by(&pair.child)),
            )
    });
    let fake = FakeModel::start(script.without_capture().without_cache()).await?;
    let (runtime, folder) = open_with(&fake.url(), super::SLOTS, change).await?;
    let mut times = Vec::new();
    for pair in &pairs {
        times.push(woken(&runtime, pair, folder.path()).await?);
    }
    runtime.shutdown().await;
    fake.shutdown().await;
    spread(name, times);
    Ok(())
}

/// Seconds from the last reply of the child to the next request of its parent.
async fn woken(runtime: &Runtime, pair: &Pair, workspace: &std::path::Path) -> Result<f64> {
    let run = runtime.start(spec(&pair.lead, workspace)?).await?;
    pair.child.wait_for_held(1).await?;
    while runtime.find(&run.id().to_string()).await?.status != Status::Waiting {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let began = Instant::now();
    pair.child.open();
    pair.parent.wait_for_held(1).await?;
    let took = began.elapsed().as_secs_f64();
    pair.parent.open();
    match run.outcome().await? {
        outcome if outcome.is_completed() => Ok(took),
        outcome => Err(format!("a parent: {outcome}").into()),
    }
}
