//! Trees after the death of a process: each end is told once, nobody waits in vain, nothing runs on.

use crate::bench::{Bench, eventually, within};
use crate::delegation::{children, main_agent, task};
use posse::ModelChoice;
use posse::protocol::{
    CancelRequested, CancelScope, Effect, Event, Extra, Record, Sender, ToolSpec,
};
use posse::store::{Append, Filter, Guard, Ownership, Reserve};
use posse::{
    AgentSpec, Answer, Keys, Outcome, Page, Recovery, RunHandle, RunId, RunRow, RunSpec, Runtime,
    RuntimeConfig, Status, Tool, ToolContext,
};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Opens the runtime anew on a database in which every log is as a process left it that died before
/// it had stored the events that are not `kept`.
async fn as_if_it_had_died(bench: &mut Bench, kept: impl Fn(&Event) -> bool) {
    let all = Filter { limit: 100, ..Filter::default() };
    let mut logs = Vec::new();
    for row in bench.runtime.list(&all).await.unwrap() {
        logs.push((row.id, bench.log(row.id).await));
    }
    bench.runtime.shutdown().await;
    bench.use_another_database();
    let store = bench.open_store().await;
    for (run, log) in logs {
        let events = log.into_iter().map(|record| record.event).filter(&kept).collect();
        let guard = Guard::Create(Ownership::Queued);
        let reserve = Reserve::Leave;
        store
            .append(vec![Append { run, events, guard, reserve, outbox: Vec::new(), bundle: None }])
            .await
            .unwrap();
    }
    store.close().await;
    bench.reopen().await;
}

/// What is in the log before a call that delegates has noted that it waits.
fn before_the_wait(event: &Event) -> bool {
    !matches!(event, Event::ToolPending(_) | Event::ToolFinished(_))
}

async fn outcome(bench: &Bench, run: RunId) -> Outcome {
    within(bench.runtime.handle(run).outcome()).await.unwrap()
}

async fn only_child(bench: &Bench, run: RunId) -> RunId {
    let rows = children(bench, run).await;
    assert_eq!(rows.len(), 1);
    rows[0].id
}

/// The results in a log: of which call, and the text.
fn results(log: &[Record]) -> Vec<(String, String)> {
    let result = |record: &Record| match &record.event {
        Event::ToolFinished(it) => Some((it.call.to_string(), it.output.joined_text())),
        _ => None,
    };
    log.iter().filter_map(result).collect()
}

/// Each call of each run has been answered once.
async fn check_answers(bench: &Bench, runs: impl IntoIterator<Item = RunId>) {
    for run in runs {
        let log = bench.log(run).await;
        let mut answered: Vec<String> = results(&log).into_iter().map(|(call, _)| call).collect();
        let mut asked: Vec<String> = Vec::new();
        for record in &log {
            if let Event::ModelReplied(reply) = &record.event {
                asked.extend(reply.message.tool_calls().map(|call| call.id.to_string()));
            }
        }
        answered.sort();
        asked.sort();
        assert_eq!(answered, asked, "{log:#?}");
    }
}

/// When the first event in the log that `wanted` accepts was stored.
fn time_of(log: &[Record], wanted: impl Fn(&Event) -> bool) -> u64 {
    log.iter().find(|record| wanted(&record.event)).unwrap().at
}

/// A tool that ends when it may.
struct Hold {
    spec: ToolSpec,
    permits: Arc<Semaphore>,
}

#[async_trait::async_trait]
impl Tool for Hold {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Answer {
        self.permits.acquire().await.unwrap().forget();
        posse::protocol::ToolOutput::text("held").into()
    }
}

fn hold(permits: &Arc<Semaphore>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        idempotent: true,
        ..ToolSpec::new("Hold", "Waits", Effect::Execute, json!({"type": "object"}))
    };
    Arc::new(Hold { spec, permits: permits.clone() })
}

