//! `posse runs list`, `show` and `log`.

use crate::tmux::Terminal;
use crate::world::{World, bash, started};
use posse::protocol::{CancelRequested, CancelScope, Event, Extra};
use posse::store::{Append, Logs, Options, SqliteStore, Store};
use posse_testkit::{Reply, Rule, Script, When};
use serde_json::Value;

fn titles(list: &[Value]) -> Vec<&str> {
    list.iter().map(|run| run["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn before_there_is_a_database_there_is_nothing_and_none_is_made() {
    let world = World::saying("x").await;
    let list = world.run(&["runs", "list"]).await.expect(0);
    assert_eq!(
        (list.out.as_str(), list.err.as_str()),
        ("", "no runs yet; `posse \"…\"` starts one\n")
    );
    assert_eq!(
        world.run(&["runs", "list", "--json"]).await.expect(0).json(),
        serde_json::json!([])
    );
    let verify = world.run(&["runs", "verify", "--json"]).await.expect(0);
    assert_eq!(verify.json()["runs"], 0);
    let show = world.run(&["runs", "show", "abcd"]).await.expect(2);
    assert!(show.err.contains("there are no runs yet") && show.err.contains("hint: "));
    assert!(!world.database().exists());
}

#[tokio::test]
async fn a_database_that_was_named_has_to_be_there_to_be_read() {
    let world = World::saying("x").await;
    for area in ["runs", "audit"] {
        let verify = world.run(&[area, "verify", "--db", "typo.db"]).await.expect(6);
        assert!(verify.err.contains("the database typo.db does not exist"), "{}", verify.err);
        let verify = world.run(&[area, "verify", "--db", "typo.db", "--json"]).await.expect(6);
        assert_eq!(verify.out, "");
        world.run(&[area, "verify"]).await.expect(0);
    }
    for command in [
        &["runs", "list"][..],
        &["runs", "show", "abcd"],
        &["runs", "resume", "--all"],
        &["cost"],
        &["audit", "list"],
        &["webhooks", "deliveries"],
    ] {
        let exit = world.run(&[command, &["--db", "typo.db"]].concat()).await.expect(6);
        assert!(exit.err.contains("the database typo.db does not exist"), "{}", exit.err);
    }
    assert!(!world.work().join("typo.db").exists());
}

/// A folder that is none serves as one that nobody may look into, whoever runs the tests.
#[tokio::test]
async fn a_database_that_cannot_be_reached_is_not_taken_for_none() {
    let world = World::saying("x").await;
    std::fs::create_dir(world.home().join("data")).unwrap();
    std::fs::write(world.home().join("data/posse"), "").unwrap();
    for command in [
        &["runs", "list"][..],
        &["runs", "verify"],
        &["cost"],
        &["audit", "list"],
        &["audit", "verify"],
        &["webhooks", "deliveries"],
    ] {
        let exit = world.run(command).await.expect(6);
        assert!(
            exit.err.contains("posse.db cannot be reached: a part of the path is not a folder"),
            "{}",
            exit.err
        );
        assert_eq!(exit.out, "");
    }
}

#[tokio::test]
async fn runs_are_listed_newest_first_filtered_and_in_pages() {
    let script = Script::new()
        .rule(Rule::when(When::any().last_user_contains("fail")).reply(Reply::error(400, "no")))
        .rule(Rule::when(When::any()).reply(Reply::text("fine")));
    let world = World::new(script).await;
    let elsewhere = world.folder.path().to_str().unwrap().to_owned();
    for title in ["one", "two", "three"] {
        world.run(&["run", title]).await.expect(0);
    }
    world.run(&["run", "--cwd", &elsewhere, "four"]).await.expect(0);
    world.run(&["run", "fail now"]).await.expect(1);
    let all = world.list().await;
    assert_eq!(titles(&all), ["fail now", "four", "three", "two", "one"]);

    let there = world.run(&["runs", "list", "--json", "--cwd", &elsewhere]).await.expect(0);
    assert_eq!(titles(there.json().as_array().unwrap()), ["four"]);
    let open = world.run(&["runs", "list", "--json", "--unfinished"]).await.expect(0);
    assert_eq!(open.json(), serde_json::json!([]));

    let page = world.run(&["runs", "list", "--limit", "2"]).await.expect(0);
    assert_eq!(page.out.lines().count(), 3, "a heading and two runs");
    let before = page.err.trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(page.err, format!("older ones: --before {before}\n"));
    let next = world.run(&["runs", "list", "--json", "--before", &before]).await.expect(0);
    assert_eq!(titles(next.json().as_array().unwrap()), ["three", "two", "one"]);

    let lines = world.run(&["runs", "list"]).await.expect(0).out;
    let column = |word: &str| lines.lines().find_map(|line| line.find(word)).unwrap();
    assert_eq!(column("failed"), column("completed"), "{lines}");
    assert_eq!(column("fail now"), column("three"), "{lines}");
    assert!(!lines.lines().any(|line| line.ends_with(' ')), "{lines:?}");
}

#[tokio::test]
async fn show_tells_what_there_is_to_know_and_the_answer() {
    let world =
        World::new(Script::turns([bash("echo hi"), Reply::text("The answer.\nSecond.")])).await;
    world.run(&["run", "say hi"]).await.expect(0);
    let run = world.only_run().await;
    let short = &run[18..];
    let show = world.run(&["runs", "show", short]).await.expect(0);
    for line in [
        format!("run         {run}"),
        "status      completed".to_owned(),
        "agent       general-purpose".to_owned(),
        "task        say hi".to_owned(),
        format!("folder      {}", world.work().display()),
    ] {
        assert!(show.out.lines().any(|shown| shown == line), "{line}: {}", show.out);
    }
    assert!(show.out.contains("spent       2 turns, 1 tool call, "), "{}", show.out);
    assert!(show.out.ends_with("\n\nThe answer.\nSecond.\n"), "{}", show.out);
    let json = world.run(&["runs", "show", "--json", &run[..20]]).await.expect(0).json();
    assert_eq!(json["text"], "The answer.\nSecond.");
}

#[tokio::test]
async fn log_prints_an_event_a_line() {
    let world = World::new(Script::turns([bash("echo hi"), Reply::text("done")])).await;
    world.run(&["run", "say hi"]).await.expect(0);
    let run = world.only_run().await;
    let log = world.run(&["runs", "log", &run]).await.expect(0).out;
    let kinds: Vec<&str> =
        log.lines().map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    let wanted = [
        "run_started",
        "message_received",
        "model_called",
        "model_replied",
        "tool_started",
        "tool_finished",
        "model_called",
        "model_replied",
        "run_finished",
    ];
    assert_eq!(kinds, wanted);
    assert!(log.contains("Bash echo hi") && log.contains("  completed"), "{log}");
    let rest = world.run(&["runs", "log", &run, "--after", "7", "--json"]).await.expect(0).lines();
    assert_eq!(rest.len(), 2);
    assert_eq!(rest[0]["seq"], 8);
}

#[tokio::test]
async fn a_run_that_is_not_there_is_named_with_what_to_do() {
    let world = World::saying("x").await;
    world.run(&["run", "x"]).await.expect(0);
    let long = "0".repeat(26);
    for (text, says) in [
        ("zzzzzz", "no run matches `zzzzzz`"),
        ("ab", "at least four"),
        (&long, "there is no run 000"),
    ] {
        for verb in ["show", "log", "watch", "cancel", "export", "verify", "resume"] {
            let exit = world.run(&["runs", verb, text]).await.expect(2);
            assert!(
                exit.err.contains(says) && exit.err.contains("posse runs list"),
                "{verb}: {}",
                exit.err
            );
        }
    }
}

#[tokio::test]
async fn any_piece_of_what_is_shown_of_an_id_names_the_run() {
    let world = World::saying("x").await;
    world.run(&["run", "first task"]).await.expect(0);
    let run = world.only_run().await;
    let shown = &run[18..];
    for piece in [&shown[..4], &shown[2..6], &shown[4..], &shown[..7], shown] {
        let show = world.run(&["runs", "show", piece]).await.expect(0);
        assert!(show.out.contains(&run), "{piece}: {}", show.out);
    }
    world.run(&["run", "second task"]).await.expect(0);
    // Both ids begin with the same moment.
    let several = world.run(&["runs", "show", &run[..4]]).await.expect(2).err;
    assert!(several.contains("2 runs match"), "{several}");
    for line in
        [format!("\n  {shown}  finished  [general-purpose] first task\n"), "second task".to_owned()]
    {
        assert!(several.contains(&line), "{line}: {several}");
    }
}

#[tokio::test]
async fn a_label_does_not_hide_the_task() {
    let world = World::saying("x").await;
    world.run(&["run", "--label", "nightly", "check the links"]).await.expect(0);
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(list.ends_with("  nightly: check the links\n"), "{list}");
    let show = world.run(&["runs", "show", "nightly"]).await.expect(0).out;
    for line in ["task        check the links", "label       nightly"] {
        assert!(show.lines().any(|shown| shown == line), "{line}: {show}");
    }
    let json = &world.list().await[0];
    assert_eq!((&json["label"], &json["task"]), (&"nightly".into(), &"check the links".into()));
}

#[tokio::test]
async fn lists_have_a_heading_unless_they_are_to_be_quiet() {
    let world = World::saying("x").await;
    world.run(&["run", "x"]).await.expect(0);
    for (list, first, last) in [
        (&["runs", "list"][..], "RUN ", " TASK"),
        (&["agents", "list"], "AGENT ", " TOOLS"),
        (&["audit", "list"], "TIME ", " DETAILS"),
        (&["models", "sonnet"], "  MODEL ", " STATE"),
        (&["cost"], "MODEL ", " COST"),
        (&["config", "path"], "WHAT ", " PATH"),
        (&["runs", "prune", "--dry-run", "--older-than", "0d"], "RUN ", " TASK"),
    ] {
        let heading = world.run(list).await.expect(0).out.lines().next().unwrap().to_owned();
        assert!(heading.starts_with(first) && heading.ends_with(last), "{list:?}: {heading}");
        let quiet = world.run(&[list, &["-q"]].concat()).await.expect(0).out;
        assert!(!quiet.contains(first), "{list:?}: {quiet}");
    }
}

#[tokio::test]
async fn in_a_narrow_terminal_money_and_tasks_can_be_read() {
    let world = World::saying("x").await;
    world.run(&["run", "count the lines of every file"]).await.expect(0);
    let Some(terminal) = Terminal::open(&world, 40, 30).await else { return };
    terminal.enter("posse runs list; echo done").await;
    let screen = terminal.shows("\ndone").await;
    let row = screen.lines().find(|line| line.contains("completed")).unwrap().to_owned();
    assert!(row.contains("  $0.0") && row.contains("  count the"), "{screen}");
    terminal.enter("clear; posse cost; echo over").await;
    let screen = terminal.shows("\nover").await;
    let total = screen.lines().find(|line| line.starts_with("total ")).unwrap().to_owned();
    assert!(total.contains("$0.0"), "{screen}");
}

#[tokio::test]
async fn a_chat_in_which_nothing_was_said_is_not_listed() {
    let world = World::saying("x").await;
    world.feed(&["chat"], "").await.expect(0);
    assert!(world.list().await.is_empty());
    let open = world.run(&["runs", "list", "--unfinished"]).await.expect(0);
    assert_eq!((open.out.as_str(), open.err.as_str()), ("", "no run matches\n"));
    world.feed(&["chat"], "hello\n").await.expect(0);
    assert_eq!(titles(&world.list().await), ["hello"]);
}

#[tokio::test]
async fn a_time_is_local_and_means_the_same_in_every_list() {
    let world = World::saying("x").await;
    world.run(&["run", "x"]).await.expect(0);
    let created = world.list().await[0]["created"].as_str().unwrap().to_owned();
    // Without its zone, the very time is an hour earlier east of Greenwich.
    let local = created.trim_end_matches('Z').to_owned();
    for list in [&["runs", "list", "--json"][..], &["cost", "--json"], &["audit", "list", "--json"]]
    {
        let mut found = Vec::new();
        for zone in ["UTC-1", "UTC+1"] {
            let mut command = world.command(&[list, &["--since", &local]].concat());
            command.env("TZ", zone);
            let json = started(command).end().await.expect(0).json();
            let rows = json.as_array().or(json["sums"].as_array()).unwrap().len();
            found.push(rows > 0);
        }
        assert_eq!(found, [true, false], "{list:?}");
        let wrong = world.run(&[list, &["--since", "7"]].concat()).await.expect(2);
        assert!(wrong.err.contains("`7` is not a valid time"), "{}", wrong.err);
        let ago = world.run(&[list, &["--since", "2w"]].concat()).await.expect(0);
        assert!(ago.out.len() > 10, "{list:?}: {}", ago.out);
    }
}

/// A run that was cancelled, and whose end no process has stored yet, waits for no slot.
#[tokio::test]
async fn a_run_that_was_told_to_stop_is_not_listed_as_queued() {
    let world = World::saying("never").await;
    world.run(&["run", "--background", "look"]).await.expect(0);
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(list.contains(" queued (1st) "), "{list}");
    let run = world.only_run().await.parse().unwrap();
    let (by, scope, extra) = ("the test".to_owned(), CancelScope::Run, Extra::default());
    let request = Event::CancelRequested(CancelRequested { by, scope, extra });
    let store = SqliteStore::open(Options::new(world.database())).await.unwrap();
    store.append(vec![Append::by_anyone(run, request)]).await.unwrap();
    store.close().await;
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(list.contains(" stopping ") && !list.contains("queued"), "{list}");
}
