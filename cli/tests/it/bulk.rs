//! Runs by label and filter, in bulk; pausing from another process; receipts; nothing left alive.

use crate::records::sql;
use crate::tree::{lead, settings, task};
use crate::world::{LONG, World, bash, eventually, gone, lives};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::{Value, json};

async fn rows(world: &World, arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["runs", "list", "--json"], arguments].concat();
    world.run(&arguments).await.expect(0).json().as_array().unwrap().clone()
}

fn labels(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["label"].as_str().unwrap_or_default()).collect()
}

#[tokio::test]
async fn runs_are_listed_by_label_agent_outcome_and_time() {
    let script = Script::new()
        .rule(Rule::when(When::any().last_user_contains("fail")).reply(Reply::error(400, "no")))
        .rule(Rule::when(When::any()).reply(Reply::text("fine")));
    let world = World::new(script).await;
    world.run(&["run", "--label", "night one", "go"]).await.expect(0);
    world.run(&["run", "--label", "night two", "fail"]).await.expect(1);
    world.run(&["run", "--label", "day", "--agent", "explore", "go"]).await.expect(0);
    for (arguments, expected) in [
        (vec!["--label", "night*"], vec!["night two", "night one"]),
        (vec!["--label", "day"], vec!["day"]),
        (vec!["--agent", "explore"], vec!["day"]),
        (vec!["--outcome", "failed"], vec!["night two"]),
        (vec!["--status", "finished", "--since", "1h", "--limit", "1"], vec!["day"]),
        (vec!["--until", "2020-01-01"], vec![]),
        (vec!["--status", "running,paused"], vec![]),
    ] {
        assert_eq!(labels(&rows(&world, &arguments).await), expected, "{arguments:?}");
    }
    let shown = world.run(&["runs", "show", "night one"]).await.expect(0).out;
    assert!(shown.contains("status      completed"), "{shown}");
    let several = world.run(&["runs", "show", "night"]).await.expect(2).err;
    assert!(several.contains("2 runs match `night`; "), "{several}");
    let wrong = world.run(&["runs", "list", "--since", "soon"]).await.expect(2).err;
    assert!(wrong.contains("`soon` is not a valid time"), "{wrong}");
}

#[tokio::test]
async fn a_run_is_paused_from_another_process_and_goes_on_in_a_third() {
    let gate = Gate::new();
    let script = Script::turns([bash("echo once >> ledger").held_by(&gate), Reply::text("done")]);
    let world = World::new(script).await;
    let owner = world.start(&["run", "go"]);
    gate.wait_for_held(1).await.unwrap();
    let run = world.only_run().await;
    let paused = world.run(&["runs", "pause", &run]).await.expect(0);
    assert!(paused.out.contains("after its current step"), "{paused:?}");
    gate.open();
    let left = owner.end().await.expect(130);
    assert!(left.err.contains("is paused; `posse runs resume "), "{}", left.err);
    assert_eq!(rows(&world, &["--status", "paused"]).await.len(), 1);
    assert_eq!(world.fake.requests().len(), 1, "no model call has begun");
    // `resume --all` leaves alone what somebody has paused.
    world.run(&["runs", "resume", "--all"]).await.expect(0);
    assert_eq!(rows(&world, &["--status", "paused"]).await.len(), 1);
    let sent = world.run(&["runs", "send", &run, "hurry"]).await.expect(0);
    assert!(sent.err.contains(" is paused: `posse runs resume"), "{}", sent.err);
    let exit = world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(exit.out, "done\n");
    assert_eq!(world.read("ledger"), "once\n");
}

/// A tree of three levels whose leaf runs a long command.
async fn at_work() -> World {
    let script = Script::new()
        .conversation(lead([task("general-purpose", "middle")]))
        .conversation(
            Conversation::when(When::any().first_user_contains("middle"))
                .reply(Reply::tool_call("Task", task("general-purpose", "leaf")))
                .reply(Reply::text("led")),
        )
        .rule(Rule::when(When::any()).reply(bash(LONG)));
    let world = World::new(script).await;
    settings(&world, "max_depth = 2\n");
    world
}

