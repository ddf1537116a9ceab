//! More runs than slots.

use crate::bench::{Bench, within};
use posse::{RuntimeConfig, Status};
use posse_testkit::{Gate, Reply, Script};

#[tokio::test]
async fn over_the_cap_runs_queue_in_order_and_all_finish() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let bench = Bench::with(script, |config| RuntimeConfig { max_concurrent: 2, ..config }).await;
    let mut runs = Vec::new();
    for index in 0..8 {
        runs.push(bench.start(&format!("task {index}")).await);
    }
    within(gate.wait_for_held(2)).await.unwrap();
    let rows = bench.runtime.list(&posse::store::Filter::default()).await.unwrap();
    let queued = rows.iter().filter(|row| row.status == Status::Queued).count();
    assert_eq!(queued, 6);
    gate.open();
    for run in &runs {
        assert!(within(run.outcome()).await.unwrap().is_completed());
    }
    assert_eq!(bench.fake.peak_in_flight(), 2);
    let order: Vec<String> = bench
        .fake
        .requests()
        .iter()
        .map(|request| request.body["messages"][0].to_string())
        .collect();
    let position = |index: usize| {
        order.iter().position(|text| text.contains(&format!("task {index}"))).unwrap()
    };
    // Two at a time: a run may overtake its neighbour, never one that queued two before it.
    for index in 2..8 {
        assert!(position(index) > position(index - 2), "{order:?}");
    }
}

#[tokio::test]
async fn a_thousand_runs_through_sixty_four_slots() {
    let bench = Bench::with(Script::always(Reply::text("done")).without_capture(), |config| {
        RuntimeConfig { max_concurrent: 64, ..config }
    })
    .await;
    let mut runs = Vec::new();
    for _ in 0..1_000 {
        runs.push(bench.start("x").await);
    }
    for run in &runs {
        assert!(within(run.outcome()).await.unwrap().is_completed());
    }
    assert_eq!(bench.fake.count(), 1_000);
    assert!(bench.fake.peak_in_flight() <= 64);
}
