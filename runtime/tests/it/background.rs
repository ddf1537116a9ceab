//! Work in the background: it is started and left, and its end is told exactly once.

use crate::bench::{Bench, eventually, within};
use crate::delegation::children;
use posse::protocol::{Announce, CancelScope, Event, Extra, Outcome, Record, RunFinished, Sender};
use posse::store::{Append, Guard, Ownership, Reserve};
use posse::{RunHandle, RunId, RunRow, RunSpec, RuntimeConfig, Seq, Status};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::time::Duration;

pub fn spawn(task: &str, announce: &str) -> Value {
    json!({"task": task, "label": format!("do {task}"), "agentId": "explore", "announce": announce})
}

pub fn spawning(calls: impl IntoIterator<Item = Value>) -> Reply {
    calls
        .into_iter()
        .fold(Reply::empty(), |reply, call| reply.and_tool_call("spawn_subagent", call))
}

pub fn lead() -> Conversation {
    Conversation::when(When::any().first_user_contains("lead"))
}

fn child(task: &str, reply: Reply) -> Conversation {
    Conversation::when(When::any().first_user_contains(task)).reply(reply)
}

pub async fn completed(run: &RunHandle) -> String {
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.is_completed(), "{outcome}");
    outcome.text().to_owned()
}

/// The announcements in a log: of which run, how, and in what words.
fn announcements(log: &[Record]) -> Vec<(RunId, Announce, String)> {
    let told = |record: &Record| match &record.event {
        Event::MessageReceived(received) => match &received.from {
            Sender::Child(told) => Some((told.run, told.announce, received.message.text())),
            _ => None,
        },
        _ => None,
    };
    log.iter().filter_map(told).collect()
}

/// The results of calls in a log.
pub fn results(log: &[Record]) -> Vec<String> {
    let result = |record: &Record| match &record.event {
        Event::ToolFinished(it) => Some(it.output.joined_text()),
        _ => None,
    };
    log.iter().filter_map(result).collect()
}

async fn row(bench: &Bench, run: RunId) -> RunRow {
    bench.runtime.find(&run.to_string()).await.unwrap()
}

async fn is(bench: &Bench, run: RunId, status: Status) {
    eventually(async || row(bench, run).await.status == status).await;
}

#[tokio::test]
async fn a_parent_goes_on_sleeps_without_a_slot_and_is_woken_by_the_result() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([spawn("look", "followup")]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("all is known")),
        )
        .conversation(child("look", Reply::text("auth is in src/auth").held_by(&gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead the way").await;
    within(gate.wait_for_held(1)).await.unwrap();
    is(&bench, run.id(), Status::Waiting).await;
    eventually(async || bench.runtime.executing() == 1).await;
    let waiting = row(&bench, run.id()).await;
    assert_eq!((waiting.family.expects, waiting.state.outcome), (1, None), "it is not done");
    let below = children(&bench, run.id()).await;
    assert!(below[0].family.background && below[0].about.label == "do look");
    gate.open();
    assert_eq!(completed(&run).await, "all is known");
    let log = bench.log(run.id()).await;
    assert!(results(&log)[0].contains(&format!("started run {}", below[0].id)), "{log:?}");
    let told = announcements(&log);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].0, told[0].1), (below[0].id, Announce::Followup));
    let parts =
        ["auth is in src/auth", "agent=\"explore\"", "task=\"do look\"", "outcome=\"completed\""];
    for part in parts {
        assert!(told[0].2.contains(part), "{}", told[0].2);
    }
    let last = bench.fake.last_request().body.to_string();
    assert_eq!(last.matches("auth is in src/auth").count(), 1);
    bench.fake.assert_nothing_refused();
}

