//! Control: pausing and going on, whole trees, receipts, labels, and runs that stall.

use crate::bench::{Bench, eventually, within};
use crate::delegation::{children, main_agent, task};
use posse::protocol::{
    Announce, Caller, CancelScope, Effect, Ending, Event, Outcome, ToolOutput, ToolSpec,
};
use posse::{
    Answer, Asked, Error, Extent, Recovery, RunHandle, RunId, RunSpec, Runtime, RuntimeConfig,
    Status, Tool, ToolContext,
};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

async fn status(bench: &Bench, run: RunId) -> Status {
    bench.runtime.find(&run.to_string()).await.unwrap().status
}

fn count(kinds: &[&str], kind: &str) -> usize {
    kinds.iter().filter(|it| **it == kind).count()
}

async fn completed(run: &RunHandle) -> String {
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.is_completed(), "{outcome}");
    outcome.text().to_owned()
}

#[tokio::test]
async fn a_paused_run_ends_its_call_rests_without_a_slot_and_goes_on() {
    let gate = Gate::new();
    let script = Script::turns([
        Reply::tool_call("List", json!({"path": "."})).held_by(&gate),
        Reply::text("done"),
    ]);
    let bench = Bench::new(script).await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let receipt = bench.runtime.pause(run.id(), "me", Extent::Subtree).await.unwrap();
    assert_eq!((receipt.told.len(), receipt.told[0].before), (1, Status::Running));
    gate.open();
    let row = within(run.at_rest()).await.unwrap();
    assert_eq!(row.status, Status::Paused);
    assert_eq!(bench.runtime.executing(), 0);
    let kinds = bench.kinds(run.id()).await;
    assert_eq!(count(&kinds, "model_replied"), 1, "what was under way is recorded: {kinds:?}");
    assert_eq!(count(&kinds, "tool_started"), 0, "nothing new has begun: {kinds:?}");
    // What is said to it meanwhile is kept, and does not set it going.
    bench.runtime.send(run.id(), "still there?").await.unwrap();
    assert_eq!(status(&bench, run.id()).await, Status::Paused);
    let again = bench.runtime.pause(run.id(), "me", Extent::Subtree).await;
    assert!(matches!(again, Err(Error::NotNow { .. })), "{again:?}");
    bench.runtime.unpause(run.id(), "me", Extent::Subtree).await.unwrap();
    assert_eq!(completed(&run).await, "done");
    assert!(bench.fake.last_request().body.to_string().contains("still there?"));
    let over = bench.runtime.unpause(run.id(), "me", Extent::Subtree).await;
    assert!(matches!(over, Err(Error::NotNow { .. })), "{over:?}");
}

#[tokio::test]
async fn a_pause_survives_the_death_of_the_process_and_is_ended_by_another() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let mut bench = Bench::new(script).await;
    let run = bench.start("go").await.id();
    within(gate.wait_for_held(1)).await.unwrap();
    // Another process asks, and the one that executes the run ends.
    let other = Runtime::open({
        let mut config: RuntimeConfig = bench.config.clone();
        config.scheduling.recovery = Recovery::Wait;
        config
    });
    let other = other.await.unwrap();
    other.pause(run, "another", Extent::Alone).await.unwrap();
    bench.runtime.shutdown().await;
    bench.reopen().await;
    gate.open();
    let row = within(bench.runtime.handle(run).at_rest()).await.unwrap();
    assert_eq!(row.status, Status::Paused);
    other.unpause(run, "another", Extent::Alone).await.unwrap();
    assert_eq!(completed(&bench.runtime.handle(run)).await, "done");
    other.shutdown().await;
}

