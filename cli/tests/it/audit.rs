//! `posse audit`: what was decided, and whether all of it is still there.

use crate::records::sql;
use crate::world::{World, bash, mode};
use posse_testkit::{Reply, Script};
use serde_json::{Value, json};

/// A world with a run that read, ran a command and was refused a tool, and a trusted folder.
async fn eventful() -> World {
    let script = Script::turns([
        Reply::tool_call("Read", json!({"file_path": "notes"})),
        bash("echo hello"),
        Reply::tool_call("Nonsense", json!({})),
        Reply::text("done"),
    ]);
    let world = World::new(script).await;
    world.write("notes", "x\n");
    world.write("posse.toml", "");
    world.run(&["run", "x"]).await.expect(0);
    world.run(&["trust", "--yes"]).await.expect(0);
    world
}

async fn list(world: &World, filters: &[&str]) -> Vec<Value> {
    let arguments = [&["audit", "list", "--json"], filters].concat();
    world.run(&arguments).await.expect(0).json().as_array().unwrap().clone()
}

#[tokio::test]
async fn every_grant_call_and_decision_is_listed_with_what_decided_it() {
    let world = eventful().await;
    let all = list(&world, &[]).await;
    let told: Vec<(&str, &str)> = all
        .iter()
        .map(|it| (it["kind"].as_str().unwrap(), it["tool"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        told,
        [
            ("granted", ""),
            ("allowed", "Read"),
            ("finished", "Read"),
            ("allowed", "Bash"),
            ("finished", "Bash"),
            ("denied", "Nonsense"),
            ("trusted", ""),
        ]
    );
    assert!(all[0]["detail"]["tools"].as_array().unwrap().contains(&json!("Bash")));
    assert!(all[0]["detail"]["profile"].is_string() && all[0]["detail"]["mode"].is_string());
    assert_eq!(all[1]["detail"]["input"], json!({"file_path": "notes"}));
    assert_eq!(all[3]["detail"]["input"]["command"], "echo hello");
    assert!(all[4]["detail"].get("input").is_none(), "its beginning has told");
    assert_eq!(all[5]["detail"]["input"], json!({}));
    assert_eq!(all[6]["detail"]["folder"], json!(world.work()));
    assert!(all.iter().all(|it| it["hash"].as_str().unwrap().len() == 64), "{all:#?}");
    let run = world.only_run().await;
    assert_eq!(list(&world, &["--run", &run]).await.len(), 6);
    assert_eq!(list(&world, &["--tool", "bash"]).await.len(), 2);
    assert_eq!(list(&world, &["--decision", "denied", "--decision", "trusted"]).await.len(), 2);
    assert_eq!(list(&world, &["--agent", "general-purpose"]).await.len(), 6);
    assert_eq!(list(&world, &["--since", "2999-01-01"]).await.len(), 0);
    let text = world.run(&["audit", "list"]).await.expect(0).out;
    assert_eq!(text.lines().count(), 8, "a heading and seven entries");
    assert!(text.contains("denied") && text.contains("Nonsense"), "{text}");
}

#[tokio::test]
async fn of_a_call_with_much_to_say_its_beginning_is_told() {
    let write = json!({"file_path": "b", "content": "ü".repeat(5_000)});
    let world =
        World::new(Script::turns([Reply::tool_call("Write", write), Reply::text("done")])).await;
    world.run(&["run", "--mode", "accept-edits", "x"]).await.expect(0);
    let allowed = list(&world, &["--decision", "allowed"]).await;
    let input = allowed[0]["detail"]["input"].as_str().unwrap();
    assert_eq!((input.chars().count(), input.ends_with("ü…")), (1_001, true), "{input}");
}

#[tokio::test]
async fn an_export_is_checked_line_by_line_and_the_first_bad_one_is_named() {
    let world = eventful().await;
    world.run(&["audit", "export", "--output", "audit.jsonl"]).await.expect(0);
    assert_eq!(mode(&world.work().join("audit.jsonl")), 0o600);
    let sound = world.run(&["audit", "verify", "audit.jsonl"]).await.expect(0);
    assert!(sound.err.contains("7 entries, each as it was written"), "{}", sound.err);
    let printed = world.run(&["audit", "export"]).await.expect(0).out;
    assert_eq!(printed, world.read("audit.jsonl"));
    let lines: Vec<&str> = printed.lines().collect();
    let check = async |lines: Vec<String>, bad: &str| {
        world.write("audit.jsonl", &(lines.join("\n") + "\n"));
        let exit = world.run(&["audit", "verify", "audit.jsonl"]).await.expect(6);
        assert!(exit.err.contains(bad), "{bad}: {}", exit.err);
    };
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let mut changed = owned(&lines);
    changed[6] = changed[6].replace("\"denied\"", "\"allowed\"");
    check(changed, "line 7 was changed (it says: run ").await;
    let mut less = owned(&lines);
    less.remove(3);
    check(less, "line 4 is missing").await;
    let mut moved = owned(&lines);
    moved.swap(4, 5);
    check(moved, "line 5 is missing").await;
    check(owned(&lines[..lines.len() - 1]), "line 9 is missing").await;
}

#[tokio::test]
async fn verify_names_the_first_record_of_a_run_that_was_changed() {
    let world = eventful().await;
    world.run(&["audit", "verify"]).await.expect(0);
    let run = world.only_run().await;
    let hide = "UPDATE events SET body = replace(body, 'refused', 'returned') \
                WHERE body LIKE '%\"ending\":\"refused\"%'";
    sql(&world, hide).await;
    let exit = world.run(&["audit", "verify"]).await.expect(6);
    assert!(exit.out.contains(&run) && exit.out.contains("was changed"), "{}", exit.out);
    let json = world.run(&["audit", "verify", "--json"]).await.expect(6).json();
    assert_eq!(json["damaged"][0]["run"], json!(run));
    assert!(json["damaged"][0]["event"].as_u64().unwrap() > 5, "{json}");
}

#[tokio::test]
async fn a_log_that_was_changed_is_told_of_and_hides_neither_what_it_held_before_nor_other_runs() {
    let world = eventful().await;
    world.run(&["run", "x"]).await;
    let runs = world.list().await;
    let [second, first] = [0, 1].map(|at| runs[at]["run"].as_str().unwrap());
    let change = format!("UPDATE events SET body = body || ' ' WHERE run = '{first}' AND seq = 6");
    sql(&world, &change).await;
    let arguments = ["audit", "list", "--json"];
    let exit = world.run(&arguments).await.expect(6);
    assert!(exit.err.contains("1 log cannot be read"), "{}", exit.err);
    let told = |of: &str| -> Vec<(String, u64)> {
        let all = exit.json();
        let own = all.as_array().unwrap().iter().filter(|it| it["run"] == json!(of));
        let word = |it: &Value| it["kind"].as_str().unwrap().to_owned();
        own.map(|it| (word(it), it["record"].as_u64().unwrap())).collect()
    };
    let of_first = told(first);
    assert_eq!(of_first.last(), Some(&("unreadable".to_owned(), 6)), "{of_first:?}");
    assert!(of_first.len() > 1 && of_first.iter().rev().skip(1).all(|it| it.1 < 6), "{of_first:?}");
    assert!(told(second).iter().any(|it| it.1 > 6), "{:?}", told(second));
    // Whatever is asked for.
    let exit = world
        .run(&[&arguments[..], &["--tool", "Nonsense", "--run", first]].concat())
        .await
        .expect(6);
    assert_eq!(exit.json().as_array().unwrap().len(), 1, "{}", exit.out);
    world.run(&["audit", "export", "--output", "audit.jsonl"]).await.expect(6);
    world.run(&["audit", "verify", "audit.jsonl"]).await.expect(0);
}

#[tokio::test]
async fn where_nothing_has_happened_there_is_nothing_to_tell() {
    let world = World::saying("x").await;
    assert_eq!(list(&world, &[]).await, Vec::<Value>::new());
    world.run(&["audit", "verify"]).await.expect(0);
    assert!(!world.database().exists(), "whoever only looks makes no database");
}
