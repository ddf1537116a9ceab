//! The commands of a chat.

use crate::tree::{child, lead, task};
use crate::world::World;
use posse_testkit::{Reply, Rule, Script, When};

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
        "explore          Finds its way through files",
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
        "it is used like this: /resume RUN [TEXT]",
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
