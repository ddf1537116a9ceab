//! A process that stood still, and whose run another has taken over.

#![cfg(feature = "failpoints")]

use crate::world::{World, bash, eventually, started};
use posse_testkit::{Reply, Rule, Script, When};
use rustix::process::Signal;

/// True when the process stands still.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

#[tokio::test]
async fn whoever_stood_still_starts_no_command_of_a_run_that_it_has_lost() {
    let script = Script::new()
        .rule(Rule::when(When::any().turn(0)).reply(bash("echo effect >> ledger")))
        .rule(Rule::when(When::any()).reply(Reply::text("I do not repeat it")));
    let world = World::new(script).await;
    let mut command = world.command(&["run", "work"]);
    // All is ready for the command to start, and its intent is stored.
    command.env("POSSE_STOPPOINT", "tool.launch.spawned");
    let stale = started(command);
    let pid = stale.child.id().unwrap();
    eventually("it stands still", async || is_stopped(pid)).await;
    let run = world.only_run().await;
    eventually("its lease is over", async || {
        let shown = world.run(&["runs", "show", &run, "--json"]).await.expect(0).json();
        shown["status"] == "crashed"
    })
    .await;
    let resumed = world.run(&["runs", "resume", &run]).await.expect(0);
    assert!(resumed.out.contains("I do not repeat it"), "{resumed:?}");
    stale.signal(Signal::CONT);
    stale.end().await.expect(0);
    assert_eq!(world.read("ledger"), "", "the command was said to be interrupted");
    world.run(&["runs", "verify"]).await.expect(0);
}
