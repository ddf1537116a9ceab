//! Runs that only a worker with a label may execute, in a database file.

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_needs_a_label_says_what_it_waits_for() {
    let world = World::saying("It is done.").await;
    let why = "waits for a worker with the label `gpu` that can call";
    let start = "to start one: `posse worker --label gpu`";
    let first = world.start(&["run", "--needs", "gpu", "one"]);
    first.notes(why).await;
    first.notes(start).await;
    first.signal(rustix::process::Signal::INT);
    first.end().await.expect(130);
    let run = world.only_run().await;
    let resumed = world.start(&["runs", "resume", &run]);
    resumed.notes(why).await;
    let shown = world.run(&["runs", "show", &run]).await.expect(0);
    assert!(shown.out.contains(why), "{}", shown.out);
    // The daemon has no labels.
    world.run(&["daemon", "start"]).await.expect(0);
    let behind = world.run(&["run", "--background", "--needs", "gpu", "two"]).await.expect(0);
    assert!(behind.err.contains(why) && behind.err.contains(start), "{}", behind.err);
    world.run(&["daemon", "stop"]).await.expect(0);
    let all = world.start(&["runs", "resume", "--all"]);
    all.notes(why).await;
    all.notes(start).await;
    let worker = world.start(&["worker", "--label", "gpu"]);
    let all = all.end().await.expect(0);
    assert_eq!(all.err.matches(why).count(), 1, "{}", all.err);
    let exit = resumed.end().await.expect(0);
    assert_eq!(exit.out.trim(), "It is done.");
    assert_eq!(exit.err.matches(why).count(), 1, "{}", exit.err);
    world.run(&["runs", "watch", behind.out.trim()]).await.expect(0);
    worker.signal(rustix::process::Signal::TERM);
    worker.end().await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_a_label_is_left_alone_and_cancelled_without_a_worker() {
    let world = World::saying("It is done.").await;
    let waits = world.run(&["run", "--background", "--needs", "gpu", "one"]).await.expect(0);
    let run = waits.out.trim();
    let other = world.run(&["run", "two"]).await.expect(0);
    assert!(other.err.contains("waits for a worker with the label `gpu`"), "{}", other.err);
    assert!(
        !other.err.contains("continuing") && !other.err.contains("is not done"),
        "{}",
        other.err
    );
    let cancelled = world.run(&["runs", "cancel", run]).await.expect(0);
    assert!(cancelled.out.contains("cancelled"), "{cancelled:?}");
}
