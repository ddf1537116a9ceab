//! `subagents`: what a run can see of and do to those it has started.

use crate::background::spawn;
use crate::bench::{Bench, eventually, within};
use crate::delegation::children;
use posse::protocol::{Event, Outcome, Record};
use posse::{RunHandle, Status};
use posse_testkit::{Conversation, Gate, Reply, Script, When};
use serde_json::{Value, json};

fn lead() -> Conversation {
    Conversation::when(When::any().first_user_contains("lead"))
}

fn named(task: &str) -> Conversation {
    Conversation::when(When::any().first_user_contains(task))
}

fn spawning(tasks: &[&str]) -> Reply {
    let call =
        |reply: Reply, task: &&str| reply.and_tool_call("spawn_subagent", spawn(task, "followup"));
    tasks.iter().fold(Reply::empty(), call)
}

fn subagents(call: Value) -> Reply {
    Reply::tool_call("subagents", call)
}

/// The results of the calls of `subagents` in a log, and whether each is an error.
fn answers(log: &[Record]) -> Vec<(String, bool)> {
    let mut asked = Vec::new();
    let mut found = Vec::new();
    for record in log {
        match &record.event {
            Event::ToolStarted(started) if started.tool == "subagents" => {
                asked.push(started.call.clone());
            }
            Event::ToolFinished(it) if asked.contains(&it.call) => {
                found.push((it.output.joined_text(), it.output.is_error));
            }
            _ => {}
        }
    }
    found
}

async fn answer(bench: &Bench, run: &RunHandle, count: usize) -> (String, bool) {
    eventually(async || answers(&bench.log(run.id()).await).len() >= count).await;
    answers(&bench.log(run.id()).await).remove(count - 1)
}

#[tokio::test]
async fn i14_a_run_sees_who_is_at_work_for_it_and_what_for() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning(&["alpha one", "alpha two"]))
                .reply(subagents(json!({"action": "list"})))
                .reply(subagents(json!({"action": "status", "target": "do alpha one"})))
                .reply(subagents(json!({"action": "status", "target": "2"})))
                .reply(subagents(json!({"action": "status", "target": "do alpha"})))
                .reply(subagents(json!({"action": "log", "target": 1})))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("one"))
                .reply(Reply::text("two")),
        )
        .conversation(named("alpha one").reply(Reply::text("1").held_by(&gate)))
        .conversation(named("alpha two").reply(Reply::text("2").held_by(&gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    let (list, _) = answer(&bench, &run, 1).await;
    assert!(list.contains("1. ") && list.contains("[explore] do alpha one"), "{list}");
    assert_eq!(list.lines().count(), 2, "{list}");
    let (status, failed) = answer(&bench, &run, 2).await;
    assert!(status.contains("do alpha one") && !failed, "{status}");
    assert!(answer(&bench, &run, 3).await.0.contains("do alpha two"));
    // I15: what could be two is neither.
    let (ambiguous, failed) = answer(&bench, &run, 4).await;
    assert!(failed && ambiguous.contains("2 fit `do alpha`"), "{ambiguous}");
    let (log, failed) = answer(&bench, &run, 5).await;
    assert!(!failed && log.contains("told: alpha one") && log.contains("</log id="), "{log}");
    gate.open();
    within(run.outcome()).await.unwrap();
}

#[tokio::test]
async fn i16_nobody_reaches_what_others_have_started() {
    let gate = Gate::new();
    let stranger = Script::new()
        .conversation(
            lead()
                .reply(subagents(json!({"action": "cancel", "target": "{{last_run}}"})))
                .reply(subagents(json!({"action": "steer", "target": "nobody", "message": "x"})))
                .reply(subagents(json!({"action": "cancel"})))
                .reply(Reply::text("done")),
        )
        .conversation(named("other").reply(Reply::text("x").held_by(&gate)));
    let bench = Bench::new(stranger).await;
    let other = bench.start("other").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let prompt = format!("lead; the run {} is not yours", other.id());
    let run = bench.start(&prompt).await;
    within(run.outcome()).await.unwrap();
    for (text, failed) in answers(&bench.log(run.id()).await) {
        assert!(failed, "{text}");
    }
    gate.open();
    assert!(within(other.outcome()).await.unwrap().is_completed());
}

#[tokio::test]
async fn a_run_steers_waits_for_and_cancels_its_children() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning(&["look"]))
                .reply(subagents(
                    json!({"action": "steer", "target": "do look", "message": "left"}),
                ))
                .reply(subagents(
                    json!({"action": "wait", "target": "do look", "timeoutSeconds": 0}),
                ))
                .reply(subagents(json!({"action": "cancel", "targets": ["do look"]})))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("it is gone")),
        )
        .conversation(named("look").reply(Reply::text("1").held_by(&gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    let below = || async { children(&bench, run.id()).await };
    let (told, failed) = answer(&bench, &run, 1).await;
    assert!(!failed && told.starts_with("told run "), "{told}");
    let (waited, failed) = answer(&bench, &run, 2).await;
    assert!(!failed && waited.contains("1 of 1 are still at work"), "{waited}");
    let (cancelled, failed) = answer(&bench, &run, 3).await;
    assert!(!failed && cancelled.contains("to stop"), "{cancelled}");
    assert!(within(run.outcome()).await.unwrap().is_completed());
    let child = below().await.remove(0);
    assert_eq!(child.state.outcome.as_deref(), Some("cancelled"));
    assert!(child.state.note.contains("its caller (general-purpose)"), "{}", child.state.note);
    gate.open();
}

#[tokio::test]
async fn a_run_that_waits_lends_its_slot_to_those_it_waits_for() {
    let wait = json!({"action": "wait", "target": "do look", "timeoutSeconds": 20});
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning(&["look"]))
                .reply(subagents(wait))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I know")),
        )
        .conversation(named("look").reply(Reply::text("found it")));
    let adjust = |config| {
        let mut config: posse::RuntimeConfig = config;
        config.scheduling.max_concurrent = 1;
        config
    };
    let bench = Bench::with(script, adjust).await;
    let run = bench.start("lead").await;
    let (waited, failed) = answer(&bench, &run, 1).await;
    assert!(!failed && waited.contains("all have ended"), "{waited}");
    assert!(within(run.outcome()).await.unwrap().is_completed());
}

#[tokio::test]
async fn a_message_sets_a_child_to_work_again_and_its_new_end_is_told() {
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning(&["look"]))
                .reply(Reply::text("I wait"))
                .reply(subagents(
                    json!({"action": "message", "target": "do look", "message": "and now?"}),
                ))
                .reply(Reply::text("I wait again"))
                .reply(Reply::text("now I know")),
        )
        .conversation(named("look").reply(Reply::text("first")).reply(Reply::text("second")));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    let outcome = within(run.outcome()).await.unwrap();
    assert_eq!(outcome, Outcome::completed("now I know"));
    let last = bench.fake.last_request().body.to_string();
    assert!(last.contains("first") && last.contains("second"), "{last}");
    let below = children(&bench, run.id()).await;
    assert_eq!((below.len(), below[0].status), (1, Status::Finished));
}
