//! `posse config`, `completions`, `fake-model` and `--version`.

use crate::world::{World, bash, started};
use posse_testkit::{Reply, Script};
use rustix::process::Signal;
use serde_json::json;

fn user_file(world: &World, text: &str) -> std::path::PathBuf {
    let folder = world.home().join("config/posse");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
    folder.join("config.toml")
}

#[tokio::test]
async fn config_shows_each_value_and_where_it_came_from() {
    let world = World::saying("x").await;
    let user = user_file(&world, "model = \"haiku\"\nmax_concurrent = 3\n[limits]\ncost = 2.5\n");
    let project = world.write("posse.toml", "model = \"opus\"\n[limits]\nturns = 7\n");
    world.run(&["trust", "--yes"]).await.expect(0);
    let config = world.run(&["config", "--json"]).await.expect(0).json();
    let settings = &config["settings"];
    assert_eq!(settings["model"], json!({"value": "opus", "origin": project}));
    assert_eq!(settings["max_concurrent"], json!({"value": 3, "origin": user}));
    assert_eq!(settings["limits.turns"], json!({"value": 7, "origin": project}));
    assert_eq!(settings["limits.cost"], json!({"value": 2.5, "origin": user}));
    assert_eq!(settings["recovery"], json!({"value": "continue", "origin": "default"}));
    assert_eq!(settings["ANTHROPIC_API_KEY"], json!({"value": "set", "origin": "environment"}));
    assert_eq!(settings["database"]["value"], json!(world.database()));
    let text = world.run(&["config"]).await.expect(0);
    assert!(!text.out.contains("sk-test") && !text.err.contains("sk-test"));
    let line = text.out.lines().find(|line| line.starts_with("limits.turns")).unwrap();
    assert!(line.contains(" 7 ") && line.ends_with(&format!("({})", project.display())), "{line}");
    assert!(text.err.contains(&format!("your settings: {} (read)", user.display())));
}

#[tokio::test]
async fn names_of_nothing_in_what_children_may_have_are_shown() {
    let world = World::saying("x").await;
    user_file(&world, "[subagents]\nallowed_agents = [\"nobody\"]\ntools = { allow = [\"Raed\"] }");
    let config = world.run(&["config"]).await.expect(0);
    assert!(config.err.contains("warning: ") && config.err.contains("`Raed`"), "{}", config.err);
    let json = world.run(&["config", "--json"]).await.expect(0).json();
    assert!(json["warnings"][0].as_str().unwrap().contains("`Raed`"), "{json}");
    let check = world.run(&["agents", "check"]).await.expect(0);
    let told = format!("{}{}", check.out, check.err);
    assert!(told.contains("`subagents.allowed_agents` names `nobody`"), "{told}");
    user_file(&world, "[subagents.tools]\ndeny = [\"Bsah\"]");
    for arguments in [&["config"][..], &["run", "x"]] {
        let wrong = world.run(arguments).await.expect(2);
        assert!(wrong.err.contains("names `Bsah`, which is not a tool"), "{}", wrong.err);
    }
}

#[tokio::test]
async fn the_model_that_a_key_brings_is_named() {
    let world = World::saying("x").await;
    let config = world.run(&["config", "--json"]).await.expect(0).json();
    let model = &config["settings"]["model"];
    assert_eq!(model["value"], "anthropic/claude-sonnet-5-5");
    assert_eq!(model["origin"], "ANTHROPIC_API_KEY is set");
    let mut command = world.command(&["config"]);
    command.env_remove("ANTHROPIC_API_KEY").env("GROQ_API_KEY", "gsk-very-secret");
    let config = started(command).end().await.expect(0).out;
    assert!(config.contains("groq/openai/gpt-oss-120b") && !config.contains("very-secret"));
    assert!(!config.contains("ANTHROPIC_API_KEY"), "{config}");
}

