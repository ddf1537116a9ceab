//! Several processes on one database.

use crate::world::{Running, World, bash, eventually, gone, started};
use posse_testkit::{Gate, Reply, Script};
use rustix::process::Signal;

#[tokio::test]
async fn two_processes_each_execute_their_own_run_once() {
    let gate = Gate::new();
    let script = Script::turns([
        bash("echo '{{last_user}}' >> ledger").held_by(&gate),
        Reply::text("done: {{last_user}}"),
    ]);
    let world = World::new(script).await;
    let one = world.start(&["run", "first"]);
    let two = world.start(&["run", "second"]);
    gate.wait_for_held(2).await.unwrap();
    let list = world.list().await;
    assert!(list.len() == 2 && list.iter().all(|run| run["status"] == "running"), "{list:#?}");
    gate.open();
    assert_eq!(one.end().await.expect(0).out, "done: first\n");
    assert_eq!(two.end().await.expect(0).out, "done: second\n");
    let mut ledger: Vec<String> = world.read("ledger").lines().map(str::to_owned).collect();
    ledger.sort();
    assert_eq!(ledger, ["first", "second"]);
    assert_eq!(world.fake.count(), 4);
}

#[tokio::test]
async fn the_same_key_in_two_processes_at_once_is_one_run() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("once").held_by(&gate))).await;
    let one = world.start(&["run", "--key", "k", "x"]);
    gate.wait_for_held(1).await.unwrap();
    let two = world.start(&["run", "--key", "k", "x"]);
    two.notes(" · run ").await;
    gate.open();
    assert_eq!(one.end().await.expect(0).out, "once\n");
    assert_eq!(two.end().await.expect(0).out, "once\n");
    assert_eq!(world.fake.count(), 1);
}

#[tokio::test]
async fn a_stopped_owner_loses_its_run_and_says_so_when_it_wakes() {
    let gate = Gate::new();
    let script = Script::turns([
        bash("echo once >> ledger"),
        bash("echo twice >> ledger").held_by(&gate),
        Reply::text("the end"),
    ]);
    let world = World::new(script).await;
    let owner = world.start(&["run", "x"]);
    gate.wait_for_held(1).await.unwrap();
    owner.signal(Signal::STOP);
    let run = world.only_run().await;
    let early = world.run(&["runs", "resume", &run]).await.expect(1);
    assert!(early.err.contains("is being executed now") && early.err.contains("runs watch"));
    eventually("the end of the lease", async || {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        world.list().await[0]["status"] != "running"
    })
    .await;
    let second = world.start(&["runs", "resume", &run]);
    gate.wait_for_held(2).await.unwrap();
    owner.signal(Signal::CONT);
    owner.notes("another process has taken over run").await;
    gate.open();
    assert_eq!(second.end().await.expect(0).out, "the end\n");
    let owner = owner.end().await.expect(0);
    assert_eq!(owner.out, "the end\n", "it followed the run there");
    assert_eq!(owner.err.matches("taken over").count(), 1, "{}", owner.err);
    assert_eq!(world.read("ledger"), "once\ntwice\n", "each effect once");
    world.run(&["runs", "verify"]).await.expect(0);
}

/// A run that has called a tool, and waits for its model until the gate opens; and its process.
async fn held_by(gate: &Gate) -> (World, Running, String) {
    let script = Script::turns([bash("echo seen"), Reply::text("the end").held_by(gate)]);
    let world = World::new(script).await;
    let owner = world.start(&["run", "x"]);
    gate.wait_for_held(1).await.unwrap();
    let run = world.only_run().await;
    (world, owner, run)
}

#[tokio::test]
async fn a_second_process_watches_live() {
    let gate = Gate::new();
    let (world, owner, run) = held_by(&gate).await;
    let watcher = world.start(&["runs", "watch", &run]);
    let json = world.start(&["runs", "watch", &run, "--json"]);
    watcher.notes("● Bash echo seen").await;
    json.says("tool_finished").await;
    gate.open();
    owner.end().await.expect(0);
    let watched = watcher.end().await.expect(0);
    assert_eq!(watched.out, "the end\n");
    let lines = json.end().await.expect(0).lines();
    assert_eq!(lines.first().unwrap()["event"]["type"], "run_started");
    assert_eq!(lines.last().unwrap()["event"]["type"], "run_finished");
}

#[tokio::test]
async fn whoever_watches_is_told_when_the_process_is_gone_that_executed_the_run() {
    let gate = Gate::new();
    let (world, owner, run) = held_by(&gate).await;
    let watcher = world.start(&["runs", "watch", &run]);
    watcher.notes("● Bash echo seen").await;
    owner.signal(Signal::KILL);
    watcher.notes("has died; `posse runs resume").await;
    gate.open();
    world.run(&["runs", "resume", &run]).await.expect(0);
    let watched = watcher.end().await.expect(0);
    assert_eq!(watched.out, "the end\n");
    assert_eq!(watched.err.matches("has died").count(), 1, "{}", watched.err);
}

#[tokio::test]
async fn a_running_run_reads_what_is_sent_before_its_next_step() {
    let gate = Gate::new();
    let script =
        Script::turns([bash("true").held_by(&gate), Reply::text("You said: {{last_user}}")]);
    let world = World::new(script).await;
    let owner = world.start(&["run", "x"]);
    gate.wait_for_held(1).await.unwrap();
    let run = world.only_run().await;
    let sent = world.run(&["runs", "send", &run, "be brief"]).await.expect(0);
    assert!(sent.err.contains("reads it before its next step"), "{}", sent.err);
    gate.open();
    assert_eq!(owner.end().await.expect(0).out, "You said: be brief\n");
}