#[tokio::test]
async fn a_child_that_ends_just_before_its_caller_looks_for_it_again_is_told_once() {
    let (gate, permits) = (Gate::new(), Arc::new(Semaphore::new(1)));
    let calls = Reply::tool_call("Hold", json!({})).and_tool_call("Task", task("explore", "look"));
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(calls)
                .reply(Reply::text("done")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("found").held_by(&gate)));
    let tool = hold(&permits);
    let mut bench = Bench::with(script, |mut config| {
        config.tools = vec![tool];
        config
    })
    .await;
    let run = bench.start("lead").await.id();
    within(gate.wait_for_held(1)).await.unwrap();
    let child = only_child(&bench, run).await;
    as_if_it_had_died(&mut bench, before_the_wait).await;
    // Only now, or all could have come to its end before.
    gate.open();
    // The caller has read its log, and is busy with the call before; the child ends meanwhile.
    assert!(outcome(&bench, child).await.is_completed());
    permits.add_permits(1);
    assert_eq!(outcome(&bench, run).await.text(), "done");
    check_answers(&bench, [run]).await;
    let told = results(&bench.log(run).await);
    assert!(told.iter().any(|(_, text)| text.contains(&child.to_string())), "{told:?}");
}

/// Keys for another vendor beside the usual one.
fn with_openai(config: RuntimeConfig, url: &str) -> RuntimeConfig {
    let keys = config.models.keys.clone();
    let keys = keys.with("OPENAI_API_KEY", "test").with("OPENAI_BASE_URL", format!("{url}/v1"));
    {
        let mut config: RuntimeConfig = config;
        config.models.keys = keys;
        config
    }
}

/// A runtime that has a second vendor until it is opened anew.
async fn with_two_vendors(script: Script) -> Bench {
    let mut bench = Bench::new(script).await;
    bench.runtime.shutdown().await;
    bench.config = with_openai(bench.config.clone(), &bench.fake.url());
    bench.reopen().await;
    bench
}

fn lose_openai(bench: &mut Bench) {
    let keys = Keys::default().with("ANTHROPIC_API_KEY", "test");
    bench.config.models.keys = keys.with("ANTHROPIC_BASE_URL", bench.fake.url());
}

#[tokio::test]
async fn a_child_that_could_not_be_started_now_is_found_all_the_same() {
    let gate = Gate::new();
    let mut call = task("explore", "look");
    call["model"] = "openai/gpt-6-sol".into();
    let script = Script::new()
        .conversation(main_agent([call]))
        .rule(Rule::when(When::any()).reply(Reply::text("found").held_by(&gate)));
    let mut bench = with_two_vendors(script).await;
    let run = bench.start("lead").await.id();
    within(gate.wait_for_held(1)).await.unwrap();
    let child = only_child(&bench, run).await;
    lose_openai(&mut bench);
    as_if_it_had_died(&mut bench, before_the_wait).await;
    gate.open();
    assert_eq!(outcome(&bench, run).await.text(), "done");
    // It cannot go on either. That is its end, and the only one that is told.
    assert_eq!(outcome(&bench, child).await.kind(), "failed");
    check_answers(&bench, [run]).await;
    let told = results(&bench.log(run).await);
    assert!(told[0].1.contains(&child.to_string()), "{told:?}");
}

#[tokio::test]
async fn a_caller_that_cannot_go_on_takes_its_children_along_in_the_same_moment() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(main_agent(["a", "b"].map(|it| {
            let mut call = task("explore", it);
            call["model"] = "anthropic/claude-sonnet-4-5".into();
            call
        })))
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let mut bench = with_two_vendors(script).await;
    let spec =
        RunSpec { models: ModelChoice::of("openai/gpt-6-sol".to_owned()), ..bench.spec("lead") };
    let run = bench.runtime.start(spec).await.unwrap().id();
    within(gate.wait_for_held(2)).await.unwrap();
    let below: Vec<RunId> = children(&bench, run).await.iter().map(|row| row.id).collect();
    lose_openai(&mut bench);
    as_if_it_had_died(&mut bench, |_| true).await;
    assert_eq!(outcome(&bench, run).await.kind(), "failed");
    check_answers(&bench, [run]).await;
    let ended_at = bench.log(run).await.last().unwrap().at;
    for child in below {
        assert_eq!(outcome(&bench, child).await.kind(), "cancelled");
        let log = bench.log(child).await;
        let told_at = time_of(&log, |event| matches!(event, Event::CancelRequested(_)));
        assert_eq!(told_at, ended_at, "{log:#?}");
    }
}

