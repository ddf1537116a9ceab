//! `posse chat` through pipes.

use crate::tree::leaving_one_behind;
use crate::world::{LONG, World, bash, eventually, gone};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::json;

fn talkative() -> Script {
    Script::always(Reply::text("{{turn}}: {{last_user}}"))
}

#[tokio::test]
async fn each_line_is_answered_in_order_until_the_input_ends() {
    let world = World::new(talkative()).await;
    let exit = world.feed(&["chat"], "one\n\n  \ntwo\r\nthree").await.expect(0);
    assert_eq!(exit.out, "0: one\n1: two\n2: three\n");
    assert!(exit.err.contains("To continue: `posse chat --resume "), "{}", exit.err);
    let messages = world.fake.requests()[2].body["messages"].as_array().unwrap().len();
    assert_eq!(messages, 5, "one conversation");
    assert_eq!(world.list().await[0]["status"], "waiting");
}

#[tokio::test]
async fn commands_are_not_sent_and_paths_are() {
    let world = World::new(talkative()).await;
    let lines = "/help\n/nonsense of mine\n/etc/hosts\n//help\n/quit\nnever\n";
    let exit = world.feed(&["chat"], lines).await.expect(0);
    assert_eq!(exit.out, "0: /etc/hosts\n1: /help\n");
    assert!(exit.err.contains("stop what the agent is doing"), "{}", exit.err);
    let unknown = "there is no /nonsense; there are: /agents /runs /cancel /resume /model /compact /clear \
         /permissions /cost /help /quit";
    assert!(exit.err.contains(unknown), "{}", exit.err);
}

#[tokio::test]
async fn quiet_prints_only_the_answers() {
    let world = World::new(talkative()).await;
    let exit = world.feed(&["chat", "-q"], "one\n").await.expect(0);
    assert_eq!((exit.out.as_str(), exit.err.as_str()), ("0: one\n", ""));
}

#[tokio::test]
async fn json_is_a_line_for_every_event_and_delta() {
    let world = World::new(talkative()).await;
    let exit = world.feed(&["chat", "--json"], "one\ntwo\n").await.expect(0);
    let replies =
        exit.lines().iter().filter(|line| line["event"]["type"] == "model_replied").count();
    assert_eq!((replies, exit.err.as_str()), (2, ""));
}

#[tokio::test]
async fn a_turn_with_tools_ends_when_the_session_waits_again() {
    let world = World::new(Script::turns([
        Reply::text("First.").and_tool_call("Bash", json!({"command": "echo a >> ledger"})),
        bash("echo b >> ledger"),
        Reply::text("Both."),
        Reply::text("Again."),
    ]))
    .await;
    let exit = world.feed(&["chat"], "go\nand again\n").await.expect(0);
    assert_eq!(exit.out, "Both.\nAgain.\n");
    assert_eq!(world.read("ledger"), "a\nb\n");
    assert!(exit.err.contains("● Bash echo a >> ledger"), "{}", exit.err);
}

#[tokio::test]
async fn a_turn_that_fails_is_told_and_the_session_goes_on() {
    let world = World::new(
        Script::new()
            .rule(Rule::when(When::any()).reply(Reply::error(400, "not today")).once())
            .rule(Rule::when(When::any()).reply(Reply::text("fine"))),
    )
    .await;
    let exit = world.feed(&["chat"], "one\ntwo\n").await.expect(0);
    assert_eq!(exit.out, "fine\n");
    assert_eq!(exit.err.matches("not today").count(), 1, "{}", exit.err);
}

#[tokio::test]
async fn a_pipe_ends_with_the_code_of_its_last_turn() {
    let bad = || Reply::error(400, "not today");
    let world = World::new(
        Script::new()
            .rule(Rule::when(When::any()).reply(Reply::text("fine")).once())
            .rule(Rule::when(When::any()).reply(bad())),
    )
    .await;
    let exit = world.feed(&["chat"], "one\ntwo\n/help\n\n").await.expect(1);
    assert_eq!(exit.out, "fine\n");
    world.feed(&["chat", "--resume"], "/help\n").await.expect(0);
    world.feed(&["chat", "--json"], "three\n/quit\n").await.expect(1);
    let endless = World::new(Script::always(bash("true"))).await;
    endless.feed(&["chat", "--max-turns", "1"], "go\n").await.expect(5);
}

#[tokio::test]
async fn resume_goes_on_with_the_conversation() {
    let world = World::new(talkative()).await;
    world.feed(&["chat"], "one\n").await.expect(0);
    let run = world.only_run().await;
    let exit = world.feed(&["chat", "--resume", &run[18..]], "two\n").await.expect(0);
    assert_eq!(exit.out, "1: two\n");
    assert!(exit.err.contains(": one\n"), "its first line is its title: {}", exit.err);
    let exit = world.feed(&["chat", "--resume"], "three\n").await.expect(0);
    assert_eq!(exit.out, "2: three\n", "the newest in the folder");
    assert_eq!(world.only_run().await, run);
}

