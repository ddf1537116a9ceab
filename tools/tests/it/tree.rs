//! Nothing that a command started outlives it, whatever it tries.

use crate::fixture::{
    Fixture, eventually, host, launcher, marker, processes_in, processes_with, zombies,
};
use posse_tools::confine::Confinement;
use posse_tools::launch::{Command, Finished, LaunchError, Status};
use std::ffi::OsString;
use std::future::Future;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn command(line: &str) -> Command {
    Command {
        program: "bash".into(),
        args: ["--noprofile", "--norc", "-c", line].map(OsString::from).to_vec(),
        cwd: ".".into(),
        variables: Vec::new(),
        deadline: Duration::from_secs(60),
        output_cap: 10_000,
        writable_bytes: None,
        confinement: Confinement::none(),
    }
}

fn run(command: &Command) -> Result<Finished, LaunchError> {
    let fixture = Fixture::new();
    let launcher = launcher().with_grace(Duration::from_millis(300));
    let run = launcher.run(&fixture.workspace, command, &fixture.cancel, &|_| {});
    fixture.runtime.block_on(run)
}

/// Runs a line in which `MARKER` stands for a word that its processes carry, and expects that
/// none of them is left when the call returns.
#[track_caller]
fn check(line: &str, deadline: Duration, expected: Status) -> Finished {
    let marker = marker();
    let line = line.replace("MARKER", &marker);
    let started = Instant::now();
    let finished = run(&Command { deadline, ..command(&line) }).unwrap();
    assert_eq!(finished.status, expected, "{finished:?}");
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    finished
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
/// A process that stays, carries the marker, and tells that it is there.
const SLEEPER: &str = "sh -c 'echo up; while :; do sleep 100; done; : MARKER'";

#[test]
fn a_daemon_in_its_own_session_dies() {
    // The command itself ends only when the daemon is up.
    let line = format!("setsid {SLEEPER} > log & until grep -q up log; do sleep 0.01; done");
    let finished = check(&line, LONG, Status::Exited(0));
    assert!(finished.leftovers >= 1);
}

#[test]
fn a_daemon_by_double_fork_dies() {
    let line = format!(
        "(setsid {SLEEPER} > log 2>&1 < /dev/null & ) & wait; until grep -q up log; do sleep 0.01; done"
    );
    check(&line, LONG, Status::Exited(0));
}

#[test]
fn a_command_that_ignores_term_is_killed() {
    let line = "trap '' TERM; echo up; while :; do sleep 100; done; : MARKER";
    check(line, SHORT, Status::TimedOut);
}

#[test]
fn a_command_that_heeds_term_can_still_speak() {
    let line = "trap 'echo bye; exit 0' TERM; echo up; sleep 100 & wait; : MARKER";
    let finished = check(line, SHORT, Status::TimedOut);
    assert_eq!(finished.output, "up\nbye\n");
}

#[test]
fn a_stopped_tree_dies() {
    check("sh -c 'kill -STOP $$; : MARKER'; : MARKER", SHORT, Status::TimedOut);
    check("kill -STOP $$; : MARKER", SHORT, Status::TimedOut);
    let line = "sh -c 'echo up; kill -STOP $$; : MARKER' > log & until grep -q up log; do :; done";
    check(line, LONG, Status::Exited(0));
}

#[test]
fn a_grandchild_that_holds_the_output_does_not_hang_the_call() {
    let finished = check(&format!("setsid {SLEEPER} & echo done"), LONG, Status::Exited(0));
    assert!(finished.output.contains("done\n"));
}

#[test]
fn a_tree_that_keeps_forking_dies() {
    // Each round starts a new session and leaves the old one, as fast as it can.
    let line = "f() { echo > up; setsid bash -c \"$(declare -f f); f; : MARKER\" & \
                sleep 0.005; f; }; f & until [ -e up ]; do sleep 0.01; done; sleep 0.05";
    check(line, LONG, Status::Exited(0));
}

#[test]
fn a_child_that_stops_its_supervisor_still_dies_when_cancelled() {
    let fixture = Fixture::new();
    let marker = marker();
    let command = command(&format!("kill -STOP $PPID; echo > up; sleep 1000; : {marker}"));
    let (cancel, up) = (fixture.cancel.clone(), fixture.path("up"));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            eventually("the supervisor is stopped", || up.exists());
            cancel.cancel();
        });
        let launcher = launcher();
        let run = launcher.run(&fixture.workspace, &command, &fixture.cancel, &|_| {});
        assert_eq!(fixture.runtime.block_on(run).unwrap().status, Status::Cancelled);
    });
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

#[test]
fn a_child_that_stops_its_supervisor_still_dies_at_its_deadline() {
    let line = "kill -STOP $PPID; while :; do sleep 100; done; : MARKER";
    check(line, SHORT, Status::TimedOut);
    let line = "while read key value; do [ $key = PPid: ] && guardian=$value; done \
                < /proc/$PPID/status; kill -STOP $guardian $PPID; sleep 1000; : MARKER";
    check(line, SHORT, Status::TimedOut);
}

