//! More calls than a provider takes: they wait for leave, few are refused, none is lost.

use crate::bench::{Bench, eventually, within};
use posse::ModelChoice;
use posse::protocol::{CancelScope, Event, Outcome};
use posse::{Pacing, Provider, RunHandle, RunSpec, RuntimeConfig};
use posse_testkit::{FakeModel, Gate, Reply, Rule, Script, When};
use std::time::Duration;

const MANY: usize = 100;

fn wide(config: RuntimeConfig) -> RuntimeConfig {
    {
        let mut config: RuntimeConfig = config;
        config.scheduling.max_concurrent = MANY;
        config
    }
}

fn provider(bench: &Bench) -> Provider {
    let mut all = bench.runtime.providers();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Starts many runs and waits until all have completed. Returns how often the logs say that a call
/// failed.
async fn complete_many(bench: &Bench, many: usize) -> usize {
    let mut runs = Vec::new();
    for index in 0..many {
        runs.push(bench.start(&format!("task {index}")).await);
    }
    let mut failures = 0;
    for run in &runs {
        let outcome = tokio::time::timeout(Duration::from_secs(120), run.outcome()).await;
        assert!(outcome.as_ref().unwrap().as_ref().unwrap().is_completed(), "{outcome:?}");
        let log = bench.log(run.id()).await;
        failures += log.iter().filter(|it| matches!(it.event, Event::ModelFailed(_))).count();
    }
    failures
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_runs_at_once_against_a_provider_that_takes_ten_all_complete_with_few_retries() {
    for asks in [None, Some(Duration::from_millis(200))] {
        let reply = Reply::text("done").latency(Duration::from_millis(60));
        let mut script = Script::always(reply).at_once(10);
        if let Some(wait) = asks {
            script = script.retry_after(wait);
        }
        let bench = Bench::with(script, wide).await;
        let failures = complete_many(&bench, MANY).await;
        let provider = provider(&bench);
        let (sent, needed) = (provider.sent, provider.needed());
        println!("requests sent ÷ needed: {sent} ÷ {needed} = {}", sent as f64 / needed as f64);
        assert_eq!(needed as usize, MANY);
        assert_eq!(bench.fake.count() as u64, sent, "each request that was sent is counted");
        assert_eq!(bench.fake.counts().status(429) as u64, provider.refused);
        assert_eq!(failures as u64, provider.refused, "and each that was refused is in a log");
        assert!(sent <= 130, "{asks:?}: {provider:?}");
        assert!(bench.fake.peak_in_flight() <= 32, "{}", bench.fake.peak_in_flight());
        assert_eq!((provider.in_flight, provider.waiting), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_headers_say_is_left_is_shared_out_instead_of_overdrawn() {
    let reply = Reply::text("done").latency(Duration::from_millis(5));
    let script = Script::always(reply).requests_per(20, Duration::from_secs(2));
    let bench = Bench::with(script, wide).await;
    complete_many(&bench, 60).await;
    let provider = provider(&bench);
    assert_eq!(provider.needed(), 60);
    assert!(provider.sent <= 80, "{provider:?}");
}

/// A run whose call was refused.
async fn refused(bench: &Bench) -> RunHandle {
    let run = bench.start("first").await;
    bench.until(&run, |event| matches!(event, Event::ModelFailed(_))).await;
    run
}

fn refusing_once(wait: &str, gate: &Gate) -> Script {
    let busy = Reply::error(429, "slow down").header("retry-after", wait);
    Script::new()
        .rule(Rule::when(When::any().model("claude-sonnet-4-5")).reply(busy).once())
        .rule(Rule::when(When::any()).reply(Reply::text("done").held_by(gate)))
}

#[tokio::test]
async fn a_provider_that_asked_for_time_is_tried_by_one_request_and_not_by_all() {
    let gate = Gate::new();
    let bench = Bench::with(refusing_once("1", &gate), wide).await;
    let mut runs = vec![refused(&bench).await];
    for index in 0..20 {
        runs.push(bench.start(&format!("task {index}")).await);
    }
    within(gate.wait_for_held(1)).await.unwrap();
    eventually(async || provider(&bench).waiting >= 19).await;
    assert_eq!((bench.fake.count(), provider(&bench).in_flight), (2, 1));
    gate.open();
    for run in &runs {
        assert!(within(run.outcome()).await.unwrap().is_completed());
    }
    assert_eq!((bench.fake.count(), provider(&bench).refused), (22, 1));
}

#[tokio::test]
async fn one_provider_s_trouble_is_no_other_s_and_waiting_for_it_can_be_cancelled() {
    let gate = Gate::new();
    gate.open();
    let other = FakeModel::start(Script::always(Reply::text("from elsewhere"))).await.unwrap();
    let bench = Bench::with(refusing_once("50", &gate), |mut config| {
        let base = format!("{}/v1", other.url());
        let keys =
            config.models.keys.clone().with("OPENAI_API_KEY", "test").with("OPENAI_BASE_URL", base);
        config.models.keys = keys;
        config
    })
    .await;
    let first = refused(&bench).await;
    let second = bench.start("second").await;
    let held = || {
        let all = bench.runtime.providers();
        all.into_iter().find(|provider| provider.name == "anthropic").unwrap()
    };
    eventually(async || held().waiting == 1).await;
    assert!(held().held_for.is_some_and(|left| left > Duration::from_secs(30)), "{:?}", held());

    let model = Some("openai/gpt-5-mini".to_owned());
    let elsewhere = bench
        .runtime
        .start(RunSpec { models: ModelChoice::of(model), ..bench.spec("third") })
        .await
        .unwrap();
    assert_eq!(within(elsewhere.outcome()).await.unwrap().text(), "from elsewhere");

    for run in [&second, &first] {
        bench.runtime.cancel(run.id(), "a person", CancelScope::Run).await.unwrap();
        let outcome = within(run.outcome()).await.unwrap();
        assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    }
    assert_eq!((held().waiting, bench.fake.count()), (0, 1), "nothing was sent meanwhile");
}

#[tokio::test]
async fn without_pacing_all_go_at_once() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = wide(config);
        config.models.pacing = Pacing::Off;
        config
    })
    .await;
    let mut runs = Vec::new();
    for index in 0..40 {
        runs.push(bench.start(&format!("task {index}")).await);
    }
    within(gate.wait_for_held(40)).await.unwrap();
    gate.open();
    for run in &runs {
        assert!(within(run.outcome()).await.unwrap().is_completed());
    }
    assert_eq!(provider(&bench).sent, 40);
}
