//! Runs that wait for a slot: what is said of them.

use crate::tree::{lead, settings, task};
use crate::world::{World, eventually};
use posse_testkit::{Gate, Reply, Rule, Script, When};
use serde_json::{Value, json};

/// The runs below the one at the top, the oldest first.
async fn below(world: &World, top: &str) -> Vec<Value> {
    let tree = world.run(&["runs", "tree", top, "--json"]).await.expect(0).json();
    tree["children"].as_array().unwrap().clone()
}

#[tokio::test]
async fn whoever_waits_for_a_slot_is_shown_with_its_place() {
    let gate = Gate::new();
    let parts = ["one", "two", "three"].map(|part| task("explore", part));
    let script = Script::new()
        .conversation(lead(parts))
        .rule(Rule::when(When::any()).reply(Reply::text("1").held_by(&gate)));
    let world = World::new(script).await;
    settings(&world, "max_concurrent = 1\n");
    let running = world.start(&["run", "--priority", "7", "lead them"]);
    gate.wait_for_held(1).await.unwrap();
    let top = world.only_run().await;
    let places = async || {
        let rows = below(&world, &top).await;
        rows.iter().map(|row| row["position"].clone()).collect::<Vec<Value>>()
    };
    eventually("two wait", async || places().await == [Value::Null, json!(1), json!(2)]).await;
    let children = below(&world, &top).await;
    let last = children[2]["run"].as_str().unwrap();
    let shown = world.run(&["runs", "show", last]).await.expect(0).out;
    assert!(shown.contains("queued (2nd)"), "{shown}");
    let tree = world.run(&["runs", "tree", &top]).await.expect(0).out;
    assert!(tree.contains("queued (1st)") && tree.contains("queued (2nd)"), "{tree}");
    let list = world.run(&["runs", "list", "--all"]).await.expect(0).out;
    assert!(list.contains("queued (1st)"), "{list}");
    let log = world.run(&["runs", "log", last, "--json"]).await.expect(0).out;
    assert!(log.contains("\"priority\":7"), "a child has the priority of its parent: {log}");
    gate.open();
    assert_eq!(running.end().await.expect(0).out, "all done\n");
    assert_eq!(places().await, [Value::Null, Value::Null, Value::Null]);
}

#[tokio::test]
async fn the_settings_show_the_caps_and_where_they_came_from() {
    let world = World::saying("hello").await;
    settings(&world, "[lanes]\nper_parent = 5\nper_agent = { explore = 4, \"*\" = 8 }\n");
    let shown = world.run(&["config", "--json"]).await.expect(0).json();
    let shown = &shown["settings"];
    assert_eq!(shown["lanes.per_parent"]["value"], json!(5));
    assert_eq!(shown["lanes.per_agent.explore"]["value"], json!(4));
    assert_eq!(shown["lanes.per_agent.*"]["value"], json!(8));
    let origin = shown["lanes.per_agent.*"]["origin"].as_str().unwrap();
    assert!(origin.ends_with("config.toml"), "{origin}");
}
