//! Budgets through the whole runtime: a tree stops at its root's, siblings never overshoot, and
//! what others hold is waited for.

use crate::bench::{Bench, eventually, within};
use crate::delegation::{children, main_agent, task};
use posse::ModelChoice;
use posse::protocol::{Event, Limit, Outcome, Record, Usd};
use posse::store::{Filter, Kin};
use posse::{AgentSpec, Budget, Limits, RunId, RunRow, RunSpec};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use serde_json::json;

/// A main agent that hands out `count` tasks, and children that look around for ever.
fn busy(count: usize) -> Script {
    let calls = (0..count).map(|index| task("general-purpose", &format!("work {index}")));
    Script::new()
        .conversation(main_agent(calls))
        .rule(Rule::when(When::any()).reply(Reply::text("busy").and_tool_call("List", json!({}))))
}

async fn start(bench: &Bench, budget: Budget) -> RunId {
    bench.runtime.start(RunSpec { budget, ..bench.spec("lead") }).await.unwrap().id()
}

async fn outcome(bench: &Bench, run: RunId) -> Outcome {
    within(bench.runtime.handle(run).outcome()).await.unwrap()
}

async fn tree(bench: &Bench, root: RunId) -> Vec<RunRow> {
    let filter = Filter { kin: Kin::TreeOf(root), ..Filter::default() };
    bench.runtime.list(&filter).await.unwrap()
}

