//! A full disk: a real one, a few megabytes of memory mounted for the commands of a test.

use crate::world::{Exit, World, bash, started};
use posse_testkit::{Reply, Rule, Script, When, skipped};
use tokio::process::Command;

/// Runs this script of the shell with a small disk at `$disk`, which it can fill up with `fill`.
/// Nothing comes of it where no disk can be mounted.
async fn on_a_small_disk(world: &World, script: &str) -> Option<Exit> {
    let disk = world.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let (disk, binary) = (disk.display(), env!("CARGO_BIN_EXE_posse"));
    let script = format!(
        "disk={disk}
        mount -t tmpfs -o size=8m,mode=700 tmpfs $disk || exit 99
        # Should the test be broken off, nothing stays.
        posse() {{ timeout 50 {binary} --db $disk/posse.db \"$@\"; }}
        fill() {{ cat /dev/zero > $disk/filler 2>/dev/null; }}
        {script}"
    );
    let is_root = rustix::process::geteuid().is_root();
    let mut command = Command::new("unshare");
    command.args([if is_root { "-m" } else { "-Urm" }, "sh", "-c", &script]);
    let exit = started(world.set_up(command)).end().await;
    if !exit.out.contains("mounted") {
        assert!(!is_root, "root could not mount a small disk: {exit:?}");
        skipped("posse-cli: a full disk (none can be mounted here without being root)");
        return None;
    }
    Some(exit)
}

#[tokio::test]
async fn what_only_reads_works_on_a_full_disk() {
    let world = World::saying("hello").await;
    let script = "
        echo mounted
        posse run x || exit 1
        # With the space that is kept back, and then without.
        for round in 1 2; do
            rm -f $disk/filler
            [ $round = 2 ] && rm -f $disk/posse.db-reserve
            fill
            for verb in 'runs list' 'runs verify' cost 'audit list'; do
                posse $verb || { echo \"$verb: $?\"; exit 1; }
            done
            run=$(posse runs list --json | sed -n 's/.*\"run\": \"\\(.*\\)\".*/\\1/p' | head -1)
            posse runs show $run || exit 1
        done
        posse run y; echo code $?
        rm $disk/filler
        posse run z && posse runs verify";
    let Some(exit) = on_a_small_disk(&world, script).await else { return };
    let exit = exit.expect(0);
    assert!(exit.out.contains("code 6\n"), "{exit:?}");
    assert_eq!(exit.err.matches("the disk is full").count(), 1, "{exit:?}");
}

#[tokio::test]
async fn a_run_that_waits_for_space_says_so_at_once_and_when_it_goes_on() {
    let wait = "touch began; until [ -e go ]; do sleep 0.05; done";
    let world = World::new(Script::turns([bash(wait), Reply::text("at last")])).await;
    let script = "
        echo mounted
        posse run x 2> progress &
        until [ -e began ]; do sleep 0.05; done
        rm -f $disk/posse.db-reserve
        fill
        touch go
        until grep -q 'the disk is full' progress; do sleep 0.05; done
        rm $disk/filler
        wait $!";
    let Some(exit) = on_a_small_disk(&world, script).await else { return };
    let exit = exit.expect(0);
    assert!(exit.out.ends_with("at last\n"), "{exit:?}");
    let progress = world.read("progress");
    assert_eq!(progress.matches("the disk is full").count(), 1, "{progress}");
    let told = progress.find("the disk is full").unwrap();
    let again = progress.find("there is space again; continuing");
    assert!(again.is_some_and(|again| again > told), "{progress}");
}

#[tokio::test]
async fn a_run_is_cancelled_on_a_full_disk_by_another_process() {
    let wait = "touch began; until [ -e go ]; do sleep 0.05; done";
    let world = World::new(Script::turns([bash(wait), Reply::text("never said")])).await;
    let script = "
        echo mounted
        posse run x 2> progress &
        until [ -e began ]; do sleep 0.05; done
        fill
        # The result of the call cannot be stored.
        touch go
        until grep -q 'the disk is full' progress; do sleep 0.05; done
        posse runs cancel --all --yes; echo cancel $?
        wait $!; echo run $?
        rm $disk/filler
        posse runs list && posse runs verify";
    let Some(exit) = on_a_small_disk(&world, script).await else { return };
    let exit = exit.expect(0);
    assert!(exit.out.contains("cancel 0\nrun 3\n"), "{exit:?}");
    assert!(exit.err.contains("cancelled by the user"), "{exit:?}");
}

#[tokio::test]
async fn a_run_is_cancelled_on_a_full_disk_when_its_process_is_gone() {
    let world = World::new(Script::always(bash("touch began; sleep 600"))).await;
    let script = format!(
        "echo mounted
        {} --db $disk/posse.db run x & owner=$!
        until [ -e began ]; do sleep 0.05; done
        fill
        kill -9 $owner
        wait $owner
        posse runs cancel --all --yes; echo cancel $?
        posse runs list
        rm $disk/filler
        posse runs verify",
        env!("CARGO_BIN_EXE_posse")
    );
    let Some(exit) = on_a_small_disk(&world, &script).await else { return };
    let exit = exit.expect(0);
    assert!(exit.out.contains("cancel 0\n"), "{exit:?}");
    assert!(exit.err.contains("cancelled by the user"), "{exit:?}");
}

#[tokio::test]
async fn a_database_on_read_only_media_can_be_read() {
    let script = Script::new()
        .rule(
            Rule::when(When::any().first_user_contains("stay"))
                .reply(bash("touch began; sleep 600")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("hello")));
    let world = World::new(script).await;
    let script = format!(
        "echo mounted
        posse run x || exit 1
        run=$(posse runs list --json | sed -n 's/.*\"run\": \"\\(.*\\)\".*/\\1/p' | head -1)
        # Closed, and then left by a process that was killed: its last events are in the log.
        for round in 1 2; do
            mount -o remount,ro $disk || exit 98
            for verb in list verify \"show $run\" \"log $run\" \"export $run\"; do
                posse runs $verb || {{ echo \"$verb: $?\"; exit 1; }}
            done
            posse cost && posse audit list || exit 1
            posse runs list > list.$round
            posse run w; echo code $?
            posse runs resume $run more; echo code $?
            for which in --all $left; do
                timeout 60 {0} --db $disk/posse.db runs resume $which; echo code $?
            done
            mount -o remount,rw $disk
            [ $round = 2 ] && break
            {0} --db $disk/posse.db run stay & owner=$!
            until [ -e began ]; do sleep 0.05; done
            kill -9 $owner
            wait $owner
            left=$(posse runs list --status crashed --json | sed -n 's/.*\"run\": \"\\(.*\\)\".*/\\1/p')
        done
        posse runs verify",
        env!("CARGO_BIN_EXE_posse")
    );
    let Some(exit) = on_a_small_disk(&world, &script).await else { return };
    let exit = exit.expect(0);
    assert_eq!(exit.out.matches("code 6\n").count(), 6, "{exit:?}");
    assert!(exit.err.contains("it is on read-only media"), "{exit:?}");
    assert!(!world.read("list.1").contains("crashed"), "{}", world.read("list.1"));
    assert!(world.read("list.2").contains("crashed"), "{}", world.read("list.2"));
}
