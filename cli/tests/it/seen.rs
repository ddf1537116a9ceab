//! An agent that has read a file may change it, whatever came between: a question, a child, a
//! pause, another process. What somebody else has changed meanwhile is not overwritten.

use crate::tmux::Terminal;
use crate::tree::task;
use crate::world::{World, eventually};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::json;

const STALE: &str = "has changed since it was last read";

fn reads() -> Reply {
    Reply::tool_call("Read", json!({"file_path": "a.txt"}))
}

fn edits() -> Reply {
    let input = json!({"file_path": "a.txt", "old_string": "old", "new_string": "new"});
    Reply::tool_call("Edit", input)
}

fn ends() -> Reply {
    Reply::text("It says: {{last_tool_result}}")
}

/// A world with a file to change.
async fn world(script: Script) -> World {
    let world = World::new(script).await;
    world.write("a.txt", "old\n");
    world
}

#[tokio::test]
async fn an_edit_that_a_person_approves_is_made() {
    for answer in ["y", "r"] {
        let world = world(Script::turns([reads(), edits(), ends()])).await;
        let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
        terminal.enter("posse run --mode ask go; echo code $?").await;
        terminal.shows("allow it?").await;
        terminal.enter(answer).await;
        let screen = terminal.shows("code 0").await;
        assert_eq!(world.read("a.txt"), "new\n", "{answer}: {screen}");
    }
}

#[tokio::test]
async fn an_approved_edit_of_what_has_changed_meanwhile_is_refused() {
    let world = world(Script::turns([reads(), edits(), ends()])).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --mode ask go; echo code $?").await;
    terminal.shows("allow it?").await;
    world.write("a.txt", "old, and a line of somebody else\n");
    terminal.enter("y").await;
    let screen = terminal.shows("code 0").await;
    assert!(screen.contains(STALE), "{screen}");
    assert_eq!(world.read("a.txt"), "old, and a line of somebody else\n");
}

#[tokio::test]
async fn a_file_that_was_read_before_work_was_handed_on_can_be_changed_after_it() {
    let lead = Conversation::when(When::any().first_user_contains("lead"));
    let hands_on = Reply::tool_call("Task", task("explore", "part"));
    let lead = lead.reply(reads()).reply(hands_on).reply(edits()).reply(ends());
    let part = Conversation::when(When::any().first_user_contains("part"));
    let gate = Gate::new();
    let part = part.reply(Reply::text("done").held_by(&gate));
    let world = world(Script::new().conversation(lead).conversation(part)).await;
    let running = world.start(&["run", "lead"]);
    gate.wait_for_held(1).await.unwrap();
    let rests = async || world.list().await[0]["waiting_on"] == 1;
    eventually("the parent gives its place back", rests).await;
    gate.open();
    let exit = running.end().await.expect(0);
    assert_eq!(world.read("a.txt"), "new\n", "{exit:?}");
}

#[tokio::test]
async fn a_fork_knows_the_files_that_its_source_has_read() {
    let begins = Rule::when(When::any().turn(0)).reply(reads());
    let spawn = json!({"task": "your part", "agentId": "general-purpose", "context": "fork"});
    let forks = Rule::when(When::any().last_tool_result_contains("old"));
    let forks = forks.reply(Reply::tool_call("spawn_subagent", spawn)).once();
    let forked = Rule::when(When::any().last_user_contains("your part")).reply(edits()).once();
    let ends = Rule::when(When::any()).reply(ends());
    let script = Script::new().rule(begins).rule(forked).rule(forks).rule(ends);
    let world = world(script).await;
    let exit = world.run(&["run", "lead"]).await.expect(0);
    assert_eq!(world.read("a.txt"), "new\n", "{exit:?}");
    let part = When::any().last_user_contains("your part");
    assert!(!world.fake.requests_where(&part).is_empty(), "the fork has made the edit");
}

#[tokio::test]
async fn a_killed_run_knows_what_it_had_read() {
    for changed in [false, true] {
        let gate = Gate::new();
        let world = world(Script::turns([reads(), edits().held_by(&gate), ends()])).await;
        let running = world.start(&["run", "go"]);
        gate.wait_for_held(1).await.unwrap();
        running.signal(Signal::KILL);
        running.end().await;
        gate.open();
        if changed {
            world.write("a.txt", "old and more\n");
        }
        let run = world.only_run().await;
        let exit = world.run(&["runs", "resume", &run]).await.expect(0);
        let expected = if changed { "old and more\n" } else { "new\n" };
        assert_eq!(world.read("a.txt"), expected, "{exit:?}");
        assert_eq!(exit.out.contains(STALE), changed, "{exit:?}");
    }
}

#[tokio::test]
async fn a_paused_run_knows_what_it_had_read() {
    let gate = Gate::new();
    let pauses = Reply::tool_call("List", json!({"path": "."})).held_by(&gate);
    let world = world(Script::turns([reads(), pauses, edits(), ends()])).await;
    let owner = world.start(&["run", "go"]);
    gate.wait_for_held(1).await.unwrap();
    let run = world.only_run().await;
    world.run(&["runs", "pause", &run]).await.expect(0);
    gate.open();
    owner.end().await.expect(130);
    let exit = world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(world.read("a.txt"), "new\n", "{exit:?}");
}

#[tokio::test]
async fn a_chat_that_is_resumed_knows_what_it_had_read_and_written() {
    let writes = Reply::tool_call("Write", json!({"file_path": "b.txt", "content": "one\n"}));
    let again = json!({"file_path": "b.txt", "content": "two\n"});
    let replies = [
        reads(),
        writes,
        Reply::text("read"),
        edits(),
        Reply::tool_call("Write", again),
        Reply::text("done"),
    ];
    let world = world(Script::turns(replies)).await;
    world.feed(&["chat"], "read it\n").await.expect(0);
    let exit = world.feed(&["chat", "--resume"], "change it\n").await.expect(0);
    assert_eq!(
        (world.read("a.txt"), world.read("b.txt")),
        ("new\n".into(), "two\n".into()),
        "{exit:?}"
    );
}

#[tokio::test]
async fn what_was_never_read_is_not_changed() {
    let world = world(Script::turns([edits(), ends()])).await;
    let exit = world.run(&["run", "go"]).await.expect(0);
    assert!(exit.out.contains("has not been read in this run"), "{exit:?}");
    assert_eq!(world.read("a.txt"), "old\n");
}