#[tokio::test]
async fn a_project_may_not_set_what_belongs_to_the_user() {
    let world = World::saying("x").await;
    for (line, key) in [
        ("max_concurrent = 99", "max_concurrent"),
        ("recovery = \"wait\"", "recovery"),
        ("durability = \"process\"", "durability"),
        ("[patience]\nretries = 99", "patience"),
        ("[vendors.anthropic]\nbase_url = \"http://127.0.0.1:9\"", "vendors"),
        ("[models.\"anthropic/x\"]\nwindow = 9", "models"),
        ("[aliases]\nsonnet = \"groq/x\"", "aliases"),
    ] {
        world.write("posse.toml", line);
        for arguments in [&["config"][..], &["run", "x"]] {
            let exit = world.run(arguments).await.expect(2);
            assert!(exit.err.contains(&format!("a project may not set `{key}`")), "{}", exit.err);
            assert!(exit.err.contains("config/posse/config.toml"), "{}", exit.err);
        }
    }
}

#[tokio::test]
async fn an_agent_of_a_project_may_only_look() {
    let world = World::saying("x").await;
    let agent = "[agents.helper]\ndescription = \"d\"\ninstructions = \"i\"\n";
    world.write("posse.toml", &format!("{agent}tools = [\"Bash\"]\n"));
    let exit = world.run(&["run", "--agent", "helper", "x"]).await.expect(2);
    assert!(exit.err.contains("agent `helper` cannot be used"), "{}", exit.err);
    assert!(
        exit.err.contains("posse.toml:1") && exit.err.contains("no read-only tool"),
        "{}",
        exit.err
    );
    world.write("posse.toml", &format!("{agent}tools = [\"Read\"]\n"));
    world.run(&["run", "--agent", "helper", "x"]).await.expect(0);
}

#[tokio::test]
async fn a_settings_file_that_cannot_be_read_names_its_line() {
    let world = World::saying("x").await;
    for (text, says) in [
        ("model = \"a\"\nmodel = ", "posse.toml:2:"),
        ("[limits]\n\nturn = 3\n", "posse.toml:3:1: unknown key `turn`; did you mean `turns`?"),
        (
            "[limits]\ntime = \"10 minutes\"\n",
            "posse.toml:2:1: in [limits]: `time`: `10 minutes` is not",
        ),
        ("[limits]\ncost = -1\n", "cost"),
    ] {
        let path = world.write("posse.toml", text);
        let exit = world.run(&["config"]).await.expect(2);
        assert!(exit.err.contains(path.to_str().unwrap()), "{}", exit.err);
        assert!(exit.err.contains(says), "{says}: {}", exit.err);
    }
}

#[tokio::test]
async fn limits_of_the_settings_hold_and_flags_stand_above_them() {
    let world = World::new(posse_testkit::Script::always(crate::world::bash("true"))).await;
    world.write("posse.toml", "[limits]\nturns = 1\n");
    let exit = world.run(&["run", "--json", "x"]).await.expect(5);
    assert_eq!(exit.json()["turns"], 1);
    let exit = world.run(&["run", "--json", "--max-turns", "3", "x"]).await.expect(5);
    assert_eq!(exit.json()["turns"], 3);
}

#[tokio::test]
async fn completions_are_there_for_every_shell() {
    let world = World::saying("x").await;
    for (shell, holds) in
        [("bash", "_posse()"), ("zsh", "#compdef posse"), ("fish", "complete -c posse")]
    {
        let exit = world.run(&["completions", shell]).await.expect(0);
        assert!(exit.out.contains(holds) && exit.out.contains("max-turns"), "{shell}");
        assert_eq!(exit.err, "");
        let json = world.run(&["completions", shell, "--json"]).await.expect(0).json();
        assert_eq!(json["script"], exit.out);
    }
    world.run(&["completions", "csh"]).await.expect(2);
}

#[tokio::test]
async fn every_command_has_a_manual_page() {
    let world = World::saying("x").await;
    let page = world.run(&["man", "runs", "list"]).await.expect(0).out;
    assert!(page.contains("posse\\-runs\\-list") && page.contains("\\-\\-status"), "{page}");
    let folder = world.folder.path().join("man");
    let told = world.run(&["man", "--out", folder.to_str().unwrap()]).await.expect(0).err;
    let written = std::fs::read_dir(&folder).unwrap().count();
    assert!(written > 40 && told.contains(&format!("{written} manual pages")), "{told}");
    assert!(folder.join("posse-runs-show.1").exists());
    let exit = world.run(&["man", "nothing"]).await.expect(2);
    assert!(exit.err.contains("`nothing` is not a command"), "{}", exit.err);
}