#[tokio::test]
async fn cancelling_leaves_no_process_of_any_descendant_alive() {
    let world = at_work().await;
    let owner = world.start(&["run", "lead them"]);
    let pid = world.lines_in("pid", 1).await;
    assert!(lives(&pid));
    let run = world.only_run().await;
    let cancel = world.run(&["runs", "cancel", &run, "--json"]).await.expect(0).json();
    let told = cancel["told"].as_array().unwrap();
    let labels: Vec<&str> = told.iter().map(|it| it["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["lead them", "do middle", "do leaf"]);
    assert!(told.iter().all(|it| it["outcome"]["kind"] == "cancelled"), "{cancel:#}");
    gone(&pid).await;
    owner.end().await.expect(3);
}

#[tokio::test]
async fn cancelling_after_a_crash_reaches_everyone_and_nothing_is_alive() {
    let world = at_work().await;
    let owner = world.start(&["run", "lead them"]);
    let pid = world.lines_in("pid", 1).await;
    owner.signal(Signal::KILL);
    owner.end().await;
    gone(&pid).await;
    let run = world.only_run().await;
    let cancel = world.run(&["runs", "cancel", &run]).await.expect(0);
    assert_eq!(cancel.out.lines().count(), 3, "{cancel:?}");
    assert!(cancel.out.lines().all(|line| line.contains("  cancelled  ")), "{cancel:?}");
    assert!(cancel.err.contains("2 runs below it told to stop"), "{cancel:?}");
    assert_eq!(world.read("ledger"), "began\n", "nothing was begun again");
    assert!(rows(&world, &["--unfinished", "--all"]).await.is_empty());
}

#[tokio::test]
async fn many_are_stopped_at_once_when_that_is_meant() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("late").held_by(&gate))).await;
    settings(&world, "recovery = \"wait\"\n");
    let mut owners = Vec::new();
    for label in ["night one", "night two", "day"] {
        owners.push(world.start(&["run", "--label", label, "go"]));
    }
    gate.wait_for_held(3).await.unwrap();
    let stop = ["runs", "cancel", "--all", "--label", "night*"];
    let asked = world.run(&stop).await.expect(2);
    assert!(asked.err.contains("2 runs would be cancelled"), "{}", asked.err);
    assert!(asked.err.contains("night two") && asked.err.contains("--yes"), "{}", asked.err);
    let stray = world.run(&["runs", "cancel", "day", "--label", "x"]).await.expect(2);
    assert!(stray.err.contains("need --all"), "{}", stray.err);
    let bare = world.run(&[&stop[..], &["--yes", "--until", "0.1"]].concat()).await.expect(2);
    assert!(bare.err.contains("is not a valid time"), "{}", bare.err);
    let done = world.run(&[&stop[..], &["--yes"]].concat()).await.expect(0);
    assert_eq!(done.out.lines().count(), 2, "{done:?}");
    assert!(done.err.ends_with("2 runs stopped\n"), "{done:?}");
    eventually("one is left", async || labels(&rows(&world, &["--unfinished"]).await) == ["day"])
        .await;
    gate.open();
    for owner in owners {
        owner.end().await;
    }
    let none = world.run(&["runs", "cancel", "--all", "--yes"]).await.expect(0);
    assert_eq!(none.err, "no run matches\n");
}

/// Runs that wait in the queue, and one that has ended, by their labels.
async fn queued(labels: &[&str]) -> World {
    let world = World::saying("done").await;
    world.run(&["run", "--label", "ended", "go"]).await.expect(0);
    for label in labels {
        world.run(&["run", "--background", "--label", label, "go"]).await.expect(0);
    }
    world
}

#[tokio::test]
async fn one_that_has_ended_keeps_no_other_from_being_cancelled() {
    let world = queued(&["one", "two", "three"]).await;
    let cancel = world.run(&["runs", "cancel", "one", "ended", "two"]).await.expect(0);
    assert!(cancel.err.contains("has ended already: completed"), "{cancel:?}");
    assert_eq!(cancel.out.lines().count(), 2, "{cancel:?}");
    let json = world.run(&["runs", "cancel", "--json", "ended", "three"]).await.expect(0).lines();
    let told: Vec<_> = json.iter().map(|it| it["told"].as_array().unwrap().len()).collect();
    assert_eq!(told, [0, 1], "{json:#?}");
    assert_eq!(json[0]["outcome"]["kind"], "completed");
    assert!(rows(&world, &["--unfinished"]).await.is_empty());
    // Nor one of which nothing is known any more but that it has ended.
    world.run(&["runs", "prune", "--older-than", "0d", "--yes"]).await.expect(0);
    let gone = world.run(&["runs", "cancel", "--json", "ended"]).await.expect(0).json();
    assert_eq!((&gone["outcome"], &gone["told"]), (&json!(null), &json!([])));
}

