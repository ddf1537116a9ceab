//! Stopping: at once, whatever is under way, and never without an answer to every call.

use crate::bench::{Bench, eventually, within};
use posse::protocol::{CancelScope, Delta, Ending, Event, Outcome, Seq};
use posse::{Answer, Error, Recovery, RuntimeConfig, Tool, ToolContext, Update};
use posse_testkit::{Gate, Reply, Script};
use serde_json::{Value, json};
use std::sync::Arc;

/// Runs until it is cancelled.
struct Endless(posse::protocol::ToolSpec);

#[async_trait::async_trait]
impl Tool for Endless {
    fn spec(&self) -> &posse::protocol::ToolSpec {
        &self.0
    }

    async fn call(&self, _: Value, context: &ToolContext) -> Answer {
        context.cancel.cancelled().await;
        Answer::Done(posse::protocol::ToolOutput::error("stopped"))
    }
}

fn endless(config: RuntimeConfig) -> RuntimeConfig {
    let tool = Endless(posse::protocol::ToolSpec::new(
        "endless",
        "never ends",
        posse::protocol::Effect::Execute,
        json!({"type": "object"}),
    ));
    {
        let mut config: RuntimeConfig = config;
        config.tools = vec![Arc::new(tool)];
        config
    }
}

#[tokio::test]
async fn cancel_reaches_a_streaming_model_call_and_keeps_what_was_said() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("half of a long answer").held_after_deltas(2, &gate));
    let bench = Bench::new(script).await;
    let run = bench.start("go").await;
    let mut events = run.events(Seq::ZERO);
    within(gate.wait_for_held(1)).await.unwrap();
    // What the model said may still be on its way.
    let is_text = |update: &Update| matches!(update, Update::Delta(Delta::Text { .. }));
    within(async { while !is_text(&events.next().await.unwrap().unwrap()) {} }).await;
    bench.runtime.cancel(run.id(), "the test", CancelScope::Run).await.unwrap();
    match within(run.outcome()).await.unwrap() {
        Outcome::Cancelled { by, partial, .. } => {
            assert_eq!(by, "the test");
            assert!("half of a long answer".starts_with(&partial) && !partial.is_empty());
        }
        other => panic!("{other:?}"),
    }
    eventually(async || bench.fake.in_flight() == 0).await;
}

#[tokio::test]
async fn cancel_reaches_a_running_tool_and_every_call_is_answered() {
    let reply = Reply::tool_call("endless", json!({})).and_tool_call("endless", json!({}));
    let bench = Bench::with(Script::always(reply), endless).await;
    let run = bench.start("go").await;
    bench.until(&run, |event| matches!(event, Event::ToolStarted(_))).await;
    bench.runtime.cancel(run.id(), "the test", CancelScope::Run).await.unwrap();
    assert!(matches!(within(run.outcome()).await.unwrap(), Outcome::Cancelled { .. }));
    let log = bench.log(run.id()).await;
    let endings: Vec<Ending> = log
        .iter()
        .filter_map(|record| match &record.event {
            Event::ToolFinished(finished) => Some(finished.ending),
            _ => None,
        })
        .collect();
    assert_eq!(endings, [Ending::Stopped, Ending::Stopped]);
}

#[tokio::test]
async fn cancel_ends_a_queued_run_without_a_call() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("x").held_by(&gate));
    let bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.max_concurrent = 1;
        config
    })
    .await;
    let first = bench.start("first").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let queued = bench.start("second").await;
    bench.runtime.cancel(queued.id(), "the test", CancelScope::Run).await.unwrap();
    gate.open();
    within(first.outcome()).await.unwrap();
    assert!(matches!(within(queued.outcome()).await.unwrap(), Outcome::Cancelled { .. }));
    assert_eq!(bench.fake.count(), 1);
}

#[tokio::test]
async fn a_run_that_has_ended_cannot_be_cancelled() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let run = bench.start("go").await;
    within(run.outcome()).await.unwrap();
    let error = bench.runtime.cancel(run.id(), "the test", CancelScope::Run).await;
    assert!(matches!(error, Err(Error::NotNow { .. })), "{error:?}");
}

#[tokio::test]
async fn a_cancel_request_survives_the_death_of_the_process() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("x").held_by(&gate));
    let mut bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.recovery = Recovery::Wait;
        config
    })
    .await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.shutdown().await;
    bench.reopen().await;
    // Nobody executes it: whoever cancels it also ends it.
    bench.runtime.cancel(run.id(), "the test", CancelScope::Run).await.unwrap();
    let outcome = within(bench.runtime.handle(run.id()).outcome()).await.unwrap();
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    assert_eq!(bench.fake.count(), 1, "no model call for that");
}

#[tokio::test]
async fn an_interrupted_run_can_be_cancelled_where_its_model_cannot_be_had() {
    let script = Script::always(Reply::tool_call("endless", json!({})));
    let mut bench = Bench::with(script, endless).await;
    let run = bench.start("go").await;
    bench.until(&run, |event| matches!(event, Event::ToolStarted(_))).await;
    bench.runtime.shutdown().await;
    bench.config.models.keys = posse::Keys::default();
    bench.config.scheduling.recovery = Recovery::Wait;
    bench.reopen().await;
    bench.runtime.cancel(run.id(), "the test", CancelScope::Run).await.unwrap();
    let outcome = within(bench.runtime.handle(run.id()).outcome()).await.unwrap();
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    let answered = |kinds: &[&str]| kinds.iter().filter(|kind| **kind == "tool_finished").count();
    assert_eq!(answered(&bench.kinds(run.id()).await), 1, "every call is answered");
}
