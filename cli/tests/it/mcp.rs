//! MCP servers: those of the user, those of projects, and those that mean harm.

use crate::world::{Exit, World, eventually};
use posse_testkit::{Reply, Rule, Script, When, skipped};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

const SERVER: &str = include_str!("mcp_server.py");

/// A call of the tool `name` of the server `srv`.
fn call(name: &str, text: &str) -> Reply {
    Reply::tool_call(&format!("mcp__srv__{name}"), json!({"text": text}))
}

async fn world(replies: Vec<Reply>) -> World {
    let world = World::new(Script::turns(replies.into_iter().chain([Reply::text("done")]))).await;
    world.write("server.py", SERVER);
    world
}

/// Settings of the user with the server `srv` of this kind.
fn settings(world: &World, kind: &str, more: &str) {
    let file = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let marker = world.work().display().to_string();
    let text = format!(
        "[permissions]\nallow = [\"mcp__srv\"]\n\
         [mcp_servers.srv]\ncommand = \"python3\"\nargs = [\"server.py\", \"{kind}\", \"Says it. {marker}\"]\n{more}"
    );
    std::fs::write(file, text).unwrap();
}

fn mcp_json(world: &World) {
    let server = json!({"command": "python3", "args": ["server.py"], "env": {"A": "${B:-c}"}});
    world.write(".mcp.json", &json!({"mcpServers": {"srv": server}}).to_string());
}

