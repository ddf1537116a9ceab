//! What was stored last and cannot be read any more: it is told, nothing goes on as if that had not
//! happened, and `posse doctor` settles it.

use crate::daemon::Guard;
use crate::world::{LONG, World, bash, gone};
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use rustix::process::Signal;

/// A run that was killed in the middle of a command, with what it did last in the write-ahead log.
async fn killed() -> World {
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("long"))
                .reply(bash("echo first >> ledger"))
                .reply(bash(LONG))
                .reply(Reply::text("over")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("done")));
    let world = World::new(script).await;
    world.run(&["run", "something short"]).await.expect(0);
    let running = world.start(&["run", "something long"]);
    let pid = world.lines_in("pid", 1).await;
    running.signal(Signal::KILL);
    running.end().await;
    gone(&pid).await;
    world
}

/// Flips the last bit of the last frame.
fn flip_the_end(world: &World) {
    let path = world.database().with_extension("db-wal");
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn commits_that_a_flipped_bit_takes_away_are_told_and_nothing_is_repeated() {
    let world = killed().await;
    let guard = Guard::of(&world);
    flip_the_end(&world);
    let requests = world.fake.count();
    for arguments in [
        &["run", "more"][..],
        &["runs", "resume", "--all"],
        &["chat"],
        &["daemon", "start"],
        &["run", "--background", "more"],
    ] {
        let exit = world.run(arguments).await.expect(6);
        assert!(exit.err.contains("of its write-ahead log was changed"), "{arguments:?}: {exit:?}");
        assert!(exit.err.contains("`posse doctor --rebuild`"), "{arguments:?}: {exit:?}");
    }
    drop(guard);
    assert_eq!(world.fake.count(), requests, "nothing was executed");
    assert_eq!(world.read("ledger"), "first\nbegan\n");
    // What is left can be read.
    let list = world.list().await;
    assert_eq!(list.len(), 2);
    for run in &list {
        let run = run["run"].as_str().unwrap();
        world.run(&["runs", "show", run]).await.expect(0);
        world.run(&["runs", "log", run]).await.expect(0);
        world.run(&["runs", "export", run]).await.expect(0);
    }
    let exit = world.run(&["runs", "list"]).await.expect(0);
    assert!(exit.err.contains("warning: the database ") && exit.err.contains("posse doctor"));
    world.run(&["cost"]).await.expect(0);
    let exit = world.run(&["runs", "verify"]).await.expect(6);
    assert!(exit.out.starts_with("the database  damaged: frame "), "{}", exit.out);

    let exit = world.run(&["doctor", "--rebuild"]).await.expect(0);
    assert!(exit.out.contains("1 unfinished run paused"), "{}", exit.out);
    world.run(&["runs", "verify"]).await.expect(0);
    assert_eq!(world.run(&["run", "more"]).await.expect(0).out, "done\n");
    let statuses: Vec<_> = world.list().await.iter().map(|run| run["status"].clone()).collect();
    assert_eq!(statuses, ["finished", "paused", "finished"], "it waits for a person");
    assert_eq!(world.read("ledger"), "first\nbegan\n", "nothing was repeated");
}

#[tokio::test]
async fn a_backup_takes_the_place_of_a_database_and_its_runs_wait() {
    let world = killed().await;
    // As a backup is made: whole, and in one file.
    crate::records::sql(&world, "VACUUM INTO 'backup.db'").await;
    let backup = world.work().join("backup.db");
    let made = std::env::current_dir().unwrap().join("backup.db");
    std::fs::rename(made, &backup).unwrap();
    std::fs::write(world.database(), "").unwrap();
    let exit = world.run(&["run", "more"]).await.expect(6);
    assert!(exit.err.contains("it is empty, and `-"), "{}", exit.err);
    let backup = backup.display().to_string();
    let exit = world.run(&["doctor", "--restore", &backup]).await.expect(0);
    assert!(exit.out.contains("restored from ") && exit.out.contains("1 unfinished run paused"));
    world.run(&["runs", "verify"]).await.expect(0);
    assert_eq!(world.list().await.len(), 2);
    let exit = world.run(&["doctor", "--restore", "nothing.db"]).await.expect(6);
    assert!(exit.err.contains("nothing.db"), "{}", exit.err);
}

#[tokio::test]
async fn nobody_mends_a_database_that_is_in_use() {
    let world = World::saying("done").await;
    let guard = Guard::of(&world);
    world.run(&["daemon", "start"]).await.expect(0);
    let exit = world.run(&["doctor", "--rebuild"]).await.expect(6);
    assert!(exit.err.contains("a process has it open") && exit.err.contains("posse daemon stop"));
    drop(guard);
}

#[tokio::test]
async fn a_log_that_is_taken_away_ends_the_daemon() {
    let world = World::saying("done").await;
    let guard = Guard::of(&world);
    let running = world.start(&["daemon", "start", "--foreground"]);
    running.notes("executes the runs").await;
    world.run(&["run", "--background", "first"]).await.expect(0);
    std::fs::remove_file(world.database().with_extension("db-wal")).unwrap();
    let exit = running.end().await.expect(6);
    assert!(exit.err.contains("its write-ahead log (`-wal`) was removed"), "{}", exit.err);
    drop(guard);
    world.run(&["runs", "verify"]).await.expect(0);
    assert_eq!(world.list().await.len(), 1, "what was stored is kept");
}
