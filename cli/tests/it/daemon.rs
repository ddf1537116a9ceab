//! `posse daemon`: runs go on when the terminal is gone, whatever becomes of the daemon.

use crate::world::{LONG, World, bash, eventually, gone, lives, mode, started};
use posse_testkit::{Gate, Reply, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::{File, TryLockError};
use std::path::PathBuf;

/// Ends the daemon of a world, whatever became of the test.
pub struct Guard(PathBuf);

impl Guard {
    pub fn of(world: &World) -> Guard {
        let mut path = world.database().into_os_string();
        path.push("-daemon");
        Guard(path.into())
    }

    /// What the lock says of whoever holds it.
    pub fn notice(&self) -> Option<Value> {
        let file = File::open(&self.0).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                serde_json::from_str(&std::fs::read_to_string(&self.0).ok()?).ok()
            }
            _ => None,
        }
    }

    /// The daemon's process.
    pub fn pid(&self) -> String {
        self.notice().expect("a daemon runs")["pid"].to_string()
    }

    pub fn socket(&self) -> PathBuf {
        self.notice().expect("a daemon runs")["socket"].as_str().unwrap().into()
    }

    pub fn kill(&self) -> Option<()> {
        let pid = i32::try_from(self.notice()?["pid"].as_i64()?).ok()?;
        kill_process(Pid::from_raw(pid)?, Signal::KILL).ok()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A world with a daemon.
async fn with_daemon(script: Script) -> (World, Guard) {
    let world = World::new(script).await;
    let guard = Guard::of(&world);
    world.run(&["daemon", "start"]).await.expect(0);
    (world, guard)
}

/// Leaves a run to whoever executes it; returns its id.
async fn leave(world: &World, prompt: &str) -> String {
    let exit = world.run(&["run", "--background", prompt]).await.expect(0);
    exit.out.trim().to_owned()
}

/// Waits until a run has ended, and returns it.
async fn ended(world: &World, run: &str) -> Value {
    let mut shown = Value::Null;
    eventually("the end of the run", async || {
        shown = world.run(&["runs", "show", run, "--json"]).await.expect(0).json();
        shown["status"] == "finished"
    })
    .await;
    shown
}

#[tokio::test]
async fn a_run_is_executed_when_the_command_that_left_it_is_gone() {
    let (world, guard) = with_daemon(Script::always(Reply::text("well done"))).await;
    let exit = world.run(&["run", "--background", "do it"]).await.expect(0);
    let run = exit.out.trim();
    let pid = guard.pid();
    assert!(exit.err.contains(&format!("is queued at the daemon (pid {pid})")), "{}", exit.err);
    assert!(exit.err.contains(&format!("posse runs watch {}", &run[18..])), "{}", exit.err);
    let shown = ended(&world, run).await;
    assert_eq!((&shown["outcome"], &shown["text"]), (&json!("completed"), &json!("well done")));

    let status = world.run(&["daemon", "status", "--json"]).await.expect(0).json();
    assert_eq!(status["pid"].to_string(), pid);
    assert_eq!((&status["running"], &status["slots"]), (&json!(true), &json!(4096)));
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    let words = world.run(&["daemon", "status"]).await.expect(0);
    assert!(words.out.contains("0 of 4096 slots in use"), "{}", words.out);

    let stopped = world.run(&["daemon", "stop"]).await.expect(0);
    assert!(stopped.err.contains("no unfinished run is left"), "{}", stopped.err);
    gone(&pid).await;
    assert!(!PathBuf::from(status["socket"].as_str().unwrap()).exists());
    let status = world.run(&["daemon", "status", "--json"]).await.expect(1).json();
    assert_eq!(status["running"], false);
    let none = world.run(&["daemon", "stop"]).await.expect(0);
    assert!(none.err.contains("no daemon runs"), "{}", none.err);
}

#[tokio::test]
async fn whoever_stops_a_daemon_waits_while_one_is_starting() {
    let world = World::saying("x").await;
    world.run(&["run", "x"]).await.expect(0);
    let path = world.database().with_extension("db-daemon");
    // As long as it has said nothing of itself, it is starting.
    let starting = File::create(path).unwrap();
    starting.lock().unwrap();
    let stop = world.start(&["daemon", "stop"]);
    let ended = stop.end();
    tokio::pin!(ended);
    // It waits, however long it takes to get there.
    let early = tokio::time::timeout(std::time::Duration::from_millis(400), &mut ended).await;
    assert!(early.is_err(), "{early:?}");
    drop(starting);
    let exit = ended.await.expect(0);
    assert!(exit.err.contains("no daemon runs"), "{}", exit.err);
}

#[tokio::test]
async fn it_is_alone_with_its_database_and_belongs_to_its_user() {
    let world = World::saying("x").await;
    let guard = Guard::of(&world);
    let starts = [0, 1, 2].map(|_| world.start(&["daemon", "start"]));
    let mut told = Vec::new();
    for start in starts {
        told.push(start.end().await.expect(0).err);
    }
    let pid = guard.pid();
    assert!(told.iter().all(|text| text.contains(&format!("(pid {pid})"))), "{told:?}");
    let again = world.run(&["daemon", "start"]).await.expect(0);
    assert!(again.err.contains(&format!("runs already (pid {pid})")), "{}", again.err);
    let foreground = world.run(&["daemon", "start", "--foreground"]).await.expect(1);
    assert!(foreground.err.contains("a daemon runs already"), "{}", foreground.err);

    let notice = guard.notice().unwrap();
    let (socket, log) = (guard.socket(), PathBuf::from(notice["log"].as_str().unwrap()));
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    assert_eq!((mode(&log), mode(&guard.0)), (0o600, 0o600));
    assert!(socket.as_os_str().len() < 108);

    // It has left the terminal, its folder and its descriptors.
    let process = PathBuf::from(format!("/proc/{pid}"));
    let at = |name: &str| std::fs::read_link(process.join(name)).unwrap().display().to_string();
    let stat = std::fs::read_to_string(process.join("stat")).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!((session, at("cwd").as_str(), at("fd/0").as_str()), (pid, "/", "/dev/null"));
    assert_eq!((at("fd/1"), at("fd/2")), (log.display().to_string(), log.display().to_string()));
}

/// The daemons of this world that there are, whether they have their place or wait for it.
fn daemons(world: &World) -> usize {
    let database = world.database().display().to_string();
    let is_one = |line: Vec<u8>| {
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains(&database) && line.contains("--detached")
    };
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| is_one(line.clone())).count()
}