/// A run that has two children at work, which are held.
async fn held_children(gate: &Gate) -> (Bench, RunHandle) {
    let script = Script::new()
        .conversation(main_agent([task("explore", "one"), task("explore", "two")]))
        .rule(Rule::when(When::any()).reply(Reply::text("found").held_by(gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    within(gate.wait_for_held(2)).await.unwrap();
    (bench, run)
}

#[tokio::test]
async fn a_tree_is_paused_and_goes_on_as_one() {
    let gate = Gate::new();
    let (bench, run) = held_children(&gate).await;
    let receipt = bench.runtime.pause(run.id(), "me", Extent::Subtree).await.unwrap();
    let told: Vec<(&str, &str)> =
        receipt.told.iter().map(|told| (told.agent.as_str(), told.label.as_str())).collect();
    assert_eq!(told, [("general-purpose", "lead"), ("explore", "do one"), ("explore", "do two")]);
    // Nothing is started on its behalf meanwhile.
    let caller = Caller { announce: Some(Announce::Followup), ..Caller::of_run(run.id()) };
    let spec = RunSpec { parent: Some(caller), ..bench.spec("three") };
    let spec = RunSpec { agent: "explore".parse().unwrap(), ..spec };
    let refused = bench.runtime.start(spec).await.err();
    assert!(
        matches!(&refused, Some(Error::NotNow { run: it, .. }) if *it == run.id()),
        "{refused:?}"
    );
    gate.open();
    eventually(async || bench.runtime.executing() == 0).await;
    for row in run.tree().await.unwrap() {
        // The children have answered and are not done: their end would be a step.
        assert_eq!(row.status, Status::Paused, "{}", row.about.title);
    }
    let receipt = bench.runtime.unpause(run.id(), "me", Extent::Subtree).await.unwrap();
    assert_eq!(receipt.told.len(), 3);
    assert_eq!(completed(&run).await, "done");
}

#[tokio::test]
async fn a_run_that_is_paused_alone_does_not_hold_up_those_below() {
    let gate = Gate::new();
    let (bench, run) = held_children(&gate).await;
    bench.runtime.pause(run.id(), "me", Extent::Alone).await.unwrap();
    gate.open();
    for child in children(&bench, run.id()).await {
        completed(&bench.runtime.handle(child.id)).await;
    }
    // Whoever takes it up when they end sees that it is paused, and leaves it.
    eventually(async || status(&bench, run.id()).await == Status::Paused).await;
    bench.runtime.unpause(run.id(), "me", Extent::Alone).await.unwrap();
    assert_eq!(completed(&run).await, "done");
}

#[tokio::test]
async fn a_paused_tree_can_be_cancelled() {
    let gate = Gate::new();
    let (bench, run) = held_children(&gate).await;
    bench.runtime.pause(run.id(), "me", Extent::Subtree).await.unwrap();
    gate.open();
    eventually(async || bench.runtime.executing() == 0).await;
    let receipt = bench.runtime.cancel(run.id(), "me", CancelScope::Run).await.unwrap();
    assert_eq!(receipt.told.len(), 3);
    for told in &receipt.told {
        assert_eq!(told.before, Status::Paused);
        let outcome = within(bench.runtime.handle(told.run).outcome()).await.unwrap();
        assert_eq!(outcome.kind(), "cancelled");
    }
}

#[tokio::test]
async fn the_receipt_lists_everyone_and_a_second_one_those_still_stopping() {
    let gate = Gate::new();
    let (mut bench, run) = held_children(&gate).await;
    let run = run.id();
    bench.runtime.shutdown().await;
    // Nobody executes anything: a first request is stored, and its process dies right after.
    bench.config.scheduling.recovery = Recovery::Wait;
    bench.reopen().await;
    let mut below: Vec<RunId> = children(&bench, run).await.iter().map(|row| row.id).collect();
    below.insert(0, run);
    let first = bench.runtime.cancel(run, "me", CancelScope::Run).await.unwrap();
    // The run itself may already have stopped some of those below it.
    let told: Vec<RunId> = first.told.iter().map(|told| told.run).collect();
    assert_eq!(told[0], run);
    assert!(told.iter().all(|it| below.contains(it)), "{told:?}");
    assert!(first.told.iter().all(|told| told.asked == Asked::Now), "{first:?}");
    let second = bench.runtime.cancel(run, "me", CancelScope::Run).await;
    if let Ok(second) = second {
        assert!(second.told.iter().all(|told| told.asked == Asked::Before), "{second:?}");
    }
    for run in below {
        let outcome = within(bench.runtime.handle(run).outcome()).await.unwrap();
        assert_eq!(outcome.kind(), "cancelled");
    }
    let third = bench.runtime.cancel(run, "me", CancelScope::Run).await;
    assert!(matches!(third, Err(Error::NotNow { .. })), "{third:?}");
}

/// A child of `run` in the background, which is held.
async fn in_background(bench: &Bench, run: RunId, prompt: &str) -> RunHandle {
    let caller = Caller { announce: Some(Announce::Silent), ..Caller::of_run(run) };
    let agent = "explore".parse().unwrap();
    let spec = RunSpec { agent, parent: Some(caller), ..bench.spec(prompt) };
    bench.runtime.start(RunSpec { label: prompt.to_owned(), ..spec }).await.unwrap()
}

#[tokio::test]
async fn i12_those_below_a_run_that_has_ended_are_stopped_too() {
    let gate = Gate::new();
    let first = Gate::new();
    let script = Script::new()
        .rule(
            Rule::when(When::any().first_user_contains("lead"))
                .reply(Reply::text("done").held_by(&first)),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    within(first.wait_for_held(1)).await.unwrap();
    let child = in_background(&bench, run.id(), "on its own").await;
    within(gate.wait_for_held(1)).await.unwrap();
    first.open();
    completed(&run).await;
    let receipt = bench.runtime.cancel(run.id(), "me", CancelScope::Run).await.unwrap();
    assert_eq!(receipt.told.len(), 1);
    assert_eq!(receipt.told[0].run, child.id());
    match within(child.outcome()).await.unwrap() {
        Outcome::Cancelled { by, .. } => assert_eq!(by, "me"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_takes_along_those_it_waits_for_and_nobody_else() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call("Task", task("explore", "waited for")))
                .reply(Reply::text("done")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let bench = Bench::new(script).await;
    let session = RunSpec { session: true, ..bench.spec("lead") };
    let run = bench.runtime.start(session).await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    let background = in_background(&bench, run.id(), "beside").await;
    within(gate.wait_for_held(2)).await.unwrap();
    let receipt = bench.runtime.cancel(run.id(), "me", CancelScope::Turn).await.unwrap();
    let labels: Vec<&str> = receipt.below().map(|told| told.label.as_str()).collect();
    assert_eq!(labels, ["do waited for"]);
    within(run.at_rest()).await.unwrap();
    gate.open();
    completed(&background).await;
}

#[tokio::test]
async fn i15_a_run_is_found_by_its_label_and_several_are_named() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let mut runs = Vec::new();
    for label in ["alpha", "alpha two", "beta", "beta", "gamma"] {
        let spec = RunSpec { label: label.to_owned(), ..bench.spec("go") };
        let run = bench.runtime.start(spec).await.unwrap();
        completed(&run).await;
        runs.push(run.id());
    }
    let find = async |text: &str| bench.runtime.find(text).await;
    assert_eq!(find("alpha").await.unwrap().id, runs[0], "to the letter before a beginning");
    assert_eq!(find("gamm").await.unwrap().id, runs[4]);
    assert_eq!(find(&runs[1].short()).await.unwrap().id, runs[1]);
    for text in ["beta", "alph"] {
        let error = find(text).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("2 runs match `{text}`; ")), "{error}");
        assert!(error.contains("  finished  [general-purpose] "), "{error}");
    }
    let none = find("delta").await.unwrap_err().to_string();
    assert!(none.starts_with("no run matches `delta`"), "{none}");
    assert!(matches!(bench.runtime.find("delta").await, Err(posse::Error::NoRun(_))));
}

/// A tool that hangs, whatever it is told, the first times it is called.
struct Hang {
    spec: ToolSpec,
    times: u32,
    calls: AtomicU32,
}

#[async_trait::async_trait]
impl Tool for Hang {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Answer {
        if self.calls.fetch_add(1, Ordering::SeqCst) < self.times {
            std::future::pending::<()>().await;
        }
        ToolOutput::text("at last").into()
    }
}

/// A runtime whose tool `Hang` hangs so often.
async fn hanging(times: u32, script: Script) -> Bench {
    let tool = Hang {
        spec: ToolSpec::new("Hang", "Hangs", Effect::Execute, json!({"type": "object"})),
        times,
        calls: AtomicU32::new(0),
    };
    Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.tools = vec![Arc::new(tool)];
        config.scheduling.stall_after = Duration::from_secs(2);
        config
    })
    .await
}

#[tokio::test]
async fn a_run_whose_tool_hangs_is_taken_up_anew_from_its_log() {
    let script = Script::turns([
        Reply::tool_call("Hang", json!({})),
        Reply::tool_call("Hang", json!({})),
        Reply::text("done"),
    ]);
    let bench = hanging(1, script).await;
    let run = bench.start("go").await;
    assert_eq!(completed(&run).await, "done");
    let endings: Vec<Ending> = bench
        .log(run.id())
        .await
        .iter()
        .filter_map(|record| match &record.event {
            Event::ToolFinished(finished) => Some(finished.ending),
            _ => None,
        })
        .collect();
    assert_eq!(endings, [Ending::Interrupted, Ending::Returned]);
    assert_eq!(count(&bench.kinds(run.id()).await, "run_started"), 1);
    assert_eq!(bench.fake.count(), 3);
}

#[tokio::test]
async fn a_run_whose_tools_hang_again_and_again_fails_and_says_so() {
    let bench = hanging(9, Script::always(Reply::tool_call("Hang", json!({})))).await;
    let run = bench.start("go").await;
    let outcome = within(run.outcome()).await.unwrap();
    let why = outcome.to_string();
    assert_eq!(outcome.kind(), "failed");
    assert!(why.contains("showed no sign of life for 2 s, 3 times"), "{why}");
    assert_eq!(count(&bench.kinds(run.id()).await, "tool_started"), 3);
}

#[tokio::test]
async fn a_reply_that_takes_its_time_is_no_stall() {
    let slow = Reply::text("done").latency(Duration::from_secs(3));
    let bench = hanging(0, Script::always(slow)).await;
    let run = bench.start("go").await;
    assert_eq!(completed(&run).await, "done");
    assert_eq!(bench.fake.count(), 1);
}

#[tokio::test]
async fn what_is_said_for_later_is_read_when_the_turn_is_over() {
    let gate = Gate::new();
    let script = Script::turns([
        Reply::tool_call("List", json!({"path": "."})).held_by(&gate),
        Reply::text("first"),
        Reply::text("second: {{last_user}}"),
    ]);
    let bench = Bench::new(script).await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.send_later(run.id(), "and then this").await.unwrap();
    gate.open();
    assert_eq!(completed(&run).await, "second: and then this");
    let second = &bench.fake.requests_where(&When::any())[1];
    assert!(!second.body.to_string().contains("and then this"), "it was told too early");
}
