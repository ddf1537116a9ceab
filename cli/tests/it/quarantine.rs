//! A run that takes along the process that executes it, beside others that do not.

use crate::daemon::Guard;
use crate::world::{World, bash, eventually, started};
use posse_testkit::{Reply, Rule, Script, When};
use serde_json::{Value, json};

/// What the run does that is to blame: whoever sees the file kills the process.
const BLOW: &str = "echo boom >> blows; exec sleep 600";
/// What another does meanwhile.
const WAIT: &str = "echo began >> waits; until [ -e release ]; do sleep 0.05; done";

fn script() -> Script {
    let task = json!({
        "description": "blow up", "prompt": "the guilty work", "subagent_type": "general-purpose",
    });
    let first = |text: &str| When::any().first_user_contains(text);
    Script::new()
        .rule(
            Rule::when(first("leading").last_tool_result_contains("quarantined"))
                .reply(Reply::text("I heard of it")),
        )
        .rule(Rule::when(first("leading").turn(0)).reply(Reply::tool_call("Task", task)))
        .rule(
            Rule::when(first("the guilty work").last_user_contains("Go on."))
                .reply(Reply::text("I stop it")),
        )
        .rule(Rule::when(first("the guilty work")).reply(bash(BLOW)))
        .rule(
            Rule::when(first("innocent").last_tool_result_contains("released"))
                .reply(Reply::text("done")),
        )
        .rule(Rule::when(first("innocent")).reply(bash(&format!("{WAIT}; echo released"))))
}

async fn show(world: &World, run: &str) -> Value {
    world.run(&["runs", "show", run, "--json"]).await.expect(0).json()
}

#[tokio::test]
async fn a_run_that_takes_its_process_along_is_quarantined_and_its_neighbours_go_on() {
    let world = World::new(script()).await;
    let guard = Guard::of(&world);
    let leave = async |prompt: &str| {
        let exit = world.run(&["run", "--background", prompt]).await.expect(0);
        exit.out.trim().to_owned()
    };
    let (lead, innocent) = (leave("leading").await, leave("innocent").await);
    let blows = || world.read("blows").lines().count();
    let mut deaths = 0;
    loop {
        // From the third death on they are not executed beside each other any more.
        if deaths == 3 {
            world.write("release", "");
        }
        let waits = world.read("waits").lines().count();
        let daemon = started(world.command(&["daemon", "start", "--foreground"]));
        let mut lead_ended = false;
        eventually("the next blow, or the end", async || {
            lead_ended = show(&world, &lead).await["status"] == "finished";
            let both = deaths >= 3 || world.read("waits").lines().count() > waits;
            lead_ended || (blows() > deaths && both)
        })
        .await;
        if lead_ended {
            eventually("the end of its neighbour", async || {
                show(&world, &innocent).await["status"] == "finished"
            })
            .await;
            guard.kill();
            daemon.end().await;
            break;
        }
        guard.kill().unwrap();
        daemon.end().await;
        deaths += 1;
        assert!(deaths <= 5, "it is not quarantined");
    }
    assert_eq!((deaths, blows()), (5, 5));
    assert_eq!(show(&world, &innocent).await["outcome"], "completed");
    let shown = show(&world, &lead).await;
    assert_eq!((&shown["outcome"], &shown["text"]), (&json!("completed"), &json!("I heard of it")));

    let listed = world.run(&["runs", "list", "--outcome", "quarantined", "--json"]).await.expect(0);
    let listed = listed.json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let guilty = listed[0]["run"].as_str().unwrap();
    let watched = world.run(&["runs", "watch", guilty]).await.expect(1);
    let told = "quarantined: the process that executed it died 5 times in a row";
    assert!(watched.err.contains(told), "{watched:?}");
    assert!(world.run(&["runs", "show", guilty]).await.expect(0).out.contains("quarantined"));
    world.run(&["runs", "verify"]).await.expect(0);

    // It goes on when a person says so.
    let resumed = world.run(&["runs", "resume", guilty]).await.expect(0);
    assert!(resumed.out.contains("I stop it"), "{resumed:?}");
    assert_eq!(blows(), 5);
}
