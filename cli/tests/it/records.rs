//! `posse runs verify` and `export`.

use crate::world::{World, bash, mode};
use posse::store::{Append, Logs, Options, SqliteStore, Store};
use posse_protocol::{Event, Record, SCHEMA_VERSION, Seq};
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use serde_json::json;
use sqlx::{Connection, Executor, SqliteConnection};

/// Changes the database behind the back of everyone.
pub async fn sql(world: &World, statement: &str) {
    let path = format!("sqlite://{}", world.database().display());
    let mut connection = SqliteConnection::connect(&path).await.unwrap();
    connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    connection.close().await.unwrap();
}

/// Changes rows by `there`, and back by `back` without their index being told: the rows are as they were,
/// and the index leads astray.
pub async fn blind(world: &World, index: &str, there: &str, back: &str) {
    sql(world, there).await;
    let hide = "CREATE TABLE hidden AS SELECT * FROM sqlite_schema WHERE name = 'INDEX'; \
                PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'INDEX'";
    sql(world, &hide.replace("INDEX", index)).await;
    sql(world, back).await;
    let show = "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM hidden";
    sql(world, show).await;
    sql(world, "DROP TABLE hidden").await;
}

async fn two_runs() -> World {
    let world = World::new(Script::turns([bash("echo hi"), Reply::text("done")])).await;
    world.run(&["run", "first"]).await.expect(0);
    world.run(&["run", "second"]).await.expect(0);
    world
}

async fn run_called(world: &World, title: &str) -> String {
    let list = world.list().await;
    let run = list.iter().find(|run| run["title"] == title).unwrap();
    run["run"].as_str().unwrap().to_owned()
}

async fn check(change: impl Fn(&str) -> String, event: u64) {
    let world = two_runs().await;
    world.run(&["runs", "verify"]).await.expect(0);
    let (first, second) = (run_called(&world, "first").await, run_called(&world, "second").await);
    sql(&world, &change(&first)).await;
    let exit = world.run(&["runs", "verify"]).await.expect(6);
    assert!(exit.out.starts_with(&format!("{first}  damaged: ")), "{}", exit.out);
    assert!(exit.out.contains(&format!("event {event} ")), "{}", exit.out);
    assert_eq!(exit.out.lines().count(), 1);
    assert!(exit.err.contains("2 runs, ") && exit.err.ends_with("1 damaged\n"), "{}", exit.err);
    let json = world.run(&["runs", "verify", "--json", &first]).await.expect(6).json();
    assert_eq!(json["damaged"][0]["event"], event, "{json}");
    world.run(&["runs", "verify", &second]).await.expect(0);
    world.run(&["runs", "export", &second]).await.expect(0);
    let export = world.run(&["runs", "export", &first]).await.expect(6);
    assert!(export.err.contains("damaged"), "{}", export.err);
    let resume = world.run(&["runs", "resume", &first, "go on"]).await.expect(6);
    assert!(resume.err.contains("is damaged") && resume.err.contains("hint: "), "{}", resume.err);
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(list.contains("damaged") && list.contains("completed"), "{list}");
    world.run(&["run", "third"]).await.expect(0);
}

#[tokio::test]
async fn a_changed_event_is_named_and_other_runs_are_fine() {
    let change = |run: &str| {
        format!(
            "UPDATE events SET body = replace(body, 'hi', 'ho') WHERE run = '{run}' AND seq = 6"
        )
    };
    check(change, 6).await;
}

#[tokio::test]
async fn a_lost_event_is_named() {
    check(|run| format!("DELETE FROM events WHERE run = '{run}' AND seq = 4"), 4).await;
}

#[tokio::test]
async fn an_event_that_was_added_is_named_even_where_a_page_of_the_log_ends() {
    let world = two_runs().await;
    let first = run_called(&world, "first").await;
    let run = first.parse().unwrap();
    let store = SqliteStore::open(Options::new(world.database())).await.unwrap();
    let known = store.read(run, Seq::ZERO, usize::MAX).await.unwrap();
    let said = known.iter().find(|it| matches!(it.event, Event::MessageReceived(_))).unwrap();
    let events = vec![said.event.clone(); 1_000 - known.len()].into();
    let append = Append { events, ..Append::by_anyone(run, said.event.clone()) };
    store.append(vec![append]).await.unwrap();
    store.close().await;
    world.run(&["runs", "verify", &first]).await.expect(0);
    let add = "INSERT INTO events SELECT run, 1001, at, version, body, hash FROM events";
    sql(&world, &format!("{add} WHERE run = '{first}' AND seq = 1000")).await;
    let exit = world.run(&["runs", "verify", &first]).await.expect(6);
    assert!(exit.out.contains("event 1001 was added"), "{}", exit.out);
    let told = world.run(&["audit", "list", "--run", &first]).await.expect(6).out;
    assert!(told.lines().last().unwrap().contains("1001  unreadable"), "{told}");
}