#[tokio::test]
async fn each_way_of_telling_tells_once_and_silently_not_at_all() {
    for announce in Announce::ALL {
        let gate = Gate::new();
        let script = Script::new()
            .conversation(
                lead()
                    .reply(spawning([spawn("look", announce.name())]))
                    .reply(Reply::text("I wait"))
                    .reply(Reply::text("I know")),
            )
            .conversation(child("look", Reply::text("found it").held_by(&gate)));
        let bench = Bench::new(script).await;
        let run = bench.start("lead").await;
        within(gate.wait_for_held(1)).await.unwrap();
        let silent = announce == Announce::Silent;
        is(&bench, run.id(), if silent { Status::Finished } else { Status::Waiting }).await;
        let below = children(&bench, run.id()).await;
        gate.open();
        within(bench.runtime.handle(below[0].id).outcome()).await.unwrap();
        assert_eq!(completed(&run).await, if silent { "I wait" } else { "I know" });
        let told = announcements(&bench.log(run.id()).await);
        assert_eq!(told.len(), 1, "{announce:?}");
        assert_eq!(told[0].1, announce);
        let requests = bench.fake.requests_where(&When::any().first_user_contains("lead"));
        assert_eq!(requests.len(), if silent { 2 } else { 3 }, "{announce:?}");
        let last = requests.last().unwrap().body.to_string();
        assert_eq!(last.matches("found it").count(), usize::from(!silent), "{announce:?}");
    }
}

#[tokio::test]
async fn h2_collected_results_come_together_and_after_a_while_of_quiet_those_there_are() {
    let script = |first: &Gate, second: &Gate| {
        Script::new()
            .conversation(
                lead()
                    .reply(spawning([spawn("one", "collect"), spawn("two", "collect")]))
                    .reply(Reply::text("I wait"))
                    .reply(Reply::text("some"))
                    .reply(Reply::text("all")),
            )
            .conversation(child("one", Reply::text("result-1").held_by(first)))
            .conversation(child("two", Reply::text("result-2").held_by(second)))
    };
    let (first, second) = (Gate::new(), Gate::new());
    let told_in_last = |bench: &Bench| {
        let last = bench.fake.last_request().body.to_string();
        (last.matches("result-1").count(), last.matches("result-2").count())
    };
    // Together: it is quiet for an hour, so that it is the last that brings both.
    let quiet = Duration::from_secs(3_600);
    let adjust = |config| {
        let mut config: RuntimeConfig = config;
        config.delegation.quiet = quiet;
        config
    };
    let bench = Bench::with(script(&first, &second), adjust).await;
    let run = bench.start("lead").await;
    within(first.wait_for_held(1)).await.unwrap();
    is(&bench, run.id(), Status::Waiting).await;
    first.open();
    eventually(async || row(&bench, run.id()).await.family.expects == 1).await;
    assert_eq!(row(&bench, run.id()).await.status, Status::Waiting);
    second.open();
    assert_eq!(completed(&run).await, "some");
    assert_eq!(told_in_last(&bench), (1, 1));
    // After a while: the second does not come.
    let (first, second) = (Gate::new(), Gate::new());
    let quiet = Duration::from_millis(40);
    let adjust = |config| {
        let mut config: RuntimeConfig = config;
        config.delegation.quiet = quiet;
        config
    };
    let bench = Bench::with(script(&first, &second), adjust).await;
    let run = bench.start("lead").await;
    within(first.wait_for_held(1)).await.unwrap();
    within(second.wait_for_held(1)).await.unwrap();
    is(&bench, run.id(), Status::Waiting).await;
    first.open();
    let lead = When::any().first_user_contains("lead");
    eventually(async || bench.fake.requests_where(&lead).len() == 3).await;
    let third = bench.fake.requests_where(&lead)[2].body.to_string();
    assert_eq!((third.matches("result-1").count(), third.matches("result-2").count()), (1, 0));
    second.open();
    assert_eq!(completed(&run).await, "all");
    assert_eq!(told_in_last(&bench), (1, 1));
}