#[tokio::test]
async fn of_several_that_start_it_at_once_one_daemon_is_left() {
    let world = World::saying("x").await;
    let _guard = Guard::of(&world);
    let start = async || world.run(&["daemon", "start"]).await.expect(0);
    tokio::join!(start(), start(), start());
    assert_eq!(daemons(&world), 1);
    world.run(&["daemon", "stop"]).await.expect(0);
    world.run(&["daemon", "status"]).await.expect(1);
    assert_eq!(daemons(&world), 0);
}

#[tokio::test]
async fn a_stop_in_the_middle_keeps_the_run_for_the_next_start() {
    let gate = Gate::new();
    let script = Script::turns([
        bash("echo once >> ledger"),
        Reply::text("too early").held_by(&gate),
        Reply::text("the end"),
    ]);
    let (world, guard) = with_daemon(script).await;
    let run = leave(&world, "work").await;
    gate.wait_for_held(1).await.unwrap();
    let status = world.run(&["daemon", "status", "--json"]).await.expect(0).json();
    assert_eq!(status["runs"]["running"], 1);
    let pid = guard.pid();
    let stopped = world.run(&["daemon", "stop", "--now"]).await.expect(0);
    assert!(stopped.err.contains("1 unfinished run kept"), "{}", stopped.err);
    gone(&pid).await;
    assert_eq!(world.list().await[0]["status"], "queued");
    gate.open();
    world.run(&["daemon", "start"]).await.expect(0);
    assert_eq!(ended(&world, &run).await["outcome"], "completed");
    assert_eq!(world.read("ledger"), "once\n", "nothing was repeated");
}

#[tokio::test]
async fn a_gentle_stop_lets_the_present_step_end() {
    let gate = Gate::new();
    let script = Script::turns([bash("true").held_by(&gate), Reply::text("the end")]);
    let (world, _guard) = with_daemon(script).await;
    let run = leave(&world, "work").await;
    gate.wait_for_held(1).await.unwrap();
    let stop = world.start(&["daemon", "stop"]);
    stop.notes("1 run may finish the current step").await;
    for command in [&["daemon", "start"][..], &["run", "--background", "x"]] {
        let exit = world.run(command).await.expect(1);
        assert!(exit.err.contains("is stopping"), "{}", exit.err);
    }
    let status = world.run(&["daemon", "status", "--json"]).await.expect(0).json();
    assert_eq!((&status["stopping"], &status["runs"]["running"]), (&json!(true), &json!(1)));
    gate.open();
    let stopped = stop.end().await.expect(0);
    assert!(stopped.err.contains("1 unfinished run kept"), "{}", stopped.err);
    world.run(&["daemon", "start"]).await.expect(0);
    assert_eq!(ended(&world, &run).await["text"], "the end");
    assert_eq!(world.fake.count(), 2, "no reply was asked for twice");
}

#[tokio::test]
async fn a_killed_daemon_loses_nothing() {
    let script = Script::turns([bash(LONG), Reply::text("It was: {{last_tool_result}}")]);
    let (world, guard) = with_daemon(script).await;
    let run = leave(&world, "something long").await;
    let command = world.lines_in("pid", 1).await;
    let (pid, socket) = (guard.pid(), guard.socket());
    guard.kill().unwrap();
    gone(&pid).await;
    gone(&command).await;
    assert!(socket.exists(), "what is left of it is in the way of nobody");
    world.run(&["daemon", "status"]).await.expect(1);
    world.run(&["daemon", "start"]).await.expect(0);
    let shown = ended(&world, &run).await;
    assert!(shown["text"].as_str().unwrap().starts_with("It was: interrupted"), "{shown}");
    assert_eq!(world.read("ledger"), "began\n", "nothing was repeated");
}

