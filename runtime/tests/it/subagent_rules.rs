//! What settings, a definition and a call say of children: each narrows, and a refusal names the rule.

use crate::background::{completed, lead, results, spawning};
use crate::bench::Bench;
use crate::delegation::children;
use posse::RuntimeConfig;
use posse::protocol::{AgentSpec, Announce, Budget, Cleanup, Event, Limits, SubagentRules, Usd};
use posse_testkit::{Reply, Rule, Script, When};
use serde_json::{Value, json};

/// What a main agent is told that makes `call` of `spawn_subagent`, and how many children it has.
async fn refused(call: Value, rules: SubagentRules) -> (String, usize) {
    let script = Script::new()
        .conversation(lead().reply(spawning([call])).reply(Reply::text("done")))
        .rule(Rule::when(When::any()).reply(Reply::text("x")));
    let adjust = |mut config: RuntimeConfig| {
        config.delegation.subagents = vec![rules];
        config
    };
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
        // What could not be kept is not passed over.
        (explore(json!({"sandbox": "require"})), none(), "unknown field `sandbox`"),
        (explore(json!({"attachments": []})), none(), "unknown field `attachments`"),
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
    let script = lead().reply(spawning([json!({"task": "x"})])).reply(Reply::text("done"));
    let script = Script::new().conversation(script);
    let off = SubagentRules { enabled: Some(false), ..SubagentRules::default() };
    let bench = Bench::with(script, |mut config| {
        config.delegation.subagents = vec![off];
        config
    })
    .await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let offered = bench.fake.last_request().tools();
    for tool in ["Task", "spawn_subagent", "subagents"] {
        assert!(!offered.contains(&tool.to_owned()), "{offered:?}");
    }
    let told = results(&bench.log(run.id()).await).remove(0);
    assert!(told.contains("`subagents.enabled` is false"), "{told}");
}

/// A run that is told to spawn or to use `Task`, and may not hand on work: what it is told each time.
async fn told_to_hand_on(adjust: impl FnOnce(RuntimeConfig) -> RuntimeConfig) -> Vec<String> {
    let task = json!({"description": "x", "prompt": "x", "subagent_type": "general-purpose"});
    let script = lead()
        .reply(Reply::tool_call("Task", task))
        .reply(spawning([json!({"task": "x", "agentId": "general-purpose"})]))
        .reply(Reply::text("done"));
    let bench = Bench::with(Script::new().conversation(script), adjust).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    assert_eq!(children(&bench, run.id()).await.len(), 0);
    results(&bench.log(run.id()).await)
}

#[tokio::test]
async fn who_is_denied_task_starts_nobody_in_another_way() {
    for told in told_to_hand_on(|config| {
        let lead = "general-purpose".parse().unwrap();
        let mut agent = config.definitions.agents.current().find(&lead).unwrap().clone();
        agent.rights.disallowed_tools = ["Task", "Edit", "Write"].map(str::to_owned).to_vec();
        config.definitions.agents.set(agent);
        config
    })
    .await
    {
        assert!(told.contains("outside what this agent was granted"), "{told}");
    }
    for (list, says) in [("deny", "denies this"), ("ask", "needs a person's approval")] {
        let told = told_to_hand_on(|mut config| {
            let rules = vec!["Task".to_owned()];
            match list {
                "deny" => config.permissions.rules.deny = rules,
                _ => config.permissions.rules.ask = rules,
            }
            config
        });
        for told in told.await {
            assert!(told.contains(says), "{list}: {told}");
        }
    }
}

/// The limits and the budget of a child that is called with `call`, where its agent and the settings
/// have something to say.
async fn given(call: Value) -> (Limits, Budget) {
    let mut call = call;
    call["task"] = json!("look");
    call["agentId"] = json!("explore");
    let script = Script::new()
        .conversation(
            lead().reply(spawning([call])).reply(Reply::text("I wait")).reply(Reply::text("done")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("x")));
    let bench = Bench::with(script, |mut config| {
        let mut agent =
            config.definitions.agents.current().find(&"explore".parse().unwrap()).unwrap().clone();
        agent.limits.cost = Some(Usd::from_dollars(0.5));
        agent.budget = Budget { turns: Some(8), ..Budget::default() };
        config.definitions.agents.set(agent);
        let rules = json!({"run_timeout_seconds": 77});
        config.delegation.subagents = vec![serde_json::from_value(rules).unwrap()];
        config
    })
    .await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let row = children(&bench, run.id()).await.remove(0);
    let Event::RunStarted(started) = bench.log(row.id).await.remove(0).event else { panic!() };
    (started.limits.clone(), started.grant.budget.clone())
}

#[tokio::test]
async fn a_call_narrows_what_its_agent_may_spend_and_cannot_widen_it() {
    let (limits, budget) = given(json!({"budget": {"turns": 1000, "cost": 2}})).await;
    assert_eq!((budget.turns, budget.cost), (Some(8), Some(Usd::from_dollars(2.0))));
    assert_eq!(limits.cost, Some(Usd::from_dollars(0.5)));
    let (_, budget) = given(json!({"budget": {"turns": 3}})).await;
    assert_eq!(budget.turns, Some(3));
}

#[tokio::test]
async fn f12_the_time_that_a_call_says_comes_before_the_usual_one_and_none_is_none() {
    for (call, expected) in [
        (json!({}), Some(77_000)),
        (json!({"runTimeoutSeconds": 600}), Some(600_000)),
        (json!({"timeoutSeconds": 5}), Some(5_000)),
        (json!({"runTimeoutSeconds": 0}), None),
        (json!({"runTimeoutSeconds": -4}), None),
    ] {
        assert_eq!(given(call.clone()).await.0.wall_ms, expected, "{call}");
    }
}

#[tokio::test]
async fn c5_a_child_that_never_stops_is_stopped_where_nobody_has_said_when() {
    assert_eq!(given(json!({})).await.0.turns, Some(100));
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
    let bench = Bench::with(script, |mut config| {
        config.delegation.subagents = vec![rules];
        config
    })
    .await;
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

#[tokio::test]
async fn what_a_call_or_the_settings_deny_stays_denied_below_the_child() {
    let call = json!({"task": "look", "agentId": "helper", "tools": {"deny": ["Grep"]}});
    let deeper = json!({"description": "x", "prompt": "go deep down", "subagent_type": "helper"});
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([call]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("one"))
                .reply(Reply::text("two")),
        )
        .rule(Rule::when(When::any().first_user_contains("deep down")).reply(Reply::text("x")))
        .rule(Rule::when(When::any()).once().reply(Reply::tool_call("Task", deeper)))
        .rule(Rule::when(When::any()).reply(Reply::text("x")));
    let rules: SubagentRules =
        serde_json::from_value(json!({"tools": {"deny": ["Write"]}})).unwrap();
    let bench = Bench::with(script, |mut config| {
        config.delegation.max_depth = 2;
        let lead = "general-purpose".parse().unwrap();
        let mut agent = config.definitions.agents.current().find(&lead).unwrap().clone();
        let helper = AgentSpec { name: "helper".parse().unwrap(), ..agent.clone() };
        config.definitions.agents.set(helper);
        agent.children.subagents = rules;
        config.definitions.agents.set(agent);
        config
    })
    .await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let child = children(&bench, run.id()).await.remove(0);
    let grandchild = children(&bench, child.id).await.remove(0);
    let Event::RunStarted(started) = bench.log(grandchild.id).await.remove(0).event else {
        panic!()
    };
    let has = |tool: &str| started.grant.allows(tool);
    assert!(has("Read") && !has("Grep") && !has("Write"), "{:?}", started.grant.tools);
}
