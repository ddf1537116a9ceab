//! Bash.

use crate::fixture::{Fixture, eventually, marker, processes_with};
use posse_protocol::ToolOutput;
use serde_json::json;
use std::time::{Duration, Instant};

fn run(command: &str) -> ToolOutput {
    Fixture::with_shell().call("Bash", json!({"command": command}))
}

#[track_caller]
fn check(command: &str, expected: &str) {
    let output = run(command);
    assert_eq!((output.joined_text().as_str(), output.is_error), (expected, false));
}

#[track_caller]
fn check_failure(command: &str, expected: &str) {
    let output = run(command);
    assert_eq!((output.joined_text().as_str(), output.is_error), (expected, true));
}

#[test]
fn output_and_exit_code_come_back() {
    check("echo hello", "hello\n");
    check("true", "[no output]\n");
    check_failure("echo partly; exit 3", "partly\n[exit code 3]\n");
    check_failure("kill -KILL $$", "[no output]\n[exit code 137]\n");
    check_failure("nosuchcommand 2>/dev/null", "[no output]\n[exit code 127]\n");
}

#[test]
fn both_streams_are_interleaved_as_they_came() {
    check("echo 1; echo 2 >&2; echo 3; echo 4 >&2", "1\n2\n3\n4\n");
}

#[test]
fn it_runs_in_the_workspace_without_input_or_start_up_files() {
    let fixture = Fixture::with_shell();
    let folder = fixture.workspace.path().to_str().unwrap();
    assert_eq!(fixture.ok("Bash", json!({"command": "pwd"})), format!("{folder}\n"));
    check("cat; echo done", "done\n");
    check("shopt -q login_shell || echo plain; echo $-", "plain\nhBc\n");
}

#[test]
fn a_timeout_says_so_and_keeps_the_output() {
    let fixture = Fixture::with_shell();
    let started = Instant::now();
    let input = json!({"command": "echo before; sleep 100; echo after", "timeout": 300});
    fixture.refused("Bash", input, &["before\n", "timed out after 0.3 s", "longer timeout"]);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_is_left_running_is_killed() {
    let marker = marker();
    let output = run(&format!("sh -c 'sleep 1000; : {marker}' & echo started"));
    assert!(output.joined_text().starts_with("started\n"), "{}", output.joined_text());
    assert!(processes_with(&marker).is_empty());
}

#[test]
fn long_output_keeps_its_head_and_tail() {
    let text = run("seq 1 100000").joined_text();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n99999\n100000\n"), "{text}");
    assert!(text.len() < 30_100 && text.contains("bytes left out]"), "{}", text.len());
}

#[test]
fn output_is_shown_while_it_comes() {
    let fixture = Fixture::with_shell();
    let shown = fixture.shown.clone();
    std::thread::scope(|scope| {
        let go = fixture.path("go");
        scope.spawn(move || {
            eventually("the first line is shown", || shown.lock().unwrap().contains("first"));
            std::fs::write(go, "").unwrap();
        });
        let command = "echo first; until [ -e go ]; do sleep 0.01; done; echo second";
        let text = fixture.ok("Bash", json!({"command": command, "timeout": 20_000}));
        assert_eq!(text, "first\nsecond\n");
    });
}

#[test]
fn a_cancelled_command_is_killed() {
    let fixture = Fixture::with_shell();
    let marker = marker();
    let cancel = fixture.cancel.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually("it runs", || !processes_with(&marker).is_empty());
            eventually("it has spoken", || fixture.shown.lock().unwrap().contains("up"));
            cancel.cancel();
        });
        let input = json!({"command": format!("echo up; sleep 1000; : {marker}")});
        fixture.refused("Bash", input, &["up\n", "cancelled"]);
    });
    assert!(processes_with(&marker).is_empty());
}

#[test]
fn a_command_too_long_for_the_system_is_explained() {
    let fixture = Fixture::with_shell();
    let input = json!({"command": format!(": {}", "x".repeat(200_000))});
    fixture.refused("Bash", input, &["too long", "script file"]);
}
