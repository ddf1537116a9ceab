//! More runs than slots.

use crate::bench::{Bench, eventually, within};
use crate::delegation::{main_agent, task};
use posse::protocol::{
    CancelScope, Event, Extra, MessageReceived, Outcome, Parent, RunStarted, TimeAtWork,
};
use posse::store::{Append, Filter, Guard, Kin, Ownership, Reserve};
use posse::{LaneCaps, RunHandle, RunId, RunRow, RunSpec, RuntimeConfig, Shares, Status};
use posse_testkit::{Gate, Reply, Rule, Script, When};

/// Eight runs beside a cap: how many model calls were under way at once at most, and what each
/// call was about, in the order in which they came.
async fn eight_runs_in(slots: usize) -> (usize, Vec<String>) {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let bench = Bench::with(script, |mut config| {
        config.scheduling.max_concurrent = slots;
        config
    })
    .await;
    let mut runs = Vec::new();
    for index in 0..8 {
        runs.push(bench.start(&format!("task {index}")).await);
    }
    within(gate.wait_for_held(slots)).await.unwrap();
    let rows = bench.runtime.list(&posse::store::Filter::default()).await.unwrap();
    assert_eq!(count_of(&rows, Status::Queued), 8 - slots);
    gate.open();
    for run in &runs {
        assert!(within(run.outcome()).await.unwrap().is_completed());
    }
    (bench.fake.peak_in_flight(), asked(&bench))
}

#[tokio::test]
async fn over_the_cap_runs_queue_and_all_finish() {
    let (peak, asked) = eight_runs_in(2).await;
    assert_eq!(peak, 2);
    assert_eq!(asked.len(), 8);
}

/// One at a time: with more slots, a run that was taken up first may still ask second.
#[tokio::test]
async fn queued_runs_are_taken_up_in_order() {
    let (_, asked) = eight_runs_in(1).await;
    for (index, text) in asked.iter().enumerate() {
        assert!(text.contains(&format!("task {index}")), "{asked:?}");
    }
}

#[tokio::test]
async fn a_thousand_runs_through_sixty_four_slots() {
    let bench = Bench::with(Script::always(Reply::text("done")).without_capture(), |mut config| {
        config.scheduling.max_concurrent = 64;
        config
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

/// What each request began with, in the order in which they came.
fn asked(bench: &Bench) -> Vec<String> {
    let first = |request: posse_testkit::Captured| request.body["messages"][0].to_string();
    bench.fake.requests().into_iter().map(first).collect()
}

/// A main agent that hands on `count` parts, all of them held back by `gate`.
fn parts(agents: &[&str], count: usize, gate: &Gate) -> Script {
    let calls = (0..count).map(|part| task(agents[part % agents.len()], &format!("part {part}.")));
    Script::new()
        .conversation(main_agent(calls))
        .rule(Rule::when(When::any().first_user_contains("guest")).reply(Reply::text("welcome")))
        .rule(Rule::when(When::any()).reply(Reply::text("did it").held_by(gate)))
}

async fn below(bench: &Bench, run: RunId) -> Vec<RunRow> {
    let filter = Filter { kin: Kin::ChildrenOf(run), limit: 1_000, ..Filter::default() };
    bench.runtime.list(&filter).await.unwrap()
}

fn count_of(rows: &[RunRow], status: Status) -> usize {
    rows.iter().filter(|row| row.status == status).count()
}

/// Waits until so many of the runs below `run` are at work, and so many are queued.
async fn stand(bench: &Bench, run: RunId, running: usize, queued: usize) -> Vec<RunRow> {
    eventually(async || {
        let rows = below(bench, run).await;
        count_of(&rows, Status::Running) == running && count_of(&rows, Status::Queued) == queued
    })
    .await;
    below(bench, run).await
}

fn only(named: &[(&str, usize)]) -> Shares {
    let named = named.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect();
    Shares { named, others: None }
}

async fn capped(script: Script, max_concurrent: usize, lanes: LaneCaps) -> Bench {
    Bench::with(script, |mut config| {
        config.scheduling.max_concurrent = max_concurrent;
        config.scheduling.lanes = lanes;
        config
    })
    .await
}

async fn completed(run: &RunHandle) {
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.is_completed(), "{outcome}");
}

#[tokio::test]
async fn i17_through_one_slot_tasks_keep_their_order() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("done").held_by(&gate));
    let bench = capped(script, 1, LaneCaps::default()).await;
    let mut runs = vec![bench.start("task 0").await];
    within(gate.wait_for_held(1)).await.unwrap();
    for index in 1..4 {
        runs.push(bench.start(&format!("task {index}")).await);
    }
    let places: Vec<Option<u64>> = {
        let mut places = Vec::new();
        for run in &runs {
            places.push(run.position().await.unwrap());
        }
        places
    };
    assert_eq!(places, [None, Some(1), Some(2), Some(3)]);
    // What is told to stop while it waits is not asked, and holds up nobody.
    bench.runtime.cancel(runs[2].id(), "the test", CancelScope::Run).await.unwrap();
    gate.open();
    for index in [0, 1, 3] {
        completed(&runs[index]).await;
    }
    let outcome = within(runs[2].outcome()).await.unwrap();
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome}");
    let order = asked(&bench);
    assert_eq!(order.len(), 3);
    for (text, index) in order.iter().zip([0, 1, 3]) {
        assert!(text.contains(&format!("task {index}")), "{order:?}");
    }
}

