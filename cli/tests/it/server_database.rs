//! A database on a PostgreSQL server, in place of a file.

use crate::world::{World, started};
use posse_testkit::postgres::{Database, Server};
use posse_testkit::{Reply, Script};

/// A world with a database of its own on the shared server.
async fn world(script: Script) -> (World, Database) {
    (World::new(script).await, Server::shared().database())
}

fn with(world: &World, database: &Database, arguments: &[&str]) -> tokio::process::Command {
    let mut command = world.command(arguments);
    command.env("POSSE_DB", database.url());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_kept_on_a_server_that_an_option_a_variable_or_the_settings_name() {
    let (world, database) = world(Script::always(Reply::text("It is done."))).await;
    let url = database.url();
    let run = world.run(&["--db", &url, "run", "one"]).await.expect(0);
    assert_eq!(run.out.trim(), "It is done.");
    started(with(&world, &database, &["run", "two"])).end().await.expect(0);
    let settings = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, format!("database = \"{url}\"\n")).unwrap();
    world.run(&["run", "three"]).await.expect(0);
    assert_eq!(world.list().await.len(), 3);
    assert!(!world.database().exists(), "nothing is in a file");
    let config = world.run(&["config", "--json"]).await.expect(0).json();
    let row = &config["settings"]["database"];
    assert_eq!(row["origin"], "your settings", "{row}");
    // A project cannot choose where runs are kept.
    std::fs::remove_file(&settings).unwrap();
    world.write("posse.toml", &format!("database = \"{url}\"\n"));
    let told = world.run(&["run", "four"]).await;
    assert_eq!(database.text("SELECT count(*) FROM posse.runs"), "3", "{} {}", told.out, told.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_neither_shown_nor_stored() {
    let (world, database) = world(Script::always(Reply::text("The word is hunter2hunter2."))).await;
    let url = database.url().replace("user=posse", "user=posse&password=hunter2hunter2");
    for arguments in [
        &["--db", &url, "run", "say hunter2hunter2"][..],
        &["--db", &url, "config", "--json"],
        &["--db", &url, "daemon", "status", "--json"],
        &["--db", &url.replace(database.name(), "nowhere"), "runs", "list"],
        &["--db", &url, "doctor", "--rebuild"],
    ] {
        let exit = world.run(arguments).await;
        let said = format!("{}{}", exit.out, exit.err);
        assert!(!said.contains("hunter2hunter2"), "{arguments:?}: {said}");
    }
    assert_eq!(database.text("SELECT count(*) FROM posse.runs"), "1");
    let stored = database.text("SELECT count(*) FROM posse.events WHERE body LIKE '%hunter2%'");
    assert_eq!(stored, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_used_is_named_with_the_reason() {
    let (world, database) = world(Script::always(Reply::text("no"))).await;
    let missing = database.url().replace(database.name(), "nowhere");
    for (url, code, parts) in [
        (missing.as_str(), 6, &["/nowhere ", "does not exist"][..]),
        ("postgres:///d?host=/nowhere/at/all&user=posse", 6, &["/nowhere/at/all"]),
        ("postgres://u@db.example/d?sslmode=disable", 6, &["verify-full"]),
        ("postgres://u@local host:x/d", 6, &["cannot be read"]),
    ] {
        let exit = world.run(&["--db", url, "run", "x"]).await.expect(code);
        for part in parts {
            assert!(exit.err.contains(part), "{url}: {}", exit.err);
        }
    }
    let exit = world.run(&["--db", &database.url(), "doctor", "--rebuild"]).await.expect(2);
    assert!(exit.err.contains("is on a server"), "{}", exit.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_executes_runs_of_a_server() {
    let (world, database) = world(Script::always(Reply::text("It is done."))).await;
    let posse = async |arguments: &[&str]| started(with(&world, &database, arguments)).end().await;
    let begun = posse(&["run", "--background", "work on", "--json"]).await.expect(0).json();
    let run = begun["run"].as_str().unwrap().to_owned();
    let ended = posse(&["runs", "watch", &run, "--json"]).await;
    let shown = posse(&["runs", "show", &run, "--json"]).await.expect(0);
    posse(&["daemon", "stop"]).await.expect(0);
    assert_eq!(shown.json()["status"], "completed", "{} {}", ended.out, ended.err);
}
