//! What people type who do not know the commands yet, or who know those of Claude Code.

use crate::tmux::Terminal;
use crate::world::{World, bash};
use posse_testkit::{Gate, Reply, Script};
use serde_json::json;

#[tokio::test]
async fn a_question_needs_no_command() {
    let world = World::saying("the answer").await;
    let exit = world.run(&["what is this?"]).await.expect(0);
    assert_eq!(exit.out, "the answer\n");
    let exit = world.run(&["-q", "--max-turns", "3", "what is this?"]).await.expect(0);
    assert_eq!((exit.out.as_str(), exit.err.as_str()), ("the answer\n", ""));
    let exit = world.run(&["-p", "hello"]).await.expect(0);
    assert_eq!(exit.out, "the answer\n");
    let exit = world.feed(&[], "what is this?\n").await.expect(0);
    assert_eq!(exit.out, "the answer\n");
    let list = world.list().await;
    assert_eq!((list.len(), list[0]["title"].as_str()), (4, Some("what is this?")));
}

#[tokio::test]
async fn a_word_alone_and_a_prompt_without_quotes_are_explained_and_not_run() {
    let world = World::saying("never").await;
    for (line, says) in [
        (&["rns", "list"][..], "did you mean `posse runs`?"),
        (&["--modle", "sonnet", "x y"], "has no option `--modle`"),
        (&["list"], "did you mean `posse runs list`?"),
        (&["log"], "did you mean `posse runs log`?"),
        (&["logs"], "`posse runs log RUN` shows"),
        (&["ps"], "`posse runs list --unfinished` lists"),
        (&["runs", "list", "--status", "completed"], "did you mean `--outcome completed`?"),
        (&["hello"], "quote the prompt: posse run \"hello\""),
        (&["what", "is", "this"], "quote the prompt: posse run \"what is this\""),
        (&["run", "what", "is", "this"], "quote the prompt: posse run \"what is this\""),
        (&["-p", "what", "is", "this"], "quote the prompt: posse run \"what is this\""),
        (&["run", "--modle", "opus", "x"], "did you mean `--model`?"),
        (&["run", "--mcp-config", "x.json", "x"], "`posse mcp list`"),
        (&["chat", "--add-dir", "../x"], "--cwd names a folder"),
        (&["run", "--max-turns", "many", "x"], "give a whole number, 1 or more"),
        (&["runs", "list", "--limit", "0"], "give a whole number from 1 to 10000"),
        (
            &["run", "--continue", "--deny", "Bash", "x"],
            "`--deny` cannot be used with `--continue`: a",
        ),
        (
            &["run", "--resume", "abcd", "--permission-mode", "plan", "x"],
            "leave out `--permission-mode`, or leave out `--resume` to start a new run",
        ),
        (&["chat", "--continue", "--sandbox", "read-only"], "`--sandbox` cannot be used with"),
        (&["chat", "--resume", "abcd", "--disallowedTools", "Bash"], "a run keeps the agent, the"),
        (&["run", "--continue", "--model", "opus,haiku", "x"], "you named several"),
        (&["run", "--model", "sonet", "x"], "did you mean `sonnet`?"),
        (&["run", "--agent", "explorer", "x"], "did you mean `explore`?"),
        (&["run", "--timeout", "0s", "x"], "give more than 0"),
        (&["run", "--cwd", "/etc/passwd", "x"], "/etc/passwd: it is not a folder\n"),
        (&["run", "--cwd", "nowhere", "x"], "nowhere: there is no such file or folder\n"),
    ] {
        let exit = world.run(line).await.expect(2);
        assert!(exit.err.contains(says), "{line:?}: {}", exit.err);
        assert!(!exit.err.contains("as a value"), "{line:?}: {}", exit.err);
    }
    let exit = world.run(&["--json", "run", "--modle", "x"]).await.expect(2);
    let told: serde_json::Value = serde_json::from_str(&exit.err).unwrap();
    assert_eq!(told["error"], "`posse run` has no option `--modle`");
}

#[tokio::test]
async fn alone_at_a_terminal_it_opens_the_chat() {
    let world = World::saying("Hello back.").await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse; echo code $?").await;
    terminal.shows("›").await;
    terminal.enter("hello").await;
    // The key is meant for the prompt.
    terminal.shows("Hello back.\n›").await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
    let list = world.list().await;
    assert_eq!((&list[0]["session"], &list[0]["title"]), (&json!(true), &json!("hello")));
}

#[tokio::test]
async fn options_of_claude_code_mean_the_same() {
    let touch = Reply::tool_call("Write", json!({"file_path": "b.txt", "content": "x"}));
    let world = World::new(Script::turns([touch, Reply::text("done")])).await;
    let exit = world
        .run(&[
            "-p",
            "go",
            "--permission-mode",
            "default",
            "--allowedTools",
            "Write Bash(git log:*)",
            "--disallowed-tools",
            "Bash(rm:*)",
            "--append-system-prompt",
            "You like brevity.",
            "--output-format",
            "json",
            "--verbose",
        ])
        .await
        .expect(0);
    assert_eq!(exit.json()["text"], "done");
    assert_eq!(world.read("b.txt"), "x", "the rule allows it without asking");
    let system = world.fake.requests()[0].system();
    assert!(system.contains("You like brevity.") && system.len() > 100, "{system}");
    let grant = world.run(&["runs", "log", "--json", &world.only_run().await]).await.expect(0);
    let grant = grant.out.lines().next().unwrap().to_owned();
    assert!(grant.contains("Bash(git log:*)") && grant.contains("Bash(rm:*)"), "{grant}");
}

