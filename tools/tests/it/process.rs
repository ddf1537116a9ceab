//! Processes that are held: what they get, what they say, and that nothing is left of them.

use crate::fixture::{
    Fixture, eventually, host, launcher, marker, processes_in, processes_with, zombies,
};
use posse_agent::Claim;
use posse_tools::confine::Confinement;
use posse_tools::launch::{Command, LaunchError, Launcher, Process, Status, allowed_environment};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

const LONGEST: usize = 10_000;

fn command(line: &str) -> Command {
    Command {
        program: "bash".into(),
        args: ["--noprofile", "--norc", "-c", line].map(OsString::from).to_vec(),
        cwd: ".".into(),
        variables: Vec::new(),
        deadline: Duration::MAX,
        output_cap: 1_000,
        writable_bytes: None,
        confinement: Confinement::workspace_write(),
    }
}

impl Fixture {
    async fn hold_with(&self, launcher: &Launcher, command: &Command) -> Process {
        let claim = Claim::default();
        launcher.hold(&claim, &self.workspace, command, &self.cancel).await.unwrap()
    }

    async fn hold(&self, line: &str) -> Process {
        self.hold_with(&launcher(), &command(line)).await
    }
}

async fn line(process: &mut Process) -> String {
    let line = process.read_line(LONGEST).await.unwrap().expect("its output has ended");
    String::from_utf8(line).unwrap()
}

#[test]
fn it_answers_what_it_reads_for_as_long_as_it_is_held() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        let mut process = fixture.hold("while read -r word; do echo \"got $word\"; done").await;
        for word in ["one", "two", "three"] {
            process.write_line(word.as_bytes()).await.unwrap();
            assert_eq!(line(&mut process).await, format!("got {word}"));
        }
        // At the end of its input it ends by itself.
        let (input, mut output) = process.take_pipes().unwrap();
        drop(input);
        let mut rest = String::new();
        output.read_to_string(&mut rest).await.unwrap();
        let finished = process.ended().await.unwrap();
        assert_eq!((rest.as_str(), finished.status), ("", Status::Exited(0)));
        assert!(finished.confined_by.is_some());
    });
    assert_eq!(zombies(), Vec::<i32>::new());
}

#[test]
fn it_has_the_environment_of_commands_and_its_own_variables() {
    let all = [("PATH", "/usr/bin:/bin"), ("SECRET_KEY", "x"), ("HOME", "/h")];
    let all = all.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let launcher =
        Launcher::through(&host()).with_environment(allowed_environment(all.into_iter(), &[]));
    let fixture = Fixture::new();
    let variables = vec![("TOKEN".into(), "t".into())];
    let command =
        Command { variables, ..command("echo ${SECRET_KEY-none} $TOKEN; ls /proc/$$/fd; :") };
    let output = fixture.runtime.block_on(async {
        let mut process = fixture.hold_with(&launcher, &command).await;
        let mut output = String::new();
        let (_input, mut reader) = process.take_pipes().unwrap();
        reader.read_to_string(&mut output).await.unwrap();
        output
    });
    // 255 is bash's own.
    let lines: Vec<&str> = output.lines().filter(|line| *line != "255").collect();
    assert_eq!(lines, ["none t", "0", "1", "2"]);
}

#[test]
fn it_is_confined_like_a_command() {
    let fixture = Fixture::new();
    let outside = fixture.outside().display().to_string();
    let tries = format!(
        "echo in > inside; echo out > {outside}/made; cat {outside}/canary; \
         (exec 3<>/dev/tcp/127.0.0.1/1) && echo network; echo tried"
    );
    fixture.runtime.block_on(async {
        let mut process = fixture.hold(&tries).await;
        assert_eq!(line(&mut process).await, "tried");
        process.stop().await.unwrap();
    });
    assert_eq!(fixture.content("inside"), b"in\n");
    fixture.canary_is_whole();
}

#[test]
fn when_it_is_dropped_all_of_it_dies_without_being_polled() {
    let fixture = Fixture::new();
    let marker = marker();
    let daemon = format!(
        "setsid sh -c 'while :; do sleep 100; done; : {marker}' & echo up; sleep 1000; : {marker}"
    );
    let process = fixture.runtime.block_on(async {
        let mut process = fixture.hold(&daemon).await;
        assert_eq!(line(&mut process).await, "up");
        process
    });
    assert!(!processes_with(&marker).is_empty());
    // Nothing polls any more.
    drop(process);
    eventually("it is gone", || processes_with(&marker).is_empty());
    eventually("its supervisor too", || processes_in(fixture.workspace.path()).is_empty());
}

#[test]
fn to_stop_it_is_to_wait_until_all_of_it_is_dead() {
    let fixture = Fixture::new();
    let marker = marker();
    let stubborn = format!("trap '' TERM; echo up; while :; do sleep 0.1; done; : {marker}");
    fixture.runtime.block_on(async {
        let mut process = fixture.hold(&stubborn).await;
        assert_eq!(line(&mut process).await, "up");
        assert_eq!(process.stop().await.unwrap().status, Status::Cancelled);
        assert_eq!(processes_with(&marker), Vec::<i32>::new());
    });
}

