//! Runs outlive the runtime that began them.

use crate::bench::{Bench, eventually, within};
use posse::protocol::{CancelScope, Ending, Event, Outcome};
use posse::{
    Answer, Error, Recovery, RunHandle, Runtime, RuntimeConfig, Status, Tool, ToolContext,
};
use posse_testkit::{Gate, Reply, Script};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn a_run_goes_on_by_itself_in_the_next_runtime_and_repeats_no_finished_call() {
    let gate = Gate::new();
    let script = Script::turns([
        Reply::tool_call("Write", json!({"file_path": "a.txt", "content": "once"})),
        Reply::text("never mind").held_by(&gate),
    ]);
    let mut bench = Bench::new(script).await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.shutdown().await;
    let written = std::fs::metadata(bench.work().join("a.txt")).unwrap().modified().unwrap();
    gate.open();
    bench.reopen().await;
    let outcome = within(bench.runtime.handle(run.id()).outcome()).await.unwrap();
    assert_eq!(outcome, Outcome::completed("never mind"));
    assert_eq!(std::fs::metadata(bench.work().join("a.txt")).unwrap().modified().unwrap(), written);
    let kinds = bench.kinds(run.id()).await;
    assert_eq!(kinds.iter().filter(|kind| **kind == "tool_started").count(), 1);
}

/// Blocks until the test lets it go, and counts.
struct Blocked {
    spec: posse::protocol::ToolSpec,
    calls: AtomicUsize,
}

#[async_trait::async_trait]
impl Tool for Blocked {
    fn spec(&self) -> &posse::protocol::ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Answer {
        match self.calls.fetch_add(1, Ordering::SeqCst) {
            0 => std::future::pending().await,
            _ => Answer::Done(posse::protocol::ToolOutput::text("ran again")),
        }
    }
}

/// A run whose process ends while its only call, of `tool`, is under way.
async fn ended_in_a_call(idempotent: bool) -> (Bench, RunHandle, Arc<Blocked>) {
    let tool = Arc::new(Blocked {
        spec: posse::protocol::ToolSpec {
            idempotent,
            ..posse::protocol::ToolSpec::new(
                "blocked",
                "blocks",
                posse::protocol::Effect::Execute,
                json!({"type": "object"}),
            )
        },
        calls: AtomicUsize::new(0),
    });
    let script = Script::turns([Reply::tool_call("blocked", json!({})), Reply::text("done")]);
    let shared = tool.clone();
    let bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.tools = vec![shared];
        config
    })
    .await;
    let run = bench.start("go").await;
    bench.until(&run, |event| matches!(event, Event::ToolStarted(_))).await;
    eventually(async || tool.calls.load(Ordering::SeqCst) == 1).await;
    bench.runtime.shutdown().await;
    (bench, run, tool)
}

/// How the only call of a run was answered.
async fn answer_of(bench: &Bench, run: &RunHandle) -> (Ending, String) {
    let log = bench.log(run.id()).await;
    let finished = log.iter().find_map(|record| match &record.event {
        Event::ToolFinished(finished) => Some(finished),
        _ => None,
    });
    let finished = finished.unwrap();
    (finished.ending, finished.output.joined_text())
}

async fn interrupted_call(idempotent: bool) -> (Ending, String, usize) {
    let (mut bench, run, tool) = ended_in_a_call(idempotent).await;
    bench.reopen().await;
    within(bench.runtime.handle(run.id()).outcome()).await.unwrap();
    let (ending, text) = answer_of(&bench, &run).await;
    (ending, text, tool.calls.load(Ordering::SeqCst))
}

/// Ends the run in some other way than by going on; its call is not told to have been stopped.
async fn check_interrupted(bench: &Bench, run: &RunHandle, tool: &Blocked) -> Outcome {
    let outcome = within(bench.runtime.handle(run.id()).outcome()).await.unwrap();
    let (ending, text) = answer_of(bench, run).await;
    assert_eq!((ending, tool.calls.load(Ordering::SeqCst)), (Ending::Interrupted, 1));
    assert!(text.contains("Whether it had its effect is not known"), "{text}");
    outcome
}

#[tokio::test]
async fn an_interrupted_call_of_a_run_that_is_cancelled_may_have_had_its_effect() {
    let (mut bench, run, tool) = ended_in_a_call(false).await;
    bench.config.scheduling.recovery = Recovery::Wait;
    bench.reopen().await;
    bench.runtime.cancel(run.id(), "a person", CancelScope::Run).await.unwrap();
    let outcome = check_interrupted(&bench, &run, &tool).await;
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
}

#[tokio::test]
async fn an_interrupted_call_of_a_run_that_cannot_go_on_may_have_had_its_effect() {
    let (mut bench, run, tool) = ended_in_a_call(false).await;
    bench.config.models.keys = posse::Keys::default();
    bench.reopen().await;
    let outcome = check_interrupted(&bench, &run, &tool).await;
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
}

#[tokio::test]
async fn an_interrupted_call_is_never_silently_repeated() {
    let (ending, text, calls) = interrupted_call(false).await;
    assert_eq!((ending, calls), (Ending::Interrupted, 1));
    assert!(text.contains("Whether it had its effect is not known"), "{text}");
}

#[tokio::test]
async fn an_interrupted_call_that_is_idempotent_runs_again() {
    let (ending, text, calls) = interrupted_call(true).await;
    assert_eq!((ending, calls), (Ending::Returned, 2));
    assert_eq!(text, "ran again");
}

