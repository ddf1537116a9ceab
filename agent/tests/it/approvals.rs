//! What a person says about calls.

use crate::world::World;
use posse_agent::protocol::*;
use posse_agent::{Step, digest};

/// A run that has asked about the first of two calls.
fn asking() -> (World, ToolCall, ToolCall) {
    let mut world = World::new(false, Limits::default());
    world.reply_with_calls(2);
    let Step::CallTools(calls) = world.next() else { panic!("{:?}", world.next()) };
    let [first, second] = <[ToolCall; 2]>::try_from(calls).unwrap();
    world.ask_about(&first);
    (world, first, second)
}

fn runs(world: &World) -> Vec<CallId> {
    match world.next() {
        Step::CallTools(calls) => calls.into_iter().map(|call| call.id).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn others_run_while_a_person_is_asked_and_keep_their_results() {
    let (mut world, first, second) = asking();
    assert_eq!(runs(&world), std::slice::from_ref(&second.id));
    world.start_call(second.id.clone(), false);
    world.finish_call(second.id.clone(), Ending::Returned, ToolOutput::text("kept"));
    assert_eq!(world.next(), Step::Wait);
    let reason = "not this".to_owned();
    world.decide(first.id.clone(), digest(&first), Approval::Denied { reason });
    let Step::Answer { calls, ending, why, by } = world.next() else {
        panic!("{:?}", world.next())
    };
    assert_eq!((calls, ending), (vec![first.id.clone()], Ending::Refused));
    assert!(!by.is_empty(), "what refused it is in the log");
    assert!(why.contains("not this"), "{why}");
    world.finish_call(first.id, Ending::Refused, ToolOutput::error(why));
    let messages = world.transcript.messages();
    let results = messages.last().unwrap();
    assert_eq!(results.parts.len(), 2, "the denied call loses nobody's result");
}

#[test]
fn what_was_allowed_runs_and_nothing_else() {
    let (mut world, first, second) = asking();
    world.decide(first.id.clone(), digest(&first), Approval::Once);
    assert_eq!(runs(&world), [first.id, second.id]);
}

#[test]
fn an_answer_that_is_bound_to_something_else_changes_nothing() {
    let (mut world, first, second) = asking();
    let other = ToolCall { input: serde_json::json!({"file_path": "b"}), ..first.clone() };
    world.decide(first.id.clone(), digest(&other), Approval::Once);
    world.decide(second.id.clone(), digest(&first), Approval::Once);
    world.decide(CallId("unknown".into()), digest(&first), Approval::Once);
    assert_eq!(runs(&world), [second.id], "the question stands");
    assert_eq!(world.transcript.questions().map(|(call, _)| call).collect::<Vec<_>>(), [&first.id]);
}

#[test]
fn an_answer_counts_once() {
    let (mut world, first, _) = asking();
    world.decide(first.id.clone(), digest(&first), Approval::Denied { reason: String::new() });
    world.decide(first.id.clone(), digest(&first), Approval::Once);
    let Step::Answer { calls, .. } = world.next() else { panic!("{:?}", world.next()) };
    assert_eq!(calls, [first.id]);
}

#[test]
fn stopping_the_run_closes_the_question() {
    let (mut world, first, second) = asking();
    world.cancel(CancelScope::Run);
    let Step::Answer { calls, ending, .. } = world.next() else { panic!("{:?}", world.next()) };
    assert_eq!((calls, ending), (vec![first.id.clone(), second.id], Ending::Stopped));
    world.decide(first.id.clone(), digest(&first), Approval::Once);
    assert!(runs(&world).is_empty());
}