/// The text of each result in a log.
fn results(log: &[Record]) -> Vec<String> {
    let results = log.iter().filter_map(|record| match &record.event {
        Event::ToolFinished(finished) => Some(finished.output.joined_text()),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn a_tree_stops_at_its_root_s_money() {
    // The root hands out three tasks whenever it is asked, and those it calls look around for ever.
    let tasks = (0..3).fold(Reply::empty(), |reply, index| {
        reply.and_tool_call("Task", task("general-purpose", &format!("work {index}")))
    });
    let script = Script::new()
        .rule(Rule::when(When::any().last_user_contains("lead")).reply(tasks))
        .rule(Rule::when(When::any()).reply(Reply::text("busy").and_tool_call("List", json!({}))));
    let bench = Bench::new(script).await;
    let limit = Usd::from_dollars(0.1);
    let run = start(&bench, Budget { cost: Some(limit), ..Budget::default() }).await;
    let outcome = outcome(&bench, run).await;
    let Outcome::OutOfBudget { limit: of, holder, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((of, holder), (Limit::Cost, run));
    let rows = tree(&bench, run).await;
    assert!(rows.len() >= 4, "{}", rows.len());
    let spent: u64 = rows.iter().map(|row| row.most_cost().0).sum();
    let root = rows.iter().find(|row| row.id == run).unwrap();
    assert!(spent <= limit.0, "{} of {limit}", Usd(spent));
    assert_eq!((root.funds.drawn.unwrap().cost.0, root.funds.held.cost.0), (spent, 0));
    for row in rows.iter().filter(|row| row.id != run) {
        assert_eq!(row.state.outcome.as_deref(), Some("out of budget"), "{}", row.state.note);
        assert!(
            row.state.note.contains(&format!("cost of run {}", run.short())),
            "{}",
            row.state.note
        );
    }
}

#[tokio::test]
async fn siblings_side_by_side_take_no_more_turns_than_there_are() {
    let script = Script::new()
        .conversation(main_agent((0..6).map(|it| task("general-purpose", &format!("work {it}")))))
        .rule(Rule::when(When::any()).reply(Reply::text("did it")));
    let bench = Bench::new(script).await;
    let run = start(&bench, Budget { turns: Some(5), ..Budget::default() }).await;
    let outcome = outcome(&bench, run).await;
    assert!(outcome.is_completed(), "{outcome:?}");
    assert_eq!(bench.fake.count(), 5, "two of the root, three of its children");
    let rows = children(&bench, run).await;
    let ended =
        |kind: &str| rows.iter().filter(|it| it.state.outcome.as_deref() == Some(kind)).count();
    assert_eq!((ended("completed"), ended("out of budget")), (3, 3));
    // Going on, it has as much as it had at first.
    bench.runtime.send(run, "what have you got?").await.unwrap();
    eventually(async || tree(&bench, run).await.iter().any(|row| row.spending.turns == 3)).await;
    let again = within(bench.runtime.handle(run).outcome()).await.unwrap();
    assert!(again.is_completed(), "{again}");
    let root = tree(&bench, run).await.into_iter().find(|row| row.id == run).unwrap();
    assert_eq!(root.funds.drawn.unwrap().turns, 1);
}

#[tokio::test]
async fn a_child_leaves_whoever_waits_for_it_a_turn_to_say_what_it_came_to() {
    let bench = Bench::new(busy(1)).await;
    let run = start(&bench, Budget { turns: Some(4), ..Budget::default() }).await;
    let outcome = outcome(&bench, run).await;
    assert!(outcome.is_completed(), "{outcome:?}");
    let child = children(&bench, run).await.remove(0);
    assert_eq!((child.spending.turns, child.state.outcome.as_deref()), (2, Some("out of budget")));
    let told = results(&bench.log(run).await).remove(0);
    assert!(told.contains("busy"), "{told}");
}

#[tokio::test]
async fn tool_calls_of_a_tree_are_counted_together() {
    let bench = Bench::new(busy(2)).await;
    let run = start(&bench, Budget { tool_calls: Some(7), ..Budget::default() }).await;
    let outcome = outcome(&bench, run).await;
    let rows = tree(&bench, run).await;
    let calls: u64 = rows.iter().map(|row| row.spending.tool_calls).sum();
    assert_eq!(calls, 7, "two of them start the children");
    // The root still has its say: its children are over their limit, not it.
    assert!(outcome.is_completed(), "{outcome}");
    for row in children(&bench, run).await {
        assert_eq!(row.state.outcome.as_deref(), Some("out of budget"), "{}", row.state.note);
    }
}

#[tokio::test]
async fn a_child_waits_for_what_others_hold_and_then_goes_on() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(main_agent(["one", "two"].map(|it| task("general-purpose", it))))
        .rule(Rule::when(When::any()).reply(Reply::text("did it").held_by(&gate)));
    let bench = Bench::new(script).await;
    // Whoever comes first reserves nearly all of it.
    let run = start(&bench, Budget { output_tokens: Some(6_000), ..Budget::default() }).await;
    within(gate.wait_for_held(1)).await.unwrap();
    eventually(async || bench.runtime.executing() == 2).await;
    gate.open();
    assert_eq!(outcome(&bench, run).await, Outcome::completed("done"));
    let mut calls = Vec::new();
    for child in children(&bench, run).await {
        assert_eq!(child.state.outcome.as_deref(), Some("completed"));
        let log = bench.log(child.id).await;
        let at = |kind: &str| log.iter().find(|it| it.event.kind() == kind).unwrap().at;
        calls.push((at("model_called"), at("model_replied")));
    }
    calls.sort_unstable();
    assert!(calls[1].0 >= calls[0].1, "the second began before the first had ended: {calls:?}");
}

#[tokio::test]
async fn a_child_that_does_not_fit_is_refused_with_rule_and_number() {
    let costly = AgentSpec {
        description: "spends much".to_owned(),
        instructions: "Spend.".to_owned(),
        budget: Budget { turns: Some(50), ..Budget::default() },
        ..AgentSpec::new("costly".parse().unwrap())
    };
    let script = Script::new()
        .conversation(main_agent([
            task("costly", "a"),
            task("general-purpose", "b"),
            task("general-purpose", "c"),
        ]))
        .rule(Rule::when(When::any()).reply(Reply::text("did it")));
    let bench = Bench::with(script, |config| {
        config.definitions.agents.set(costly);
        config
    })
    .await;
    let budget = Budget { turns: Some(40), children: Some(0), ..Budget::default() };
    let run = start(&bench, budget).await;
    assert_eq!(outcome(&bench, run).await, Outcome::completed("done"));
    assert!(children(&bench, run).await.is_empty());
    let told = results(&bench.log(run).await);
    // They are refused side by side, in any order.
    let (of_turns, others): (Vec<&String>, Vec<&String>) =
        told.iter().partition(|text| text.contains("of its turns left"));
    assert_eq!(of_turns.len(), 1, "{told:?}");
    assert!(of_turns[0].contains("has 38 of its turns left, and 50 would be needed"), "{told:?}");
    for refused in others {
        assert!(refused.starts_with("no task was started: "), "{refused}");
        assert!(refused.contains("has 0 of its children left, and 1 would be needed"), "{refused}");
    }
}

#[tokio::test]
async fn what_a_child_leaves_of_its_budget_comes_back() {
    let thrifty = AgentSpec {
        description: "spends little".to_owned(),
        instructions: "Save.".to_owned(),
        budget: Budget { turns: Some(10), ..Budget::default() },
        ..AgentSpec::new("thrifty".parse().unwrap())
    };
    let reply = |prompt: &str| Reply::empty().and_tool_call("Task", task("thrifty", prompt));
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(reply("a"))
        .reply(reply("b"))
        .reply(Reply::text("done"));
    let script =
        Script::new().conversation(lead).rule(Rule::when(When::any()).reply(Reply::text("ok")));
    let bench = Bench::with(script, |config| {
        config.definitions.agents.set(thrifty);
        config
    })
    .await;
    let run = start(&bench, Budget { turns: Some(14), ..Budget::default() }).await;
    assert_eq!(outcome(&bench, run).await, Outcome::completed("done"));
    let rows = tree(&bench, run).await;
    assert_eq!(rows.iter().map(|row| row.spending.turns).sum::<u64>(), 5);
    let root = rows.iter().find(|row| row.id == run).unwrap();
    assert_eq!((root.funds.drawn.unwrap().turns, root.funds.held.turns), (5, 0));
}

#[tokio::test]
async fn a_run_s_budget_comes_before_its_agent_s_and_that_before_the_settings() {
    let script = Script::new()
        .conversation(main_agent([task("explore", "look")]))
        .rule(Rule::when(When::any()).reply(Reply::text("seen")));
    let bench = Bench::with(script, |mut config| {
        let name = "general-purpose".parse().unwrap();
        let mut agent = config.definitions.agents.current().find(&name).unwrap().clone();
        agent.budget = Budget { turns: Some(20), tool_calls: Some(30), ..Budget::default() };
        agent.limits.wall_ms = Some(60_000);
        config.definitions.agents.set(agent);
        config.budget.tool_calls = Some(99);
        config.budget.input_tokens = Some(1_000_000);
        config.limits.wall_ms = Some(120_000);
        config
    })
    .await;
    let run = start(&bench, Budget { turns: Some(9), ..Budget::default() }).await;
    assert!(outcome(&bench, run).await.is_completed());
    let expected = Budget {
        turns: Some(9),
        tool_calls: Some(30),
        input_tokens: Some(1_000_000),
        children: Some(10_000),
        ..Budget::default()
    };
    let rows = tree(&bench, run).await;
    let root = rows.iter().find(|row| row.id == run).unwrap();
    assert_eq!(root.funds.budget, Some(expected));
    let child = rows.iter().find(|row| row.id != run).unwrap();
    assert_eq!(
        (&child.funds.budget, child.funds.account),
        (&None, Some(run)),
        "it draws on its root's"
    );
    let Event::RunStarted(started) = &bench.log(child.id).await[0].event else { panic!() };
    assert_eq!(started.limits.wall_ms, Some(60_000), "no more time than its parent has");
}

#[tokio::test]
async fn the_time_of_a_root_is_over_for_everyone_below_it() {
    const WALL_MS: u64 = 1_500;
    let gate = Gate::new();
    let said = |text: &str| Conversation::when(When::any().first_user_contains(text));
    let middle = json!({"task": "middle", "agentId": "general-purpose"});
    let script = Script::new()
        .conversation(
            said("lead")
                .reply(Reply::tool_call("spawn_subagent", middle))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("more than there is time for")),
        )
        .conversation(
            said("middle")
                .reply(Reply::tool_call("Task", task("explore", "leaf")))
                .reply(Reply::text("more than there is time for")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let bench = Bench::with(script, |mut config| {
        config.delegation.max_depth = 2;
        config
    })
    .await;
    let limits = Limits { wall_ms: Some(WALL_MS), ..Limits::default() };
    let spec = RunSpec { limits, ..bench.spec("lead") };
    let run = bench.runtime.start(spec).await.unwrap().id();
    within(gate.wait_for_held(1)).await.unwrap();
    // Nobody but the one at the bottom is at work: those above it have no slot, and no clock.
    eventually(async || bench.runtime.executing() == 1).await;
    let mut left = WALL_MS;
    let mut above = run;
    for _ in 0..2 {
        let below = children(&bench, above).await.remove(0).id;
        let Event::RunStarted(started) = bench.log(below).await.remove(0).event else { panic!() };
        let time = &started.parent.as_ref().unwrap().time;
        assert!(time.left_ms.unwrap() <= left, "{time:?} of {left}");
        (above, left) = (below, time.left_ms.unwrap());
    }
    for row in tree(&bench, run).await {
        let ended = outcome(&bench, row.id).await;
        assert_eq!(ended.kind(), "timed out", "{}: {ended}", row.about.title);
    }
    assert_eq!(bench.fake.count(), 4, "nobody is asked anything when the time is up");
    let log = bench.log(run).await;
    let Event::RunFinished(finished) = &log.last().unwrap().event else { panic!("{log:?}") };
    assert!(finished.worked_ms >= WALL_MS, "{} ms", finished.worked_ms);
    gate.open();
}

#[tokio::test]
async fn money_is_not_limited_where_the_price_is_not_known() {
    let bench = Bench::new(busy(1)).await;
    let model = Some("anthropic/brand-new".to_owned());
    let budget = Budget { cost: Some(Usd::from_dollars(1.0)), ..Budget::default() };
    let spec = RunSpec {
        budget,
        models: ModelChoice::of(model),
        limits: Limits::default(),
        ..bench.spec("go")
    };
    let error = bench.runtime.start(spec).await.map(|run| run.id()).unwrap_err().to_string();
    assert!(error.contains("the price of anthropic/brand-new is not known"), "{error}");
}
