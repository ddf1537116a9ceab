//! What Posse says to do next works as it is printed.

use crate::world::{World, bash};
use posse_testkit::Script;

/// The command between backticks in the line of `text` that has `before` in it.
fn printed(text: &str, before: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.contains(before));
    let line = line.unwrap_or_else(|| panic!("no line has {before:?}: {text}"));
    let command = line.split('`').nth(1).unwrap_or_else(|| panic!("no command: {line}"));
    let words = command.strip_prefix("posse ").unwrap();
    let mut quoted = false;
    let parts = words.split(|it: char| {
        quoted ^= it == '"';
        it == ' ' && !quoted
    });
    parts.map(|part| part.trim_matches('"').to_owned()).collect()
}

#[tokio::test]
async fn a_run_at_a_limit_continues_with_the_command_that_is_printed() {
    for (limit, code) in [
        (&["--max-turns", "1"][..], 5),
        (&["--budget", "turns=1"], 7),
        (&["--budget", "input_tokens=3000"], 7),
    ] {
        let world = World::new(Script::always(bash("true"))).await;
        let exit = world.run(&[&["run"], limit, &["x"]].concat()).await.expect(code);
        let command = printed(&exit.err, "to continue it");
        let turns = world.list().await[0]["turns"].as_u64().unwrap();
        let again: Vec<&str> = command.iter().map(String::as_str).collect();
        assert_eq!(again[..2], ["runs", "resume"], "{limit:?}");
        // It works as far as the same limit lets it.
        world.run(&again).await.expect(code);
        assert!(world.list().await[0]["turns"].as_u64().unwrap() >= turns, "{limit:?}");
    }
}

#[tokio::test]
async fn nothing_is_deleted_without_a_confirmation() {
    let world = World::saying("the answer").await;
    world.run(&["run", "an old task"]).await.expect(0);
    let run = world.only_run().await;
    for arguments in [
        &["runs", "prune", "--older-than", "0d"][..],
        &["runs", "prune", "--older-than", "0d", "--json"],
    ] {
        let exit = world.run(arguments).await.expect(2);
        assert!(exit.err.contains("1 run would be deleted for good"), "{}", exit.err);
        assert!(exit.err.contains("--yes"), "{}", exit.err);
        world.run(&["runs", "log", &run]).await.expect(0);
    }
    world.run(&["runs", "prune", "--older-than", "0d", "--yes"]).await.expect(0);
    world.run(&["runs", "log", &run]).await.expect(1);
}

#[tokio::test]
async fn resuming_all_says_which_runs_it_leaves_alone() {
    let world = World::saying("done").await;
    let run = world.run(&["run", "--background", "a task"]).await.expect(0).out;
    world.run(&["runs", "pause", run.trim()]).await.expect(0);
    let exit = world.run(&["runs", "resume", "--all"]).await.expect(0);
    assert!(exit.err.contains("not resumed: 1 paused run"), "{}", exit.err);
    let command = printed(&exit.err, "not resumed");
    let again: Vec<&str> = command.iter().map(String::as_str).collect();
    let exit = world.run(&again).await.expect(0);
    assert!(exit.out.contains("completed"), "{exit:?}");
}

#[tokio::test]
async fn every_mistake_on_the_command_line_has_an_error_and_a_hint() {
    let world = World::saying("x").await;
    for (line, error, hint) in [
        (&["runs", "lst"][..], "`posse runs` has no command `lst`", "`posse runs list`"),
        (&["run", "--mode", "aks", "x"], "invalid value 'aks'", "did you mean `ask`?"),
        (&["runs", "show"], "required arguments", "`posse runs show --help`"),
        (&["-v"], "has no option `-v`", "`-V`"),
        (&["config", "set", "model", "haiku"], "has no command `set`", "`posse config path`"),
        (&["login"], "`login` is not a command", "ANTHROPIC_API_KEY"),
    ] {
        let exit = world.run(line).await.expect(2);
        let (first, second) = exit.err.split_once('\n').unwrap();
        assert!(first.starts_with("error: ") && first.contains(error), "{line:?}: {}", exit.err);
        assert!(
            second.trim_start().starts_with("hint: ") && second.contains(hint),
            "{line:?}: {}",
            exit.err
        );
        let json = world.run(&[&["--json"], line].concat()).await.expect(2).err;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(json["error"].as_str().unwrap().contains(error), "{line:?}: {json}");
        assert!(json["hint"].as_str().unwrap().contains(hint), "{line:?}: {json}");
    }
    assert_eq!(world.fake.count(), 0);
}

