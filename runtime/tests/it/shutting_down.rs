//! What becomes of those who wait for runs when the runtime is shut down.

use crate::bench::{Bench, eventually, within};
use futures_util::future::join;
use posse::RunRights;
use posse::protocol::{Mode, Seq};
use posse::subagents::{DelegationStrategy, SubagentExecutor};
use posse::{Error, RunHandle, RunSpec, Runtime, RuntimeConfig};
use posse_testkit::{Gate, Reply, Script};
use serde_json::json;
use std::time::Duration;

/// Shuts down at once while somebody waits for something.
async fn shut_down_during<T>(runtime: &Runtime, wait: impl Future<Output = T>) -> T {
    let shutdown = async {
        // Whoever waits has looked at the run by then, or looks at it later: both must be told.
        tokio::task::yield_now().await;
        runtime.shutdown_within(Duration::ZERO).await;
    };
    within(join(wait, shutdown)).await.0
}

fn is_shutting_down<T>(told: &Result<T, Error>) -> bool {
    matches!(told, Err(Error::ShuttingDown))
}

/// Whoever waits for `run` in any way is told once that nothing comes any more.
async fn waits_in_vain(run: &RunHandle) {
    let (mut events, mut tree) = (run.events(Seq::ZERO), run.tree_events(Seq::ZERO));
    let event = async {
        while let Some(update) = events.next().await {
            if let Err(error) = update {
                assert!(events.next().await.is_none());
                return Err(error);
            }
        }
        Ok(())
    };
    let below = async {
        while let Some(update) = tree.next().await {
            if let Err(error) = update {
                assert!(tree.next().await.is_none());
                return Err(error);
            }
        }
        Ok(())
    };
    let (outcome, (event, below)) = join(run.outcome(), join(event, below)).await;
    assert!(is_shutting_down(&outcome), "{outcome:?}");
    assert!(is_shutting_down(&event), "{event:?}");
    assert!(is_shutting_down(&below), "{below:?}");
}

#[tokio::test]
async fn whoever_waits_for_a_run_at_work_is_told_of_the_shutdown() {
    let gate = Gate::new();
    let bench = Bench::new(Script::always(Reply::text("never").held_by(&gate))).await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    shut_down_during(&bench.runtime, waits_in_vain(&run)).await;
    within(waits_in_vain(&run)).await;
    assert!(is_shutting_down(&within(run.at_rest()).await));
}

#[tokio::test]
async fn whoever_waits_for_a_run_to_rest_is_told_of_the_shutdown() {
    let gate = Gate::new();
    let bench = Bench::new(Script::always(Reply::text("never").held_by(&gate))).await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let rested = shut_down_during(&bench.runtime, run.at_rest()).await;
    assert!(is_shutting_down(&rested), "{rested:?}");
}

#[tokio::test]
async fn whoever_waits_for_a_run_in_line_is_told_of_the_shutdown() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("never").held_by(&gate));
    let bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.max_concurrent = 1;
        config
    })
    .await;
    let _first = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let second = bench.start("go").await;
    assert_eq!(second.position().await.unwrap(), Some(1));
    shut_down_during(&bench.runtime, waits_in_vain(&second)).await;
    within(waits_in_vain(&second)).await;
}

#[tokio::test]
async fn whoever_waits_for_a_run_that_waits_for_a_person_is_told_of_the_shutdown() {
    let write = json!({"file_path": "a.txt", "content": "written"});
    let bench = Bench::new(Script::always(Reply::tool_call("Write", write))).await;
    let spec = RunSpec {
        rights: RunRights { mode: Some(Mode::Ask), attended: true, ..RunRights::default() },
        ..bench.spec("go")
    };
    let run = bench.runtime.start(spec).await.unwrap();
    eventually(async || bench.runtime.questions(None).await.unwrap().len() == 1).await;
    eventually(async || bench.runtime.executing() == 0).await;
    shut_down_during(&bench.runtime, waits_in_vain(&run)).await;
    within(waits_in_vain(&run)).await;
}

#[tokio::test]
async fn a_query_is_told_of_the_shutdown() {
    let gate = Gate::new();
    let bench = Bench::new(Script::always(Reply::text("never").held_by(&gate))).await;
    let (runtime, strategy) = (bench.runtime.clone(), DelegationStrategy::Auto);
    let executor = SubagentExecutor::with_runtime(runtime, strategy).in_folder(bench.work());
    let query = executor.query("go").await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    let result = shut_down_during(&bench.runtime, query.result()).await;
    assert!(is_shutting_down(&result), "{result:?}");
}

#[tokio::test]
async fn a_run_that_is_broken_off_is_not_executed_here_any_more() {
    let gate = Gate::new();
    let bench = Bench::new(Script::always(Reply::text("never").held_by(&gate))).await;
    let run = bench.start("go").await;
    within(gate.wait_for_held(1)).await.unwrap();
    assert_eq!(bench.runtime.executing(), 1);
    within(bench.runtime.shutdown_within(Duration::ZERO)).await;
    assert_eq!((bench.runtime.executing(), run.executed_here()), (0, None));
}