#[tokio::test]
async fn i1_what_ends_after_ten_restarts_is_told_once_and_wakes_its_parent() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([spawn("look", "followup")]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I know")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("found it").held_by(&gate)));
    let mut bench = Bench::new(script).await;
    let run = bench.start("lead").await.id();
    within(gate.wait_for_held(1)).await.unwrap();
    is(&bench, run, Status::Waiting).await;
    for _ in 0..10 {
        bench.runtime.shutdown().await;
        bench.reopen().await;
    }
    gate.open();
    let handle = bench.runtime.handle(run);
    assert_eq!(completed(&handle).await, "I know");
    assert_eq!(announcements(&bench.log(run).await).len(), 1);
    bench.runtime.shutdown().await;
    bench.reopen().await;
    assert_eq!(announcements(&bench.log(run).await).len(), 1, "not again");
}

#[tokio::test]
async fn a_session_that_does_nothing_is_woken_by_a_result() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([spawn("look", "followup")]))
                .reply(Reply::text("it is on its way"))
                .reply(Reply::text("here it is")),
        )
        .conversation(child("look", Reply::text("found it").held_by(&gate)));
    let bench = Bench::new(script).await;
    let spec = RunSpec { session: true, ..bench.spec("lead") };
    let run = bench.runtime.start(spec).await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    is(&bench, run.id(), Status::Waiting).await;
    gate.open();
    bench.until(&run, |event| {
        matches!(event, Event::ModelReplied(reply) if reply.message.text() == "here it is")
    })
    .await;
    let below = children(&bench, run.id()).await;
    assert_eq!(below[0].state.outcome.as_deref(), Some("completed"));
}

#[tokio::test]
async fn g1_a_failure_is_told_with_its_reason_and_what_there_was() {
    let fault = Rule::when(When::any().first_user_contains("look"))
        .reply(Reply::error(400, "boom: no such thing"));
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([spawn("look", "followup")]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I see")),
        )
        .rule(fault);
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let told = announcements(&bench.log(run.id()).await);
    assert_eq!(told.len(), 1);
    for part in ["outcome=\"failed\"", "boom", "task=\"do look\"", "tokens=\"", "duration=\""] {
        assert!(told[0].2.contains(part), "{}", told[0].2);
    }
}

#[tokio::test]
async fn g4_what_the_child_said_last_is_told_and_not_what_a_tool_said_before() {
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([spawn("look", "followup")]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I know")),
        )
        .conversation(
            Conversation::when(When::any().first_user_contains("look"))
                .reply(Reply::tool_call("Read", json!({"file_path": "notes.txt"})))
                .reply(Reply::text("the child's own words")),
        );
    let bench = Bench::new(script).await;
    bench.write("notes.txt", "what the tool said");
    let run = bench.start("lead").await;
    completed(&run).await;
    let below = children(&bench, run.id()).await;
    let heard = results(&bench.log(below[0].id).await);
    assert!(heard[0].contains("what the tool said"), "{heard:?}");
    let told = announcements(&bench.log(run.id()).await);
    assert!(told[0].2.contains("the child's own words"), "{}", told[0].2);
    assert!(!told[0].2.contains("what the tool said"), "{}", told[0].2);
}

