//! `posse run`: what it prints where.

use crate::world::{World, bash, started};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use serde_json::json;

fn two_turns() -> Script {
    Script::turns([
        Reply::text("I look first.").and_tool_call("List", json!({"path": "."})),
        Reply::text("There is nothing here."),
    ])
}

#[tokio::test]
async fn the_answer_goes_to_standard_output_and_progress_to_standard_error() {
    let world = World::new(two_turns()).await;
    let exit = world.run(&["run", "what is here?"]).await.expect(0);
    assert_eq!(exit.out, "There is nothing here.\n");
    let lines: Vec<&str> = exit.err.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    let first = "general-purpose · anthropic/claude-sonnet-5-5 (ANTHROPIC_API_KEY is set) · run ";
    assert!(lines[0].starts_with(first), "{}", lines[0]);
    assert_eq!(lines[1..3], ["I look first.", "● List ."]);
    assert!(lines[3].starts_with("✓ 2 turns · 1 tool call · "), "{}", lines[3]);
    assert!(!exit.err.contains('\x1b') && !exit.err.contains('\r'), "{:?}", exit.err);
}

#[tokio::test]
async fn quiet_prints_the_answer_and_nothing_else() {
    let world = World::new(two_turns()).await;
    let exit = world.run(&["run", "--quiet", "what is here?"]).await.expect(0);
    assert_eq!((exit.out.as_str(), exit.err.as_str()), ("There is nothing here.\n", ""));
}

#[tokio::test]
async fn quiet_still_tells_how_a_run_failed() {
    let world = World::new(Script::always(Reply::error(400, "no such thing"))).await;
    let exit = world.run(&["run", "-q", "x"]).await.expect(1);
    assert_eq!(exit.out, "");
    assert!(exit.err.starts_with("failed: ") && exit.err.contains("no such thing"), "{exit:?}");
    assert_eq!(exit.err.lines().count(), 1);
}

#[tokio::test]
async fn a_failure_is_told_once_with_its_reason() {
    let world = World::new(Script::always(Reply::error(400, "no such thing"))).await;
    let exit = world.run(&["run", "x"]).await.expect(1);
    assert_eq!(exit.err.matches("no such thing").count(), 1, "{}", exit.err);
}

#[tokio::test]
async fn a_failed_tool_call_shows_why() {
    let world = World::new(Script::turns([
        Reply::tool_call("Read", json!({"file_path": "nowhere.txt"})),
        Reply::text("It is not there."),
    ]))
    .await;
    let exit = world.run(&["run", "read nowhere.txt"]).await.expect(0);
    let lines: Vec<&str> = exit.err.lines().collect();
    assert_eq!(lines[1], "● Read nowhere.txt");
    assert!(lines[2].starts_with("  ") && lines[2].contains("nowhere.txt"), "{lines:#?}");
}

#[tokio::test]
async fn json_is_one_object_with_the_run_and_its_answer() {
    let world = World::new(two_turns()).await;
    let exit = world.run(&["run", "--json", "what is here?"]).await.expect(0);
    assert_eq!(exit.err, "");
    let run = exit.json();
    let wanted = json!({
        "status": "finished",
        "outcome": "completed",
        "outcome_line": "completed",
        "agent": "general-purpose",
        "model": "anthropic/claude-sonnet-5-5",
        "title": "what is here?",
        "workspace": world.work(),
        "session": false,
        "turns": 2,
        "tool_calls": 1,
        "text": "There is nothing here.",
    });
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(&run[key], value, "{key}");
    }
    assert_eq!(run["run"].as_str().unwrap().len(), 26);
    assert!(run["cost_usd"].as_f64().unwrap() > 0.0 && run["input_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn json_of_a_failed_run_says_how_it_ended() {
    let world = World::new(Script::always(Reply::error(401, "bad key"))).await;
    let run = world.run(&["run", "--json", "x"]).await.expect(1).json();
    assert_eq!(run["outcome"], "failed");
    assert!(run["outcome_line"].as_str().unwrap().contains("ANTHROPIC_API_KEY"), "{run}");
}

#[tokio::test]
async fn stream_json_prints_events_and_deltas_in_order() {
    let world = World::new(two_turns()).await;
    let exit = world.run(&["run", "--stream-json", "what is here?"]).await.expect(0);
    assert_eq!(exit.err, "");
    let lines = exit.lines();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["event"]["type"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"run_started"));
    assert_eq!(kinds.last(), Some(&"run_finished"));
    let seqs: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let said: String = lines
        .iter()
        .filter(|line| line["delta"] == "text")
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, "I look first.There is nothing here.");
    assert_eq!(lines.last().unwrap()["event"]["type"], "run_finished", "no delta comes last");
}

#[tokio::test]
async fn stream_json_shows_text_while_the_model_still_speaks() {
    let gate = Gate::new();
    let reply = Reply::text("one two three four five six").held_after_deltas(2, &gate);
    let world = World::new(Script::always(reply)).await;
    let running = world.start(&["run", "--stream-json", "x"]);
    running.says(r#","delta":"text","text":"one"#).await;
    assert_eq!(gate.held(), 1, "the reply is not complete");
    gate.open();
    running.end().await.expect(0);
}

#[tokio::test]
async fn cwd_is_where_the_agent_works_and_where_settings_are_looked_for() {
    let world = World::new(Script::turns([bash("pwd > where"), Reply::text("done")])).await;
    let other = world.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("posse.toml"), "agent = \"general-purpose\"\nmodel = \"haiku\"")
        .unwrap();
    let exit = world.run(&["run", "--trust", "--json", "--cwd", "../other", "x"]).await.expect(0);
    let where_it_was = std::fs::read_to_string(other.join("where")).unwrap();
    assert_eq!(where_it_was.trim(), other.canonicalize().unwrap().to_str().unwrap());
    assert!(exit.json()["model"].as_str().unwrap().contains("haiku"), "{}", exit.out);
}