/// A change to the row of a run: the log is whole, and `verify` says what does not fit.
async fn check_row(change: &str, expected: &str) {
    let world = two_runs().await;
    let (first, second) = (run_called(&world, "first").await, run_called(&world, "second").await);
    sql(&world, &change.replace("RUN", &format!("'{first}'"))).await;
    for arguments in [&["runs", "verify"][..], &["runs", "verify", &first]] {
        let exit = world.run(arguments).await.expect(6);
        assert_eq!(exit.out, format!("{first}  damaged: {expected}\n"), "{change}");
    }
    let json = world.run(&["runs", "verify", "--json"]).await.expect(6).json();
    assert_eq!(json["runs"], 2);
    assert_eq!(json["damaged"][0]["run"], first.as_str());
    assert!(json["damaged"][0]["event"].is_null(), "{json}");
    world.run(&["runs", "verify", &second]).await.expect(0);
}

#[tokio::test]
async fn a_falsified_row_is_named() {
    let differs = |column: &str| format!("its row does not fit its log: `{column}` was changed");
    let change = "UPDATE runs SET outcome = 'failed' WHERE id = RUN";
    check_row(change, &differs("outcome")).await;
    check_row("UPDATE runs SET cost = cost + 1 WHERE id = RUN", &differs("cost")).await;
    let change = "UPDATE runs SET uncertain_cost = 5 WHERE id = RUN";
    check_row(change, &differs("uncertain_cost")).await;
    check_row("UPDATE runs SET version = 99 WHERE id = RUN", &differs("version")).await;
    check_row("UPDATE runs SET label = 'harmless' WHERE id = RUN", &differs("label")).await;
    check_row("UPDATE runs SET note = 'all is well' WHERE id = RUN", &differs("note")).await;
}

#[tokio::test]
async fn a_ledger_that_does_not_fit_the_log_is_named_and_the_run_is_fine() {
    let world = two_runs().await;
    let first = run_called(&world, "first").await;
    let told = async |change: &str| {
        sql(&world, &change.replace("RUN", &format!("'{first}'"))).await;
        let exit = world.run(&["runs", "verify"]).await.expect(6);
        assert_eq!(exit.out.lines().count(), 1, "{}", exit.out);
        world.run(&["audit", "verify"]).await.expect(6);
        let named = format!("{first}  damaged: the ledger does not fit its log: ");
        exit.out.strip_prefix(&named).unwrap_or_else(|| panic!("{}", exit.out)).to_owned()
    };
    let set = async |change: &str| {
        told(&format!("UPDATE model_calls SET {change} WHERE run = RUN")).await
    };
    let more = set("output_tokens = output_tokens + 1000").await;
    assert!(more.starts_with("of the call of event 4 `output_tokens` is 10"), "{more}");
    assert!(more.contains(", and by the log "), "{more}");
    set("output_tokens = output_tokens - 1000, model = 'a/b'").await;
    let model = set("cost = 'much'").await;
    assert!(model.contains("`model` is a/b, and by the log "), "{model}");
    // Its log is sound, and so is the run.
    world.run(&["runs", "export", &first]).await.expect(0);
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(!list.contains("damaged"), "{list}");

    let lost = told("DELETE FROM model_calls WHERE run = RUN AND seq = 4").await;
    assert!(lost.starts_with("the call of event 4 is missing, by the log "), "{lost}");
}

#[tokio::test]
async fn calls_that_were_added_to_the_ledger_are_named() {
    let added = |run: &str| {
        format!(
            "INSERT INTO model_calls SELECT {run}, 3, at, root, agent, model, label, purpose, \
             ending, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, \
             reasoning_tokens, cost, 0, 0, 0 FROM model_calls LIMIT 1"
        )
    };
    let world = two_runs().await;
    let first = run_called(&world, "first").await;
    sql(&world, &added(&format!("'{first}'"))).await;
    let exit = world.run(&["runs", "verify"]).await.expect(6);
    assert!(exit.out.contains("a call of event 3 was added, "), "{}", exit.out);

    let world = two_runs().await;
    sql(&world, &added("'nobody'")).await;
    let exit = world.run(&["runs", "verify"]).await.expect(6);
    let expected = "nobody  damaged: the ledger has model calls of it, and nothing else is there\n";
    assert_eq!(exit.out, expected);
}