#[tokio::test]
async fn with_recovery_off_a_run_waits_for_resume() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let mut bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.recovery = Recovery::Wait;
        config
    })
    .await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.shutdown().await;
    gate.open();
    bench.reopen().await;
    let other = bench.start("something else").await;
    within(other.outcome()).await.unwrap();
    let row = bench.runtime.find(&run.id().to_string()).await.unwrap();
    assert_eq!(row.status, Status::Queued, "not taken up by itself");
    assert!(within(bench.runtime.resume(run.id()).outcome()).await.unwrap().is_completed());
}

#[tokio::test]
async fn with_recovery_off_a_run_goes_on_when_it_is_started_again_by_its_key() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let mut bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.recovery = Recovery::Wait;
        config
    })
    .await;
    let nightly =
        |bench: &Bench| posse::RunSpec { key: Some("nightly".into()), ..bench.spec("go") };
    let first = bench.runtime.start(nightly(&bench)).await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.shutdown().await;
    gate.open();
    bench.reopen().await;
    let again = bench.runtime.start(nightly(&bench)).await.unwrap();
    assert_eq!(again.id(), first.id());
    assert!(within(again.outcome()).await.unwrap().is_completed());
}

#[tokio::test]
async fn recovery_in_a_folder_leaves_other_folders_alone() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let mut bench = Bench::new(script).await;
    let elsewhere = bench.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let here = bench.start("here").await;
    let there = posse::RunSpec { workspace: elsewhere, ..bench.spec("there") };
    let there = bench.runtime.start(there).await.unwrap();
    within(gate.wait_for_held(2)).await.unwrap();
    bench.runtime.shutdown().await;
    gate.open();
    bench.config.scheduling.recovery = Recovery::ContinueIn(bench.work());
    bench.reopen().await;
    let outcome = within(bench.runtime.handle(here.id()).outcome()).await.unwrap();
    assert!(outcome.is_completed());
    let row = bench.runtime.find(&there.id().to_string()).await.unwrap();
    assert_eq!(row.status, Status::Queued);
}

#[tokio::test]
async fn two_runtimes_on_one_database_never_execute_the_same_run() {
    let bench = Bench::with(Script::always(Reply::text("done")).without_capture(), |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.max_concurrent = 4;
        config
    })
    .await;
    let second = Runtime::open(bench.config.clone()).await.unwrap();
    let mut runs = Vec::new();
    for index in 0..200 {
        let runtime = if index % 2 == 0 { &bench.runtime } else { &second };
        runs.push(runtime.start(bench.spec("x")).await.unwrap());
    }
    for run in &runs {
        assert!(within(run.outcome()).await.unwrap().is_completed());
    }
    assert_eq!(bench.fake.count(), 200, "one call each");
    second.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_waits_for_the_step_under_way_and_loses_nothing() {
    let gate = Gate::new();
    let script =
        Script::turns([Reply::tool_call("List", json!({})).held_by(&gate), Reply::text("done")]);
    let mut bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.shutdown_after = std::time::Duration::from_secs(20);
        config
    })
    .await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let runtime = bench.runtime.clone();
    let (_, ()) = tokio::join!(within(runtime.shutdown()), async { gate.open() });
    assert!(matches!(bench.runtime.start(bench.spec("x")).await, Err(Error::ShuttingDown)));
    bench.reopen().await;
    assert!(within(bench.runtime.handle(run.id()).outcome()).await.unwrap().is_completed());
    assert_eq!(bench.fake.count(), 2, "the reply that came during the shutdown was kept");
}

#[tokio::test]
async fn a_model_that_cannot_be_had_any_more_fails_the_run_with_what_to_do() {
    let gate = Gate::new();
    let mut bench = Bench::new(Script::always(Reply::text("x").held_by(&gate))).await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.shutdown().await;
    bench.config.models.keys = posse::Keys::default();
    bench.reopen().await;
    match within(bench.runtime.handle(run.id()).outcome()).await.unwrap() {
        Outcome::Failed { reason, .. } => {
            assert!(reason.contains("ANTHROPIC_API_KEY"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn i18_a_run_whose_resuming_fails_can_be_resumed_and_twice_is_once() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let adjust = |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.recovery = Recovery::Wait;
        config
    };
    let mut bench = Bench::with(script, adjust).await;
    let run = bench.start("go").await.id();
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.shutdown().await;
    // Whoever resumes it is gone before anything comes of it.
    bench.reopen().await;
    bench.runtime.resume(run);
    bench.runtime.shutdown().await;
    bench.reopen().await;
    let row = bench.runtime.find(&run.to_string()).await.unwrap();
    assert!(row.state.outcome.is_none() && row.status != Status::Running, "{:?}", row.status);
    let before = bench.fake.count();
    // Asked for several times, by two processes, it goes on once.
    let other = Runtime::open(bench.config.clone()).await.unwrap();
    for _ in 0..3 {
        bench.runtime.resume(run);
        other.resume(run);
    }
    within(gate.wait_for_held(1)).await.unwrap();
    gate.open();
    assert!(within(bench.runtime.handle(run).outcome()).await.unwrap().is_completed());
    assert_eq!(bench.fake.count(), before + 1);
    let kinds = bench.kinds(run).await;
    assert_eq!(kinds.iter().filter(|kind| **kind == "run_finished").count(), 1, "{kinds:?}");
    other.shutdown().await;
}
