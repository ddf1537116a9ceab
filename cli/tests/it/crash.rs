//! kill -9 at any moment: the next process goes on, and repeats nothing.

use crate::world::{LONG, World, bash, eventually, gone, started};
use posse_crash::{ClusterCampaign, Plant};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use std::collections::BTreeMap;

/// A run that is in the middle of a Bash call; then, told that it was interrupted, ends.
async fn killed_in_a_command() -> World {
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("long"))
                .reply(bash("echo first >> ledger"))
                .reply(bash(LONG))
                .reply(Reply::text("It was: {{last_tool_result}}")),
        )
        .conversation(
            Conversation::when(When::any().first_user_contains("to wait for"))
                .reply(bash("until [ -e go ]; do sleep 0.05; done"))
                .reply(Reply::text("the other answer")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("the other answer")));
    let world = World::new(script).await;
    let running = world.start(&["run", "something long"]);
    let pid = world.lines_in("pid", 1).await;
    running.signal(Signal::KILL);
    assert_eq!(running.end().await.code, None);
    gone(&pid).await;
    world
}

#[tokio::test]
async fn a_killed_run_is_listed_as_crashed_and_its_command_is_gone() {
    let world = killed_in_a_command().await;
    let list = world.run(&["runs", "list"]).await.expect(0);
    assert!(list.out.contains("  crashed  "), "{}", list.out);
    assert_eq!(world.list().await[0]["status"], "crashed");
}

#[tokio::test]
async fn the_next_run_in_the_folder_goes_on_with_it_by_itself() {
    let world = killed_in_a_command().await;
    let run = world.only_run().await;
    let running = world.start(&["run", "something to wait for"]);
    eventually("the end of the first", async || {
        world.run(&["runs", "show", &run, "--json"]).await.json()["outcome"] == "completed"
    })
    .await;
    world.write("go", "");
    let exit = running.end().await.expect(0);
    assert_eq!(exit.out, "the other answer\n");
    assert!(exit.err.lines().any(|line| line.ends_with(": completed")), "{}", exit.err);
    let list = world.list().await;
    assert!(list.iter().all(|run| run["outcome"] == "completed"), "{list:#?}");
    assert_eq!(world.read("ledger"), "first\nbegan\n", "nothing was repeated");
}

#[tokio::test]
async fn resume_goes_on_with_it_and_tells_what_became_of_the_call() {
    let world = killed_in_a_command().await;
    let run = world.only_run().await;
    let exit = world.run(&["runs", "resume", &run[18..]]).await.expect(0);
    assert!(exit.out.starts_with("It was: interrupted: the process that ran this call died"));
    assert!(exit.err.contains("● Bash echo began >> ledger"), "{}", exit.err);
    assert_eq!(world.read("ledger"), "first\nbegan\n", "nothing was repeated");
    let requests = world.fake.count();
    let again = world.run(&["runs", "resume", &run]).await.expect(2);
    assert!(again.err.contains("has nothing to do") && again.err.contains("add a message"));
    assert_eq!(world.fake.count(), requests);
}

#[tokio::test]
async fn a_demo_that_was_killed_goes_on_and_shows_which_call_was_interrupted() {
    let world = World::saying("never asked").await;
    // The last tool of the demo asks git, which here never answers.
    let git = world.folder.path().join("bin/git");
    std::fs::create_dir(git.parent().unwrap()).unwrap();
    std::fs::write(&git, "#!/bin/sh\necho $POSSE_SCRATCH > pid\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", git.parent().unwrap().display());
    let demo = || {
        let mut command = world.command(&["demo"]);
        command.env("PATH", &path);
        started(command)
    };
    let running = demo();
    let pid = world.lines_in("pid", 1).await;
    running.signal(Signal::KILL);
    running.end().await;
    gone(&pid).await;
    let exit = demo().end().await.expect(0);
    assert!(exit.err.contains("where it stopped"), "{}", exit.err);
    assert!(exit.err.contains("● Bash git log --oneline -5"), "{}", exit.err);
    assert!(!exit.err.contains("● a call"), "{}", exit.err);
}

#[tokio::test]
async fn a_chat_that_was_killed_goes_on_and_shows_which_call_was_interrupted() {
    let world = World::new(Script::turns([bash(LONG), Reply::text("I see")])).await;
    let mut running = world.start_with_input(&["chat"]);
    running.type_line("talk").await;
    let pid = world.lines_in("pid", 1).await;
    running.signal(Signal::KILL);
    running.end().await;
    gone(&pid).await;
    let exit = world.feed(&["chat", "--resume"], "").await.expect(0);
    assert!(exit.err.contains("● Bash echo began >> ledger"), "{}", exit.err);
}

