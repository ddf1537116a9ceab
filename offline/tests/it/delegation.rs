//! Agents that a person asks for by name.

use super::world::{LOOKING, World, nothing, text};
use serde_json::json;

const TOOLS: [&str; 5] = ["Read", "Glob", "Grep", "List", "Task"];
const ASKED: &str = "use the explore agent to find the parser\n\n[The user asks for the agent \
    `explore`: hand this to it with the Task tool.]";

#[test]
fn an_agent_asked_for_by_name_gets_the_task_and_its_answer_is_the_answer() {
    let mut world = World::new(&TOOLS, |call| {
        Ok(match call.name.as_str() {
            "Task" => "<task_result id=\"1f\" run=\"r\" agent=\"explore\" outcome=\"completed\">\n\
                       It is at `src/parse.rs:1`.\n\n</task_result id=\"1f\">"
                .to_owned(),
            other => nothing(other),
        })
    });
    let answer = world.ask(ASKED);
    assert_eq!(answer, "`explore` answered:\n\nIt is at `src/parse.rs:1`.");
    let [call] = &*world.calls else { panic!("{:?}", world.calls) };
    assert_eq!(call.input["subagent_type"], json!("explore"));
    assert_eq!(text(&call.input["prompt"]), "find the parser");
    // The next question is not handed on.
    world.ask("where is `Planner` defined?");
    assert_eq!(world.calls.iter().filter(|call| call.name == "Task").count(), 1);
}

#[test]
fn one_that_fails_is_named() {
    let mut world = World::new(&TOOLS, |_| Err("the run was stopped".to_owned()));
    let answer = world.ask(ASKED);
    assert_eq!(answer, "`explore` did not answer: the run was stopped");
}

#[test]
fn without_the_tool_it_answers_itself() {
    let mut world = World::empty(&LOOKING);
    let answer = world.ask(ASKED);
    assert!(answer.contains("nothing about *parser*"), "{answer}");
}
