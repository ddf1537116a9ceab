//! What a call is answered with when it will not run any more: stopped, unless it may have had its
//! effect.

use crate::world::World;
use posse_agent::protocol::*;
use posse_agent::{Step, closing_answers};

/// How far a call had come when the process died.
#[derive(Clone, Copy, Debug)]
enum Progress {
    Asked,
    Started { repeatable: bool },
    Pending,
}

const PROGRESS: [Progress; 4] = [
    Progress::Asked,
    Progress::Started { repeatable: true },
    Progress::Started { repeatable: false },
    Progress::Pending,
];

/// A log that ends with one call of each progress, in the order of [`PROGRESS`].
fn world(session: bool, limits: Limits) -> World {
    let mut world = World::new(session, limits);
    world.reply_with_calls(PROGRESS.len());
    for (index, progress) in PROGRESS.into_iter().enumerate() {
        let call = call(index);
        let repeatable = matches!(progress, Progress::Started { repeatable: true });
        if !matches!(progress, Progress::Asked) {
            world.start_call(call.clone(), repeatable);
        }
        if matches!(progress, Progress::Pending) {
            world.leave_pending(call);
        }
    }
    world
}

fn call(index: usize) -> CallId {
    CallId(format!("call-{}", index + 1))
}

/// Plays on without disturbance and returns how each call was answered, in call order.
fn answers(mut world: World) -> Vec<(Ending, String)> {
    while let Step::Answer { calls, ending, why, .. } = world.next() {
        for call in calls {
            world.finish_call(call, ending, ToolOutput::error(why.clone()));
        }
    }
    let results = (0..PROGRESS.len()).filter_map(|index| {
        world.records.iter().find_map(|record| match &record.event {
            Event::ToolFinished(finished) if finished.call == call(index) => {
                Some((finished.ending, finished.output.joined_text()))
            }
            _ => None,
        })
    });
    results.collect()
}

/// Only the call that had begun and may not run again is interrupted. `unstarted` is the answer of the
/// first call, which had not started.
fn check(answers: &[(Ending, String)], [unstarted, why]: [&str; 2]) {
    let endings: Vec<Ending> = answers.iter().map(|(ending, _)| *ending).collect();
    let stopped = Ending::Stopped;
    assert_eq!(endings, [stopped, stopped, Ending::Interrupted, stopped], "{answers:?}");
    for (position, (ending, text)) in answers.iter().enumerate() {
        let expected = match ending {
            Ending::Interrupted => "Whether it had its effect is not known",
            _ if position == 0 => unstarted,
            _ => why,
        };
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_cancelled_run_does_not_call_stopped_what_may_have_had_its_effect() {
    let mut world = world(false, Limits::default());
    world.cancel(CancelScope::Run);
    check(&answers(world), ["cancelled before it started", "cancelled before it finished"]);
}

#[test]
fn a_cancelled_turn_remembers_what_had_begun_also_when_it_is_cancelled_twice() {
    for times in [1, 2] {
        let mut world = world(true, Limits::default());
        (0..times).for_each(|_| world.cancel(CancelScope::Turn));
        check(&answers(world), ["cancelled before it started", "cancelled before it finished"]);
    }
}

#[test]
fn a_run_out_of_time_does_not_call_stopped_what_may_have_had_its_effect() {
    let mut world = world(false, Limits { wall_ms: Some(5), ..Limits::default() });
    world.push(Event::TimePassed(TimePassed {
        worked_ms: 6,
        quiet: false,
        extra: Extra::default(),
    }));
    check(&answers(world), ["the run is out of time"; 2]);
}

#[test]
fn a_run_that_cannot_go_on_does_not_call_stopped_what_may_have_had_its_effect() {
    let world = world(false, Limits::default());
    let answers = closing_answers(&world.transcript, "the run could not go on");
    let answers: Vec<_> = answers.map(|(_, ending, why)| (ending, why.to_owned())).collect();
    check(&answers, ["the run could not go on"; 2]);
}

/// A cancel request may reach a call that this process runs, stops and sees end.
#[test]
fn a_call_that_was_stopped_and_seen_to_end_stays_stopped() {
    let mut world = world(true, Limits::default());
    world.cancel(CancelScope::Turn);
    world.finish_call(call(2), Ending::Stopped, ToolOutput::error("cancelled; killed"));
    let endings: Vec<Ending> = answers(world).into_iter().map(|(ending, _)| ending).collect();
    assert_eq!(endings, [Ending::Stopped; 4]);
}
