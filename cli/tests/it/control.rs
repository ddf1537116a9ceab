//! `posse runs send`, `cancel` and `resume` on runs that nobody executes.

use crate::world::{World, bash, gone};
use posse_testkit::{Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

/// A run that was killed while it waited for the model, which is asked again with this reply.
async fn interrupted(then: Reply) -> (World, String) {
    let gate = Gate::new();
    let held = Rule::when(When::any()).reply(Reply::text("never").held_by(&gate)).once();
    let then = Rule::when(When::any()).reply(then);
    let world = World::new(Script::new().rule(held).rule(then)).await;
    let running = world.start(&["run", "first"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    let run = world.only_run().await;
    (world, run)
}

#[tokio::test]
async fn what_is_sent_to_an_interrupted_run_is_kept_for_it() {
    let (world, run) = interrupted(Reply::text("You said: {{last_user}}")).await;
    let sent = world.run(&["runs", "send", &run, "second"]).await.expect(0);
    assert!(sent.err.contains("open, `posse runs resume"), "{}", sent.err);
    let exit = world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(exit.out, "You said: first\nsecond\n");
}

#[tokio::test]
async fn an_interrupted_run_is_ended_by_whoever_cancels_it() {
    // Slow, so that it cannot answer before the request to stop is stored.
    let slow = Reply::text("too late").latency(Duration::from_secs(3));
    let (world, run) = interrupted(slow).await;
    let cancel = world.run(&["runs", "cancel", &run]).await.expect(0);
    assert!(cancel.err.contains("cancelled by the user"), "{}", cancel.err);
    assert_eq!(world.list().await[0]["outcome"], "cancelled");
    let again = world.run(&["runs", "cancel", &run]).await.expect(0);
    assert!(again.err.contains("has ended already: cancelled by the user"), "{}", again.err);
    let again = world.run(&["runs", "cancel", &run, "--json"]).await.expect(0).json();
    assert_eq!((&again["outcome"]["kind"], &again["told"]), (&json!("cancelled"), &json!([])));
}

#[tokio::test]
async fn a_finished_run_goes_on_with_what_is_said_to_it() {
    let world = World::new(Script::turns([
        Reply::text("one"),
        bash("echo more >> ledger"),
        Reply::text("two: {{last_user}}"),
        Reply::text("three: {{last_user}}"),
    ]))
    .await;
    world.run(&["run", "first"]).await.expect(0);
    let run = world.only_run().await;
    let exit = world.run(&["runs", "resume", &run, "go on"]).await.expect(0);
    assert_eq!(exit.out, "two: go on\n");
    assert!(!exit.err.contains("one"), "only what is new: {}", exit.err);
    let sent = world.run(&["runs", "send", &run, "and on", "--json"]).await.expect(0);
    assert_eq!(sent.json()["sent"], true);
    let exit = world.run(&["runs", "resume", &run, "--json"]).await.expect(0).json();
    assert_eq!(exit["text"], "three: and on");
    assert_eq!(exit["turns"], 4);
    let empty = world.run(&["runs", "send", &run, " "]).await.expect(2);
    assert!(empty.err.contains("the message is empty"), "{}", empty.err);
}

/// Whoever follows a run from its beginning on sees all its ends, and returns at the last.
#[tokio::test]
async fn a_run_that_went_on_after_its_end_is_followed_to_its_present_end() {
    let gate = Gate::new();
    let list = || Reply::text("looking").and_tool_call("List", json!({"path": "."}));
    let script = Script::turns([
        list(),
        list(),
        Reply::text("the second answer"),
        Reply::text("the third answer").held_by(&gate),
    ]);
    let world = World::new(script).await;
    let started = ["run", "--key", "k", "--max-turns", "2", "first"];
    world.run(&started).await.expect(5);
    let run = world.only_run().await;
    let again = world.run(&["runs", "resume", &run, "go on"]).await.expect(0);
    assert!(
        again.err.contains(" this time · since it began: 3 turns"),
        "its whole life: {}",
        again.err
    );
    let watched = world.run(&["runs", "watch", &run]).await.expect(0);
    assert!(watched.out.ends_with("the second answer\n"), "{watched:?}");
    assert!(watched.err.contains("stopped at its limit of turns"), "{watched:?}");
    let found = world.run(&started).await.expect(0);
    assert!(found.out.ends_with("the second answer\n"), "{found:?}");
    let found = world.run(&["run", "--json", "--key", "k", "first"]).await.expect(0).json();
    assert_eq!(
        (&found["outcome"], &found["text"]),
        (&json!("completed"), &json!("the second answer"))
    );
    // The same while it is at work.
    let running = world.start(&["runs", "resume", &run, "and on"]);
    gate.wait_for_held(1).await.unwrap();
    let watching = world.start(&["runs", "watch", &run]);
    watching.says("the second answer").await;
    gate.open();
    assert!(watching.end().await.expect(0).out.ends_with("the third answer\n"));
    running.end().await.expect(0);
}

#[tokio::test]
async fn resuming_a_session_returns_when_its_turn_is_over() {
    let gate = Gate::new();
    let script = Script::turns([
        Reply::text("hello"),
        Reply::text("again"),
        bash("true").held_by(&gate),
        Reply::text("at last"),
    ]);
    let world = World::new(script).await;
    world.feed(&["chat"], "hi\n").await.expect(0);
    let run = world.only_run().await;
    let exit = world.run(&["runs", "resume", &run, "more"]).await.expect(0);
    assert_eq!(exit.out, "again\n");
    assert!(exit.err.contains("waits; `posse chat --resume"), "{}", exit.err);

    let running = world.start(&["runs", "resume", &run, "once more"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    gate.open();
    let exit = world.run(&["runs", "resume", &run, "--json"]).await.expect(0).json();
    assert_eq!((&exit["text"], &exit["status"]), (&"at last".into(), &"waiting".into()));
}

#[tokio::test]
async fn resume_all_does_not_wait_for_sessions_to_end() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("hm").held_by(&gate))).await;
    let mut chat = world.start_with_input(&["chat"]);
    chat.type_line("hello").await;
    gate.wait_for_held(1).await.unwrap();
    chat.signal(Signal::KILL);
    chat.end().await;
    gate.open();
    let exit = world.run(&["runs", "resume", "--all"]).await.expect(0);
    assert!(exit.out.trim().ends_with("  waiting"), "{}", exit.out);
}

/// A command is asked to end, and has a moment for it.
#[tokio::test]
async fn a_command_that_is_cancelled_may_clean_up_and_one_that_does_not_hear_is_killed() {
    let tidies = "trap 'echo tidy >> ledger; exit' TERM; echo $POSSE_SCRATCH > pid; \
                  while :; do sleep 0.02; done";
    let is_deaf = "trap 'echo deaf >> ledger' TERM; echo $POSSE_SCRATCH > pid; \
                   while :; do sleep 0.02; done";
    for (command, left) in [(tidies, "tidy\n"), (is_deaf, "deaf\n")] {
        // The moment is short: on a busy machine a command may miss it, but not every time.
        let mut heard = false;
        for _ in 0..10 {
            let world = World::new(Script::turns([bash(command), Reply::text("done")])).await;
            let running = world.start(&["run", "go"]);
            let pid = world.lines_in("pid", 1).await;
            world.run(&["runs", "cancel", &world.only_run().await]).await.expect(0);
            running.end().await.expect(3);
            gone(&pid).await;
            heard = world.work().join("ledger").exists() && world.read("ledger") == left;
            if heard {
                break;
            }
        }
        assert!(heard, "{command}");
    }
}
