//! When an agent is told that other runs have ended, in each of the ways there are.

use crate::world::World;
use posse_agent::Step;
use posse_agent::protocol::*;

/// A run whose model has been called and has not answered.
fn thinking(session: bool) -> (World, Seq) {
    let mut world = World::new(session, Limits::default());
    let (purpose, extra) = (Purpose::Turn, Extra::default());
    world.push(Event::ModelCalled(ModelCalled {
        reserved: Usage::default(),
        purpose,
        model: String::new(),
        share: None,
        extra,
    }));
    let seen = world.transcript.seq();
    (world, seen)
}

/// A run with a child that is announced like that, whose turn has ended.
fn at_rest(announce: Announce) -> (World, RunId) {
    let (mut world, _) = thinking(false);
    let child = world.start_child(announce);
    world.reply_with_calls(0);
    (world, child)
}

/// How often the model is told of the end of `run`, in what it would be sent next.
fn told(world: &World, run: RunId) -> usize {
    let texts = world.transcript.messages().iter().map(|it| it.text()).collect::<String>();
    texts.matches(&format!("{run} has ended")).count()
}

fn calls_model(world: &World) -> bool {
    matches!(world.next(), Step::CallModel { .. })
}

#[test]
fn a_run_whose_children_are_at_work_waits_and_is_woken_by_the_last_result() {
    for announce in [Announce::Steer, Announce::Followup, Announce::Collect] {
        let (mut world, child) = at_rest(announce);
        assert_eq!(world.next(), Step::Wait, "{announce:?}");
        world.end_child(child);
        assert!(calls_model(&world), "{announce:?}");
        assert_eq!(told(&world, child), 1);
        world.reply_with_calls(0);
        assert!(matches!(world.next(), Step::Finish(Outcome::Completed { .. })), "{announce:?}");
    }
}

#[test]
fn a_silent_child_holds_nobody_up_and_its_end_is_not_told() {
    let (mut world, child) = at_rest(Announce::Silent);
    assert!(matches!(world.next(), Step::Finish(Outcome::Completed { .. })));
    world.end_child(child);
    assert!(matches!(world.next(), Step::Finish(Outcome::Completed { .. })));
    assert_eq!(told(&world, child), 0);
}

#[test]
fn h7_a_steering_result_is_told_before_the_next_step_and_a_followup_when_the_turn_ends() {
    for (announce, at_once) in [(Announce::Steer, true), (Announce::Followup, false)] {
        let (mut world, _) = thinking(true);
        let child = world.start_child(announce);
        world.reply_with_calls(1);
        world.end_child(child);
        world.start_call(CallId::from("call-1"), false);
        world.finish_call(CallId::from("call-1"), Ending::Returned, ToolOutput::text("x"));
        assert!(calls_model(&world));
        assert_eq!(told(&world, child), usize::from(at_once), "{announce:?}");
        world.reply_with_calls(0);
        assert_eq!(told(&world, child), 1, "{announce:?}");
        assert_eq!(calls_model(&world), !at_once, "{announce:?}");
    }
}

#[test]
fn where_a_result_falls_during_a_call_makes_no_difference() {
    for announce in [Announce::Steer, Announce::Followup, Announce::Collect] {
        for calls in [0, 1] {
            let build = |before: bool| {
                let (mut world, seen) = thinking(true);
                let child = world.start_child(announce);
                if before {
                    world.end_child(child);
                }
                world.reply_to(seen, calls);
                if !before {
                    world.end_child(child);
                }
                let step = format!("{:?}", world.next());
                (told(&world, child), std::mem::discriminant(&world.next()), step)
            };
            let (before, after) = (build(true), build(false));
            assert_eq!((before.0, before.1), (after.0, after.1), "{announce:?}, {calls} calls");
        }
    }
}

#[test]
fn h2_results_that_are_collected_come_in_one_message_with_the_last() {
    let (mut world, first) = at_rest(Announce::Collect);
    let second = world.start_child(Announce::Collect);
    world.end_child(first);
    assert_eq!(world.next(), Step::Wait);
    world.end_child(second);
    assert!(calls_model(&world));
    let messages = world.transcript.messages();
    let last = messages.last().unwrap().text();
    for text in ["2 tasks", &first.to_string(), &second.to_string()] {
        assert!(last.contains(text), "{last}");
    }
}

#[test]
fn results_that_are_collected_come_when_it_has_been_quiet_for_a_while() {
    let (mut world, first) = at_rest(Announce::Collect);
    let second = world.start_child(Announce::Collect);
    world.quiet();
    assert_eq!(world.next(), Step::Wait, "nothing was gathered");
    world.end_child(first);
    world.quiet();
    assert!(calls_model(&world));
    assert_eq!((told(&world, first), told(&world, second)), (1, 0));
    world.reply_with_calls(0);
    world.end_child(second);
    assert_eq!((told(&world, first), told(&world, second)), (1, 1));
}

#[test]
fn what_was_to_come_after_a_turn_that_a_person_stopped_comes_with_the_next_message() {
    let (mut world, _) = thinking(true);
    let child = world.start_child(Announce::Followup);
    world.reply_with_calls(1);
    world.end_child(child);
    world.cancel(CancelScope::Turn);
    let Step::Answer { calls, ending, .. } = world.next() else { panic!("{:?}", world.next()) };
    world.finish_call(calls[0].clone(), ending, ToolOutput::error("stopped"));
    assert_eq!(world.next(), Step::Wait);
    world.say("go on");
    assert_eq!(told(&world, child), 1);
}

#[test]
fn what_comes_after_the_end_reopens_nothing() {
    let (mut world, child) = at_rest(Announce::Silent);
    world.step(&mut crate::world::Dice::new(&[]));
    assert!(matches!(world.next(), Step::Done(_)));
    world.end_child(child);
    assert!(matches!(world.next(), Step::Done(_)));
}

#[test]
fn a_paused_run_begins_nothing_until_it_goes_on_and_can_be_cancelled() {
    let mut world = World::new(false, Limits::default());
    let by = || "me".to_owned();
    world.push(Event::Paused(Paused { by: by(), interrupted: false, extra: Extra::default() }));
    assert_eq!(world.next(), Step::Wait);
    world.say("are you there?");
    assert_eq!(world.next(), Step::Wait);
    world.push(Event::Resumed(Resumed { by: by(), extra: Extra::default() }));
    assert!(calls_model(&world));
    world.push(Event::Paused(Paused { by: by(), interrupted: false, extra: Extra::default() }));
    world.cancel(CancelScope::Run);
    assert!(matches!(world.next(), Step::Finish(Outcome::Cancelled { .. })));
}
