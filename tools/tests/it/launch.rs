//! The launcher: what a command gets, and what comes back.

use crate::fixture::{Fixture, eventually, host, launcher, zombies};
use posse_tools::confine::{Confinement, Limit};
use posse_tools::launch::{Command, Finished, LaunchError, Launcher, Status, allowed_environment};
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::time::Duration;

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

fn run_with(launcher: &Launcher, command: &Command) -> Result<Finished, LaunchError> {
    let fixture = Fixture::new();
    let (workspace, cancel) = (&fixture.workspace, &fixture.cancel);
    fixture.runtime.block_on(launcher.run(workspace, command, cancel, &|_| {}))
}

fn run(line: &str) -> Finished {
    run_with(&launcher(), &command(line)).unwrap()
}

#[test]
fn the_environment_has_only_what_is_allowed() {
    let all = [("PATH", "/usr/bin:/bin"), ("LC_TIME", "C"), ("SECRET_KEY", "x"), ("HOME", "/h")];
    let all = all.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let launcher =
        Launcher::through(&host()).with_environment(allowed_environment(all.into_iter(), &[]));
    let command = Command { program: "env".into(), args: Vec::new(), ..command("") };
    let mut lines: Vec<String> =
        run_with(&launcher, &command).unwrap().output.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    let settings = "GIT_CONFIG_PARAMETERS='gc.auto=0' 'maintenance.auto=false' \
                    'rebase.autoStash=false' 'merge.autoStash=false'";
    let always = [settings, "GIT_EDITOR=true", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"];
    let mut expected = vec!["HOME=/h", "LC_TIME=C", "PAGER=cat", "PATH=/usr/bin:/bin"];
    expected.splice(0..0, always);
    assert_eq!(lines, expected);
}

#[test]
fn without_an_environment_it_is_empty() {
    let command = Command { program: "/usr/bin/env".into(), args: Vec::new(), ..command("") };
    assert_eq!(run_with(&Launcher::through(&host()), &command).unwrap().output, "");
}

/// A file system in memory, on which nothing is written to a disk.
fn in_memory(path: &std::path::Path) -> bool {
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;
    rustix::fs::statfs(path).is_ok_and(|facts| facts.f_type == TMPFS)
}

#[test]
fn what_all_processes_wrote_is_counted_whoever_buried_them() {
    let fixture = Fixture::new();
    if in_memory(fixture.workspace.path()) {
        return;
    }
    // One in the command, one below it, one that it leaves an orphan and that ends before it.
    let line = "head -c 1000000 /dev/zero > a; (head -c 1000000 /dev/zero > b); \
                (setsid bash -c 'head -c 1000000 /dev/zero > c; mv c d' &); \
                until [ -e d ]; do sleep 0.01; done";
    let run = |command: &Command| {
        let (workspace, cancel) = (&fixture.workspace, &fixture.cancel);
        let launcher = launcher();
        let run = launcher.run(workspace, command, cancel, &|_| {});
        fixture.runtime.block_on(run).unwrap()
    };
    let finished = run(&command(line));
    assert_eq!(finished.status, Status::Exited(0), "{}", finished.output);
    let counted = 3_000_000..4_000_000;
    assert!(counted.contains(&finished.written_bytes), "{}", finished.written_bytes);
    let more = "i=0; while :; do head -c 1000000 /dev/zero > f; sleep 0.01; done";
    let finished = run(&Command { writable_bytes: Some(5 << 20), ..command(more) });
    assert_eq!(finished.status, Status::OverLimit(Limit::Disk(5 << 20)), "{}", finished.output);
    assert!(finished.written_bytes > 5 << 20, "{}", finished.written_bytes);
}

#[test]
fn no_descriptor_beyond_the_usual_three_is_inherited() {
    let file = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    assert!(file.as_raw_fd() > 2);
    let finished = run("ls /proc/$$/fd; :");
    // 255 is bash's own.
    let open: Vec<&str> = finished.output.lines().filter(|line| *line != "255").collect();
    assert_eq!(open, ["0", "1", "2"]);
    assert_eq!(run("readlink /proc/$$/fd/0").output, "/dev/null\n");
}

#[test]
fn a_command_has_a_session_of_its_own() {
    let output = run("read -r _ _ _ parent group session _ < /proc/$$/stat; \
                      [ $group = $$ ] && [ $session = $$ ] && echo own");
    assert_eq!(output.output, "own\n");
}

#[test]
fn it_runs_in_a_folder_of_the_workspace_and_nowhere_else() {
    let fixture = Fixture::new();
    fixture.put("src/a", "");
    std::os::unix::fs::symlink(fixture.outside(), fixture.path("out")).unwrap();
    let run = |cwd: &str| {
        let command = Command { cwd: cwd.into(), ..command("pwd") };
        let launcher = launcher();
        let run = launcher.run(&fixture.workspace, &command, &fixture.cancel, &|_| {});
        fixture.runtime.block_on(run)
    };
    let expected = format!("{}\n", fixture.path("src").display());
    assert_eq!(run("src").unwrap().output, expected);
    for cwd in ["..", "out", "/tmp", "src/a", "missing"] {
        let error = run(cwd).unwrap_err();
        assert!(matches!(error, LaunchError::Folder { .. }), "{cwd}: {error}");
    }
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let command = Command { program: "no-such-program".into(), ..command("") };
    let error = run_with(&launcher(), &command).unwrap_err().to_string();
    assert!(error.contains("cannot start no-such-program: No such file"), "{error}");
}

#[test]
fn a_flood_is_capped_and_memory_stays_bounded() {
    let before = resident_bytes();
    let command = Command { deadline: Duration::from_millis(700), ..command("yes posse") };
    let finished = run_with(&launcher(), &command).unwrap();
    assert_eq!(finished.status, Status::TimedOut);
    assert!(finished.output.len() < 10_100);
    assert!(finished.output.starts_with("posse\nposse\n"));
    assert!(finished.left_out_bytes > 1_000_000, "{}", finished.left_out_bytes);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes");
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn binary_output_is_valid_text() {
    let finished = run("head -c 300000 /dev/urandom; printf 'end\\xe2\\x82'");
    assert_eq!(finished.status, Status::Exited(0));
    assert!(finished.output.ends_with("end\u{FFFD}"));
    assert!(finished.output.len() < 10_100 && finished.left_out_bytes > 0);
}

#[test]
fn two_hundred_commands_leave_no_zombie() {
    let fixture = Fixture::new();
    let launcher = launcher();
    let command = Command { program: "true".into(), args: Vec::new(), ..command("") };
    for _ in 0..200 {
        let run = launcher.run(&fixture.workspace, &command, &fixture.cancel, &|_| {});
        assert_eq!(fixture.runtime.block_on(run).unwrap().status, Status::Exited(0));
    }
    eventually("no zombie is left", || zombies().is_empty());
}

#[test]
fn the_host_never_becomes_a_subreaper() {
    run("true");
    assert_eq!(rustix::process::child_subreaper().unwrap(), None);
}