#[tokio::test]
async fn a_daemon_whose_database_is_taken_away_ends_and_says_why() {
    let (world, guard) = with_daemon(Script::always(Reply::text("well done"))).await;
    ended(&world, &leave(&world, "one").await).await;
    let notice = guard.notice().unwrap();
    for name in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{name}", world.database().display())).unwrap();
    }
    gone(&notice["pid"].to_string()).await;
    let log = std::fs::read_to_string(notice["log"].as_str().unwrap()).unwrap();
    assert!(log.contains("was removed, or another was put in its place"), "{log}");
    assert!(log.trim_end().lines().last().unwrap().starts_with("  hint: "), "{log}");
    // With the next one all is well.
    let two = leave(&world, "two").await;
    world.run(&["daemon", "start"]).await.expect(0);
    assert_eq!(ended(&world, &two).await["outcome"], "completed");
}

#[tokio::test]
async fn without_a_daemon_it_is_said_what_will_happen_and_the_next_one_does_it() {
    let world = World::saying("at last").await;
    let guard = Guard::of(&world);
    let exit = world.run(&["run", "--background", "later"]).await.expect(0);
    let run = exit.out.trim().to_owned();
    for part in [
        "is queued, but no daemon is running. Start one: `posse daemon start`",
        &format!("`posse runs resume {}`", &run[18..]),
    ] {
        assert!(exit.err.contains(part), "{part}: {}", exit.err);
    }
    assert_eq!(world.fake.count(), 0, "nobody has executed it");
    assert_eq!(world.list().await[0]["status"], "queued");
    let again = world.run(&["run", "--background", "--key", "k", "--json", "x"]).await.expect(0);
    assert_eq!(
        (&again.json()["daemon"], &again.json()["status"]),
        (&Value::Null, &json!("queued"))
    );
    let found = world.run(&["run", "--background", "--key", "k", "x"]).await.expect(0);
    assert_eq!(found.out.trim(), again.json()["run"]);
    assert!(found.err.contains("already has this key; it is queued"), "{}", found.err);
    world.run(&["daemon", "start"]).await.expect(0);
    assert_eq!(ended(&world, &run).await["text"], "at last");
    assert_eq!(ended(&world, found.out.trim()).await["text"], "at last");
    assert!(lives(&guard.pid()));
}

#[tokio::test]
async fn what_is_said_to_a_run_that_has_ended_is_answered_by_the_daemon() {
    let script = Script::turns([Reply::text("one"), Reply::text("two: {{last_user}}")]);
    let (world, _guard) = with_daemon(script).await;
    let run = leave(&world, "first").await;
    ended(&world, &run).await;
    let sent = world.run(&["runs", "send", &run, "and then?"]).await.expect(0);
    assert!(sent.err.contains("the daemon continues run"), "{}", sent.err);
    eventually("the second answer", async || ended(&world, &run).await["text"] == "two: and then?")
        .await;
}

#[tokio::test]
async fn each_run_has_the_agents_of_its_own_folder() {
    let script = Script::new()
        .conversation(crate::tree::lead([crate::tree::task("local", "one")]))
        .conversation(crate::tree::child("one", Reply::text("1")));
    let (world, _guard) = with_daemon(script).await;
    let agents = world.work().join(".posse/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\nname: local\ndescription: knows this folder\n---\nLook.";
    std::fs::write(agents.join("local.md"), text).unwrap();
    let run = leave(&world, "lead them").await;
    let shown = ended(&world, &run).await;
    assert_eq!((&shown["text"], &shown["below"]), (&json!("all done"), &json!(1)), "{shown:#}");
    let tree = world.run(&["runs", "tree", &run]).await.expect(0);
    assert!(tree.out.contains("[local]"), "{}", tree.out);
}

#[tokio::test]
async fn a_model_that_the_daemon_cannot_reach_is_refused_before_anything_is_stored() {
    let world = World::saying("x").await;
    let _guard = Guard::of(&world);
    let mut command = world.command(&["daemon", "start"]);
    command.env_remove("ANTHROPIC_API_KEY");
    started(command).end().await.expect(0);
    let exit = world.run(&["run", "--background", "x"]).await.expect(1);
    assert!(exit.err.contains("the daemon refuses") && exit.err.contains("ANTHROPIC_API_KEY"));
    assert!(exit.err.contains("hint: it has the keys and settings it was started with"));
    assert!(world.list().await.is_empty());
}

#[tokio::test]
async fn why_it_did_not_come_up_is_told_in_its_own_words() {
    let world = World::saying("x").await;
    let _guard = Guard::of(&world);
    std::fs::create_dir_all(world.database().parent().unwrap()).unwrap();
    std::fs::write(world.database(), "this is no database, and never was one".repeat(100)).unwrap();
    let exit = world.run(&["daemon", "start"]).await.expect(6);
    assert!(exit.err.contains("the daemon ended at once (exit status: 6)"), "{}", exit.err);
    assert!(
        exit.err.contains("posse.db") && exit.err.contains("hint: its log is "),
        "{}",
        exit.err
    );
}