#[tokio::test]
async fn cancelling_reaches_a_run_in_another_process_and_its_command() {
    let world = World::new(Script::turns([bash(crate::world::LONG)])).await;
    let owner = world.start(&["run", "--json", "x"]);
    let pid = world.lines_in("pid", 1).await;
    let run = world.only_run().await;
    let cancel = world.run(&["runs", "cancel", &run, "--json"]).await.expect(0);
    assert_eq!(cancel.json()["outcome"]["kind"], "cancelled");
    assert_eq!(owner.end().await.expect(3).json()["outcome"], "cancelled");
    gone(&pid).await;
}

#[tokio::test]
async fn two_processes_may_make_the_database_at_once() {
    let world = World::saying("fine").await;
    let running: Vec<_> = (0..6).map(|_| started(world.command(&["run", "-q", "x"]))).collect();
    for one in running {
        assert_eq!(one.end().await.expect(0).out, "fine\n");
    }
    assert_eq!(world.list().await.len(), 6);
    assert_eq!(world.fake.count(), 6);
}

/// A user who can replace a database, or put something beside it, decides what Posse executes.
#[tokio::test]
async fn a_database_that_another_user_could_replace_is_not_used() {
    let world = World::saying("done").await;
    let team = world.folder.path().canonicalize().unwrap().join("team");
    std::fs::create_dir(&team).unwrap();
    let set_mode = |mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&team, mode).unwrap();
    };
    let database = team.join("p.db").display().to_string();
    let run = async || started(world.command(&["--db", &database, "run", "x"])).end().await;
    set_mode(0o777);
    let refused = run().await.expect(6);
    for part in ["all users may replace", "in which only you can make files", "chmod go-w"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    // Like `/tmp`: others can make files there, and not replace any.
    set_mode(0o1777);
    let refused = run().await.expect(6);
    assert!(refused.err.contains("all users may make files in its folder"), "{}", refused.err);
    // The daemon opens its lock before the database.
    let kept = world.folder.path().join("kept");
    std::fs::write(&kept, "kept").unwrap();
    let lock = team.join("p.db-daemon");
    std::os::unix::fs::symlink(&kept, &lock).unwrap();
    for verb in ["start", "status", "stop"] {
        let daemon = started(world.command(&["--db", &database, "daemon", verb])).end().await;
        let refused = daemon.expect(6);
        assert!(refused.err.contains("may make files"), "{verb}: {}", refused.err);
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!((world.fake.count(), std::fs::read_dir(&team).unwrap().count()), (0, 0));
    set_mode(0o700);
    run().await.expect(0);
    // A folder above it.
    let below = team.join("mine/p.db").display().to_string();
    let run_below = async || started(world.command(&["--db", &below, "run", "x"])).end().await;
    std::fs::create_dir(team.join("mine")).unwrap();
    run_below().await.expect(0);
    set_mode(0o777);
    let refused = run_below().await.expect(6);
    assert!(refused.err.contains("may replace what is in the folder"), "{}", refused.err);
    set_mode(0o700);
    let pipe = team.join("p.db-reserve");
    std::fs::remove_file(&pipe).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let refused = run().await.expect(6);
    assert!(refused.err.contains("p.db-reserve is not a regular file"), "{}", refused.err);
    std::fs::remove_file(&pipe).unwrap();
    run().await.expect(0);
    assert_eq!(world.fake.count(), 3);
}

/// The same for what another user has made before.
#[tokio::test]
async fn what_another_user_has_put_beside_a_database_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return posse_testkit::skipped(
            "posse-cli: files of another user (only root can make them)",
        );
    }
    let stranger = 54_321;
    for ending in ["", "-wal", "-reserve", "-repositories", "-worktrees", "-scratch", "-workers"] {
        let world = World::saying("done").await;
        let path = std::path::PathBuf::from(format!("{}{ending}", world.database().display()));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match ending {
            "" | "-wal" | "-reserve" => std::fs::write(&path, "").unwrap(),
            _ => std::fs::create_dir_all(&path).unwrap(),
        }
        std::os::unix::fs::chown(&path, Some(stranger), None).unwrap();
        let refused = world.run(&["run", "x"]).await.expect(6);
        assert!(refused.err.contains("belongs to another user"), "{ending}: {}", refused.err);
        if ending.is_empty() {
            let refused = world.run(&["doctor", "--rebuild"]).await;
            assert!(refused.err.contains("belongs to another user"), "{refused:?}");
        }
        assert_eq!(world.fake.count(), 0, "{ending}");
        let owner = std::os::unix::fs::MetadataExt::uid(&path.metadata().unwrap());
        assert_eq!(owner, stranger, "{ending} is left as it was");
        // A link to something of this user's is theirs, too.
        std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)).unwrap();
        let mine = world.folder.path().join("mine");
        std::fs::create_dir(&mine).unwrap();
        std::os::unix::fs::symlink(&mine, &path).unwrap();
        std::os::unix::fs::lchown(&path, Some(stranger), None).unwrap();
        world.run(&["run", "x"]).await.expect(6);
        assert_eq!(std::fs::read_dir(&mine).unwrap().count(), 0, "{ending}");
    }
}