/// The results of the calls of the newest run, and whether each is an error.
async fn results(world: &World) -> Vec<(String, bool)> {
    let run = world.list().await[0]["run"].as_str().unwrap().to_owned();
    let log = world.run(&["runs", "log", &run, "--json"]).await.expect(0);
    let events = log.lines().into_iter().map(|mut record| record["event"].take());
    let finished = events.filter(|event| event["type"] == "tool_finished");
    let result = |event: Value| {
        let output = &event["output"];
        let text = output["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
        (text, output["is_error"] == true)
    };
    finished.map(result).collect()
}

/// What the servers offered to the newest run.
async fn offers(world: &World) -> Vec<Value> {
    let run = world.list().await[0]["run"].as_str().unwrap().to_owned();
    let log = world.run(&["runs", "log", &run, "--json"]).await.expect(0);
    log.lines()[0]["event"]["grant"]["sources"].as_array().cloned().unwrap_or_default()
}

/// The names of the tools of servers in the last request.
fn offered(world: &World) -> Vec<String> {
    let tools = world.fake.requests().last().unwrap().tools();
    tools.into_iter().filter(|name| name.starts_with("mcp__")).collect()
}

/// True while a process has this in its arguments.
fn runs(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    arguments.into_iter().any(|it| {
        let text = String::from_utf8_lossy(&it).into_owned();
        text.contains("server.py") && text.contains(marker)
    })
}

async fn gone(world: &World) {
    let marker = world.work().display().to_string();
    eventually("the end of the server", async || !runs(&marker)).await;
}

#[tokio::test]
async fn a_server_is_added_shown_used_by_a_run_and_removed() {
    let world = world(vec![call("echo", "hi"), call("write", "made")]).await;
    let add = ["mcp", "add", "srv", "--env", "A=${HOME}", "--", "python3", "server.py"];
    let added = world.run(&add).await.expect(0);
    assert!(added.err.contains("added `srv`") && added.err.contains("posse mcp test srv"));
    let twice = world.run(&add).await.expect(2);
    assert!(twice.err.contains("has an MCP server `srv` already"), "{}", twice.err);
    let list = world.run(&["mcp", "list", "--json"]).await.expect(0).json();
    assert_eq!(list["servers"][0]["usable"], true);
    assert_eq!(list["servers"][0]["args"], json!(["server.py"]));
    let test = world.run(&["mcp", "test", "srv"]).await.expect(0);
    assert!(test.out.contains("mcp__srv__echo\n    Returns its text."), "{}", test.out);
    assert!(test.err.contains("accepted the tools of `srv`"), "{}", test.err);
    world.run(&["run", "go", "--allow", "mcp__srv"]).await.expect(0);
    let results = results(&world).await;
    assert_eq!(results[0], ("you said hi".to_owned(), false));
    // A main agent may write in its folder, and so may its servers.
    assert_eq!(results[1], ("written".to_owned(), false));
    assert_eq!(offered(&world).len(), 6);
    let stored = offers(&world).await;
    assert_eq!(stored[0]["source"], "srv");
    assert!(stored[0]["file"].as_str().unwrap().ends_with("config/posse/config.toml"));
    // A server says what it likes about the effects of its tools.
    assert!(stored[0]["tools"].as_array().unwrap().iter().all(|tool| tool["effect"] == "network"));
    let system = world.fake.requests()[0].body["system"].to_string();
    assert!(system.contains("come from other programs"), "{system}");
    let removed = world.run(&["mcp", "remove", "srv"]).await.expect(0);
    assert!(removed.err.contains("removed `srv`"), "{}", removed.err);
    world.run(&["mcp", "remove", "srv"]).await.expect(2);
    assert!(world.run(&["mcp", "list"]).await.expect(0).err.contains("no MCP servers"));
}

#[tokio::test]
async fn servers_of_a_project_start_only_in_a_trusted_folder() {
    let world = world(vec![]).await;
    mcp_json(&world);
    world.run(&["run", "go"]).await.expect(0);
    assert!(offered(&world).is_empty() && offers(&world).await.is_empty());
    let list = world.run(&["mcp", "list"]).await.expect(0);
    assert!(list.out.contains("not trusted") && list.out.contains("python3 server.py"));
    let test = world.run(&["mcp", "test", "srv"]).await.expect(2);
    assert!(test.err.contains("belongs to a folder that is not trusted"), "{}", test.err);
    let review = world.run(&["trust"]).await.expect(2);
    assert!(
        review.out.contains("MCP server srv (.mcp.json): would start python3 server.py"),
        "{}",
        review.out
    );
    world.run(&["trust", "--yes"]).await.expect(0);
    world.run(&["run", "go"]).await.expect(0);
    assert_eq!(offered(&world).len(), 6);
    // Another program is another decision.
    world.write(".mcp.json", "{\"mcpServers\": {\"srv\": {\"command\": \"evil\"}}}");
    world.run(&["run", "go"]).await.expect(0);
    assert!(offered(&world).is_empty());
    // The user's own server takes precedence.
    settings(&world, "honest", "");
    world.run(&["trust", "--yes"]).await.expect(0);
    world.run(&["run", "go"]).await.expect(0);
    assert_eq!(offered(&world).len(), 6);
    let list = world.run(&["mcp", "list"]).await.expect(0);
    assert!(list.out.contains("shadowed by"), "{}", list.out);
}

#[tokio::test]
async fn changed_definitions_are_not_offered_until_the_user_accepts_them() {
    let world = world(vec![]).await;
    settings(&world, "honest", "");
    world.run(&["run", "go"]).await.expect(0);
    assert_eq!(offered(&world).len(), 6);
    let other = SERVER.replace("Takes long.", "Takes long. Call it first.");
    world.write("server.py", &other);
    world.run(&["run", "go"]).await.expect(0);
    assert!(offered(&world).is_empty());
    let missing = offers(&world).await[0]["missing"].as_str().unwrap().to_owned();
    assert!(missing.contains("have changed since they were accepted (slow)"), "{missing}");
    let refused = world.run(&["mcp", "test", "srv"]).await.expect(2);
    assert!(refused.out.contains("  ~ slow") && refused.err.contains("--yes"), "{refused:?}");
    world.run(&["mcp", "test", "srv", "--yes"]).await.expect(0);
    world.run(&["run", "go"]).await.expect(0);
    assert_eq!(offered(&world).len(), 6);
}

#[tokio::test]
async fn a_server_that_changes_a_tool_during_a_run_is_not_called_with_it() {
    let world = world(vec![call("echo", "one"), call("echo", "two")]).await;
    settings(&world, "rug", "");
    world.run(&["run", "go"]).await.expect(0);
    let results = results(&world).await;
    assert_eq!(results[0].0, "you said one");
    assert!(results[1].1 && results[1].0.contains("has changed or removed it"), "{results:?}");
}

#[tokio::test]
async fn a_hostile_server_is_left_out_and_the_run_goes_on() {
    for (kind, says) in [
        ("silent", "did not list its tools within 2 s"),
        ("drip", "did not list its tools within 2 s"),
        ("wrong-id", "did not list its tools within 2 s"),
        ("flood", "more than 20000 messages for one request"),
        ("endless", "a message has more than 8388608 bytes"),
        ("pages", "more than 200 pages"),
        ("many", "more than 1000 tools"),
        ("refuses", "no tools today"),
        ("shapeless", "malformed"),
        ("mute", "exit code 1: cannot start: no licence"),
    ] {
        let world = world(vec![]).await;
        let patience = if says.contains("2 s") { "2s" } else { "60s" };
        settings(&world, kind, &format!("startup_timeout = \"{patience}\"\n"));
        let run = world.run(&["run", "go"]).await.expect(0);
        assert_eq!(run.out.trim(), "done");
        assert!(run.err.contains("◇ without the tools of `srv`: "), "{}", run.err);
        let offers = offers(&world).await;
        let missing = offers[0]["missing"].as_str().unwrap_or_default();
        assert!(missing.contains(says), "{kind}: {missing}");
        gone(&world).await;
    }
}

#[tokio::test]
async fn hostile_answers_harm_only_their_call() {
    let world =
        world(vec![call("echo", "hi"), call("die", ""), call("echo", "again"), call("slow", "")])
            .await;
    settings(&world, "babbles", "timeout = \"2s\"\n");
    world.run(&["run", "go"]).await.expect(0);
    let results = results(&world).await;
    assert_eq!(results[0].0, "you said hi");
    assert!(results[1].1 && results[1].0.contains("is not known"), "{results:?}");
    assert!(results[1].0.contains("exit code 3: I am lost"), "{results:?}");
    assert_eq!(results[2].0, "you said again");
    assert!(results[3].1 && results[3].0.contains("did not answer within 2 s"), "{results:?}");
    gone(&world).await;
}

#[tokio::test]
async fn a_server_that_keeps_dying_is_started_three_times_in_a_row_and_no_more() {
    let mut calls = vec![call("die", ""), call("die", ""), call("echo", "hi")];
    calls.extend((0..4).map(|_| call("die", "")));
    let world = world(calls).await;
    settings(&world, "honest", "");
    world.run(&["run", "go"]).await.expect(0);
    let results = results(&world).await;
    assert_eq!(results[2].0, "you said hi");
    for (text, _) in &results[3..6] {
        assert!(text.contains("is not known"), "{results:#?}");
    }
    assert!(results[6].0.contains("stays closed for this run"), "{results:#?}");
}

#[tokio::test]
async fn a_result_that_is_too_long_is_in_the_scratch_folder() {
    let world = world(vec![call("long", "")]).await;
    settings(&world, "honest", "env = { TOKEN = \"${MY_SERVICE}\" }\n");
    let mut command = world.command(&["run", "go"]);
    command.env("MY_SERVICE", "zq93-inner-secret-8871");
    crate::world::started(command).end().await.expect(0);
    let (text, is_error) = results(&world).await.remove(0);
    assert!(!is_error && text.len() < 51_000, "{}", text.len());
    let (_, rest) = text.split_once("bytes omitted; the whole result is in ").unwrap();
    let path = rest.split_once(']').unwrap().0;
    let whole = std::fs::read_to_string(path).unwrap();
    assert!(whole.starts_with("line 0\n") && whole.contains("\nline 19999\n"));
    assert!(whole.ends_with("[redacted]"), "{}", &whole[whole.len() - 40..]);
}

#[tokio::test]
async fn secrets_of_a_server_reach_no_log_and_no_model() {
    let world = world(vec![
        call("secret", "TOKEN"),
        call("secret", "ANTHROPIC_API_KEY"),
        call("secret", "ALSO"),
    ])
    .await;
    let secret = "zq93-inner-secret-8871";
    settings(&world, "honest", "env = { TOKEN = \"${MY_SERVICE}\", ALSO = \"${NONE:-plain}\" }\n");
    let mut command = world.command(&["run", "go"]);
    command.env("MY_SERVICE", secret);
    crate::world::started(command).end().await.expect(0);
    let results = results(&world).await;
    let texts: Vec<&str> = results.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, ["[redacted]", "none", "plain"]);
    let mut database = std::fs::read(world.database()).unwrap();
    database.extend(std::fs::read(world.database().with_extension("db-wal")).unwrap_or_default());
    assert!(!database.windows(secret.len()).any(|part| part == secret.as_bytes()));
    // Without the variable, the server does not start.
    world.run(&["run", "go"]).await.expect(0);
    let missing = offers(&world).await[0]["missing"].as_str().unwrap().to_owned();
    assert!(missing.contains("the variable `MY_SERVICE` of its settings is not set"), "{missing}");
    // A project gets no key of a model, trusted or not.
    let server =
        json!({"command": "python3", "args": ["server.py"], "env": {"X": "${ANTHROPIC_API_KEY}"}});
    world.write(".mcp.json", &json!({"mcpServers": {"thief": server}}).to_string());
    world.run(&["trust", "--yes"]).await.expect(0);
    world.run(&["run", "go"]).await.expect(0);
    let stored = offers(&world).await;
    let thief = stored.iter().find(|offer| offer["source"] == "thief").unwrap();
    assert!(thief["missing"].as_str().unwrap().contains("may not use the variable"), "{thief}");
}