#[test]
fn it_has_a_deadline_if_it_is_given_one() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        let command = Command { deadline: Duration::from_millis(200), ..command("sleep 1000") };
        let mut process = fixture.hold_with(&launcher(), &command).await;
        assert_eq!(process.ended().await.unwrap().status, Status::TimedOut);
    });
}

#[test]
fn how_it_ended_is_told_with_the_end_of_what_it_said() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        let mut process = fixture.hold("echo 'no such thing' >&2; exit 3").await;
        assert_eq!(process.read_line(LONGEST).await.unwrap(), None);
        let finished = process.ended().await.unwrap();
        assert_eq!(finished.status, Status::Exited(3));
        assert_eq!(finished.output, "no such thing\n");
    });
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        for confinement in [Confinement::none(), Confinement::workspace_write()] {
            let (program, args) = ("no-such-program".into(), Vec::new());
            let command = Command { program, args, confinement, ..command("") };
            let mut process = fixture.hold_with(&launcher(), &command).await;
            assert_eq!(process.read_line(LONGEST).await.unwrap(), None);
            let error = process.ended().await.unwrap_err();
            assert!(matches!(error, LaunchError::NotStarted { .. }), "{error:?}");
            assert!(error.to_string().contains("no-such-program"), "{error}");
        }
    });
}

#[test]
fn a_flood_of_errors_neither_stops_it_nor_fills_memory() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        let flood =
            "head -c 20000000 /dev/zero | tr '\\0' x >&2; echo end >&2; echo done; read -r _";
        let mut process = fixture.hold(flood).await;
        // It comes this far only if somebody reads the flood.
        assert_eq!(line(&mut process).await, "done");
        let finished = process.stop().await.unwrap();
        assert!(finished.output.ends_with("xend\n"), "{}", finished.output);
        assert_eq!(finished.output.len(), 1_000);
        assert_eq!(finished.left_out_bytes, 20_000_004 - 1_000);
    });
}

#[test]
fn a_line_without_end_is_an_error_and_no_memory() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        let mut process = fixture.hold("echo short; tr '\\0' x < /dev/zero").await;
        assert_eq!(line(&mut process).await, "short");
        let error = process.read_line(LONGEST).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(process.stop().await.unwrap().status, Status::Cancelled);
    });
}

#[test]
fn who_does_not_read_its_output_stops_it() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        // Much more than a pipe holds.
        let line_of_all = "head -c 1000000 /dev/zero; echo > written; read -r _";
        let mut process = fixture.hold(line_of_all).await;
        let (_input, mut output) = process.take_pipes().unwrap();
        let mut buffer = vec![0; 500_000];
        output.read_exact(&mut buffer).await.unwrap();
        assert!(!fixture.path("written").exists());
        output.read_exact(&mut buffer).await.unwrap();
        eventually("it goes on", || fixture.path("written").exists());
    });
}

#[test]
fn who_writes_to_one_that_has_ended_is_told() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        let mut process = fixture.hold("exit 0").await;
        process.ended().await.unwrap();
        let error = process.write_line(b"hello").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn what_is_cancelled_before_it_begins_never_runs() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let command = command("echo > began");
        let claim = Claim::default();
        let launcher = launcher();
        let held = launcher.hold(&claim, &fixture.workspace, &command, &cancelled).await;
        assert_eq!(held.unwrap().ended().await.unwrap().status, Status::Cancelled);
        let lost = Claim::new(|| false);
        let held = launcher.hold(&lost, &fixture.workspace, &command, &fixture.cancel).await;
        assert!(matches!(held, Err(LaunchError::Forsaken)));
    });
    assert!(!fixture.path("began").exists());
}

#[test]
fn a_long_message_arrives_whole() {
    let fixture = Fixture::new();
    fixture.runtime.block_on(async {
        let mut process = fixture.hold("exec cat").await;
        let (mut input, mut output) = process.take_pipes().unwrap();
        let sent = vec![b'y'; 3_000_000];
        let mut received = vec![0; sent.len()];
        let write = async {
            input.write_all(&sent).await.unwrap();
            input.shutdown().await.unwrap();
        };
        let read = async { output.read_exact(&mut received).await.unwrap() };
        tokio::join!(write, read);
        assert_eq!(received, sent);
    });
}

#[test]
fn killing_the_host_leaves_nothing_of_what_it_held() {
    let fixture = Fixture::new();
    let marker = marker();
    let mut killed = std::process::Command::new(host())
        .args(["hold", &format!("setsid sleep 1000 & echo up; sleep 1000; : {marker}")])
        .current_dir(fixture.workspace.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut up = String::new();
    BufReader::new(killed.stdout.take().unwrap()).read_line(&mut up).unwrap();
    assert_eq!(up, "up\n");
    killed.kill().unwrap();
    killed.wait().unwrap();
    eventually("it is gone", || processes_with(&marker).is_empty());
    eventually("its supervisor too", || processes_in(fixture.workspace.path()).is_empty());
}