#[tokio::test]
async fn f4_a_child_over_the_cap_of_its_parent_is_queued_whatever_the_width() {
    for width in [1, 8] {
        let gate = Gate::new();
        let caps = LaneCaps { per_parent: Some(1), ..LaneCaps::default() };
        let bench = capped(parts(&["explore"], 2, &gate), width, caps).await;
        let run = bench.start("lead").await;
        let rows = stand(&bench, run.id(), 1, 1).await;
        let waits = rows.iter().find(|row| row.status == Status::Queued).unwrap();
        assert_eq!(bench.runtime.position(waits.id).await.unwrap(), Some(1));
        gate.open();
        completed(&run).await;
        assert_eq!(count_of(&below(&bench, run.id()).await, Status::Finished), 2);
        assert_eq!(bench.fake.peak_in_flight(), 1);
    }
}

/// Makes the main agent say how many children it has at work at once.
fn leading(config: RuntimeConfig, abreast: u32, per_parent: Option<usize>) -> RuntimeConfig {
    let name = "general-purpose".parse().unwrap();
    let mut agent = config.definitions.agents.current().find(&name).unwrap().clone();
    agent.children.subagents.max_concurrent = Some(abreast);
    config.definitions.agents.set(agent);
    {
        let mut config: RuntimeConfig = config;
        config.scheduling.lanes = LaneCaps { per_parent, ..LaneCaps::default() };
        config
    }
}

#[tokio::test]
async fn an_agent_says_how_many_children_it_has_at_work_also_after_a_restart() {
    let gate = Gate::new();
    let adjust = |config| leading(config, 2, None);
    let mut bench = Bench::with(parts(&["explore"], 5, &gate), adjust).await;
    let run = bench.start("lead").await;
    let rows = stand(&bench, run.id(), 2, 3).await;
    assert!(rows.iter().all(|row| row.work.abreast == Some(2)));
    let queued: Vec<RunId> =
        rows.iter().rev().filter(|row| row.status == Status::Queued).map(|row| row.id).collect();
    let places = bench.runtime.positions(&queued).await.unwrap();
    assert_eq!((places[&queued[0]], places[&queued[2]]), (1, 3), "they see where they stand");
    // Nobody else is kept back.
    let guest = bench.start("guest").await;
    completed(&guest).await;
    within(gate.wait_for_held(2)).await.unwrap();
    bench.runtime.shutdown().await;
    // What the agent said when the run began holds, whatever its definition says now.
    bench.config = leading(bench.config, 64, None);
    bench.reopen().await;
    stand(&bench, run.id(), 2, 3).await;
    within(gate.wait_for_held(2)).await.unwrap();
    gate.open();
    completed(&bench.runtime.handle(run.id())).await;
    assert_eq!(count_of(&below(&bench, run.id()).await, Status::Finished), 5);
    assert!(bench.fake.peak_in_flight() <= 3, "with the guest there were never more");
}