#[tokio::test]
async fn g8_two_that_are_alike_to_the_letter_are_two_and_each_is_told_once() {
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([spawn("look", "collect"), spawn("look", "collect")]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I know")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("found it")));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let below = children(&bench, run.id()).await;
    let keys: Vec<&str> = below.iter().map(|row| row.about.key.as_deref().unwrap()).collect();
    assert_eq!(keys.len(), 2);
    assert!(keys[0] != keys[1], "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with(&run.id().to_string())), "{keys:?}");
    let mut told: Vec<RunId> =
        announcements(&bench.log(run.id()).await).into_iter().map(|(run, ..)| run).collect();
    told.sort_unstable();
    assert_eq!(told, [below[0].id, below[1].id]);
}

#[tokio::test]
async fn i10_a_child_that_is_steered_ends_once_and_is_told_once() {
    let gate = Gate::new();
    let steer = json!({"action": "steer", "target": "do look", "message": "look to the left"});
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([spawn("look", "followup")]))
                .reply(Reply::tool_call("subagents", steer))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I know")),
        )
        .conversation(
            Conversation::when(When::any().first_user_contains("look"))
                .reply(Reply::text("nothing on the right").held_by(&gate))
                .reply(Reply::text("it is on the left")),
        );
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    within(gate.wait_for_held(1)).await.unwrap();
    is(&bench, run.id(), Status::Waiting).await;
    let below = children(&bench, run.id()).await[0].id;
    gate.open();
    assert_eq!(completed(&run).await, "I know");
    let told = announcements(&bench.log(run.id()).await);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].2.contains("it is on the left"), "{}", told[0].2);
    let ends = bench.kinds(below).await;
    assert_eq!(ends.iter().filter(|kind| **kind == "run_finished").count(), 1, "{ends:?}");
}

#[tokio::test]
async fn i12_what_is_stopped_with_its_parent_is_kept_and_tells_nobody() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            lead().reply(spawning([spawn("look", "followup")])).reply(Reply::text("I wait")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    within(gate.wait_for_held(1)).await.unwrap();
    is(&bench, run.id(), Status::Waiting).await;
    let receipt = bench.runtime.cancel(run.id(), "me", CancelScope::Run).await.unwrap();
    let below = children(&bench, run.id()).await;
    assert_eq!(receipt.below().map(|told| told.run).collect::<Vec<_>>(), [below[0].id]);
    let outcome = within(run.outcome()).await.unwrap();
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome}");
    let child = bench.runtime.handle(below[0].id);
    assert!(matches!(within(child.outcome()).await.unwrap(), Outcome::Cancelled { .. }));
    eventually(async || announcements(&bench.log(run.id()).await).len() == 1).await;
    assert_eq!(row(&bench, run.id()).await.status, Status::Finished, "nothing was reopened");
    gate.open();
}

#[tokio::test]
async fn g12_a_child_whose_own_children_are_at_work_is_waiting_and_not_done() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([json!({"task": "middle", "announce": "followup"})]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("the end")),
        )
        .conversation(
            Conversation::when(When::any().first_user_contains("middle"))
                .reply(spawning([spawn("leaf", "followup")]))
                .reply(Reply::text("not yet"))
                .reply(Reply::text("both done")),
        )
        .conversation(child("leaf", Reply::text("leaf result").held_by(&gate)));
    let bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.delegation.max_depth = 2;
        config
    })
    .await;
    let run = bench.start("lead").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let middle = children(&bench, run.id()).await[0].id;
    is(&bench, middle, Status::Waiting).await;
    is(&bench, run.id(), Status::Waiting).await;
    assert!(announcements(&bench.log(run.id()).await).is_empty(), "the middle one is not done");
    gate.open();
    assert_eq!(completed(&run).await, "the end");
    let told = announcements(&bench.log(run.id()).await);
    assert_eq!(told.len(), 1);
    assert!(told[0].2.contains("both done"), "{}", told[0].2);
}

#[tokio::test]
async fn g13_a_child_that_ends_after_a_wait_for_it_was_over_is_announced_as_completed() {
    let gate = Gate::new();
    let wait = json!({"action": "wait", "timeoutSeconds": 0});
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([spawn("look", "followup")]))
                .reply(Reply::tool_call("subagents", wait))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I know")),
        )
        .conversation(child("look", Reply::text("found it").held_by(&gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    is(&bench, run.id(), Status::Waiting).await;
    let waited = &results(&bench.log(run.id()).await)[1];
    assert!(waited.starts_with("1 of 1 are still at work"), "{waited}");
    gate.open();
    assert_eq!(completed(&run).await, "I know");
    let told = announcements(&bench.log(run.id()).await);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].2.contains("completed") && told[0].2.contains("found it"), "{}", told[0].2);
}

