//! Limits, in tables: each ends the run with an outcome that names it, and is told once before.

use crate::world::{Dice, World};
use posse_agent::Step;
use posse_agent::protocol::*;

/// Plays until the run ends. Every reply asks for two tools.
fn play(limits: Limits) -> (Outcome, Vec<Limit>, World) {
    let mut world = World::new(false, limits);
    world.bounds.model.context_window = 1_000_000;
    // 8: reply; 2: two calls; then for each call: 0 repeatable, and 7: it returns.
    let rolls: Vec<u8> = [8, 2, 0, 0, 7, 7].into_iter().cycle().take(6_000).collect();
    let mut dice = Dice::new(&rolls);
    for _ in 0..3_000 {
        if let Step::Done(outcome) = world.next() {
            let told = world.records.iter().filter_map(|record| match &record.event {
                Event::MessageReceived(MessageReceived {
                    from: Sender::LimitNear(limit), ..
                }) => Some(*limit),
                _ => None,
            });
            return (outcome, told.collect(), world);
        }
        world.step(&mut dice);
    }
    panic!("did not end: {:?}", world.next());
}

fn check(limits: Limits, expected: Limit) -> World {
    let (outcome, told, world) = play(limits);
    match outcome {
        Outcome::Stopped { limit, partial, .. } => {
            assert_eq!(limit, expected);
            assert!(partial.starts_with("text "), "the partial result is kept: {partial}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(told, [expected], "told once, before");
    world
}

#[test]
fn turns() {
    let world = check(Limits { turns: Some(5), ..Limits::default() }, Limit::Turns);
    let calls = world.records.iter().filter(|record| matches!(record.event, Event::ModelCalled(_)));
    assert_eq!(calls.count(), 5);
}

#[test]
fn tool_calls_and_each_call_is_answered() {
    let world = check(Limits { tool_calls: Some(5), ..Limits::default() }, Limit::ToolCalls);
    let started = world.records.iter().filter_map(|record| match &record.event {
        Event::ToolStarted(started) => Some(&started.call),
        _ => None,
    });
    assert_eq!(started.collect::<std::collections::BTreeSet<_>>().len(), 5);
    let over = |record: &&Record| matches!(&record.event, Event::ToolFinished(f) if f.ending == Ending::OverLimit);
    assert_eq!(world.records.iter().filter(over).count(), 1);
}

#[test]
fn bytes_written_to_disks() {
    let limit = Limits { written_bytes: Some(1_000), ..Limits::default() };
    let world = check(limit, Limit::WrittenBytes);
    let finished = world.records.iter().filter_map(|record| match &record.event {
        Event::ToolFinished(finished) => Some(finished.output.written_bytes),
        _ => None,
    });
    assert_eq!(finished.sum::<u64>(), 1_000);
}

#[test]
fn input_tokens() {
    check(Limits { input_tokens: Some(4_000), ..Limits::default() }, Limit::InputTokens);
}

#[test]
fn output_tokens() {
    let world =
        check(Limits { output_tokens: Some(200), ..Limits::default() }, Limit::OutputTokens);
    assert!(world.transcript.usage().output_tokens <= 200);
}

#[test]
fn cost() {
    let world = check(Limits { cost: Some(Usd(60_000)), ..Limits::default() }, Limit::Cost);
    assert!(world.transcript.usage().cost <= Usd(60_000));
}

#[test]
fn wall_time_is_an_outcome_of_its_own() {
    let (outcome, told, _) = play(Limits { wall_ms: Some(500), ..Limits::default() });
    assert!(matches!(outcome, Outcome::TimedOut { limit_ms: 500, .. }), "{outcome:?}");
    assert_eq!(told, [Limit::WallTime]);
}

#[test]
fn a_reopened_run_has_a_new_allowance() {
    let (_, _, mut world) = play(Limits { turns: Some(2), ..Limits::default() });
    world.say("go on");
    assert!(matches!(world.next(), Step::CallModel { .. }), "{:?}", world.next());
}

#[test]
fn a_cancel_request_is_not_undone_by_a_message() {
    let mut world = World::new(true, Limits::default());
    let seen = world.transcript.seq();
    world.model_reply(seen, &mut Dice::new(&[]));
    assert_eq!(world.next(), Step::Wait);
    let (by, scope) = ("someone".to_owned(), CancelScope::Run);
    world.push(Event::CancelRequested(CancelRequested { by, scope, extra: Extra::default() }));
    world.say("wait, one more thing");
    assert!(matches!(world.next(), Step::Finish(Outcome::Cancelled { .. })), "{:?}", world.next());
}

#[test]
fn a_call_that_never_came_back_is_charged_as_reserved() {
    let mut world = World::new(false, Limits::default());
    let reserved = Usage { input_tokens: 70, output_tokens: 30, cost: Usd(9), ..Usage::default() };
    let called = || {
        Event::ModelCalled(ModelCalled {
            reserved: reserved.clone(),
            purpose: Purpose::Turn,
            model: String::new(),
            share: None,
            extra: Extra::default(),
        })
    };
    world.push(called());
    assert_eq!(world.transcript.usage(), reserved);
    world.push(called());
    let seen = world.transcript.seq();
    world.model_reply(seen, &mut Dice::new(&[]));
    assert_eq!(world.transcript.usage().cost, Usd(109));
}

#[test]
fn what_an_unanswered_call_may_have_cost_is_not_spent_again() {
    let limit = Usd(20_000);
    let mut world = World::new(false, Limits { cost: Some(limit), ..Limits::default() });
    while let Step::CallModel { reserved, .. } = world.next() {
        // The process dies during the call, every time.
        let (purpose, extra) = (Purpose::Turn, Extra::default());
        world.push(Event::ModelCalled(ModelCalled {
            reserved,
            purpose,
            model: String::new(),
            share: None,
            extra,
        }));
        assert!(world.transcript.usage().cost <= limit, "{:?}", world.transcript.usage());
    }
    assert!(matches!(world.next(), Step::Tell { limit: Limit::Cost, .. }), "{:?}", world.next());
}
