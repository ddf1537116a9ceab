//! The commands of a chat.

use crate::tree::{child, lead, task};
use crate::world::World;
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use serde_json::json;

fn script() -> Script {
    Script::new()
        .conversation(lead([task("explore", "one")]))
        .conversation(child("one", Reply::text("1")).reply(Reply::text("more: {{last_user}}")))
        .rule(Rule::when(When::any()).reply(Reply::text("hm")))
}

#[tokio::test]
async fn agents_runs_and_cost_tell_of_the_session() {
    let world = World::new(script()).await;
    let lines = "/runs\nlead them\n/agents\n/runs\n/cost\n/cancel\n";
    let exit = world.feed(&["chat"], lines).await.expect(0);
    assert_eq!(exit.out, "all done\n", "what commands print is no answer");
    for part in [
        "explore          Answers questions about files",
        "└─ ✓ [explore] do one · 1 tool, ",
        "2 runs: 2 tool calls, ",
        "by run\n",
        "by agent\n",
        "by model\n",
        "anthropic/claude-sonnet-5-5 (2 runs)",
        "nothing is at work; `/cancel RUN` stops another run",
    ] {
        assert!(exit.err.contains(part), "{part}: {}", exit.err);
    }
    assert!(exit.err.contains("1 run: 0 tool calls, 0 in / 0 out, $0\n"), "{}", exit.err);
}

#[tokio::test]
async fn a_run_is_resumed_from_within_a_chat_and_the_chat_goes_on() {
    let world = World::new(script()).await;
    world.feed(&["chat"], "lead them\n").await.expect(0);
    let run = world.only_run().await;
    let children = world.run(&["runs", "list", "--children-of", &run, "--json"]).await.expect(0);
    let child = children.json()[0]["run"].as_str().unwrap().to_owned();
    let lines = format!(
        "/resume {child}\n/resume {child} and now?\n/resume nobody\n/resume\n/resume {run} x\nbye\n"
    );
    let exit = world.feed(&["chat", "--resume", &run], &lines).await.expect(0);
    assert_eq!(exit.out, "more: and now?\nhm\n");
    for part in [
        "has nothing to do\n",
        "no run matches `nobody`",
        "usage: /resume RUN [TEXT]",
        "that is this session",
    ] {
        assert!(exit.err.contains(part), "{part}: {}", exit.err);
    }
}

#[tokio::test]
async fn another_run_is_cancelled_from_within_a_chat() {
    let gate = posse_testkit::Gate::new();
    let held = Rule::when(When::any().first_user_contains("slow"))
        .reply(Reply::text("late").held_by(&gate));
    let world = World::new(Script::new().rule(held)).await;
    let owner = world.start(&["run", "be slow"]);
    gate.wait_for_held(1).await.unwrap();
    let run = world.only_run().await;
    let exit = world.feed(&["chat"], &format!("/cancel {run}\n/cancel {run}\n")).await.expect(0);
    assert!(exit.err.contains(": cancelled by the user\n"), "{}", exit.err);
    assert!(exit.err.contains("has ended"), "{}", exit.err);
    owner.end().await.expect(3);
}

#[tokio::test]
async fn another_model_answers_from_the_next_message_on_and_after_a_resume() {
    let world = World::new(Script::always(Reply::text("hm"))).await;
    let lines = "one\n/model haiku\n/model\ntwo\n/model\n/model nonsense/at-all\nthree\n";
    let exit = world.feed(&["chat"], lines).await.expect(0);
    world.feed(&["chat", "--resume"], "four\n").await.expect(0);
    let models =
        world.fake.requests().iter().map(|it| it.body["model"].to_string()).collect::<Vec<_>>();
    assert_eq!(models.len(), 4, "{models:?}");
    assert!(models[0].contains("sonnet"), "{models:?}");
    assert!(models[1..].iter().all(|model| model.contains("haiku")), "{models:?}");
    assert!(exit.err.contains(", haiku from your next message on; "), "{}", exit.err);
    assert!(exit.err.contains("model: anthropic/claude-haiku"), "{}", exit.err);
    assert!(exit.err.contains("error: ") && exit.err.contains("nonsense"), "{}", exit.err);
    let list = world.list().await;
    assert_eq!(list.len(), 1, "one session");
    assert!(list[0]["model"].as_str().unwrap().contains("haiku"), "{list:?}");
    world.run(&["runs", "verify"]).await.expect(0);
    world.feed(&["chat", "--resume", "--model", "opus"], "five\n/clear\nsix\n").await.expect(0);
    world.feed(&["chat", "--model", "opus"], "/model haiku\n/clear\nseven\n").await.expect(0);
    let requests = world.fake.requests();
    let models: Vec<String> = requests.iter().map(|it| it.body["model"].to_string()).collect();
    let is_last = [(4, "opus"), (5, "opus"), (6, "haiku")];
    assert!(is_last.iter().all(|(at, name)| models[*at].contains(name)), "{models:?}");
}

