//! The law about git, where it takes its time.

use crate::confinement::{cannot, launcher};
use crate::fixture::Fixture;
use posse_tools::confine::{Backend, Confinement};
use posse_tools::launch::{Command, Status};
use std::time::{Duration, Instant};

/// Longer than it may take to kill a command.
const LONG: Duration = Duration::from_secs(7);

/// Makes repositories to which the way is long, as many as the argument says, and one that runs
/// something.
const LINE: &str = r#"set -e
    git init -q s; git -C s config core.fsmonitor evil
    top=$PWD; way=$(printf 'a/%.0s' {1..1900}); mkdir -p $way; cd $way
    seq $0 | sed 's,$,/refs,' | xargs mkdir -p; seq $0 | sed 's,$,/HEAD,' | xargs touch; cd "$top"; echo > up; exec sleep 600"#;

/// A command cannot leave so much that nobody gets to the end of it.
#[test]
fn a_look_that_takes_long_is_done_to_its_end() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let mut folders = 5_000;
    loop {
        let fixture = Fixture::new();
        let work = fixture.workspace.path().to_owned();
        let command = Command {
            program: "bash".into(),
            args: vec!["-c".into(), LINE.into(), folders.to_string().into()],
            cwd: ".".into(),
            variables: Vec::new(),
            deadline: Duration::from_secs(300),
            output_cap: 10_000,
            writable_bytes: None,
            confinement: Confinement::workspace_write(),
        };
        let launcher = launcher(&fixture.outside(), Backend::Bubblewrap);
        let run = launcher.run(&fixture.workspace, &command, &fixture.cancel, &|_| {});
        let (finished, took) = fixture.runtime.block_on(async {
            let cancelled = async {
                while !work.join("up").exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                fixture.cancel.cancel();
                Instant::now()
            };
            let (finished, since) = tokio::join!(run, cancelled);
            (finished.unwrap(), since.elapsed())
        });
        // The way is too long for the standard library, which would open all of it.
        let config = std::fs::read_to_string(work.join("s/.git/config")).unwrap();
        std::process::Command::new("rm").arg("-rf").arg(work.join("a")).status().unwrap();
        assert_eq!(finished.status, Status::Cancelled, "{finished:?} {took:?}");
        assert!(!config.contains("evil"), "{config} {finished:?} {took:?}");
        assert_eq!(finished.set_aside, ["core.fsmonitor in s/.git/config"]);
        if took > LONG {
            return;
        }
        // This machine is fast.
        folders *= 2;
        assert!(folders < 1_000_000, "{took:?}");
    }
}

/// No name can be longer, and yet it gets another.
#[test]
fn what_settings_name_is_set_aside_however_long_its_name_is() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let fixture = Fixture::new();
    let name = "n".repeat(255);
    let home = fixture.outside();
    let settings = format!("[include]\npath = {}/{name}\n", fixture.path("").display());
    std::fs::write(home.join(".gitconfig"), settings).unwrap();
    let command = Command {
        program: "touch".into(),
        args: vec![name.clone().into()],
        cwd: ".".into(),
        variables: Vec::new(),
        deadline: Duration::from_secs(60),
        output_cap: 10_000,
        writable_bytes: None,
        confinement: Confinement::workspace_write(),
    };
    let launcher = launcher(&home, Backend::Bubblewrap);
    let run = launcher.run(&fixture.workspace, &command, &fixture.cancel, &|_| {});
    let told = fixture.runtime.block_on(run).unwrap().set_aside;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with(&name) && !told[0].contains("NOT done"), "{told:?}");
    assert!(!fixture.path(&name).exists());
}

/// However many they are, few of them are told.
#[test]
fn a_great_many_links_are_all_removed() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let fixture = Fixture::new();
    let make = r#"import os
d = "0" * 20
for i in range(20):
    p = f"s/.git/{d}/{d}/{i}"
    os.makedirs(p)
    for n in range(100): os.symlink("x", f"{p}/{d}{n}")"#;
    let line = format!("git init -q s; python3 -c '{make}'; find . -type l | wc -l");
    let command = Command {
        program: "bash".into(),
        args: vec!["-c".into(), line.into()],
        cwd: ".".into(),
        variables: Vec::new(),
        deadline: Duration::from_secs(300),
        output_cap: 10_000,
        writable_bytes: None,
        confinement: Confinement::workspace_write(),
    };
    let launcher = launcher(&fixture.outside(), Backend::Bubblewrap);
    let run = launcher.run(&fixture.workspace, &command, &fixture.cancel, &|_| {});
    let finished = fixture.runtime.block_on(run).unwrap();
    assert!(finished.output.contains("2000"), "{}", finished.output);
    assert_eq!(finished.set_aside.last().map(String::as_str), Some("1950 more"));
    let mut find = std::process::Command::new("find");
    let left = find.arg(fixture.path("s/.git")).args(["-type", "l"]).output().unwrap();
    assert!(left.stdout.is_empty(), "{}", left.stdout.len());
}