#[tokio::test]
async fn a_system_prompt_replaces_the_agents_own() {
    let world = World::saying("done").await;
    world.run(&["-p", "go", "--system-prompt", "You are a pirate."]).await.expect(0);
    let system = world.fake.last_request().system();
    assert!(system.starts_with("You are a pirate."), "{system}");
    let twice = ["-p", "go", "--system-prompt", "a", "--append-system-prompt", "b"];
    assert!(world.run(&twice).await.expect(2).err.contains("cannot be used with"));
}

#[tokio::test]
async fn skipping_permissions_says_that_the_sandbox_stays() {
    let world = World::new(Script::turns([
        bash("echo x > ../outside; echo y > inside"),
        Reply::text("done"),
    ]))
    .await;
    let exit = world.run(&["-p", "go", "--dangerously-skip-permissions"]).await.expect(0);
    assert!(exit.err.contains("mode bypass: tool calls run without asking"), "{}", exit.err);
    assert!(exit.err.contains("commands stay in the sandbox"), "{}", exit.err);
    assert!(!world.folder.path().join("outside").exists());
}

#[tokio::test]
async fn continue_sends_the_prompt_to_the_newest_run_of_the_folder() {
    let world = World::new(Script::always(Reply::text("{{last_user}}!"))).await;
    let none = world.run(&["-c", "-p", "more"]).await.expect(2);
    assert!(none.err.contains("there is no run in "), "{}", none.err);
    world.run(&["-p", "first"]).await.expect(0);
    let run = world.only_run().await;
    let again = world.run(&["-c", "-p", "second"]).await.expect(0);
    assert_eq!(again.out, "second!\n");
    assert_eq!(world.only_run().await, run, "no other run is started");
    assert!(world.fake.last_request().body["model"].to_string().contains("sonnet"));
    let model = ["run", "--resume", &run[18..], "--model", "opus", "third"];
    assert_eq!(world.run(&model).await.expect(0).out, "third!\n");
    assert!(world.fake.last_request().body["model"].to_string().contains("opus"));
    let other = ["run", "--resume", &run[18..], "--model", "offline/planner", "what is here?"];
    let mut other = world.command(&other);
    other.env("ANTHROPIC_API_KEY", "");
    let other = crate::world::started(other).end().await.expect(0);
    assert!(!other.out.is_empty(), "without the key of the model before: {other:?}");
    let back = ["run", "--resume", &run[18..], "--model", "opus", "third"];
    world.run(&back).await.expect(0);
    let lines =
        world.run(&["-c", "-p", "fourth", "--output-format", "stream-json"]).await.expect(0);
    let kinds: Vec<serde_json::Value> =
        lines.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(kinds.iter().any(|line| line["event"]["type"] == "run_finished"), "{kinds:?}");
    assert!(!lines.out.contains("third"), "only what is new: {}", lines.out);
}

#[tokio::test]
async fn in_a_pipe_no_answer_is_lost() {
    let gate = Gate::new();
    let script = Script::turns([
        Reply::text("The first answer.").held_by(&gate),
        Reply::text("The second answer."),
    ]);
    let world = World::new(script).await;
    let running = world.start(&["run", "go"]);
    gate.wait_for_held(1).await.unwrap();
    let run = world.only_run().await;
    world.run(&["runs", "send", "--later", &run, "and then?"]).await.expect(0);
    gate.open();
    let exit = running.end().await.expect(0);
    assert_eq!(exit.out, "The first answer.\nThe second answer.\n");
    let world = World::new(Script::turns([Reply::text("one"), Reply::text("two")])).await;
    let json = world.run(&["run", "--json", "go"]).await.expect(0);
    assert_eq!(json.json()["text"], "one");
}

#[tokio::test]
async fn an_answer_that_does_not_match_the_schema_is_not_printed() {
    let script = Script::turns([Reply::text("not JSON"), Reply::text("{\"ok\": true}")]);
    let world = World::new(script).await;
    let schema = "{\"type\": \"object\", \"required\": [\"ok\"]}";
    world.write("schema.json", schema);
    let exit = world.run(&["run", "--output-schema", "schema.json", "go"]).await.expect(0);
    let answer: serde_json::Value = serde_json::from_str(&exit.out).unwrap();
    assert_eq!(answer, json!({"ok": true}));
}

#[tokio::test]
async fn the_files_that_are_told_by_language_add_up() {
    let world = World::saying("unused").await;
    for (name, text) in [
        ("README.md", "# Thing\n\nDoes one thing.\n"),
        ("a.rs", "fn a() {}\n"),
        (".gitignore", "x\n"),
    ] {
        world.write(name, text);
    }
    let exit = world.run(&["run", "--model", "offline", "what does this project do?"]).await;
    let out = exit.expect(0).out;
    assert!(out.contains("3 files: Markdown (1), Rust (1), other (1)."), "{out}");
}