#[tokio::test]
async fn a_conversation_is_summarised_when_that_is_asked_for() {
    let summary = When::any().last_user_contains("Write a summary");
    let script = Script::new()
        .rule(Rule::when(summary).reply(Reply::text("in short: nothing")))
        .rule(Rule::when(When::any()).reply(Reply::text("{{last_user}}!")));
    let world = World::new(script).await;
    let exit = world.feed(&["chat"], "one\ntwo\n/compact\nthree\nfour\n").await.expect(0);
    assert!(exit.out.starts_with("one!\ntwo!\n") && exit.out.ends_with("three!\nfour!\n"));
    assert!(exit.err.contains("was summarised"), "{}", exit.err);
    let requests = world.fake.requests();
    assert_eq!(requests.len(), 5, "a summary besides");
    let third = requests[3].body["messages"].to_string();
    assert!(third.contains("in short: nothing") && !third.contains("one!"), "{third}");
}

#[tokio::test]
async fn clear_begins_a_new_chat_and_plain_words_leave() {
    for word in ["exit", "quit"] {
        let world = World::new(Script::always(Reply::text("{{turn}} {{last_user}}"))).await;
        let lines = format!("one\n/clear\ntwo\n{word}\nthree\n");
        let exit = world.feed(&["chat"], &lines).await.expect(0);
        assert_eq!(exit.out, "0 one\n0 two\n");
        assert_eq!(world.list().await.len(), 2);
    }
}

#[tokio::test]
async fn permissions_say_what_the_agent_may_do() {
    let world = World::new(script()).await;
    let exit = world.feed(&["chat", "--mode", "plan", "--deny", "Bash(rm:*)"], "/permissions\n");
    let exit = exit.await.expect(0);
    assert!(exit.err.contains("mode      plan\n"), "{}", exit.err);
    assert!(exit.err.contains("Bash(rm:*)"), "{}", exit.err);
}

/// `/cancel` in an idle chat stops the tasks in the background, and their ends start no new work.
#[tokio::test]
async fn cancel_stops_what_works_in_the_background_of_an_idle_chat() {
    let gate = posse_testkit::Gate::new();
    let spawn = |name: &str| json!({"task": format!("kid {name}"), "agentId": "explore"});
    let calls = ["one", "two"]
        .iter()
        .fold(Reply::empty(), |reply, name| reply.and_tool_call("spawn_subagent", spawn(name)));
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(calls)
        .reply(Reply::text("They work."));
    let now = Rule::when(When::any().last_user_contains("and now?")).reply(Reply::text("Yes?"));
    let held = Rule::when(When::any()).reply(Reply::text("late").held_by(&gate));
    let script = Script::new().rule(now).conversation(lead).rule(held);
    let world = World::new(script).await;
    let mut chat = world.start_with_input(&["chat"]);
    chat.type_line("lead them").await;
    chat.says("They work.").await;
    gate.wait_for_held(2).await.unwrap();
    let requests = world.fake.count();
    chat.type_line("/cancel").await;
    chat.notes("2 runs told to stop\n").await;
    let list = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    let cancelled = |run: &&serde_json::Value| run["outcome"] == "cancelled";
    assert_eq!(list.as_array().unwrap().iter().filter(cancelled).count(), 2, "{list}");
    chat.type_line("/model").await;
    chat.notes("model: ").await;
    chat.type_line("and now?").await;
    chat.says("Yes?").await;
    assert_eq!(world.fake.count(), requests + 1, "only the message needs an answer");
    let last = world.fake.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(last.matches("The run did not complete: cancelled").count(), 2, "{last}");
    let exit = chat.end().await.expect(0);
    let (before, after) = exit.err.split_once("model: ").unwrap();
    assert!(before.contains("cancelled"), "{before}");
    assert!(!after.contains("asked it to stop"), "{after}");
}
