//! Exit codes, and errors that name the thing, the reason and the next step.

use crate::world::{World, bash, started};
use posse_testkit::{Gate, Reply, Script};
use serde_json::Value;

async fn check(script: Script, arguments: &[&str], code: i32, says: &[&str]) {
    let world = World::new(script).await;
    let exit = world.run(arguments).await.expect(code);
    for part in says {
        assert!(exit.err.contains(part), "{arguments:?}: no {part:?} in {}", exit.err);
    }
}

#[tokio::test]
async fn a_rejected_key_fails_and_names_the_variable() {
    let script = Script::always(Reply::error(401, "invalid x-api-key"));
    check(script, &["run", "x"], 1, &["✗ failed: ", "ANTHROPIC_API_KEY"]).await;
}

#[tokio::test]
async fn a_rejected_request_fails_with_the_reason_of_the_provider() {
    let script = Script::always(Reply::error(400, "the weather is bad"));
    check(script, &["run", "x"], 1, &["✗ failed: ", "the weather is bad"]).await;
}

#[tokio::test]
async fn a_wrong_command_line_is_bad_usage() {
    let script = || Script::always(Reply::text("never"));
    check(script(), &["run", "--nonsense", "x"], 2, &["--nonsense", "`posse run --help`"]).await;
    check(script(), &["walk"], 2, &["walk"]).await;
    check(script(), &["run", "--agent", "nobody", "x"], 2, &["nobody", "general-purpose, explore"])
        .await;
    check(script(), &["run", "--agent", "no body!", "x"], 2, &["no body!"]).await;
    check(script(), &["run", "--model", "rocket-9", "x"], 2, &["rocket-9", "sonnet"]).await;
    check(script(), &["run", "--model", "nobody/x", "x"], 2, &["vendor `nobody`"]).await;
    check(script(), &["run", "--timeout", "soon", "x"], 2, &["soon", "90s"]).await;
    check(script(), &["run", "--max-cost", "-1", "x"], 2, &["-1"]).await;
    check(script(), &["run", "--max-cost", "nan", "x"], 2, &["dollars"]).await;
    check(script(), &["run", "--max-turns", "0", "x"], 2, &["--max-turns"]).await;
    check(script(), &["run", "--cwd", "nowhere", "x"], 2, &["cannot work in nowhere"]).await;
    check(script(), &["run", "--json", "--stream-json", "x"], 2, &["--stream-json"]).await;
}

#[tokio::test]
async fn without_the_key_of_the_model_that_was_named_it_says_what_to_set() {
    let world = World::saying("never").await;
    for arguments in [&["run", "x"][..], &["chat"], &["models", "test"]] {
        for (model, variable) in [("sonnet", "ANTHROPIC_API_KEY"), ("gpt", "OPENAI_API_KEY")] {
            let named = if arguments[0] == "models" { vec![model] } else { vec!["--model", model] };
            let mut command = world.command(&[arguments, &named].concat());
            command.env_remove("ANTHROPIC_API_KEY");
            let exit = started(command).end().await.expect(2);
            assert!(exit.err.contains(&format!("set {variable}")), "{}", exit.err);
            assert!(exit.err.contains("`posse models` shows which"), "{}", exit.err);
        }
    }
    assert!(world.list().await.is_empty(), "nothing was stored");
}

#[tokio::test]
async fn cancelled_is_three() {
    let world = World::new(Script::turns([bash(crate::world::LONG)])).await;
    let running = world.start(&["run", "x"]);
    world.lines_in("pid", 1).await;
    let run = world.only_run().await;
    world.run(&["runs", "cancel", &run]).await.expect(0);
    let exit = running.end().await.expect(3);
    assert!(exit.err.contains("✗ cancelled by the user"), "{}", exit.err);
}

#[tokio::test]
async fn timed_out_is_four() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("late").held_by(&gate));
    check(script, &["run", "--timeout", "300ms", "x"], 4, &["✗ timed out after 0.3 s"]).await;
}