#[tokio::test]
async fn an_agent_only_takes_away_from_what_the_settings_leave() {
    for (abreast, per_parent, at_work) in [(3, Some(1), 1), (1, Some(3), 1), (3, None, 3)] {
        let gate = Gate::new();
        let adjust = |config| leading(config, abreast, per_parent);
        let bench = Bench::with(parts(&["explore"], 4, &gate), adjust).await;
        let run = bench.start("lead").await;
        stand(&bench, run.id(), at_work, 4 - at_work).await;
        within(gate.wait_for_held(at_work)).await.unwrap();
        gate.open();
        completed(&run).await;
        assert_eq!(bench.fake.peak_in_flight(), at_work);
    }
}

#[tokio::test]
async fn the_twenty_first_child_is_queued_with_its_place_and_all_finish() {
    let gate = Gate::new();
    let bench = capped(parts(&["explore"], 22, &gate), 20, LaneCaps::default()).await;
    let run = bench.start("lead").await;
    let rows = stand(&bench, run.id(), 20, 2).await;
    let queued: Vec<RunId> =
        rows.iter().rev().filter(|row| row.status == Status::Queued).map(|row| row.id).collect();
    let places = bench.runtime.positions(&queued).await.unwrap();
    assert_eq!((places[&queued[0]], places[&queued[1]]), (1, 2), "the oldest goes first");
    within(gate.wait_for_held(20)).await.unwrap();
    gate.open();
    completed(&run).await;
    assert_eq!(count_of(&below(&bench, run.id()).await, Status::Finished), 22);
    assert_eq!(bench.fake.peak_in_flight(), 20);
}

#[tokio::test]
async fn caps_of_agents_and_models_hold_and_leave_the_other_slots_to_others() {
    let gate = Gate::new();
    let caps = LaneCaps { per_agent: only(&[("explore", 2)]), ..LaneCaps::default() };
    let agents = ["explore", "explore", "general-purpose"];
    let bench = capped(parts(&agents, 9, &gate), 16, caps).await;
    let run = bench.start("lead").await;
    let rows = stand(&bench, run.id(), 5, 4).await;
    let at_work = rows.iter().filter(|row| row.status == Status::Running);
    assert_eq!(at_work.filter(|row| row.about.agent == "explore").count(), 2);
    gate.open();
    completed(&run).await;

    let gate = Gate::new();
    let model = only(&[("anthropic/claude-sonnet-4-5", 3)]);
    let caps = LaneCaps { per_model: model, ..LaneCaps::default() };
    let script = Script::always(Reply::text("done").held_by(&gate));
    let bench = capped(script, 16, caps).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(bench.start("go").await);
    }
    within(gate.wait_for_held(3)).await.unwrap();
    let rows = bench.runtime.list(&Filter::default()).await.unwrap();
    assert_eq!(count_of(&rows, Status::Queued), 2);
    gate.open();
    for run in &runs {
        completed(run).await;
    }
    assert_eq!(bench.fake.peak_in_flight(), 3);
}

#[tokio::test]
async fn a_parent_never_blocks_its_own_children_though_all_are_of_one_agent() {
    let gate = Gate::new();
    gate.open();
    let one = Shares { named: Default::default(), others: Some(1) };
    let caps = LaneCaps { per_parent: Some(1), per_agent: one.clone(), per_model: one };
    let bench = capped(parts(&["general-purpose"], 5, &gate), 16, caps).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    assert_eq!(count_of(&below(&bench, run.id()).await, Status::Finished), 5);
    assert_eq!(bench.fake.peak_in_flight(), 1);
}