#[tokio::test]
async fn a_deleted_row_is_found_by_the_events_it_leaves() {
    let missing = "its row is missing, and its events are still there";
    check_row("DELETE FROM runs WHERE id = RUN", missing).await;
}

#[tokio::test]
async fn a_row_that_says_its_log_was_removed_is_named_when_events_are_left() {
    let expected = "its row says that its log was removed, and events are still there";
    check_row("UPDATE runs SET erased = 1 WHERE id = RUN", expected).await;
    let change = "DELETE FROM events WHERE run = RUN AND seq < 4; \
                  UPDATE runs SET erased = 1, archived = 1 WHERE id = RUN";
    check_row(change, expected).await;
}

#[tokio::test]
async fn a_run_that_was_taken_away_whole_is_named_by_whoever_started_it() {
    let task = json!({"description": "d", "prompt": "look", "subagent_type": "explore"});
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(Reply::tool_call("Task", task))
        .reply(Reply::text("done"));
    let script =
        Script::new().conversation(lead).rule(Rule::when(When::any()).reply(Reply::text("seen")));
    let world = World::new(script).await;
    world.run(&["run", "lead"]).await.expect(0);
    world.run(&["runs", "verify"]).await.expect(0);
    let rows = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    let rows = rows.as_array().unwrap();
    let id = |child: bool| {
        let row = rows.iter().find(|row| row["parent"].is_string() == child).unwrap();
        row["run"].as_str().unwrap().to_owned()
    };
    let (lead, child) = (id(false), id(true));
    for table in ["events WHERE run", "runs WHERE id"] {
        sql(&world, &format!("DELETE FROM {table} = '{child}'")).await;
    }
    let exit = world.run(&["runs", "verify"]).await.expect(6);
    assert!(exit.out.starts_with(&format!("{lead}  damaged: event ")), "{}", exit.out);
    assert!(exit.out.contains(&format!("run {child} was started, which is gone")), "{}", exit.out);
}

#[tokio::test]
async fn a_root_that_was_taken_away_whole_is_named_by_what_is_left_below_it() {
    let task = json!({"description": "d", "prompt": "look", "subagent_type": "explore"});
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(Reply::tool_call("Task", task))
        .reply(Reply::text("done"));
    let script =
        Script::new().conversation(lead).rule(Rule::when(When::any()).reply(Reply::text("seen")));
    let world = World::new(script).await;
    world.run(&["run", "lead"]).await.expect(0);
    let rows = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    let rows = rows.as_array().unwrap();
    let id = |child: bool| {
        let row = rows.iter().find(|row| row["parent"].is_string() == child).unwrap();
        row["run"].as_str().unwrap().to_owned()
    };
    let (lead, child) = (id(false), id(true));
    for table in ["events WHERE run", "runs WHERE id", "model_calls WHERE run"] {
        sql(&world, &format!("DELETE FROM {table} = '{lead}'")).await;
    }
    for arguments in [&["runs", "verify"][..], &["runs", "verify", &child]] {
        let exit = world.run(arguments).await.expect(6);
        let expected = format!("{child}  damaged: the run that started it, {lead}, is gone\n");
        assert_eq!(exit.out, expected);
    }
}

#[tokio::test]
async fn a_key_whose_index_leads_astray_is_named_and_found_again_once_rebuilt() {
    let world = World::saying("done").await;
    world.run(&["run", "--key", "once", "first"]).await.expect(0);
    let set = |key: &str| format!("UPDATE runs SET key = '{key}'");
    blind(&world, "runs_by_key", &set("other"), &set("once")).await;
    let exit = world.run(&["runs", "verify"]).await.expect(6);
    let named = "the database  damaged: the file does not hold together: ";
    assert!(exit.out.starts_with(named) && exit.out.contains("runs_by_key"), "{}", exit.out);
    let json = world.run(&["runs", "verify", "--json"]).await.expect(6).json();
    assert!(json["damaged"][0]["run"].is_null(), "{json}");
    let told = world.run(&["doctor", "--rebuild"]).await.expect(0);
    assert!(told.out.contains("rebuilt") && told.out.contains("the old one is kept"), "{told:?}");
    world.run(&["runs", "verify"]).await.expect(0);
    world.run(&["run", "--key", "once", "first"]).await.expect(0);
    assert_eq!(world.list().await.len(), 1, "the key finds the first run");
}

