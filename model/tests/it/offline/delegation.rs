//! Broad questions, when other agents can be asked.

use super::world::{LOOKING, World, nothing, text, tool};
use posse_protocol::ToolSpec;
use serde_json::json;

const BROAD: &str = "explore this repository and propose a refactoring plan";
const TOOLS: [&str; 5] = ["Read", "Glob", "Grep", "List", "Task"];

fn task_for(agents: &[&str]) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"subagent_type": {"type": "string", "enum": agents}}});
    ToolSpec { schema: schema.into(), ..tool("Task") }
}

#[test]
fn parts_go_to_others_side_by_side_and_come_back_as_one_answer() {
    let mut world = World::new(&TOOLS, |call| {
        Ok(match call.name.as_str() {
            "Task" => {
                let description = text(&call.input["description"]);
                format!(
                    "<task_result id=\"1f\" run=\"r\" agent=\"explore\" outcome=\"completed\">\n\
                     Told about {description}, see `src/a.rs:1`.\n\n\
                     *Answered by the offline model, which …*\n\n</task_result id=\"1f\">"
                )
            }
            other => nothing(other),
        })
    });
    world.tools[4] = task_for(&["general-purpose", "explore", "plan"]);
    let answer = world.ask(BROAD);
    let tasks: Vec<_> = world.calls.iter().filter(|call| call.name == "Task").collect();
    assert!((2..=4).contains(&tasks.len()), "{tasks:#?}");
    let first =
        world.messages.iter().find(|message| message.tool_calls().next().is_some()).unwrap();
    assert_eq!(first.tool_calls().filter(|call| call.name == "Task").count(), tasks.len());
    for task in &tasks {
        assert!(!text(&task.input["description"]).is_empty());
        let prompt = text(&task.input["prompt"]);
        assert!(prompt.contains(BROAD), "{task:?}");
        let mut child = World::empty(&TOOLS);
        child.ask(prompt);
        assert!(child.calls.iter().all(|call| call.name != "Task"), "it is not handed on again");
        assert!(["explore", "plan"].contains(&text(&task.input["subagent_type"])), "{task:?}");
        let told = format!("Told about {}, see `src/a.rs:1`.", text(&task.input["description"]));
        assert!(answer.contains(&told), "{answer}");
    }
    assert_eq!(answer.matches("offline model").count(), 1, "{answer}");
    assert!(answer.contains("I propose no plan of my own"), "{answer}");
    assert!(!answer.contains("task_result"), "{answer}");
}

#[test]
fn one_that_fails_is_named_and_the_others_count() {
    let mut world = World::new(&TOOLS, |call| match call.name.as_str() {
        "Task" if text(&call.input["description"]) == "What it is" => {
            Err("the run was stopped".to_owned())
        }
        "Task" => Ok("All there is.".to_owned()),
        other => Ok(nothing(other)),
    });
    let answer = world.ask(BROAD);
    assert!(answer.contains("did not answer: the run was stopped"), "{answer}");
    assert!(answer.contains("All there is."), "{answer}");
}

#[test]
fn only_agents_that_are_offered_are_asked() {
    for (offered, expected) in
        [(&["helper"][..], "helper"), (&["explore", "helper"][..], "explore"), (&[][..], "explore")]
    {
        let mut world = World::new(&TOOLS, |call| Ok(nothing(&call.name)));
        world.tools[4] = task_for(offered);
        world.ask(BROAD);
        let agents = world
            .calls
            .iter()
            .filter(|call| call.name == "Task")
            .map(|call| text(&call.input["subagent_type"]));
        assert!(agents.clone().count() > 1);
        for agent in agents {
            assert_eq!(agent, expected);
        }
    }
}

#[test]
fn a_narrow_question_is_not_delegated_and_a_broad_one_works_without() {
    let mut world = World::empty(&TOOLS);
    world.ask("where is `Planner` defined?");
    assert!(world.calls.iter().all(|call| call.name != "Task"));
    let mut alone = World::empty(&LOOKING);
    let answer = alone.ask(BROAD);
    assert!(
        answer.contains("**What it is**") && answer.contains("**What is left to do**"),
        "{answer}"
    );
}
