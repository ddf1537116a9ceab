//! A database on a PostgreSQL server, in place of a file.

use crate::world::{World, eventually, started};
use posse_testkit::postgres::{Database, Server};
use posse_testkit::{Gate, Reply, Script};
use serde_json::{Value, json};

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
async fn an_address_in_the_environment_is_shown_without_its_password() {
    let (world, database) = world(Script::always(Reply::text("The word is hunter2hunter2."))).await;
    let plain = started(with(&world, &database, &["db", "status", "--json"])).end().await.expect(0);
    let shown = plain.json()["database"].as_str().unwrap().to_owned();
    assert!(shown.starts_with("postgres://posse@"), "{shown}");
    let url = database.url().replace("user=posse", "user=posse&password=hunter2hunter2");
    let posse = async |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("POSSE_DB", &url);
        let exit = started(command).end().await.expect(0);
        assert!(!format!("{}{}", exit.out, exit.err).contains("hunter2"), "{arguments:?}");
        exit
    };
    posse(&["run", &format!("look into {url}")]).await;
    let left = url.replace("hunter2hunter2", "[redacted]");
    let kept =
        format!("SELECT count(*) > 0 FROM posse.events WHERE position('{left}' IN body) > 0");
    assert_eq!(database.text(&kept), "t", "only the password is left out");
    assert_eq!(posse(&["db", "status", "--json"]).await.json()["database"], shown);
    let config = posse(&["config"]).await;
    assert!(config.out.contains("postgres://") && !config.out.contains("[redacted]"), "{config:?}");
    let stored = database.text("SELECT count(*) FROM posse.events WHERE body LIKE '%hunter2%'");
    assert_eq!(stored, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_run_names_the_worker_that_it_waits_for() {
    let (world, database) = world(Script::always(Reply::text("It is done."))).await;
    call_it(&world, "near");
    let posse = async |arguments: &[&str]| started(with(&world, &database, arguments)).end().await;
    let waits = posse(&["run", "--background", "one"]).await.expect(0);
    let why = "It waits for a worker of the machine `near` that can call";
    assert!(waits.err.contains(why) && waits.err.contains("`posse worker`"), "{}", waits.err);
    assert!(!waits.err.contains("daemon"), "{}", waits.err);
    let worker = started(with(&world, &database, &["worker"]));
    worker.notes("executes runs").await;
    let taken = posse(&["run", "--background", "two"]).await.expect(0);
    assert!(taken.err.contains("is queued, and a worker executes it"), "{}", taken.err);
    for run in [&waits, &taken] {
        posse(&["runs", "watch", run.out.trim()]).await.expect(0);
    }
    rustix::process::kill_process(worker.id(), rustix::process::Signal::TERM).unwrap();
    worker.end().await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_used_is_named_with_the_reason() {
    let (world, database) = world(Script::always(Reply::text("no"))).await;
    let missing = database.url().replace(database.name(), "nowhere");
    for (url, code, parts) in [
        (missing.as_str(), 6, &["/nowhere?host=", "does not exist"][..]),
        ("postgres:///d?host=/nowhere/at/all&user=posse", 6, &["/nowhere/at/all"]),
        ("postgres://u@db.example/d?sslmode=disable", 6, &["verify-full"]),
        ("postgres://u@local host:x/d", 6, &["cannot be read"]),
        ("postgres://u@localhost/d?sslmod=disable", 6, &["`sslmod`", "`sslmode`?", "sslkey"]),
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
async fn a_database_without_all_characters_is_refused() {
    let (world, database) = world(Script::always(Reply::text("no"))).await;
    let name = format!("{}_latin", database.name());
    let create = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    database.execute(&format!("CREATE DATABASE {name} {create}"));
    let url = database.url().replace(database.name(), &name);
    let exit = world.run(&["--db", &url, "run", "hi"]).await;
    database.execute(&format!("DROP DATABASE {name} WITH (FORCE)"));
    let said = exit.expect(6).err;
    assert!(said.contains("its encoding is LATIN1") && said.contains("'UTF8'"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_the_server_refuses_ends_the_run_at_once() {
    let (world, database) = world(Script::always(Reply::text("Spoilt."))).await;
    started(with(&world, &database, &["runs", "list"])).end().await.expect(0);
    database.execute(
        "CREATE FUNCTION posse.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF NEW.body LIKE '%Spoilt%' THEN
                 RAISE 'no such character' USING ERRCODE = '22P05';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON posse.events
             FOR EACH ROW EXECUTE FUNCTION posse.refuse()",
    );
    let said = started(with(&world, &database, &["run", "hi"])).end().await.expect(1).err;
    assert!(said.contains("cannot store this: no such character"), "{said}");
    assert_eq!(world.fake.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_executes_runs_of_a_server() {
    let (world, database) = world(Script::always(Reply::text("It is done."))).await;
    let posse = async |arguments: &[&str]| started(with(&world, &database, arguments)).end().await;
    posse(&["daemon", "start"]).await.expect(0);
    let begun = posse(&["run", "--background", "work on", "--json"]).await.expect(0).json();
    let run = begun["run"].as_str().unwrap().to_owned();
    let ended = posse(&["runs", "watch", &run, "--json"]).await;
    let shown = posse(&["runs", "show", &run, "--json"]).await.expect(0);
    posse(&["daemon", "stop"]).await.expect(0);
    assert_eq!(shown.json()["status"], "finished", "{} {}", ended.out, ended.err);
}

/// Names the machine of a world.
fn call_it(world: &World, host: &str) {
    let settings = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, format!("host = \"{host}\"\n")).unwrap();
}

async fn status(world: &World, database: &Database, run: &str) -> Value {
    let show = ["runs", "show", run, "--json"];
    started(with(world, database, &show)).end().await.expect(0).json()["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_a_worker_of_its_machine_with_its_label() {
    let (near, database) = world(Script::always(Reply::text("It is done."))).await;
    let far = World::saying("It is done.").await;
    call_it(&near, "near");
    call_it(&far, "far");
    let posse = async |world: &World, arguments: &[&str]| {
        started(with(world, &database, arguments)).end().await
    };
    posse(&near, &["daemon", "start"]).await.expect(0);
    let begin = ["run", "--background", "--needs", "gpu", "work on", "--json"];
    let begun = posse(&near, &begin).await.expect(0).json();
    let run = begun["run"].as_str().unwrap().to_owned();
    let told = posse(&near, &["runs", "show", &run]).await.expect(0);
    let why = "waits for a worker of the machine `near` with the label `gpu` that can call";
    assert!(told.out.contains(why), "{}", told.out);
    // A worker of another machine leaves it, and so does one without the label.
    let elsewhere = started(with(&far, &database, &["worker", "--label", "gpu"]));
    elsewhere.notes("executes runs").await;
    let are_two = async || {
        let listed = posse(&far, &["workers", "--json"]).await.expect(0).json();
        listed.as_array().is_some_and(|all| all.len() == 2)
    };
    eventually("two workers", are_two).await;
    let listed = posse(&far, &["workers", "--json"]).await.expect(0).json();
    let hosts: Vec<&str> =
        listed.as_array().unwrap().iter().map(|it| it["host"].as_str().unwrap()).collect();
    assert!(hosts.contains(&"far") && hosts.contains(&"near"), "{listed}");
    assert_eq!(status(&far, &database, &run).await, "queued");
    let shown = posse(&far, &["runs", "show", &run]).await.expect(0).out;
    assert!(shown.contains("(on the machine `near`)"), "{shown}");
    let resumed = started(with(&far, &database, &["runs", "resume", &run]));
    resumed.notes("`posse worker --label gpu` on the machine `near`").await;
    resumed.signal(rustix::process::Signal::TERM);
    resumed.end().await.expect(130);
    let own = posse(&far, &["run", "another"]).await.expect(0);
    assert_eq!(own.out.trim(), "It is done.", "its own runs it executes");
    assert_eq!(status(&far, &database, &run).await, "queued");
    let here = started(with(&near, &database, &["worker", "--label", "gpu", "--slots", "2"]));
    here.notes("executes runs").await;
    posse(&far, &["runs", "watch", &run]).await.expect(0);
    assert_eq!(status(&far, &database, &run).await, "finished");
    for worker in [here, elsewhere] {
        rustix::process::kill_process(worker.id(), rustix::process::Signal::TERM).unwrap();
        worker.end().await.expect(0);
    }
    posse(&near, &["daemon", "stop"]).await.expect(0);
    let left = posse(&near, &["workers", "--json"]).await.expect(0).json();
    assert_eq!(left, json!([]), "none is alive");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_worker_takes_over_a_shared_folder_when_one_is_killed() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("It is done.").held_by(&gate));
    let (world, database) = world(script).await;
    let settings = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let shared = world.work().display().to_string();
    let on = |host: &str| {
        let text = format!("host = \"{host}\"\nshared_folders = [\"{shared}\"]\n");
        std::fs::write(&settings, text).unwrap();
    };
    let posse = async |arguments: &[&str]| started(with(&world, &database, arguments)).end().await;
    on("one");
    let first = started(with(&world, &database, &["worker", "--label", "x"]));
    first.notes("executes runs").await;
    let begin = ["run", "--background", "--needs", "x", "work on", "--json"];
    let begun = posse(&begin).await.expect(0).json();
    let run = begun["run"].as_str().unwrap().to_owned();
    world.fake.wait_for_requests(1).await.unwrap();
    rustix::process::kill_process(first.id(), rustix::process::Signal::KILL).unwrap();
    first.end().await;
    on("two");
    let second = started(with(&world, &database, &["worker", "--label", "x"]));
    second.notes("executes runs").await;
    gate.open();
    posse(&["runs", "watch", &run]).await.expect(0);
    assert_eq!(status(&world, &database, &run).await, "finished");
    rustix::process::kill_process(second.id(), rustix::process::Signal::TERM).unwrap();
    second.end().await.expect(0);
}

/// Runs move to a server and back. What is there already is passed over, and every run is verified.
#[tokio::test(flavor = "multi_thread")]
async fn runs_are_copied_between_a_file_and_a_server_and_go_on_there() {
    let (world, database) = world(Script::always(Reply::text("It is done."))).await;
    for task in ["one", "two"] {
        world.run(&["run", task]).await.expect(0);
    }
    let (file, url) = (world.database().display().to_string(), database.url());
    let copy = async |from: &str, to: &str| {
        world.run(&["db", "copy", from, to, "--json"]).await.expect(0).json()
    };
    let first = copy(&file, &url).await;
    assert_eq!((&first["copied"], &first["present"]), (&json!(2), &json!(0)), "{first}");
    world.run(&["run", "three"]).await.expect(0);
    let second = copy(&file, &url).await;
    assert_eq!((&second["copied"], &second["present"]), (&json!(1), &json!(2)), "{second}");
    let on_server = async |arguments: &[&str]| {
        started(with(&world, &database, arguments)).end().await.expect(0)
    };
    let here = world.run(&["runs", "list", "--json"]).await.expect(0).json();
    let mut there = on_server(&["runs", "list", "--json"]).await.json();
    for run in there.as_array_mut().unwrap() {
        // On the server, they are bound to this machine.
        assert!(run.as_object_mut().unwrap().remove("host").is_some(), "{run}");
    }
    assert_eq!(there, here);
    let cost = |exit: crate::world::Exit| exit.json()["total"].clone();
    let spent = cost(world.run(&["cost", "--json"]).await.expect(0));
    assert_eq!(cost(on_server(&["cost", "--json"]).await), spent);
    on_server(&["runs", "verify"]).await;
    // A conversation goes on where it was brought.
    on_server(&["run", "-c", "and now?"]).await;
    let again = world.run(&["db", "copy", &file, &url]).await.expect(1);
    assert!(again.err.contains("it went on after it was copied"), "{}", again.err);
    let back = world.home().join("back.db").display().to_string();
    let told = copy(&url, &back).await;
    assert_eq!(told["copied"], 3, "{told}");
    world.run(&["--db", &back, "runs", "verify"]).await.expect(0);
    let same = world.run(&["db", "copy", &back, &back]).await.expect(2);
    assert!(same.err.contains("the same database"), "{}", same.err);
}

/// A run that was changed in the file does not reach the server, and the others do.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_run_is_not_copied() {
    let (world, database) = world(Script::always(Reply::text("It is done."))).await;
    for task in ["unicorn", "two"] {
        world.run(&["run", task]).await.expect(0);
    }
    let changed = std::process::Command::new("python3")
        .arg("-c")
        .arg(
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
             c.execute('UPDATE events SET body = replace(body, ?, ?)', ('unicorn', 'horse')); c.commit()",
        )
        .arg(world.database())
        .output()
        .unwrap();
    assert!(changed.status.success(), "{changed:?}");
    let file = world.database().display().to_string();
    let told = world.run(&["db", "copy", &file, &database.url(), "--json"]).await.expect(1).json();
    assert_eq!((&told["copied"], told["left"].as_array().unwrap().len()), (&json!(1), 1), "{told}");
    assert_eq!(database.text("SELECT count(*) FROM posse.runs"), "1");
    let said = world.run(&["db", "copy", &file, &database.url()]).await.expect(1).err;
    let run = told["left"][0]["run"].as_str().unwrap();
    for part in [
        &format!("not copied: {run}: it is damaged: event"),
        &format!("`posse --db {file} runs verify {run}`"),
        &format!("`posse --db {file} doctor --rebuild`"),
    ] {
        assert!(said.contains(part.as_str()), "{part}: {said}");
    }
}

/// The server wants a password from this user.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_password_is_told_by_its_source() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rules.path(), "local all posse trust\nlocal all keyed scram-sha-256\n").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(rules.path(), open).unwrap();
    let server = Server::alone_with(&[&format!("hba_file={}", rules.path().display())]);
    let (world, database) = (World::saying("no").await, server.database());
    database.execute("CREATE ROLE keyed LOGIN SUPERUSER PASSWORD 'hunter2hunter2'");
    let url = database.url().replace("user=posse", "user=keyed");
    let list = async |password: Option<&str>| {
        let mut command = world.command(&["--db", &url, "runs", "list"]);
        command.envs(password.map(|it| ("PGPASSWORD", it)));
        started(command).end().await
    };
    let pgpass = world.home().join(".pgpass");
    let write = |text: &str, mode| {
        std::fs::write(&pgpass, text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&pgpass, mode).unwrap();
    };
    let refused = async |password: Option<&str>, part: &str| {
        let said = list(password).await.expect(6).err;
        assert!(said.contains(part) && !said.contains("hunter"), "{part}: {said}");
    };
    refused(None, "Posse has no password for it: put it into PGPASSWORD").await;
    refused(Some("hunter3hunter3"), "the password in PGPASSWORD was used").await;
    write("*:*:*:keyed:hunter2hunter2\n", 0o644);
    refused(None, "because other users may read it: `chmod 600").await;
    write("*:*:*:keyed:hunter3hunter3\n", 0o600);
    refused(None, ".pgpass was used; correct it there").await;
    write("*:*:*:keyed:hunter2hunter2\n", 0o600);
    list(None).await.expect(0);
    let settings = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let file = world.home().join("password");
    std::fs::write(&file, "").unwrap();
    std::fs::write(&settings, format!("[postgres]\npassword_file = \"{}\"\n", file.display()))
        .unwrap();
    refused(None, "which must contain its password, is empty").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_which_of_its_agents_are_unknown_here() {
    let (world, database) = world(Script::always(Reply::text("no"))).await;
    std::fs::create_dir_all(world.work().join(".posse/agents")).unwrap();
    world.write(".posse/agents/reviewer.md", "---\ndescription: Reviews\n---\nReview.\n");
    let arguments = ["worker", "--agent", "reviewer", "--agent", "reviewr"];
    let worker = started(with(&world, &database, &arguments));
    worker.notes("executes runs").await;
    worker.signal(rustix::process::Signal::TERM);
    let said = worker.end().await.expect(0).err;
    assert!(said.contains("no agent `reviewr`") && said.contains("mean `reviewer`?"), "{said}");
    assert!(!said.contains("no agent `reviewer`"), "{said}");
}

/// The status of a database is shown without changing it; a migration creates or updates its tables.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_shown_as_it_is_and_migrated_on_request() {
    let (world, database) = world(Script::always(Reply::text("It is done."))).await;
    let none = world.run(&["db", "status"]).await;
    assert!(none.err.contains("does not exist"), "{}", none.err);
    let (file, url) = (world.database().display().to_string(), database.url());
    for place in [&file, &url] {
        let told = async |verb: &str| {
            world.run(&["--db", place, "db", verb, "--json"]).await.expect(0).json()
        };
        if *place == url {
            assert_eq!(told("status").await["schema"], 0);
            let tables = "SELECT count(*) FROM pg_namespace WHERE nspname = 'posse'";
            assert_eq!(database.text(tables), "0", "looking creates nothing");
        }
        let made = told("migrate").await;
        assert_eq!((&made["before"], &made["schema"]), (&json!(0), &made["known"]), "{made}");
        world.run(&["--db", place, "run", "one"]).await.expect(0);
        let now = told("status").await;
        assert_eq!((&now["runs"], &now["unfinished"]), (&json!(1), &json!(0)), "{now}");
        assert!(now["bytes"].as_u64().unwrap() > 0, "{now}");
        assert_eq!(told("migrate").await["before"], now["known"]);
        world.run(&["--db", place, "db", "verify"]).await.expect(0);
        let shown = world.run(&["--db", place, "db", "status"]).await.expect(0);
        assert!(shown.out.contains("up to date"), "{}", shown.out);
    }
    // A development version created the tables.
    database.text("UPDATE posse.marks SET number = 7 WHERE name = 'schema'");
    let older = world.run(&["--db", &url, "db", "status"]).await.expect(0);
    assert!(older.out.contains("7, of a development version"), "{}", older.out);
    let refused = world.run(&["--db", &url, "db", "migrate"]).await;
    assert!(refused.err.contains("before the first release"), "{}", refused.err);
    // A newer version created the tables.
    database.text("UPDATE posse.marks SET number = 99 WHERE name = 'schema'");
    let newer = world.run(&["--db", &url, "db", "status"]).await.expect(0);
    assert!(newer.out.contains("99, newer than the"), "{}", newer.out);
    let refused = world.run(&["--db", &url, "db", "migrate"]).await;
    assert!(refused.code != Some(0) && refused.err.contains("newer"), "{}", refused.err);
}

/// Another user who can replace a folder on the way could decide what git does in the copies of
/// repositories.
#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_runs_are_kept_only_where_nobody_else_can_replace_them() {
    use std::os::unix::fs::PermissionsExt;
    let (world, database) = world(Script::always(Reply::text("no"))).await;
    let shared = world.folder.path().join("shared");
    std::fs::create_dir_all(shared.join("data")).unwrap();
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o777)).unwrap();
    for arguments in [&["run", "x"][..], &["runs", "list"], &["worker"]] {
        let mut command = with(&world, &database, arguments);
        command.env("XDG_DATA_HOME", shared.join("data"));
        let said = started(command).end().await.expect(2).err;
        assert!(said.contains("may replace what is in the folder"), "{arguments:?}: {said}");
        assert!(said.contains("the files of runs cannot be kept"), "{said}");
    }
}

/// The password of a server stays secret, also while a file is the database.
#[tokio::test]
async fn files_with_passwords_of_a_server_are_hidden_whatever_the_database_is() {
    let read = |name: &str| Reply::tool_call("Read", json!({"file_path": name}));
    let replies = [read("password"), read("pgpass"), Reply::text("done")];
    let world = World::new(Script::turns(replies)).await;
    let password = world.write("password", "hunter2hunter2");
    let pgpass = world.write("pgpass", "*:*:*:keyed:hunter2hunter2");
    let settings = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let text = format!("[postgres]\npassword_file = \"{}\"\n", password.display());
    std::fs::write(&settings, text).unwrap();
    let mut command = world.command(&["run", "--stream-json", "x"]);
    command.env("PGPASSFILE", pgpass);
    let said = started(command).end().await.expect(0).out;
    assert!(said.contains("pgpass") && !said.contains("hunter2"), "{said}");
}