#[tokio::test]
async fn a_run_whose_place_in_the_queue_is_lost_is_named_and_executed_once_rebuilt() {
    let world = World::saying("done").await;
    world.run(&["run", "--background", "first"]).await.expect(0);
    let set = |sign: &str| format!("UPDATE runs SET ready_at = ready_at {sign} 1");
    blind(&world, "runs_ready", &set("+"), &set("-")).await;
    let exit = world.run(&["runs", "verify"]).await.expect(6);
    assert!(exit.out.contains("runs_ready"), "{}", exit.out);
    let json = world.run(&["doctor", "--rebuild", "--json"]).await.expect(0).json();
    assert_eq!((&json["rebuilt"], &json["paused"]), (&0.into(), &0.into()), "{json}");
    world.run(&["runs", "verify"]).await.expect(0);
    world.run(&["runs", "resume", "--all"]).await.expect(0);
    assert_eq!(world.list().await[0]["outcome"], "completed");
}

#[tokio::test]
async fn one_run_that_cannot_be_read_does_not_keep_the_others_from_being_checked() {
    let world = two_runs().await;
    let (first, second) = (run_called(&world, "first").await, run_called(&world, "second").await);
    for run in [&first, &second] {
        let set = |version: u32| {
            format!(
                "UPDATE runs SET version = {version} WHERE id = '{run}'; \
                 UPDATE events SET version = {version} WHERE run = '{run}'"
            )
        };
        sql(&world, &set(99)).await;
        let exit = world.run(&["runs", "verify"]).await.expect(6);
        let expected = format!("{run}  damaged: its log cannot be read: ");
        assert!(exit.out.starts_with(&expected) && exit.out.contains("newer"), "{}", exit.out);
        assert!(exit.err.contains("2 runs, "), "{}", exit.err);
        assert_eq!(exit.out.lines().count(), 1);
        sql(&world, &set(SCHEMA_VERSION)).await;
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named() {
    let world = two_runs().await;
    let first = run_called(&world, "first").await;
    sql(&world, &format!("UPDATE runs SET turns = 'x' WHERE id = '{first}'")).await;
    let exit = world.run(&["runs", "verify"]).await.expect(6);
    let expected = format!("{first}  damaged: its row cannot be read");
    assert!(exit.out.starts_with(&expected), "{}", exit.out);
}

#[tokio::test]
async fn export_writes_records_that_parse_and_a_file_for_its_owner_only() {
    let world = two_runs().await;
    let run = run_called(&world, "first").await;
    let exit = world.run(&["runs", "export", &run]).await.expect(0);
    let records: Vec<Record> =
        exit.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 9);
    assert!(records.iter().all(|record| record.run.to_string() == run));
    let path = world.write("log.jsonl", "what was there before and is longer than nothing");
    let to_file = world.run(&["runs", "export", &run, "-o", "log.jsonl"]).await.expect(0);
    assert_eq!(
        (to_file.out.as_str(), to_file.err.as_str()),
        ("", "9 events written to log.jsonl\n")
    );
    assert_eq!(world.read("log.jsonl"), exit.out);
    assert_eq!(mode(&path), 0o600);
    let json = world.run(&["runs", "export", &run, "-o", "new.jsonl", "--json"]).await.expect(0);
    assert_eq!(json.json()["events"], 9);
    assert_eq!(mode(&world.work().join("new.jsonl")), 0o600);
    let nowhere = world.run(&["runs", "export", &run, "-o", "no/where"]).await.expect(1);
    assert!(
        nowhere.err.contains("cannot write no/where: there is no such file"),
        "{}",
        nowhere.err
    );
}

#[tokio::test]
async fn an_export_follows_no_link_that_somebody_left_at_its_name() {
    let world = World::new(Script::turns([bash("echo hi"), Reply::text("done")])).await;
    world.run(&["run", "first"]).await.expect(0);
    let run = world.only_run().await;
    let (target, link) = (world.work().join("target"), world.work().join("out"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let name = link.to_str().unwrap();
    for command in [&["runs", "export", &run, "-o", name][..], &["audit", "export", "-o", name]] {
        let exit = world.run(command).await.expect(1);
        assert!(exit.err.contains("it is a symbolic link"), "{}", exit.err);
        assert!(!target.exists(), "{command:?}");
    }
    let exit = world.run(&["run", "again", "--record", name]).await;
    assert_ne!(exit.code, Some(0), "{}", exit.err);
    assert!(!target.exists());
    world.run(&["runs", "export", &run, "-o", "/dev/stdout"]).await.expect(0);
}
