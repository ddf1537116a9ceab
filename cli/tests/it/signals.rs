//! SIGTERM and Ctrl-C: soon over, nothing lost.

use crate::world::{LONG, World, bash, gone, lives};
use posse_testkit::{Gate, Reply, Script};
use rustix::process::Signal;
use std::time::{Duration, Instant};

async fn check(signal: Signal, name: &str) {
    let world = World::new(Script::turns([bash(LONG), Reply::text("after all")])).await;
    let running = world.start(&["run", "x"]);
    let pid = world.lines_in("pid", 1).await;
    running.signal(signal);
    let exit = running.end().await.expect(130);
    assert!(exit.took < Duration::from_secs(15), "{:?}", exit.took);
    assert!(
        exit.err.contains(&format!("{name}: Posse stops after the current step")),
        "{}",
        exit.err
    );
    assert!(exit.err.contains("is kept") && exit.err.contains("hint: `posse runs resume"));
    gone(&pid).await;
    let run = world.only_run().await;
    let status = &world.list().await[0]["status"];
    match signal {
        Signal::INT => assert_eq!(status, "interrupted"),
        _ => assert!(status == "queued" || status == "crashed", "{status}"),
    }
    let exit = world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(exit.out, "after all\n");
    assert_eq!(world.read("ledger"), "began\n");
}

#[tokio::test]
async fn terminate_stops_a_run_that_can_be_resumed() {
    check(Signal::TERM, "SIGTERM").await;
}

#[tokio::test]
async fn interrupt_stops_a_run_that_can_be_resumed() {
    check(Signal::INT, "Ctrl-C").await;
}

#[tokio::test]
async fn a_second_interrupt_ends_at_once_whatever_a_command_ignores() {
    let stubborn = "trap '' TERM INT HUP; echo $POSSE_SCRATCH > pid; while :; do sleep 0.05; done";
    let world = World::new(Script::turns([bash(stubborn), Reply::text("over")])).await;
    let running = world.start(&["run", "x"]);
    let pid = world.lines_in("pid", 1).await;
    running.signal(Signal::INT);
    running.notes("Ctrl-C again to stop now").await;
    assert!(lives(&pid), "the present step may finish");
    running.signal(Signal::INT);
    let began = Instant::now();
    let exit = running.end().await.expect(130);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(exit.err.contains(" is kept\n  hint: `posse runs resume "), "{}", exit.err);
    gone(&pid).await;
    let run = world.only_run().await;
    assert_eq!(world.list().await[0]["status"], "interrupted");
    assert_eq!(world.run(&["runs", "resume", &run]).await.expect(0).out, "over\n");
}

#[tokio::test]
async fn a_step_that_ends_in_time_is_kept() {
    let gate = Gate::new();
    let world =
        World::new(Script::turns([bash("true").held_by(&gate), Reply::text("the end")])).await;
    let running = world.start(&["run", "x"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::TERM);
    running.notes("stops after the current step").await;
    gate.open();
    running.end().await.expect(130);
    let run = world.only_run().await;
    assert_eq!(world.run(&["runs", "resume", &run]).await.expect(0).out, "the end\n");
    assert_eq!(world.fake.count(), 2, "no reply was asked for twice");
}

#[tokio::test]
async fn with_json_an_interruption_is_json() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("x").held_by(&gate))).await;
    let running = world.start(&["run", "--json", "x"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::INT);
    let exit = running.end().await.expect(130);
    let error: serde_json::Value = serde_json::from_str(&exit.err).unwrap();
    assert_eq!(error["code"], 130);
    assert!(error["hint"].as_str().unwrap().contains("posse runs resume"), "{error}");
}

#[tokio::test]
async fn a_signal_ends_a_resumed_run_and_a_watcher_as_well() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("x").held_by(&gate))).await;
    let running = world.start(&["run", "x"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    let run = world.only_run().await;
    let resumed = world.start(&["runs", "resume", &run]);
    gate.wait_for_held(1).await.unwrap();
    let watcher = world.start(&["runs", "watch", &run]);
    watcher.notes("general-purpose · ").await;
    watcher.signal(Signal::TERM);
    watcher.end().await.expect(130);
    resumed.signal(Signal::TERM);
    let exit = resumed.end().await.expect(130);
    assert!(exit.err.contains("is kept"), "{}", exit.err);
}