#[tokio::test]
async fn beside_a_session_with_two_hundred_children_another_session_is_next() {
    let gate = Gate::new();
    let bench = capped(parts(&["explore"], 200, &gate), 1, LaneCaps::default()).await;
    let crowd = bench.start("lead").await;
    stand(&bench, crowd.id(), 1, 199).await;
    within(gate.wait_for_held(1)).await.unwrap();
    let guest = bench.start("guest").await;
    assert_eq!(guest.position().await.unwrap(), Some(200), "by time it is the last");
    gate.open();
    completed(&guest).await;
    let order = asked(&bench);
    let place = order.iter().position(|text| text.contains("guest"));
    assert_eq!(place, Some(2), "after the one that was at work");
    completed(&crowd).await;
    assert_eq!(count_of(&below(&bench, crowd.id()).await, Status::Finished), 200);
}

#[tokio::test]
async fn a_higher_priority_goes_first_and_children_have_that_of_their_parent() {
    let gate = Gate::new();
    let bench = capped(parts(&["explore"], 1, &gate), 1, LaneCaps::default()).await;
    let first = bench.start("first").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let usual = bench.start("guest, as usual").await;
    let urgent = RunSpec { priority: 3, ..bench.spec("lead") };
    let urgent = bench.runtime.start(urgent).await.unwrap();
    assert_eq!(usual.position().await.unwrap(), Some(2));
    gate.open();
    for run in [&first, &urgent, &usual] {
        completed(run).await;
    }
    assert_eq!(below(&bench, urgent.id()).await[0].work.priority, 3);
    let order = asked(&bench);
    let place = |text: &str| order.iter().position(|asked| asked.contains(text)).unwrap();
    assert!(place("part 0") < place("guest, as usual"), "{order:?}");
}

/// As many runs as one look shows, and more, all found in the store by a new process.
#[tokio::test]
async fn a_new_process_finds_a_long_line_and_serves_its_sessions_in_turn() {
    let script = Script::always(Reply::text("done"));
    let mut bench = capped(script, 8, LaneCaps::default()).await;
    let template = bench.start("template").await;
    completed(&template).await;
    let log = bench.log(template.id()).await;
    bench.runtime.shutdown().await;
    let store = bench.open_store().await;
    let made = |parent: Option<RunId>, text: &str| {
        let Event::RunStarted(started) = log[0].event.clone() else { panic!("no start") };
        let parent = parent.map(|run| Parent {
            run,
            call: None,
            announce: None,
            account: None,
            limited: Vec::new(),
            abreast: None,
            time: TimeAtWork::default(),
            ancestors: vec![run],
            extra: Extra::default(),
        });
        let started = RunStarted { parent, ..(*started).clone() };
        let message = Event::MessageReceived(MessageReceived::user(text));
        let events = [Event::from(started), message].into();
        let guard = Guard::Create(Ownership::Queued);
        Append {
            run: RunId::new(),
            events,
            guard,
            reserve: Reserve::Leave,
            outbox: Vec::new(),
            bundle: None,
        }
    };
    let crowd = (0..1_200).map(|_| made(Some(template.id()), "crowd")).collect();
    store.append(crowd).await.unwrap();
    let guest = made(None, "guest");
    let guest_id = guest.run;
    store.append(vec![guest]).await.unwrap();
    store.close().await;
    bench.reopen().await;
    completed(&bench.runtime.handle(guest_id)).await;
    let place = asked(&bench).iter().position(|text| text.contains("guest")).unwrap();
    assert!(place <= 1 + 8 + 8, "the guest came as number {place}");
    eventually(async || bench.fake.count() == 1_202).await;
    within(bench.fake.wait_until_idle()).await.unwrap();
    eventually(async || bench.runtime.executing() == 0).await;
    let rows = below(&bench, template.id()).await;
    assert_eq!(count_of(&rows, Status::Finished), rows.len());
}