#[tokio::test]
async fn a_run_elsewhere_does_not_touch_it_and_resume_all_does() {
    let world = killed_in_a_command().await;
    let elsewhere = world.folder.path().to_str().unwrap().to_owned();
    world.run(&["run", "--cwd", &elsewhere, "x"]).await.expect(0);
    assert!(world.list().await[1]["outcome"].is_null());
    let exit = world.run(&["runs", "resume", "--all", "--json"]).await.expect(0);
    assert_eq!(exit.lines().len(), 1);
    assert_eq!(exit.lines()[0]["outcome"]["kind"], "completed");
}

#[tokio::test]
async fn with_recovery_set_to_wait_it_waits() {
    let world = killed_in_a_command().await;
    let config = world.home().join("config/posse");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "recovery = \"wait\"\n").unwrap();
    let exit = world.run(&["run", "something else"]).await.expect(0);
    assert!(!exit.err.contains("unfinished"), "{}", exit.err);
    assert!(world.list().await[1]["outcome"].is_null());
}

#[tokio::test]
async fn a_run_killed_during_a_model_call_asks_again_and_nothing_else_twice() {
    let gate = Gate::new();
    let script = Script::turns([
        bash("echo once >> ledger"),
        Reply::text("the end").held_after_deltas(1, &gate),
    ]);
    let world = World::new(script).await;
    let running = world.start(&["run", "x"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    assert_eq!(world.list().await[0]["status"], "crashed");
    gate.open();
    let run = world.only_run().await;
    let exit = world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(exit.out, "the end\n");
    assert_eq!(world.read("ledger"), "once\n");
    assert_eq!(world.fake.count(), 3, "the call that was cut, and that one again");
    let verify = world.run(&["runs", "verify"]).await.expect(0);
    assert!(verify.err.contains("0 damaged"), "{}", verify.err);
}

#[tokio::test]
async fn a_chat_that_was_killed_does_not_hold_up_a_run_in_its_folder() {
    let gate = Gate::new();
    let script = Script::new()
        .rule(
            Rule::when(When::any().last_user_contains("talk"))
                .reply(Reply::text("well").held_by(&gate)),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("done")));
    let world = World::new(script).await;
    let mut running = world.start_with_input(&["chat"]);
    running.type_line("talk").await;
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    gate.open();
    let exit = world.run(&["run", "x"]).await.expect(0);
    assert_eq!(exit.out, "done\n");
}

#[tokio::test]
async fn a_run_whose_database_is_taken_away_ends_and_says_why() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("never stored").held_by(&gate))).await;
    let running = world.start(&["run", "go"]);
    gate.wait_for_held(1).await.unwrap();
    for name in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{name}", world.database().display())).unwrap();
    }
    let exit = running.end().await.expect(6);
    assert!(exit.err.contains("was removed, or another was put in its place"), "{}", exit.err);
    world.run(&["run", "--model", "offline", "what is here?"]).await.expect(0);
}

#[tokio::test]
async fn a_bit_that_flips_is_told_or_changes_nothing_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let flips = posse_crash::Flips {
        binary: env!("CARGO_BIN_EXE_posse").into(),
        folder: folder.path().to_owned(),
        seed: 7,
        count: 60,
        jobs: 2,
    };
    let flipped = flips.play().await.unwrap();
    assert_eq!(flipped.missed, Vec::<String>::new());
    assert!(flipped.log.told >= 25, "{flipped:?}");
}

#[test]
fn a_cycle_on_a_cluster_passes_and_one_with_a_mistake_does_not() {
    let folder = tempfile::tempdir().unwrap();
    // In each of them, a worker leaves in order.
    let mut cycles = (0..).map(|turn| 20 * turn + 19);
    let good = cycles.next().unwrap();
    let mistakes: BTreeMap<usize, Plant> = cycles.zip(Plant::ALL.map(|(plant, _)| plant)).collect();
    let campaign = ClusterCampaign {
        binary: env!("CARGO_BIN_EXE_posse").into(),
        folder: folder.path().to_owned(),
        seed: 7,
        jobs: 3,
        cycles: std::iter::once(good).chain(mistakes.keys().copied()).collect(),
        mistakes: mistakes.clone(),
    };
    // One thread: the processes that it starts die with it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut found = BTreeMap::new();
    let played = campaign.play(|ended, _| {
        found.insert(ended.plan.number, ended.violations.clone());
    });
    let report = runtime.block_on(played).unwrap();
    assert_eq!(report.cycles, 1 + mistakes.len());
    assert!(found[&good].is_empty(), "without a mistake: {:?}", found[&good]);
    for ((number, plant), (_, promise)) in mistakes.iter().zip(Plant::ALL) {
        let told = &found[number];
        assert!(told.iter().any(|it| it.promise == promise), "{plant:?}: {told:?}");
    }
}