#[tokio::test]
async fn the_same_key_follows_the_first_run() {
    let world = World::saying("only once").await;
    let first = world.run(&["run", "--json", "--key", "k1", "x"]).await.expect(0).json();
    let again = world.run(&["run", "--key", "k1", "something else"]).await.expect(0);
    assert_eq!(again.out, "only once\n");
    let remark = "already has this key: following it";
    assert!(again.err.contains(remark), "{}", again.err);
    let quiet = world.run(&["run", "--quiet", "--key", "k1", "x"]).await.expect(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("only once\n", ""));
    let json = world.run(&["run", "--json", "--key", "k1", "x"]).await.expect(0);
    assert_eq!((&json.json()["text"], json.err.as_str()), (&"only once".into(), ""));
    assert_eq!(world.fake.count(), 1, "the model was asked once");
    assert_eq!(world.only_run().await, first["run"]);
}

#[tokio::test]
async fn an_empty_key_is_none() {
    let world = World::saying("never").await;
    for key in ["", " "] {
        let refused = world.run(&["run", "--key", key, "x"]).await.expect(2);
        assert!(refused.err.contains("'--key <KEY>': the key is empty"), "{}", refused.err);
        world.run(&["run", "--background", "--key", key, "x"]).await.expect(2);
    }
    assert!(!world.database().exists());
}

#[tokio::test]
async fn demo_shows_a_run_without_a_key() {
    let world = World::saying("never asked").await;
    world.write("README.md", "# A project\n");
    let mut command = world.command(&["demo"]);
    command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
    let exit = started(command).end().await.expect(0);
    assert!(exit.out.contains("scripted demo"), "{}", exit.out);
    assert!(exit.err.contains("● Read README.md"), "{}", exit.err);
    assert_eq!(world.fake.count(), 0);
    assert!(!world.database().exists(), "real runs are kept apart");
}

#[tokio::test]
async fn a_full_standard_output_is_an_error_and_a_closed_one_is_not() {
    let world = World::saying("the answer").await;
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = world.command(&["run", "-q", "x"]);
    let exit = command.stdout(full).spawn().unwrap().wait_with_output().await.unwrap();
    assert_eq!(exit.status.code(), Some(1));
    let err = String::from_utf8(exit.stderr).unwrap();
    assert!(err.contains("cannot write to standard output") && err.contains("runs show"), "{err}");

    let mut command = world.command(&["completions", "bash"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let exit = command.stdout(writer).spawn().unwrap().wait_with_output().await.unwrap();
    assert_eq!((exit.status.code(), exit.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[tokio::test]
async fn it_may_open_as_many_files_as_the_system_permits_whatever_is_usual() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("done").held_by(&gate))).await;
    let mut posse = tokio::process::Command::new("bash");
    let limited = "ulimit -Hn 2000; ulimit -Sn 300; exec \"$0\" run 'do it'";
    posse.args(["-c", limited, env!("CARGO_BIN_EXE_posse")]);
    let running = started(world.set_up(posse));
    gate.wait_for_held(1).await.unwrap();
    let limits = format!("/proc/{}/limits", running.child.id().unwrap());
    let limits = std::fs::read_to_string(limits).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.matches("2000").count(), 2, "{files}");
    gate.open();
    running.end().await.expect(0);
}

/// A model that refuses does nothing, whatever it says besides.
#[tokio::test]
async fn a_refusal_runs_no_tool() {
    let world = World::new(Script::turns([
        bash("echo x > canary").stop_reason("refusal"),
        Reply::text("went on"),
    ]))
    .await;
    let refused = world.run(&["run", "x"]).await.expect(1);
    assert!(refused.err.contains("the model refused to answer"), "{refused:?}");
    assert!(!world.work().join("canary").exists());
    assert_eq!(world.fake.requests().len(), 1);
}

/// A call whose end is missing is no call, and a reply with one is no success.
#[tokio::test]
async fn a_call_that_was_never_closed_is_asked_for_again() {
    let cut = Rule::when(When::any()).reply(bash("echo once >> canary").fault("unclosed-call"));
    let whole = [bash("echo twice >> canary"), Reply::text("done")];
    let whole = whole.into_iter().fold(Conversation::when(When::any()), Conversation::reply);
    let world = World::new(Script::new().rule(cut.once()).conversation(whole)).await;
    let done = world.run(&["run", "x"]).await.expect(0);
    assert_eq!(done.out, "done\n");
    assert_eq!(world.read("canary"), "twice\n");
}

#[tokio::test]
async fn an_empty_answer_is_told_also_to_those_who_want_little() {
    let world = World::new(Script::always(Reply::text(""))).await;
    for options in [&[][..], &["--quiet"]] {
        let exit = world.run(&[&["run", "x"], options].concat()).await.expect(0);
        assert!(exit.err.contains("the model's answer is empty\n"), "{}", exit.err);
        assert_eq!(exit.out, "");
    }
}
