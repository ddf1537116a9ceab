//! What the fake model does for runs in the background: sessions start children and wait; a child
//! reads a file and answers.

use super::Size;
use crate::bench::server::FILES;
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::time::Duration;

/// The prompt of a session. No other run has this text.
pub const LEAD: &str = "Have all of it looked at, in the background, and tell what came of it.";
/// The prompt of a child.
const FOLLOW: &str = "Look at the first file and say whether all is there.";
/// The prompt of a child whose provider fails.
const UNLUCKY: &str = "Look at the first file, whatever the provider says.";
/// The prompt of a child whose command hangs.
const HUNG: &str = "Run the command that never ends, then say so.";

/// Children that are started with one reply.
const AT_ONCE: usize = 50;
/// How long a command may hang, in milliseconds.
const DEADLINE_MS: u64 = 2_000;

/// The script without faults.
pub fn script(size: Size, latency: Duration) -> Script {
    let calls = (0..size.children).map(|number| call(number, FOLLOW, "explore")).collect();
    follow(Script::new(), calls, latency)
}

/// One of twenty children meets a fault of its provider, after which Posse repeats the call, and one of
/// a hundred calls a command that hangs until its deadline.
pub fn rough_script(size: Size, latency: Duration) -> Script {
    let calls = (0..size.children).map(|number| match number % 100 {
        7 => call(number, HUNG, "general-purpose"),
        unlucky if unlucky % 20 == 3 => call(number, UNLUCKY, "explore"),
        _ => call(number, FOLLOW, "explore"),
    });
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
    let hang = json!({"command": "sleep 600", "timeout": DEADLINE_MS});
    let hung = Reply::text("I run it.").and_tool_call("Bash", hang).latency(latency);
    let script = script.conversation(Conversation::when(said(HUNG)).reply(hung));
    follow(script, calls.collect(), latency)
}

/// Adds the sessions, which make these calls, and the children to a script.
fn follow(script: Script, calls: Vec<Value>, latency: Duration) -> Script {
    let last = |text: &str| Reply::text(text).latency(latency);
    let lead = calls.chunks(AT_ONCE).map(|calls| {
        let begin = Reply::empty().latency(latency);
        let calls = calls.iter().cloned();
        calls.fold(begin, |reply, call| reply.and_tool_call("spawn_subagent", call))
    });
    let lead = lead.fold(Conversation::when(said(LEAD)), Conversation::reply);
    let look = Reply::text("I look.").and_tool_call("Read", json!({"file_path": FILES[0]}));
    script
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

fn call(number: usize, task: &str, agent: &str) -> Value {
    let label = format!("part {number}");
    json!({"task": task, "label": label, "agentId": agent, "announce": "collect"})
}