#[tokio::test]
async fn a_limit_is_five() {
    let script = || Script::always(bash("true"));
    check(script(), &["run", "--max-turns", "2", "x"], 5, &["✗ stopped at its limit of turns"])
        .await;
    check(script(), &["run", "--max-cost", "0.0001", "x"], 5, &["stopped at its limit of cost"])
        .await;
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_six() {
    let world = World::saying("never").await;
    let exit = world.run(&["run", "--db", ".", "x"]).await.expect(6);
    assert!(exit.err.contains("the database . cannot be used"), "{}", exit.err);
    assert!(exit.err.contains("hint: --db names another"), "{}", exit.err);
    world.write("text.db", &"this is no database ".repeat(100));
    let exit = world.run(&["run", "--db", "text.db", "x"]).await.expect(6);
    assert!(exit.err.contains("text.db cannot be used: it is not a Posse database"), "{exit:?}");
    assert!(!exit.err.contains("move it away"), "{}", exit.err);
    assert!(world.read("text.db").starts_with("this is no database"), "left alone");
    let made = std::process::Command::new("mkfifo").arg(world.work().join("pipe.db")).status();
    assert!(made.unwrap().success());
    for arguments in [&["run", "--db", "pipe.db", "x"][..], &["runs", "list", "--db", "pipe.db"]] {
        let exit = world.run(arguments).await.expect(6);
        assert!(exit.err.contains("pipe.db cannot be used: it is not a regular file"), "{exit:?}");
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_six_and_left_alone() {
    let world = World::saying("fine").await;
    world.run(&["run", "x"]).await.expect(0);
    crate::records::sql(&world, "PRAGMA user_version = 4000").await;
    for arguments in [&["run", "x"][..], &["runs", "list"]] {
        let exit = world.run(arguments).await.expect(6);
        assert!(exit.err.contains("newer version") && exit.err.contains("update posse"));
    }
    crate::records::sql(&world, "PRAGMA user_version = 1").await;
}

#[tokio::test]
async fn with_json_an_error_of_the_command_line_says_what_it_is_about() {
    let world = World::saying("x").await;
    for (arguments, about) in [
        (&["--json", "runs", "log"][..], "were not provided: <RUN>"),
        (&["run", "--json", "--nonsense"], "`--nonsense`"),
        (&["--json", "cost", "--by", "moon"], "'moon'"),
    ] {
        let exit = world.run(arguments).await.expect(2);
        let error: Value = serde_json::from_str(&exit.err).unwrap();
        let told = error["error"].as_str().unwrap();
        assert!(told.contains(about) && !told.contains("Usage"), "{told}");
    }
}

#[tokio::test]
async fn with_json_errors_are_json() {
    let world = World::saying("never").await;
    for (arguments, code) in [
        (&["run", "--json", "--agent", "nobody", "x"][..], 2),
        (&["run", "--json", "--nonsense"], 2),
        (&["runs", "--json", "show", "abcd"], 2),
        (&["run", "--json", "--db", ".", "x"], 6),
    ] {
        let exit = world.run(arguments).await.expect(code);
        let error: Value = serde_json::from_str(&exit.err).unwrap();
        assert!(!error["error"].as_str().unwrap().is_empty(), "{error}");
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(exit.out, "");
    }
}

#[tokio::test]
async fn a_provider_that_asks_for_a_long_wait_is_told_with_the_setting_and_the_way_on() {
    let limited = Reply::error(429, "too many tokens").header("retry-after", "3600");
    let says = ["asks to wait 60 min", "`total_wait_s` under [patience]", "posse runs resume "];
    check(Script::always(limited), &["run", "x"], 1, &says).await;
}

#[tokio::test]
async fn a_limit_of_less_than_nothing_is_told_as_that_and_not_as_an_option() {
    check(Script::new(), &["run", "--max-cost", "-1", "x"], 2, &["more than 0, such as 0.50"])
        .await;
}

#[tokio::test]
async fn agents_of_the_command_line_that_are_no_json_are_told_by_their_place() {
    let world = World::saying("done").await;
    let exit = world.run(&["run", "--agents", "{x}", "y"]).await.expect(2);
    assert!(exit.err.contains("--agents:1:2: "), "{}", exit.err);
    assert!(!exit.err.contains("agents: agents"), "{}", exit.err);
}
