//! What becomes of those who wait for runs when the runtime is shut down.

use crate::bench::{Bench, within};
use posse_testkit::{Gate, Reply, Script};
use std::time::Duration;

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
