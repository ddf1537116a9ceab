//! New results that together are too long for the window are shortened, each to its share.

use crate::world::World;
use posse_agent::protocol::*;
use posse_agent::{Step, Transcript};

/// A run with a window of 100,000 tokens to which `count` children have reported, each in so many
/// bytes.
fn reported(count: usize, bytes: usize) -> (World, Vec<RunId>) {
    let mut world = World::new(false, Limits::default());
    world.bounds.model.context_window = 100_000;
    world.push(called(&world, None));
    let runs: Vec<RunId> = (0..count).map(|_| world.start_child(Announce::Collect)).collect();
    world.reply_with_calls(0);
    for run in &runs {
        world.end_child_with(*run, format!("{run} begins {} ends", "é".repeat(bytes / 2)));
    }
    (world, runs)
}

fn called(world: &World, share: Option<u64>) -> Event {
    let reserved = match world.next() {
        Step::CallModel { reserved, .. } => reserved,
        other => panic!("{other:?}"),
    };
    let (purpose, model, extra) = (Purpose::Turn, String::new(), Extra::default());
    Event::ModelCalled(ModelCalled { reserved, purpose, model, share, extra })
}

/// The share of the next request, which is made.
fn call(world: &mut World) -> Option<u64> {
    let Step::CallModel { share, reserved, .. } = world.next() else {
        panic!("{:?}", world.next())
    };
    world.push(called(world, share));
    assert!(reserved.input_tokens >= world.transcript.context_tokens());
    assert!(reserved.input_tokens <= 80_000, "{}", reserved.input_tokens);
    share
}

fn last_texts(transcript: &Transcript) -> Vec<String> {
    let message = transcript.messages().pop().unwrap();
    let text = |part: &Part| match part {
        Part::Text(text) => text.text.clone(),
        other => panic!("{other:?}"),
    };
    message.parts.iter().map(text).collect()
}

#[test]
fn ends_of_children_that_do_not_fit_together_are_each_shortened_to_their_share() {
    let (mut world, runs) = reported(12, 100_000);
    let share = call(&mut world).unwrap() as usize;
    let texts = last_texts(&world.transcript);
    assert_eq!(texts.len(), 13, "a head, and nothing is dropped");
    for (run, text) in runs.iter().zip(&texts[1..]) {
        assert!(text.len() <= share && text.len() > 18_000, "{}", text.len());
        assert!(text.starts_with(&format!("{run} begins")) && text.ends_with(" ends"));
        assert!(text.contains(&format!(
            " bytes left out; resume run {run} and ask for the rest if you need it]"
        )));
    }
    let anew = Transcript::of(&world.records);
    assert_eq!(anew.messages(), world.transcript.messages(), "any process makes the same request");
    assert_eq!(anew.context_tokens(), world.transcript.context_tokens());
    world.reply_with_calls(1);
    let seen = world.transcript.messages();
    assert!(seen.iter().any(|message| message.parts.len() == 13 && message.text().len() < 240_000));
}

#[test]
fn what_fits_is_shown_whole_and_short_ones_stay_beside_long_ones() {
    let (mut world, _) = reported(2, 100_000);
    assert_eq!(call(&mut world), None);
    assert!(last_texts(&world.transcript).iter().all(|text| !text.contains("left out")));
    let (mut world, runs) = reported(3, 100_000);
    let few = world.start_child(Announce::Steer);
    world.end_child_with(few, "a few words".into());
    world.say(&"my own long words ".repeat(1_000));
    assert!(call(&mut world).is_some());
    let messages = world.transcript.messages();
    let shown = messages.iter().map(|message| message.text()).collect::<String>();
    assert_eq!(shown.matches("left out").count(), runs.len());
    assert!(shown.contains("a few words"));
    assert_eq!(shown.matches("my own long words").count(), 1_000, "a person is not shortened");
}

#[test]
fn results_of_calls_are_shortened_too_and_one_of_a_child_names_its_run() {
    let mut world = World::new(false, Limits::default());
    world.bounds.model.context_window = 100_000;
    world.reply_with_calls(6);
    let calls: Vec<CallId> = world.transcript.open_calls().cloned().collect();
    let child = RunId::from_u128(77);
    world.push(Event::ChildStarted(Box::new(ChildStarted {
        run: child,
        call: Some(calls[0].clone()),
        announce: None,
        agent: "explore".parse().unwrap(),
        label: String::new(),
        resumed: false,
        extra: Extra::default(),
    })));
    for call in calls {
        world.finish_call(call, Ending::Returned, ToolOutput::text("x".repeat(100_000)));
    }
    assert!(call(&mut world).is_some());
    let message = world.transcript.messages().pop().unwrap();
    let notes = message.parts.iter().map(|part| match part {
        Part::ToolResult(result) => match result.parts.as_slice() {
            [Part::Text(text)] => text.text.trim_matches('x').trim().to_owned(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    let notes: Vec<String> = notes.collect();
    assert_eq!(notes.len(), 6);
    assert!(
        notes[0].contains(&format!("resume run {child} and ask for the rest if you need it]")),
        "{notes:?}"
    );
    assert!(notes[1..].iter().all(|note| note.ends_with("call again for a part of it]")));
}

#[test]
fn when_the_provider_finds_them_too_long_half_is_tried_once_in_the_same_turn() {
    for bytes in [100_000, 10_000] {
        let (mut world, _) = reported(12, bytes);
        let first = call(&mut world).map_or(bytes, |share| share as usize);
        world.model_failed(FailureKind::ContextOverflow, None);
        world.bounds.limits.turns = Some(2);
        let second = call(&mut world).unwrap() as usize;
        world.bounds.limits.turns = None;
        assert!((first / 2).abs_diff(second) < 100, "{first} {second}");
        // A process that dies here makes the same request again.
        let shown = world.transcript.messages();
        assert_eq!(call(&mut world), None);
        assert_eq!(world.transcript.messages(), shown);
        world.model_failed(FailureKind::ContextOverflow, None);
        let Step::Finish(Outcome::Failed { .. }) = world.next() else {
            panic!("{:?}", world.next())
        };
    }
}

#[test]
fn where_there_is_nothing_to_shorten_a_run_that_is_too_long_fails() {
    let mut world = World::new(false, Limits::default());
    world.say(&"words ".repeat(100_000));
    world.push(called(&world, None));
    world.model_failed(FailureKind::ContextOverflow, None);
    let Step::Finish(Outcome::Failed { .. }) = world.next() else { panic!("{:?}", world.next()) };
}
