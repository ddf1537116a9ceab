//! Few turns, failing tools, long conversations.

use super::world::{ALL, LOOKING, World, call, nothing, pattern};
use posse_agent::{SUMMARY_HEADING, SUMMARY_REQUEST};
use posse_protocol::{Message, Stop};
use std::sync::Arc;

const NEAR: &str = "You are close to your limit of turns: 3 of 4 used. Stop working now and give \
    your final answer with what you have; say what is left undone.";

#[test]
fn told_that_the_end_is_near_it_answers_with_what_it_has() {
    let mut world = World::new(&LOOKING, |call| {
        Ok(match call.name.as_str() {
            "Grep" if pattern(call).contains("Planner") => {
                "src/planner.rs:4:pub struct Planner {\n".to_owned()
            }
            other => nothing(other),
        })
    });
    world.say("Where is `Planner` defined?");
    world.step();
    world.say(NEAR);
    let reply = world.step();
    assert_eq!(reply.stop, Stop::End);
    let answer = reply.message.text();
    assert!(answer.contains("`src/planner.rs:4`"), "{answer}");
    assert!(
        answer.contains("Note: I was told to stop before I had looked everywhere."),
        "{answer}"
    );
}

#[test]
fn told_so_before_it_began_it_admits_that_it_has_nothing() {
    let mut world = World::empty(&LOOKING);
    world.say("Where is `Planner` defined?");
    world.say(NEAR);
    let answer = world.step().message.text();
    assert!(answer.contains("I was told to stop before I had looked everywhere"), "{answer}");
}

#[test]
fn tools_that_fail_are_admitted_and_the_end_is_reached() {
    for question in [
        "Where is `Planner` defined?",
        "what does this project do?",
        "how do I test it?",
        "list TODOs",
        "how do retries work?",
    ] {
        let mut world =
            World::new(&ALL, |call| Err(format!("{} is out of order\nmore", call.name)));
        let answer = world.ask(question);
        assert!(
            answer.contains("failed: ") && answer.contains("is out of order"),
            "{question}: {answer}"
        );
    }
    let mut world =
        World::new(&ALL, |call| Err(format!("fatal: not a git repository ({})", call.name)));
    let answer = world.ask("what were the latest commits?");
    assert!(answer.starts_with("This folder is not in a git repository"), "{answer}");
}

#[test]
fn a_summary_keeps_the_questions_and_it_goes_on_from_there() {
    let mut world = World::empty(&LOOKING);
    world.ask("where is `Planner` defined?");
    world.say("and where is\nit used?");
    world.say(SUMMARY_REQUEST);
    let summary = world.step().message;
    assert_eq!(summary.tool_calls().count(), 0);
    let summary = summary.text();
    assert!(
        summary.contains("- where is `Planner` defined?\n- and where is it used?"),
        "{summary}"
    );
    let framed = format!("{SUMMARY_HEADING}{summary}");
    let mut resumed = World::empty(&LOOKING);
    resumed.messages.push(Arc::new(Message::user(framed)));
    resumed.step();
    assert!(
        resumed.calls.iter().any(|call| pattern(call).contains("Planner")),
        "{:?}",
        resumed.calls
    );
}

#[test]
fn the_same_request_gets_the_same_reply_and_another_one_other_ids() {
    let mut world = World::empty(&LOOKING);
    world.say("where is `Planner` defined?");
    let request = world.request();
    let (one, other) = (call(request.clone()), call(request));
    assert_eq!(one, other);
    world.step();
    world.step();
    let mut ids: Vec<&str> = world.calls.iter().map(|call| call.id.0.as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}
