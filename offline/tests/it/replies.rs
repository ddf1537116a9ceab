//! One question, one answer.

use super::world::{ALL, LOOKING, World, call, nothing, page, path, pattern};
use posse_agent::{Model, ModelError};
use posse_offline::{ID, Offline};
use posse_protocol::{Effect, Price, Stop, ToolCall, Usd};
use serde_json::json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const PLANNER: &str = "//! Finds berths.

/// Gives berths to ships.
pub struct Planner {
    berths: Vec<u8>,
}

fn use_it(planner: &Planner) {}
";

/// A repository with one file of Rust.
fn harbour(call: &ToolCall) -> Result<String, String> {
    Ok(match call.name.as_str() {
        "Grep" if pattern(call).contains("Planner") => {
            let lines = PLANNER.lines().enumerate().filter(|(_, line)| line.contains("Planner"));
            lines.map(|(at, line)| format!("src/planner.rs:{}:{line}\n", at + 1)).collect()
        }
        "Read" if path(call) == "src/planner.rs" => page(PLANNER),
        other => nothing(other),
    })
}

#[test]
fn a_definition_is_cited_with_its_comment_and_its_lines() {
    let mut world = World::new(&LOOKING, harbour);
    let answer = world.ask("Where is `Planner` defined?");
    for expected in [
        "`Planner` is a struct, defined at `src/planner.rs:4`",
        "> Gives berths to ships.",
        "```rust\npub struct Planner {\n    berths: Vec<u8>,\n}\n```",
        "`src/planner.rs:8`",
    ] {
        assert!(answer.contains(expected), "{expected} is not in:\n{answer}");
    }
    assert!(world.replies <= 4, "{}", world.replies);
}

#[test]
fn several_calls_go_into_one_reply_and_the_first_says_what_is_done() {
    let mut world = World::new(&LOOKING, |call| match call.name.as_str() {
        "Glob" if pattern(call).contains("README") => Ok("README.md\n".to_owned()),
        _ => harbour(call),
    });
    world.say("What does this project do?");
    let first = world.step();
    assert_eq!(first.stop, Stop::ToolUse);
    assert!(first.message.tool_calls().count() >= 2, "{:?}", first.message);
    assert_eq!(first.message.text(), "Looking at the project as a whole.");
    assert_eq!(first.message.wire.as_deref(), Some("offline"));
    let second = world.step();
    assert_eq!(second.message.text(), "", "what was said once is not said again");
}

#[test]
fn an_answer_is_about_the_question_and_not_about_the_model() {
    for question in
        ["where is `Planner`?", "what does this project do?", "where is nothing_at_all?"]
    {
        let answer = World::new(&LOOKING, harbour).ask(question);
        assert!(!answer.contains("offline model") && !answer.contains("_API_KEY"), "{answer}");
    }
}

#[test]
fn what_is_not_there_is_said_and_not_invented() {
    let answer = World::empty(&ALL).ask("where is `KafkaConsumer` defined?");
    assert!(answer.starts_with("I found no `KafkaConsumer`"), "{answer}");
    let answer = World::empty(&ALL).ask("how are passwords hashed?");
    assert!(answer.starts_with("I found nothing about *passwords*, *hashed*"), "{answer}");
    for question in [
        "what does this project do?",
        "how do I build it?",
        "list TODOs",
        "which dependencies are there?",
    ] {
        let answer = World::empty(&ALL).ask(question);
        let admits = ["I see nothing", "I found no"].iter().any(|start| answer.starts_with(start));
        assert!(admits, "{question}: {answer}");
    }
}

#[test]
fn what_needs_a_language_model_is_declined_with_what_is_certain() {
    let mut world = World::new(&ALL, harbour);
    let answer = world.ask("please rename `Planner` to `Pilot`");
    let declines = "I am the built-in offline model: I search files and quote them. I cannot review, \
        write, judge or fix.";
    assert!(answer.starts_with(declines), "{answer}");
    assert!(answer.contains("`Planner` is a struct, defined at `src/planner.rs:4`"), "{answer}");
    let answer = World::new(&ALL, harbour).ask("is there a better way to do this?");
    assert!(answer.starts_with(declines) && answer.lines().count() == 1, "{answer}");
}

#[test]
fn it_costs_nothing_and_counts_roughly() {
    let model = Offline::new();
    let info = model.info();
    assert_eq!((info.id.as_str(), info.price), (ID, Price::default()));
    let mut world = World::new(&LOOKING, harbour);
    world.say("Where is `Planner` defined?");
    let small = world.step().usage;
    let large = world.step().usage;
    assert!(small.input_tokens > 10 && large.input_tokens > small.input_tokens);
    assert!(small.output_tokens > 10 && large.cost == Usd::ZERO);
}

#[test]
fn a_call_that_is_cancelled_says_so() {
    let mut world = World::empty(&LOOKING);
    world.say("hello");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let model = Offline::new();
    let result = runtime.block_on(model.call(world.request(), &|_| {}, &cancel));
    assert!(matches!(result, Err(ModelError::Cancelled)));
}

#[test]
fn an_answer_keeps_to_the_shape_and_length_it_was_asked_for() {
    let mut world = World::empty(&LOOKING);
    world.say("hello");
    let mut request = world.request();
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]});
    request.output_schema = Some(Arc::new(schema));
    let text = call(request.clone()).message.text();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["answer"].as_str().unwrap().starts_with("I am the built-in"), "{text}");
    request.output_schema = Some(Arc::new(json!({"required": ["one", "two"]})));
    assert!(call(request.clone()).message.text().starts_with("I am the built-in"));
    request.output_schema = None;
    request.max_tokens = 20;
    let short = call(request).message.text();
    assert!(short.len() <= 80 && short.starts_with("I am the built-in"), "{short}");
}

#[test]
fn a_tool_of_another_effect_is_not_the_tool_it_knows() {
    let mut world = World::empty(&["Read", "Grep"]);
    world.tools[1].facts.effect = Effect::Write;
    let answer = world.ask("where is `Planner` defined?");
    assert!(world.calls.iter().all(|call| call.name != "Grep"));
    assert!(answer.contains("I could not search inside files"), "{answer}");
}