#[test]
fn a_command_cancelled_before_it_begins_never_runs() {
    let fixture = Fixture::new();
    fixture.cancel.cancel();
    let command = command("echo > ran");
    let launcher = launcher();
    let run = launcher.run(&fixture.workspace, &command, &fixture.cancel, &|_| {});
    let finished = fixture.runtime.block_on(run).unwrap();
    assert_eq!(finished.status, Status::Cancelled);
    assert!(!fixture.path("ran").exists());
}

#[test]
fn dropping_the_call_kills_the_tree_without_being_polled() {
    let fixture = Fixture::new();
    let folder = fixture.workspace.path();
    let command = command("setsid sh -c 'echo > up; sleep 1000; :' & sleep 1000");
    let launcher = launcher();
    {
        let _enter = fixture.runtime.enter();
        let mut run =
            Box::pin(launcher.run(&fixture.workspace, &command, &fixture.cancel, &|_| {}));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        eventually("the tree is up", || {
            assert!(run.as_mut().poll(&mut context).is_pending());
            folder.join("up").exists()
        });
        assert!(processes_in(folder).len() >= 3, "supervisor, command and daemon");
    }
    eventually("the tree is gone", || processes_in(folder).is_empty());
    eventually("the supervisor is buried", || {
        // Tokio buries dropped children whenever its driver turns, as it does in a busy host.
        fixture.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
        zombies().is_empty()
    });
}

#[test]
fn killing_the_host_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let line = "setsid sh -c 'echo > up; sleep 1000; :' & sleep 1000; :";
    let mut host = std::process::Command::new(host())
        .arg(line)
        .current_dir(&folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the tree is up", || folder.join("up").exists());
    assert!(processes_in(&folder).len() >= 4, "host, supervisor, command and daemon");
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("the tree is gone", || processes_in(&folder).is_empty());
}

#[test]
fn killing_the_host_at_any_moment_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for moment in 0..30 {
        let started = Instant::now();
        let mut host = std::process::Command::new(host())
            .arg("setsid sleep 1000 & sleep 1000")
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // From before the supervisor starts to after the daemon does.
        while started.elapsed() < Duration::from_micros(700) * moment {
            std::hint::spin_loop();
        }
        host.kill().unwrap();
        host.wait().unwrap();
        eventually("the tree is gone", || processes_in(&folder).is_empty());
    }
}

#[test]
fn a_command_that_kills_by_its_own_text_does_not_hit_its_supervisor() {
    let marker = marker();
    let line = format!("exec sh -c 'pkill -TERM -f {marker}; sleep 100'");
    assert_eq!(run(&command(&line)).unwrap().status, Status::Signalled(15));
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

/// Runs a line that ends its own supervision after it has left a daemon, and expects that nothing
/// is there any more when the call returns. `$guardian` is the parent of its parent.
#[track_caller]
fn check_unsupervised(end_it: &str) {
    let marker = marker();
    let line = format!(
        "setsid {SLEEPER} > log & until grep -q up log; do sleep 0.01; done; \
         while read key value; do [ $key = PPid: ] && guardian=$value; done < /proc/$PPID/status; \
         {end_it}; while :; do sleep 100; done; : MARKER"
    );
    let error = run(&command(&line.replace("MARKER", &marker))).unwrap_err();
    assert!(matches!(error, LaunchError::Lost { .. }), "{error}");
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

#[test]
fn killing_the_supervisor_leaves_nothing() {
    check_unsupervised("kill -KILL $PPID");
}

#[test]
fn killing_the_guardian_leaves_nothing() {
    check_unsupervised("kill -KILL $guardian");
}

#[test]
fn killing_a_group_never_reaches_both_supervisor_and_guardian() {
    check_unsupervised("kill -KILL -- -$PPID");
    check_unsupervised("kill -KILL -- -$guardian");
}

#[test]
fn killing_one_while_the_other_is_stopped_leaves_nothing() {
    // The stopped one goes on when the host lets go, which the deadline makes it do.
    for (stopped, killed) in [("$guardian", "$PPID"), ("$PPID", "$guardian")] {
        let marker = marker();
        let line = format!(
            "while read key value; do [ $key = PPid: ] && guardian=$value; done \
             < /proc/$PPID/status; setsid sh -c 'echo up; sleep 1000; : {marker}' > log & \
             until grep -q up log; do sleep 0.01; done; kill -STOP {stopped}; kill -KILL {killed}; \
             while :; do sleep 100; done; : {marker}"
        );
        let error = run(&Command { deadline: SHORT, ..command(&line) }).unwrap_err();
        assert!(matches!(error, LaunchError::Lost { .. }), "{error}");
        assert_eq!(processes_with(&marker), Vec::<i32>::new(), "{stopped} {killed}");
    }
}

#[test]
fn an_executable_that_was_removed_still_supervises() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    std::fs::copy(host(), &copy).unwrap();
    let output = std::process::Command::new(&copy)
        .args(["rm copy", "[ ! -e copy ] && echo still here"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "still here\n");
    assert!(output.status.success());
}