/// A tree of three levels whose leaves are held, with so many below each.
async fn held_tree(gate: &Gate, width: usize) -> (Bench, RunHandle) {
    let fan_out = |prompt: &str, to: &str| {
        let calls = (0..width).map(|index| task("lead", &format!("{to}-{index}")));
        let reply = calls.fold(Reply::empty(), |reply, call| reply.and_tool_call("Task", call));
        Conversation::when(When::any().first_user_contains(prompt))
            .reply(reply)
            .reply(Reply::text("done"))
    };
    let script = Script::new()
        .conversation(fan_out("top", "middle"))
        .conversation(fan_out("middle", "leaf"))
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(gate)));
    let bench = Bench::with(script, |config| {
        let mut lead = AgentSpec::new("lead".parse().unwrap());
        lead.children.max_depth = Some(2);
        config.definitions.agents.set(lead);
        config
    })
    .await;
    let spec = RunSpec { agent: "lead".parse().unwrap(), ..bench.spec("top") };
    let run = bench.runtime.start(spec).await.unwrap();
    within(gate.wait_for_held(width * width)).await.unwrap();
    (bench, run)
}

/// Waits until everything in the tree has been cancelled, each call answered once.
async fn check_cancelled(bench: &Bench, run: &RunHandle, runs: usize) {
    let tree = run.tree().await.unwrap();
    assert_eq!(tree.len(), runs);
    for row in &tree {
        assert_eq!(outcome(bench, row.id).await.kind(), "cancelled", "{}", row.about.title);
    }
    check_answers(bench, tree.iter().map(|row| row.id)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_of_a_tree_that_is_cancelled_is_answered_once() {
    let gate = Gate::new();
    let (bench, run) = held_tree(&gate, 3).await;
    bench.runtime.cancel(run.id(), "me", CancelScope::Run).await.unwrap();
    check_cancelled(&bench, &run, 13).await;
}

#[tokio::test]
async fn i5_a_run_that_is_nowhere_is_not_announced_and_whoever_waits_for_it_can_be_ended() {
    let gate = Gate::new();
    let call = json!({"task": "look", "agentId": "explore", "announce": "followup"});
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call("spawn_subagent", call))
                .reply(Reply::text("I wait"))
                .reply(Reply::text("I still wait")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let mut bench = Bench::new(script).await;
    let run = bench.start("lead").await.id();
    within(gate.wait_for_held(1)).await.unwrap();
    let is_waiting = async |bench: &Bench| {
        bench.runtime.find(&run.to_string()).await.unwrap().status == Status::Waiting
    };
    eventually(async || is_waiting(&bench).await).await;
    let child = only_child(&bench, run).await;
    let events = bench.log(run).await.into_iter().map(|record| record.event).collect();
    bench.runtime.shutdown().await;
    // A database that somebody has put together by hand, and left the child out.
    bench.use_another_database();
    let store = bench.open_store().await;
    let (guard, reserve) = (Guard::Create(Ownership::Waiting), Reserve::Leave);
    let append = Append { run, events, guard, reserve, outbox: Vec::new(), bundle: None };
    store.append(vec![append]).await.unwrap();
    store.close().await;
    bench.reopen().await;
    assert!(bench.runtime.find(&child.to_string()).await.is_err());
    assert_eq!(bench.runtime.handle(run).tree().await.unwrap().len(), 1);
    // It can be talked to meanwhile, and waits on.
    bench.runtime.send(run, "how is it going?").await.unwrap();
    let asked = When::any().first_user_contains("lead");
    eventually(async || bench.fake.requests_where(&asked).len() == 3).await;
    eventually(async || is_waiting(&bench).await).await;
    bench.runtime.cancel(run, "me", CancelScope::Run).await.unwrap();
    assert_eq!(outcome(&bench, run).await.kind(), "cancelled");
    let told = |event: &Event| match event {
        Event::MessageReceived(received) => matches!(received.from, Sender::Child(_)),
        _ => false,
    };
    assert!(!bench.log(run).await.iter().any(|record| told(&record.event)));
    gate.open();
}

#[tokio::test]
async fn a_tree_is_read_page_by_page_the_oldest_first() {
    let gate = Gate::new();
    let (bench, run) = held_tree(&gate, 3).await;
    let ids = |rows: &[RunRow]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
    // The whole tree, and a part of it between whose runs stand those of others.
    let middle = bench.runtime.handle(children(&bench, run.id()).await[1].id);
    for (top, runs) in [(&run, 13), (&middle, 4)] {
        let all = ids(&top.tree().await.unwrap());
        assert_eq!(all.len(), runs);
        for limit in [1, 2, 5, 100] {
            let mut seen: Vec<RunId> = Vec::new();
            loop {
                let page = Page { after: seen.last().copied(), limit };
                let rows = top.tree_page(page).await.unwrap();
                assert!(rows.len() <= limit);
                if rows.is_empty() {
                    break;
                }
                seen.extend(ids(&rows));
            }
            assert_eq!(seen, all, "{limit} at a time");
        }
    }
    bench.runtime.cancel(run.id(), "me", CancelScope::Run).await.unwrap();
    check_cancelled(&bench, &run, 13).await;
}

#[tokio::test]
async fn whoever_ends_a_cancelled_run_tells_its_children_in_the_same_moment() {
    let gate = Gate::new();
    let (bench, run) = held_tree(&gate, 1).await;
    // Another process asks, and dies before it has told anyone else.
    let other = bench.open_store().await;
    let (by, scope) = ("another".to_owned(), CancelScope::Run);
    let request = Event::CancelRequested(CancelRequested { by, scope, extra: Extra::default() });
    other.append(vec![Append::by_anyone(run.id(), request)]).await.unwrap();
    other.close().await;
    assert_eq!(outcome(&bench, run.id()).await.kind(), "cancelled");
    check_cancelled(&bench, &run, 3).await;
    let middle = only_child(&bench, run.id()).await;
    let told = bench.log(middle).await;
    let told_at = time_of(&told, |event| matches!(event, Event::CancelRequested(_)));
    assert_eq!(told_at, bench.log(run.id()).await.last().unwrap().at);
}

#[tokio::test]
async fn a_process_that_follows_a_tree_goes_on_with_what_another_left_in_it() {
    let (first, second) = (Gate::new(), Gate::new());
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call("Task", task("explore", "look")).held_by(&first))
                .reply(Reply::text("done")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("found").held_by(&second)));
    let wait = |mut config: RuntimeConfig| {
        config.scheduling.recovery = Recovery::Wait;
        config
    };
    let bench = Bench::with(script, wait).await;
    let run = bench.start("lead").await.id();
    within(first.wait_for_held(1)).await.unwrap();
    // It takes up the run when there is nobody below it yet.
    let other = Runtime::open(bench.config.clone()).await.unwrap();
    let followed = other.resume(run);
    other.list(&Filter::default()).await.unwrap();
    first.open();
    within(second.wait_for_held(1)).await.unwrap();
    bench.runtime.shutdown().await;
    second.open();
    let outcome = within(followed.outcome()).await.unwrap();
    assert_eq!(outcome.text(), "done");
    other.shutdown().await;
}