#[tokio::test]
async fn one_that_is_damaged_keeps_no_other_from_being_cancelled() {
    let world = queued(&["one", "two"]).await;
    let one = rows(&world, &["--label", "one"]).await[0]["run"].as_str().unwrap().to_owned();
    let damage = format!("UPDATE events SET body = replace(body, 'go', 'ox') WHERE run = '{one}'");
    sql(&world, &damage).await;
    let cancel = world.run(&["runs", "cancel", "--json", "one", "two"]).await.expect(6);
    let lines = cancel.lines();
    assert!(lines[0]["error"].as_str().unwrap().contains("damaged"), "{lines:#?}");
    assert_eq!((&lines[0]["run"], &lines[0]["told"]), (&json!(one), &json!([])));
    assert_eq!(lines[1]["outcome"]["kind"], "cancelled");
    let again = world.run(&["runs", "cancel", "one", "two"]).await.expect(6);
    let (damaged, ended) = ("damaged", "has ended already: cancelled");
    assert!(again.err.contains(damaged) && again.err.contains(ended), "{again:?}");
}

#[tokio::test]
async fn a_failure_of_one_keeps_no_other_from_being_paused_or_told() {
    let world = queued(&["one", "two"]).await;
    let pause = world.run(&["runs", "pause", "ended", "one"]).await.expect(1);
    assert!(pause.err.contains("has ended\n") && pause.err.contains("is paused;"), "{pause:?}");
    let pause = world.run(&["runs", "pause", "--json", "one", "two"]).await.expect(1);
    let lines = pause.lines();
    assert!(lines[0]["error"].as_str().unwrap().contains("is paused already"), "{lines:#?}");
    assert_eq!((&lines[0]["told"], &lines[1]["error"]), (&json!([]), &json!(null)));
    assert_eq!(rows(&world, &["--status", "paused"]).await.len(), 2);
    world.run(&["runs", "archive", "ended"]).await.expect(0);
    let send = world.run(&["runs", "send", "--json", "ended", "one", "hi"]).await.expect(1).lines();
    assert_eq!((&send[0]["sent"], &send[1]["sent"]), (&json!(false), &json!(true)));
}

#[tokio::test]
async fn where_no_run_is_selected_there_is_no_line_of_json() {
    let world = World::saying("done").await;
    let commands = [
        &["runs", "cancel", "--all", "--yes", "--label", "nosuch"][..],
        &["runs", "pause", "--all", "--yes", "--label", "nosuch"],
        &["runs", "send", "--all", "--yes", "--label", "nosuch", "hi"],
        &["runs", "resume", "--all"],
    ];
    // First without a database.
    for _ in 0..2 {
        for command in commands {
            let none = world.run(&[&["--json"], command].concat()).await.expect(0);
            assert_eq!((none.out.as_str(), none.err.as_str()), ("", ""), "{command:?}");
        }
        world.run(&["run", "go"]).await.expect(0);
    }
}

#[tokio::test]
async fn a_large_tree_is_shown_in_part() {
    let parts = (0..9).map(|part| task("explore", &format!("part {part}")));
    let child = Rule::when(When::any()).reply(Reply::text("1"));
    let world = World::new(Script::new().conversation(lead(parts)).rule(child)).await;
    world.run(&["run", "lead them"]).await.expect(0);
    let run = world.only_run().await;
    let part = world.run(&["runs", "tree", &run, "--limit", "4"]).await.expect(0);
    assert_eq!(part.out.lines().count(), 4, "{part:?}");
    assert!(part.err.starts_with("… 6 more; next ones: --after "), "{part:?}");
    // Page by page it is all of it, in its order.
    let all = world.run(&["runs", "tree", &run]).await.expect(0).out;
    let mut seen = part.out.clone();
    let mut err = part.err;
    while let Some((_, after)) = err.lines().next().unwrap().split_once("--after ") {
        let next = ["runs", "tree", &run, "--limit", "4", "--after", after];
        let page = world.run(&next).await.expect(0);
        seen.push_str(&page.out);
        err = page.err;
    }
    assert!(err.starts_with("10 runs: "), "{err}");
    assert_eq!(seen, all);
    let pages = ["runs", "tree", &run, "--limit", "6", "--json"];
    let first = world.run(&pages).await.expect(0).json();
    assert_eq!(first["children"].as_array().unwrap().len(), 5, "{first}");
    let after = first["next"].as_str().unwrap();
    let second = world.run(&[&pages[..], &["--after", after]].concat()).await.expect(0).json();
    assert_eq!(second["children"].as_array().unwrap().len(), 4, "{second}");
    assert_eq!((&second["next"], &second["left_out"]), (&json!(null), &json!(5)));
    let wrong = ["runs", "tree", after, "--after", run.as_str()];
    let refused = world.run(&wrong).await.expect(2);
    assert!(refused.err.contains("is not shown in the tree of"), "{refused:?}");
    let top = world.run(&["runs", "tree", &run, "--depth", "0", "--json"]).await.expect(0).json();
    assert_eq!((&top["children"], &top["left_out"]), (&json!([]), &json!(9)));
    assert_eq!(rows(&world, &["--tree", &run]).await.len(), 10);
}