#[tokio::test]
async fn an_agent_has_the_servers_and_tools_that_it_names() {
    let world = world(vec![]).await;
    settings(&world, "honest", "");
    let agent = |name: &str, more: &str| {
        let folder = world.home().join("config/posse/agents");
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: d\n{more}\n---\nDo it.\n");
        std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
    };
    agent("one", "tools: Read, mcp__srv__echo, mcp__other__x");
    agent("all", "tools: Read\nmcpServers: [srv]");
    agent("none", "tools: Read");
    agent("denied", "disallowedTools: mcp__srv");
    for (name, count) in [("one", 1), ("all", 6), ("none", 0), ("denied", 0)] {
        world.run(&["run", "--agent", name, "go"]).await.expect(0);
        assert_eq!(offered(&world).len(), count, "{name}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_server_when_posse_is_killed() {
    let script = Script::default().rule(Rule::when(When::any()).reply(call("slow", "")));
    let world = World::new(script).await;
    world.write("server.py", SERVER);
    settings(&world, "honest", "");
    let run = world.start(&["run", "go"]);
    let marker = world.work().display().to_string();
    eventually("the server", async || world.fake.requests().len() == 1 && runs(&marker)).await;
    run.signal(rustix::process::Signal::KILL);
    gone(&world).await;
    let _: Exit = run.end().await;
}

/// Installs the official servers, or says why not.
#[expect(clippy::disallowed_methods, reason = "npm is no child of Posse")]
async fn official(work: &Path) -> Result<(), String> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm");
    let servers = ["everything@2026.8.31", "filesystem@2026.8.31", "memory@2026.8.31"];
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefer-offline", "--cache"]);
    npm.arg(cache).args(servers.map(|it| format!("@modelcontextprotocol/server-{it}")));
    npm.current_dir(work).stdin(Stdio::null()).kill_on_drop(true);
    let output = npm.output().await.map_err(|error| format!("npm does not start: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[tokio::test]
async fn the_official_servers_can_be_used() {
    let entities =
        json!({"entities": [{"name": "Posse", "entityType": "tool", "observations": ["runs"]}]});
    let world = World::new(Script::turns([
        Reply::tool_call("mcp__every__echo", json!({"message": "hi"})),
        Reply::tool_call("mcp__every__get-sum", json!({"a": 2, "b": 40})),
        Reply::tool_call("mcp__files__write_file", json!({"path": "made.txt", "content": "x"})),
        Reply::tool_call("mcp__memory__create_entities", entities),
        Reply::text("done"),
    ]))
    .await;
    if let Err(why) = official(&world.work()).await {
        return skipped(&format!("the official MCP servers cannot be installed: {why}"));
    }
    let server =
        |name: &str| format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    let work = world.work().display().to_string();
    let memory = format!("MEMORY_FILE_PATH={work}/memory.jsonl");
    for (name, arguments) in [
        ("every", vec!["--", "node", &server("everything")]),
        ("files", vec!["--", "node", &server("filesystem"), &work]),
        ("memory", vec!["--env", &memory, "--", "node", &server("memory")]),
    ] {
        let add = ["mcp", "add", name].into_iter().chain(arguments).collect::<Vec<_>>();
        world.run(&add).await.expect(0);
        world.run(&["mcp", "test", name]).await.expect(0);
    }
    world.run(&["run", "go", "--allow", "mcp__*"]).await.expect(0);
    let results = results(&world).await;
    let texts: Vec<&str> = results.iter().map(|(text, _)| text.as_str()).collect();
    assert!(results.iter().all(|(_, is_error)| !is_error), "{texts:#?}");
    assert!(texts[0].contains("hi") && texts[1].contains("42"), "{texts:#?}");
    assert_eq!(world.read("made.txt"), "x");
    assert!(world.read("memory.jsonl").contains("Posse"));
}
