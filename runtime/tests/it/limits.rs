//! Limits through the whole runtime: the outcome names the limit, the agent was told before.

use crate::bench::{Bench, within};
use posse::ModelChoice;
use posse::protocol::{Event, Limit, Outcome, Sender, Usd};
use posse::{Limits, RunSpec};
use posse_testkit::{Gate, Reply, Rule, Script, When};
use serde_json::json;

fn busy() -> Script {
    Script::always(Reply::text("working").and_tool_call("List", json!({})))
}

async fn check(limits: Limits, script: Script) -> (Outcome, Bench) {
    let bench = Bench::new(script).await;
    let spec = RunSpec { limits, ..bench.spec("work for ever") };
    let run = bench.runtime.start(spec).await.unwrap();
    let outcome = within(run.outcome()).await.unwrap();
    let told = bench.log(run.id()).await.into_iter().filter(|record| {
        matches!(&record.event, Event::MessageReceived(m) if matches!(m.from, Sender::LimitNear(_)))
    });
    assert_eq!(told.count(), 1, "told once");
    (outcome, bench)
}

#[tokio::test]
async fn turns() {
    let (outcome, bench) = check(Limits { turns: Some(3), ..Limits::default() }, busy()).await;
    assert_eq!(outcome, Outcome::stopped(Limit::Turns, "working"));
    assert_eq!(bench.fake.count(), 3);
    let last = bench.fake.requests()[2].body["messages"].to_string();
    assert!(last.contains("close to your limit of turns"), "{last}");
}

#[tokio::test]
async fn an_agent_that_reports_when_told_completes() {
    let script = Script::new()
        .rule(
            Rule::when(When::any().last_user_contains("close to your limit"))
                .reply(Reply::text("a report")),
        )
        .rule(Rule::when(When::any()).reply(Reply::tool_call("List", json!({}))));
    let (outcome, _) = check(Limits { turns: Some(4), ..Limits::default() }, script).await;
    assert_eq!(outcome, Outcome::completed("a report"));
}

#[tokio::test]
async fn money_is_never_overspent() {
    let limit = Usd::from_dollars(0.05);
    let (outcome, bench) = check(Limits { cost: Some(limit), ..Limits::default() }, busy()).await;
    assert!(matches!(outcome, Outcome::Stopped { limit: Limit::Cost, .. }), "{outcome:?}");
    let rows = bench.runtime.list(&posse::store::Filter::default()).await.unwrap();
    assert!(rows[0].most_cost() <= limit, "{}", rows[0].most_cost());
}

#[tokio::test]
async fn a_limit_of_cost_is_refused_where_the_price_is_not_known() {
    let bench = Bench::new(busy()).await;
    let limits = Limits { cost: Some(Usd::from_dollars(1.0)), ..Limits::default() };
    let model = Some("anthropic/brand-new".to_owned());
    let error = bench
        .runtime
        .start(RunSpec { limits, models: ModelChoice::of(model), ..bench.spec("go") })
        .await;
    let error = error.map(|run| run.id()).unwrap_err().to_string();
    assert!(error.contains("the price of anthropic/brand-new is not known"), "{error}");
}

#[tokio::test]
async fn the_run_comes_before_the_agent_and_the_agent_before_the_settings() {
    let script = Script::always(Reply::text("done"));
    let bench = Bench::with(script, |mut config| {
        let mut agent =
            config.definitions.agents.current().find(&"explore".parse().unwrap()).unwrap().clone();
        agent.limits.turns = Some(20);
        config.definitions.agents.set(agent);
        config.limits = Limits { turns: Some(40), tool_calls: Some(7), ..Limits::default() };
        config
    })
    .await;
    for (asked, expected) in [(None, 20), (Some(30), 30)] {
        let limits = Limits { turns: asked, ..Limits::default() };
        let agent = "explore".parse().unwrap();
        let run = bench.runtime.start(RunSpec { limits, agent, ..bench.spec("go") }).await.unwrap();
        let log = bench.log(run.id()).await;
        let Event::RunStarted(started) = &log[0].event else { panic!("{log:?}") };
        assert_eq!((started.limits.turns, started.limits.tool_calls), (Some(expected), Some(7)));
    }
}

#[tokio::test]
async fn time_interrupts_a_model_call() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("so far").held_after_deltas(1, &gate));
    let bench = Bench::new(script).await;
    let limits = Limits { wall_ms: Some(300), ..Limits::default() };
    let run = bench.runtime.start(RunSpec { limits, ..bench.spec("go") }).await.unwrap();
    match within(run.outcome()).await.unwrap() {
        Outcome::TimedOut { limit_ms: 300, partial, .. } => assert!(!partial.is_empty()),
        other => panic!("{other:?}"),
    }
}