#[tokio::test]
async fn settings_are_shown_with_all_their_values() {
    let world = World::saying("x").await;
    let settings = "[skills]\ndeny = [\"deploy-*\"]\n\n[aliases]\nquick = \"anthropic/claude-x\"\n";
    let folder = world.home().join("config/posse");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let shown = world.run(&["config"]).await.expect(0).out;
    let value = |key: &str| {
        let line = shown.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("no {key}: {shown}")).to_owned()
    };
    assert!(value("skills.deny").contains("deploy-*"), "{shown}");
    assert!(value("aliases.quick").contains("anthropic/claude-x"), "{shown}");
    assert!(value("command.variables").contains("[]"), "{shown}");
}

#[tokio::test]
async fn a_watched_run_shows_the_time_that_the_run_took() {
    let world =
        World::new(Script::turns([bash("sleep 1.2"), posse_testkit::Reply::text("done")])).await;
    world.run(&["run", "wait a little"]).await.expect(0);
    let run = world.only_run().await;
    let shown = world.run(&["runs", "watch", &run]).await.expect(0).err;
    let totals = shown.lines().find(|line| line.contains("✓ 2 turns")).expect("totals");
    assert!(!totals.contains("ms"), "{totals}");
}

#[tokio::test]
async fn a_database_in_a_folder_that_does_not_exist_is_refused() {
    let world = World::saying("x").await;
    for arguments in [&["run", "--db", "nope/x.db", "x"][..], &["--db", "nope/x.db", "chat"]] {
        let exit = world.run(arguments).await.expect(2);
        assert!(exit.err.contains("the folder nope of --db does not exist"), "{}", exit.err);
    }
    assert!(!world.work().join("nope").exists());
    world.run(&["run", "--db", "x.db", "x"]).await.expect(0);
    assert!(world.work().join("x.db").exists());
}

#[tokio::test]
async fn a_mistyped_address_of_a_database_is_refused_without_its_password() {
    let world = World::saying("x").await;
    let check = |exit: crate::world::Exit| {
        let exit = exit.expect(2);
        assert!(exit.err.contains("write postgres://USER@HOST:PORT/DATABASE"), "{}", exit.err);
        assert!(!format!("{exit:?}").contains("s3cret"), "{exit:?}");
    };
    for address in [
        "postgres:/ada:s3cret@db/posse",
        "postgres//ada:s3cret@db/posse",
        "Postgres://ada:s3cret@db/posse",
        "mysql://ada:s3cret@db/posse",
        "pg://ada:s3cret@db/posse",
        "host=db password=s3cret",
    ] {
        check(world.run(&["--db", address, "runs", "list"]).await);
        let mut command = world.command(&["run", "x"]);
        command.env("POSSE_DB", address);
        check(crate::world::started(command).end().await);
        check(world.run(&["--db", address, "config"]).await);
    }
    let names = std::fs::read_dir(world.work()).expect("a folder").flatten();
    let names: Vec<_> = names.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.contains("s3cret") || name.contains(':')), "{names:?}");
}

#[tokio::test]
async fn the_hint_about_another_model_repeats_the_message() {
    let world = World::saying("x").await;
    world.run(&["run", "x"]).await.expect(0);
    let run = world.only_run().await;
    let mut command = world.command(&["runs", "resume", &run, "what is this?"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let exit = crate::world::started(command).end().await.expect(2);
    let says = format!("posse run --resume {} --model MODEL 'what is this?'", &run[18..]);
    assert!(exit.err.contains(&says), "{}", exit.err);
}

#[tokio::test]
async fn a_manual_page_has_the_usual_sections() {
    let world = World::saying("x").await;
    let page = world.run(&["man"]).await.expect(0).out;
    for section in ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "ENVIRONMENT", "FILES"] {
        assert!(page.contains(&format!(".SH {section}\n")), "{section}: {page}");
    }
    assert!(page.contains(".SH \"EXIT STATUS\"\n") && page.contains(".SH \"SEE ALSO\"\n"));
    assert!(!page.contains("EXTRA") && !page.contains("posse\\-help"), "{page}");
}
