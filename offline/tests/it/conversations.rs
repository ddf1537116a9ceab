//! Questions that lean on what was said before.

use super::world::{LOOKING, World, nothing, pattern};
use posse_protocol::ToolCall;

fn planner(call: &ToolCall) -> Result<String, String> {
    Ok(match call.name.as_str() {
        "Grep" if pattern(call).contains("Planner") => {
            "src/planner.rs:4:pub struct Planner {\nsrc/main.rs:9:    let planner = Planner::new();\ntests/plan.rs:3:    Planner::new();\n".to_owned()
        }
        other => nothing(other),
    })
}

#[test]
fn it_is_what_the_question_before_was_about() {
    let mut world = World::new(&LOOKING, planner);
    world.ask("Where is `Planner` defined?");
    let answer = world.ask("and where is it used?");
    assert!(answer.starts_with("`Planner`: 2 lines of 2 files mention the name."), "{answer}");
    let answer = world.ask("is it tested?");
    assert!(answer.starts_with("`Planner` is mentioned in tests, in 1 line"), "{answer}");
}

#[test]
fn a_new_question_starts_anew() {
    let mut world = World::new(&LOOKING, planner);
    world.ask("Where is `Planner` defined?");
    let before = world.calls.len();
    world.ask("How do I build it?");
    let later = &world.calls[before..];
    assert!(!later.is_empty() && later.iter().all(|call| !pattern(call).contains("Planner")));
}

#[test]
fn what_is_said_in_the_middle_is_the_question_from_then_on() {
    let mut world = World::new(&LOOKING, planner);
    world.say("what does this project do?");
    world.step();
    let answer = world.ask("rather tell me where `Planner` is used");
    assert!(answer.starts_with("`Planner`: 2 lines"), "{answer}");
}
