//! Budgets on the command line: what a run and all below it may spend together.

use crate::world::{World, bash};
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::{Value, json};

fn busy() -> Script {
    Script::always(bash("true"))
}

/// The part `limit` of the budget in what `runs show --json` prints.
fn part<'a>(shown: &'a Value, limit: &str) -> Option<&'a Value> {
    shown["budget"].as_array().unwrap().iter().find(|part| part["limit"] == limit)
}

/// A call that failed and is made again is the same turn, however little money is left.
#[tokio::test]
async fn a_call_that_is_made_again_uses_no_turn() {
    let cut = Reply::text("half of what is to be said").fault("reset-after-text");
    let script = Script::new()
        .rule(Rule::when(When::any()).reply(cut).once())
        .rule(Rule::when(When::any()).reply(Reply::text("the answer")));
    let world = World::new(script).await;
    let limits = ["run", "--max-turns", "1", "--max-cost", "0.05", "go"];
    let exit = world.run(&limits).await.expect(0);
    assert!(exit.out.ends_with("the answer\n"), "{exit:?}");
    assert!(exit.err.contains("✓ 1 turn "), "{exit:?}");
    assert_eq!(world.list().await[0]["turns"], 1);
}

#[tokio::test]
async fn out_of_budget_is_seven_and_shows_what_was_drawn() {
    let world = World::new(busy()).await;
    let exit = world.run(&["run", "--budget", "turns=2", "x"]).await.expect(7);
    let run = world.only_run().await;
    assert!(exit.err.contains("✗ out of budget: turns of run"), "{}", exit.err);
    let shown = world.run(&["runs", "show", &run]).await.expect(0).out;
    assert!(shown.contains("budget      2 of 2 turns, 0 of 10000 children"), "{shown}");
    let tree = world.run(&["runs", "tree", &run]).await.expect(0).out;
    assert!(tree.contains("budget: 2 of 2 turns"), "{tree}");
    let shown = world.run(&["runs", "show", &run, "--json"]).await.expect(0).json();
    assert_eq!(shown["outcome"], "out of budget");
    let turns = json!({"limit": "turns", "of": 2, "drawn": 2, "held": 0});
    assert_eq!(part(&shown, "turns"), Some(&turns));
    world.run(&["runs", "verify"]).await.expect(0);
    // Going on takes a new allowance, which is used up again.
    world.run(&["runs", "resume", &run, "go on"]).await.expect(7);
}

/// What a person types beside `--continue` is about this message, as in Claude Code.
#[tokio::test]
async fn a_limit_of_turns_holds_for_the_message_that_it_came_with() {
    let world = World::new(Script::always(bash("true"))).await;
    world.run(&["run", "--max-turns", "3", "go"]).await.expect(5);
    let turns = async || world.list().await[0]["turns"].as_u64().unwrap();
    assert_eq!(turns().await, 3);
    let again = world.run(&["run", "--continue", "--max-turns", "1", "more"]).await.expect(5);
    assert_eq!(turns().await, 4, "{again:?}");
    assert!(again.err.contains(" this time · since it began: 4 turns"), "{again:?}");
    // Its own limit is not widened, and holds again with the next message.
    for (options, until) in [(&["--max-turns", "9"][..], 7), (&[], 10)] {
        let line = [&["run", "-c"], options, &["more"]].concat();
        world.run(&line).await.expect(5);
        assert_eq!(turns().await, until, "{options:?}");
    }
    for option in [["--max-cost", "0.01"], ["--budget", "cost=1"]] {
        let line = [&["run", "-c"], &option[..], &["more"]].concat();
        let money = world.run(&line).await.expect(2);
        assert!(
            money.err.contains(" itself\n") && money.err.contains("has spent $0.0"),
            "{money:?}"
        );
        assert!(money.err.contains("--max-turns N"), "{money:?}");
    }
    assert_eq!(turns().await, 10);
}