#[tokio::test]
async fn a_task_may_run_in_the_background_and_so_may_an_agent_by_its_definition() {
    let call = json!({"description": "look", "prompt": "look", "subagent_type": "explore",
        "run_in_background": true});
    let script = Script::new()
        .conversation(
            lead()
                .reply(Reply::tool_call("Task", call))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I know")),
        )
        .conversation(child("look", Reply::text("found it")));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let log = bench.log(run.id()).await;
    assert!(results(&log)[0].starts_with("started run "), "{:?}", results(&log));
    assert_eq!(announcements(&log).len(), 1);
}

#[tokio::test]
async fn what_is_recorded_after_an_end_hides_neither_the_outcome_nor_that_nothing_follows() {
    let gate = Gate::new();
    let silent = ["one", "two", "three"].map(|task| spawn(task, "silent"));
    let script = Script::new()
        .conversation(lead().reply(spawning(silent)).reply(Reply::text("done")))
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    within(gate.wait_for_held(3)).await.unwrap();
    assert_eq!(completed(&run).await, "done");
    gate.open();
    eventually(async || announcements(&bench.log(run.id()).await).len() == 3).await;
    let again = bench.runtime.handle(run.id());
    assert_eq!(completed(&again).await, "done");
    let mut events = again.events(Seq::ZERO);
    while let Some(update) = within(events.next()).await {
        update.unwrap();
    }
}

#[tokio::test]
async fn an_end_whose_parent_has_ended_goes_to_the_one_above_it() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            lead()
                .reply(spawning([json!({"task": "middle", "announce": "followup"})]))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I heard of it")),
        )
        .conversation(
            Conversation::when(When::any().first_user_contains("middle"))
                .reply(spawning([spawn("leaf", "collect")]))
                .reply(Reply::text("not yet")),
        )
        .conversation(child("leaf", Reply::text("leaf result").held_by(&gate)));
    let mut bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.delegation.max_depth = 2;
        config
    })
    .await;
    let run = bench.start("lead").await.id();
    within(gate.wait_for_held(1)).await.unwrap();
    let middle = children(&bench, run).await[0].id;
    let leaf = children(&bench, middle).await[0].id;
    is(&bench, middle, Status::Waiting).await;
    is(&bench, run, Status::Waiting).await;
    let logs = [bench.log(run).await, bench.log(middle).await, bench.log(leaf).await];
    bench.runtime.shutdown().await;
    // The same tree, but for the one in the middle, which could not go on.
    bench.use_another_database();
    let store = bench.open_store().await;
    for (log, then) in
        logs.into_iter().zip([Ownership::Waiting, Ownership::Waiting, Ownership::Queued])
    {
        let made = log[0].run;
        let mut events: Vec<Event> = log.into_iter().map(|record| record.event).collect();
        if made == middle {
            let (outcome, extra) = (Outcome::failed("no way", ""), Extra::default());
            events.push(Event::RunFinished(RunFinished {
                outcome,
                worked_ms: 1,
                changes: None,
                extra,
            }));
        }
        let (events, guard, reserve) = (events.into(), Guard::Create(then), Reserve::Leave);
        let append = Append { run: made, events, guard, reserve, outbox: Vec::new(), bundle: None };
        store.append(vec![append]).await.unwrap();
    }
    store.close().await;
    bench.reopen().await;
    gate.open();
    assert!(within(bench.runtime.handle(leaf).outcome()).await.unwrap().is_completed());
    let is_told = |event: &Event| match event {
        Event::MessageReceived(received) => match &received.from {
            Sender::Child(told) => told.run == leaf && told.inherited && !told.kept,
            _ => false,
        },
        _ => false,
    };
    bench.until(&bench.runtime.handle(run), is_told).await;
    let last = || bench.fake.last_request().body.to_string();
    eventually(async || last().contains("leaf result")).await;
    assert!(announcements(&bench.log(middle).await).is_empty());
}
