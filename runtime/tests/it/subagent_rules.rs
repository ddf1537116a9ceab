//! What settings, a definition and a call say of children: each narrows, and a refusal names the rule.

use crate::background::{completed, lead, results, spawning};
use crate::bench::Bench;
use crate::delegation::children;
use posse::RuntimeConfig;
use posse::protocol::{Announce, Cleanup, Event, SubagentRules};
use posse_testkit::{Reply, Rule, Script, When};
use serde_json::{Value, json};

/// What a main agent is told that makes `call` of `spawn_subagent`, and how many children it has.
async fn refused(call: Value, rules: SubagentRules) -> (String, usize) {
    let script = Script::new()
        .conversation(lead().reply(spawning([call])).reply(Reply::text("done")))
        .rule(Rule::when(When::any()).reply(Reply::text("x")));
    let adjust = |config| RuntimeConfig { subagents: vec![rules], ..config };
    let bench = Bench::with(script, adjust).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let told = results(&bench.log(run.id()).await).remove(0);
    (told, children(&bench, run.id()).await.len())
}

#[tokio::test]
async fn f6_f7_f8_f10_f11_every_refusal_names_the_rule_and_starts_nothing() {
    let none = SubagentRules::default;
    let named = |agents: &[&str]| SubagentRules {
        allowed_agents: Some(agents.iter().map(|it| (*it).to_owned()).collect()),
        ..none()
    };
    let explore = |more: Value| {
        let mut call = json!({"task": "x", "agentId": "explore"});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let checks = [
        // F10, F7, F6, F8 of the cases, and the call's own mistakes.
        (explore(json!({"thinking": "banana"})), none(), "low, medium, high or max"),
        (json!({"task": "x", "agentId": "a/b c"}), none(), "a/b c"),
        (json!({"task": "x", "agentId": "nobody"}), none(), "nobody"),
        (explore(json!({})), named(&["plan"]), "plan"),
        (json!({"task": "x"}), SubagentRules { require_agent: Some(true), ..none() }, "agentId"),
        (explore(json!({"announce": "loudly"})), none(), "steer, followup, collect or silent"),
        (explore(json!({"model": "nobody/knows"})), none(), "nobody"),
        (explore(json!({"task": " "})), none(), "prompt is empty"),
        (explore(json!({"tools": {"allow": ["Fly"]}})), none(), "no tool `Fly`"),
        (explore(json!({"tools": {"inherit": false}})), none(), "tools.inherit"),
        (explore(json!({"output_schema": {"type": 5}})), none(), "output schema"),
        (explore(json!({"context": "half"})), none(), "isolated, fork"),
        (explore(json!({"cleanup": "burn"})), none(), "burn"),
        (explore(json!({"budget": {"cost": -1}})), none(), "more than 0"),
    ];
    for (call, rules, says) in checks {
        let (told, children) = refused(call.clone(), rules).await;
        assert!(told.contains(says), "{call}: {told}");
        assert_eq!(children, 0, "{call}");
    }
    // F6: names are compared whatever their case; `*` is everybody.
    for agents in [&["EXPLORE"][..], &["*"]] {
        let (told, children) = refused(explore(json!({})), named(agents)).await;
        assert!(told.starts_with("started run"), "{told}");
        assert_eq!(children, 1);
    }
}

#[tokio::test]
async fn what_is_switched_off_is_not_offered() {
    let script = Script::new().conversation(lead().reply(Reply::text("done")));
    let off = SubagentRules { enabled: Some(false), ..SubagentRules::default() };
    let bench =
        Bench::with(script, |config| RuntimeConfig { subagents: vec![off], ..config }).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let offered = bench.fake.last_request().tools();
    for tool in ["Task", "spawn_subagent", "subagents"] {
        assert!(!offered.contains(&tool.to_owned()), "{offered:?}");
    }
}

#[tokio::test]
async fn settings_agent_and_call_each_narrow_and_fill_in_what_nobody_said() {
    let call = json!({"task": "look", "agentId": "general-purpose",
        "tools": {"deny": ["Grep"]}, "runTimeoutSeconds": 1.9, "budget": {"turns": 9}});
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([call, json!({"task": "see", "cleanup": "keep"})]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("one"))
                .reply(Reply::text("two")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("x")));
    let rules: SubagentRules = serde_json::from_value(json!({
        "tools": {"deny": ["Bash", "Write"]}, "default_cleanup": "delete",
        "default_announce": "collect", "run_timeout_seconds": 7
    }))
    .unwrap();
    let bench =
        Bench::with(script, |config| RuntimeConfig { subagents: vec![rules], ..config }).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let mut found = Vec::new();
    for row in children(&bench, run.id()).await {
        let Event::RunStarted(started) = bench.log(row.id).await.remove(0).event else { panic!() };
        let has = |tool: &str| started.grant.allows(tool);
        let own = started.grant.budget.turns;
        assert_eq!(own, (!has("Grep")).then_some(9), "{started:?}");
        assert!(has("Read") && !has("Bash") && !has("Write"), "{:?}", started.grant.tools);
        let announce = started.parent.as_ref().unwrap().announce;
        found.push((has("Grep"), started.cleanup, announce, started.limits.wall_ms));
    }
    let collect = Some(Announce::Collect);
    assert_eq!(
        found,
        [
            (false, Cleanup::Delete, collect, Some(1_000)),
            (true, Cleanup::Keep, collect, Some(7_000))
        ]
    );
}