#[tokio::test]
async fn the_version_is_that_of_the_package() {
    let world = World::saying("x").await;
    let exit = world.run(&["--version"]).await.expect(0);
    assert_eq!(exit.out, format!("posse {}\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn the_fake_model_serves_a_script_to_another_posse() {
    let world = World::saying("not this one").await;
    world.write("script.toml", "[[rule]]\n[[rule.reply]]\ntext = \"from the script\"\n");
    let fake = world.start(&["fake-model", "--script", "script.toml", "--json"]);
    fake.says("\n").await;
    let url: serde_json::Value = serde_json::from_str(&fake.said()).unwrap();
    let mut command = world.command(&["run", "x"]);
    command.env("ANTHROPIC_BASE_URL", url["url"].as_str().unwrap());
    assert_eq!(started(command).end().await.expect(0).out, "from the script\n");
    fake.signal(Signal::TERM);
    let exit = fake.end().await.expect(0);
    assert!(exit.err.contains("1 request"), "{}", exit.err);
}

#[tokio::test]
async fn a_script_that_cannot_be_played_names_its_line() {
    let world = World::saying("x").await;
    world.write("bad.toml", "[[rule]]\n\n[[rule.reply]]\ntxt = \"typo\"\n");
    let exit = world.run(&["fake-model", "--script", "bad.toml"]).await.expect(2);
    assert!(exit.err.contains("bad.toml: line "), "{}", exit.err);
    let exit = world.run(&["fake-model", "--script", "nowhere.toml"]).await.expect(2);
    assert!(exit.err.contains("cannot read nowhere.toml"), "{}", exit.err);
    world.write("good.toml", "[[rule]]\n[[rule.reply]]\ntext = \"x\"\n");
    let listen = ["fake-model", "--script", "good.toml", "--listen", "0.0.0.0:0"];
    let exit = world.run(&listen).await.expect(2);
    assert!(exit.err.contains("not a loopback address") && exit.err.contains("hint: "));
}

#[tokio::test]
async fn the_files_that_are_read_are_listed() {
    let world = World::saying("x").await;
    world.write("posse.toml", "");
    let user = world.home().join("config/posse/config.toml");
    let list = world.run(&["config", "path"]).await.expect(0).out;
    let line = |what: &str| list.lines().find(|line| line.starts_with(what)).unwrap().to_owned();
    assert!(line("your settings").contains("does not exist"), "{list}");
    assert!(line("your settings").ends_with(&user.display().to_string()), "{list}");
    assert!(!line("project settings").contains("does not exist"), "{list}");
    let json = world.run(&["config", "path", "--json"]).await.expect(0).json();
    assert_eq!(json[0]["path"], user.display().to_string());
    let quiet = world.run(&["config", "path", "-q"]).await.expect(0).out;
    assert_eq!(quiet.lines().next(), Some(user.display().to_string().as_str()));
    assert!(world.run(&["config"]).await.expect(0).out.contains("database"));
}

#[tokio::test]
async fn a_mistake_in_a_settings_file_is_named() {
    let world = World::saying("x").await;
    for (text, says) in [
        (
            "[limits]\ntime = \"10 minutes\"\n",
            "config.toml:2:1: in [limits]: `time`: `10 minutes` is not a duration",
        ),
        (
            "anthropic_api_key = \"sk-1\"\n",
            "keys come from the environment. Set the variable ANTHROPIC_API_KEY",
        ),
    ] {
        let path = user_file(&world, text);
        let exit = world.run(&["config"]).await.expect(2);
        assert!(exit.err.contains(says), "{}", exit.err);
        assert!(exit.err.contains(&path.display().to_string()), "{}", exit.err);
        assert!(!exit.err.contains("sk-1"), "{}", exit.err);
    }
}

#[tokio::test]
async fn an_address_in_use_is_named_once() {
    let world = World::saying("x").await;
    let taken = world.fake.url().trim_start_matches("http://").to_owned();
    world.write("script.toml", "[[rule]]\n[[rule.reply]]\ntext = \"x\"\n");
    let exit = world.run(&["fake-model", "--script", "script.toml", "--listen", &taken]).await;
    assert_eq!(exit.code, Some(2), "{exit:?}");
    assert_eq!(exit.err.matches("cannot listen on").count(), 1, "{}", exit.err);
}

/// Commands see where toolchains are, and what the user names besides; nothing else, and no key.
#[tokio::test]
async fn commands_see_the_variables_that_the_user_names() {
    let command = "echo $JAVA_HOME,$MY_SERVICE,$OTHER,$ANTHROPIC_API_KEY,$GIT_EDITOR";
    let script = Script::turns([bash(command), Reply::text("{{last_tool_result}}")]);
    let world = World::new(script).await;
    let names = "[command]\nvariables = [\"MY_SERVICE\", \"ANTHROPIC_API_KEY\"]\n";
    user_file(&world, names);
    let mut run = world.command(&["run", "x"]);
    run.env("JAVA_HOME", "/jdk").env("MY_SERVICE", "here").env("OTHER", "secret");
    let said = started(run).end().await.expect(0).out;
    assert!(said.contains("/jdk,here,,,true"), "{said}");

    world.write("posse.toml", names);
    let refused = world.run(&["run", "x"]).await.expect(2);
    assert!(refused.err.contains("command.variables"), "{refused:?}");
    std::fs::remove_file(world.work().join("posse.toml")).unwrap();
    for wrong in ["LD_PRELOAD", "A=b", "POSSE_DB", ""] {
        user_file(&world, &format!("[command]\nvariables = [\"{wrong}\"]\n"));
        let refused = world.run(&["run", "x"]).await.expect(2);
        assert!(refused.err.contains("cannot be passed on"), "{wrong}: {refused:?}");
    }
}

#[tokio::test]
async fn settings_that_are_a_pipe_or_have_no_end_are_an_error_and_no_wait() {
    let world = World::saying("x").await;
    let file = world.work().join("posse.toml");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    let exit = world.run(&["config"]).await.expect(2);
    assert!(exit.err.contains("posse.toml") && exit.err.contains("not a file"), "{}", exit.err);
    std::fs::remove_file(&file).unwrap();
    std::fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    let exit = world.run(&["config"]).await.expect(2);
    assert!(exit.err.contains("larger than 1048576 bytes"), "{}", exit.err);
}

/// A mistake in the settings keeps nobody from looking at what runs, and from stopping it.
#[tokio::test]
async fn runs_are_shown_and_stopped_in_spite_of_a_mistake_in_the_settings() {
    let world = World::saying("x").await;
    let kept = "database = \"~/kept.db\"\n".replace('~', world.home().to_str().unwrap());
    user_file(&world, &kept);
    world.run(&["run", "--background", "--label", "work", "x"]).await.expect(0);
    for mistake in ["[limits]\ncots = 1\n", "max_concurrent = 0\n", "[budget]\ncost = \"much\"\n"] {
        user_file(&world, &format!("{kept}{mistake}"));
        for look in [&["runs", "list"][..], &["cost"], &["audit", "list"], &["workers"]] {
            let said = world.run(look).await.expect(0);
            assert_eq!(said.err.matches("warning: ").count(), 1, "{look:?}: {said:?}");
            assert!(said.err.contains("config.toml"), "{said:?}");
        }
        let list = world.run(&["runs", "list"]).await.expect(0).out;
        assert!(list.contains("work"), "{mistake}: {list}");
        world.run(&["run", "x"]).await.expect(2);
        world.run(&["daemon", "status"]).await.expect(1);
    }
    world.run(&["runs", "cancel", "work"]).await.expect(0);
    // It is not known which database this text names.
    user_file(&world, &format!("{kept}[limits\n"));
    world.run(&["runs", "list"]).await.expect(2);
    let database = world.home().join("kept.db");
    let named = ["--db", database.to_str().unwrap(), "runs", "list", "--all"];
    assert!(world.run(&named).await.expect(0).out.contains("work"));
    user_file(&world, "[limits\n");
    world.run(&["runs", "list"]).await.expect(0);
}