#[tokio::test]
async fn what_cannot_be_resumed_is_refused() {
    let world = World::new(talkative()).await;
    let none = world.feed(&["chat", "--resume"], "x\n").await.expect(2);
    assert!(none.err.contains("there is no chat in") && none.err.contains("hint: "));
    let run = world.run(&["run", "--json", "x"]).await.expect(0).json();
    let run = run["run"].as_str().unwrap();
    let exit = world.feed(&["chat", "--resume", run], "x\n").await.expect(2);
    assert!(exit.err.contains("is not a chat") && exit.err.contains("posse runs resume"));
    let both = world.feed(&["chat", "--resume", run, "--mode", "plan"], "").await.expect(2);
    assert!(both.err.contains("cannot be used with"), "{}", both.err);
}

#[tokio::test]
async fn terminate_leaves_in_the_middle_of_a_turn_which_goes_on_later() {
    let world = World::new(Script::turns([bash(LONG), Reply::text("after all")])).await;
    let mut chat = world.start_with_input(&["chat"]);
    chat.type_line("go").await;
    let pid = world.lines_in("pid", 1).await;
    chat.signal(Signal::TERM);
    chat.end().await.expect(130);
    gone(&pid).await;
    let exit = world.feed(&["chat", "--resume"], "").await.expect(0);
    assert_eq!(exit.out, "after all\n");
    assert_eq!(world.read("ledger"), "began\n");
}

#[tokio::test]
async fn interrupt_stops_the_turn_and_the_next_line_is_answered() {
    let gate = Gate::new();
    let script = Script::new()
        .rule(Rule::when(When::any().last_user_contains("brief")).reply(Reply::text("short")))
        .rule(Rule::when(When::any()).reply(Reply::text("long").held_by(&gate)));
    let world = World::new(script).await;
    let mut chat = world.start_with_input(&["chat"]);
    chat.type_line("talk").await;
    gate.wait_for_held(1).await.unwrap();
    chat.signal(Signal::INT);
    chat.notes("the user asked it to stop").await;
    chat.type_line("be brief").await;
    chat.says("short").await;
    let exit = chat.end().await.expect(0);
    assert_eq!(exit.out, "short\n");
}

/// What somebody says to an open chat from elsewhere is answered and shown before what is said next.
#[tokio::test]
async fn what_is_said_from_elsewhere_is_shown_in_its_place() {
    let world = World::new(Script::always(Reply::text("You said: {{last_user}}"))).await;
    let mut chat = world.start_with_input(&["chat"]);
    chat.type_line("one").await;
    chat.says("You said: one").await;
    let run = world.only_run().await;
    world.run(&["runs", "send", &run, "two"]).await.expect(0);
    eventually("it is answered", async || world.fake.count() == 2).await;
    eventually("it rests", async || world.list().await[0]["status"] == "waiting").await;
    chat.type_line("three").await;
    chat.says("You said: three").await;
    drop(chat.stdin.take());
    let exit = chat.end().await.expect(0);
    assert_eq!(exit.out, "You said: one\nYou said: two\nYou said: three\n");
}

#[tokio::test]
async fn a_pipe_that_ends_waits_for_what_nobody_is_told_of() {
    let gate = Gate::new();
    let world = World::new(leaving_one_behind(&gate)).await;
    let mut chat = world.start_with_input(&["chat"]);
    chat.type_line("lead").await;
    chat.says("all done").await;
    gate.wait_for_held(1).await.unwrap();
    drop(chat.stdin.take());
    chat.notes("waiting for 1 run in the background").await;
    gate.open();
    let exit = chat.end().await.expect(0);
    assert!(exit.err.contains(": completed"), "{}", exit.err);
}

#[tokio::test]
async fn a_chat_that_has_ended_is_gone_on_with() {
    let script = Script::new()
        .rule(Rule::when(When::any().last_user_contains("again")).reply(Reply::text("two")))
        .rule(Rule::when(When::any()).reply(Reply::error(400, "no")));
    let world = World::new(script).await;
    world.feed(&["chat"], "first\n").await.expect(1);
    assert_eq!(world.list().await[0]["outcome"], "failed");
    let exit = world.feed(&["chat", "--resume"], "again\n").await.expect(0);
    assert_eq!(exit.out, "two\n", "{}", exit.err);
}

#[tokio::test]
async fn a_pipe_that_ends_waits_for_what_is_at_work_in_the_background() {
    let task = json!({"task": "look", "agentId": "explore"});
    let lead = Conversation::when(When::any().first_user_contains("lead"));
    let script = Script::new()
        .conversation(
            lead.reply(Reply::tool_call("spawn_subagent", task))
                .reply(Reply::text("it is on its way"))
                .reply(Reply::text("here it is")),
        )
        .rule(
            Rule::when(When::any())
                .reply(Reply::text("found").latency(std::time::Duration::from_millis(300))),
        );
    let world = World::new(script).await;
    let exit = world.feed(&["chat"], "lead\n").await.expect(0);
    assert_eq!(exit.out, "it is on its way\nhere it is\n", "{}", exit.err);
}

/// A person opens a chat and leaves it without a word. The next command does not go on with it.
#[tokio::test]
async fn the_next_command_knows_nothing_of_a_chat_in_which_nothing_was_said() {
    let world = World::saying("hello").await;
    for _ in 0..3 {
        world.feed(&["chat"], "").await.expect(0);
        let next = world.run(&["run", "x"]).await.expect(0);
        assert!(!next.err.contains("unfinished") && !next.err.contains("cancelled"), "{next:?}");
    }
}