/// A run that was interrupted has not ended: what is said to it then continues the same work, and a limit
/// counts from there.
#[tokio::test]
async fn a_limit_holds_for_a_message_to_a_run_that_has_not_ended() {
    let world = World::new(Script::always(bash("echo x >> made; sleep 0.2"))).await;
    let running = world.start(&["run", "go"]);
    world.lines_in("made", 2).await;
    running.signal(Signal::INT);
    running.end().await.expect(130);
    let turns = async || world.list().await[0]["turns"].as_u64().unwrap();
    let before = turns().await;
    world.run(&["run", "-c", "--max-turns", "2", "more"]).await.expect(5);
    let after = turns().await;
    assert!((before + 1..=before + 2).contains(&after), "{before} {after}");
    let refused = world.run(&["run", "-c", "--fallback-model", "sonnet", "more"]).await.expect(2);
    assert!(refused.err.contains("keeps its fallback models"), "{refused:?}");
}

#[tokio::test]
async fn those_below_draw_on_the_same_budget() {
    let call = |it: &str| json!({"description": it, "prompt": it, "subagent_type": "explore"});
    let tasks = ["a", "b", "c"]
        .into_iter()
        .fold(Reply::empty(), |reply, it| reply.and_tool_call("Task", call(it)));
    let lead = Conversation::when(When::any().first_user_contains("lead"));
    let script = Script::new()
        .conversation(lead.reply(tasks).reply(Reply::text("all done")))
        .rule(Rule::when(When::any()).reply(Reply::text("seen")));
    let world = World::new(script).await;
    // One is enough for one of the three, and one is left to say so.
    let exit = world.run(&["run", "--budget", "turns=3", "--json", "lead"]).await.expect(0);
    assert_eq!(exit.json()["subtree"]["turns"], 3, "{}", exit.out);
    assert_eq!(
        world
            .run(&["runs", "tree", "--json", exit.json()["run"].as_str().unwrap()])
            .await
            .expect(0)
            .out
            .matches("\"out of budget\"")
            .count(),
        2
    );
    let shown = world.run(&["run", "--budget", "turns=5", "--json", "lead"]).await.expect(0);
    assert_eq!(shown.json()["subtree"]["turns"], 5);
}

#[tokio::test]
async fn a_limit_of_money_is_one_of_the_tree() {
    let world = World::saying("fine").await;
    world.run(&["run", "--max-cost", "0.75", "--budget", "children=4", "x"]).await.expect(0);
    let run = world.only_run().await;
    let shown = world.run(&["runs", "show", &run, "--json"]).await.expect(0).json();
    assert_eq!(part(&shown, "cost").unwrap()["of"], 0.75);
    assert_eq!(part(&shown, "children").unwrap()["of"], 4);
}

#[tokio::test]
async fn a_budget_that_is_none_is_bad_usage() {
    let world = World::saying("never").await;
    for (budget, says) in [
        ("turns", "write it like"),
        ("turns=x", "whole number"),
        ("cost=-1", "more than 0"),
        ("time=5m", "is not a budget key"),
        ("turns=1,turns=2", "twice"),
    ] {
        let exit = world.run(&["run", "--budget", budget, "x"]).await.expect(2);
        assert!(exit.err.contains(says), "{budget}: {}", exit.err);
    }
    assert!(world.list().await.is_empty(), "nothing was stored");
}

#[tokio::test]
async fn the_budget_of_the_settings_is_shown_with_its_origin_and_holds() {
    let world = World::new(busy()).await;
    let project = world.write("posse.toml", "[budget]\nturns = 1\nchildren = 20000\n");
    let settings = world.run(&["config", "--json"]).await.expect(0).json();
    let settings = &settings["settings"];
    assert_eq!(settings["budget.turns"], json!({"value": 1, "origin": project}));
    assert_eq!(settings["budget.children"], json!({"value": 10_000, "origin": "default"}));
    assert_eq!(settings["budget.cost"], json!({"value": null, "origin": "default"}));
    world.run(&["run", "x"]).await.expect(7);
}
