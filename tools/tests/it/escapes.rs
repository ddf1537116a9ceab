//! Ways out of a confinement that somebody has found: each is tried, and what it aimed at is looked
//! at from outside.

use crate::confinement::{Shell, cannot, launcher, names};
use crate::fixture::{CANARY, Fixture};
use posse_agent::Toolbox;
use posse_protocol::Profile;
use posse_tools::confine::{Backend, Confinement};
use posse_tools::launch::{Launcher, allowed_environment};
use posse_tools::toolset_within;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::process::Command;

/// A shell that may change the workspace, as `narrow` makes it.
fn shell(fixture: Fixture, narrow: impl Fn(&Fixture) -> Confinement) -> Shell {
    let launcher = launcher(&fixture.outside(), Backend::Bubblewrap);
    let confinement = narrow(&fixture);
    let tools = toolset_within(&fixture.workspace, None, Vec::new(), Some(&launcher), &confinement);
    Shell { tools: Toolbox::new(tools), fixture }
}

fn git(shell: &Shell, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@localhost"]).args(arguments);
    let output = command.current_dir(shell.fixture.workspace.path()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What makes git touch this file when it is obeyed.
fn evil(shell: &Shell) -> (std::path::PathBuf, String) {
    let canary = shell.fixture.outside().join("ran");
    let settings = format!("[core]\n\tfsmonitor = \"touch {};false\"\n", canary.display());
    (canary, settings)
}

#[test]
fn a_link_in_the_place_of_a_folder_to_be_read_uncovers_nothing() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = shell(Fixture::new(), |fixture| Confinement {
        readable: vec![fixture.path("skills/one"), fixture.path("../skill")],
        ..Confinement::workspace_write()
    });
    let secrets = shell.fixture.outside().join(".ssh");
    std::fs::create_dir(&secrets).unwrap();
    std::fs::write(secrets.join("key"), CANARY).unwrap();
    std::fs::create_dir(shell.fixture.path("skills")).unwrap();
    symlink(secrets.join("key"), shell.fixture.path("skills/one")).unwrap();
    let text = shell.say(&format!("cat {0}/key skills/one; ls {0}", secrets.display()));
    assert!(!text.contains(CANARY) && !text.contains("key\n"), "{text}");
}

#[test]
fn folders_around_what_is_hidden_or_fixed_stay_where_they_are() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let fixture = Fixture::new();
    for name in ["config/prod/key", "sub/locked", "sub/deep/free", "other/free"] {
        std::fs::create_dir_all(fixture.path(name).parent().unwrap()).unwrap();
        fixture.put(name, CANARY);
    }
    let shell = shell(fixture, |fixture| Confinement {
        hidden: vec![fixture.path("config/prod/key")],
        fixed: vec![fixture.path("sub/locked")],
        ..Confinement::workspace_write()
    });
    for command in [
        "mv config c && mkdir -p config/prod",
        "mv config/prod p",
        "mv sub sub2 && mkdir sub && echo x > sub/locked",
        "rm -rf sub",
        "rm -rf config",
        "echo x > sub/locked",
    ] {
        shell.fails(command);
    }
    assert!(!shell.say("cat config/prod/key c/prod/key p/key").contains(CANARY));
    assert_eq!(shell.say("mv other sub/other && echo x > sub/new && ls sub/other"), "free\n");
    for name in ["config/prod/key", "sub/locked"] {
        assert_eq!(shell.fixture.content(name), CANARY.as_bytes(), "{name}");
    }
}

#[test]
fn git_obeys_no_other_folder_and_no_further_settings() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    git(&shell, &["init", "-q", "."]);
    let (canary, settings) = evil(&shell);
    shell.fixture.put("settings", &settings);
    // Two at once: what one has planted is nothing that was there before.
    std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            shell.say(
                "cp -r .git evil; cat settings >> evil/config; rm -f evil/commondir; touch up; \
                 until [ -e go ]; do echo ../evil > .git/commondir; sleep 0.01; done",
            )
        });
        crate::fixture::eventually("it runs", || shell.fixture.path("up").exists());
        shell.say("echo ../evil > .git/commondir; cat settings > .git/config.worktree");
        std::fs::write(shell.fixture.path("go"), "").unwrap();
        long.join().unwrap();
    });
    assert_eq!(
        shell.say(
            "git add go && git -c user.name=n -c user.email=e commit -qm x && git log --format=%s"
        ),
        "x\n"
    );
    git(&shell, &["status"]);
    assert!(!canary.exists());
    for name in ["commondir", "config.worktree"] {
        assert!(!shell.fixture.path(".git").join(name).exists(), "{name}");
    }
    // One that is there is as closed.
    git(&shell, &["config", "extensions.worktreeConfig", "true"]);
    shell.fixture.put(".git/config.worktree", "");
    shell.fails("cat settings >> .git/config.worktree");
    shell.fails("mv .git/config.worktree x");
    git(&shell, &["status"]);
    assert!(!canary.exists());
    assert!(shell.fixture.path(".git/config.worktree").exists(), "it is the user's");
}

#[test]
fn a_workspace_does_not_become_a_repository_and_one_in_another_place_is_protected() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    let (canary, settings) = evil(&shell);
    shell.fixture.put("settings", &settings);
    shell.say("git init -q --bare x && cp -r x/* .; printf '[core]\n\tbare=false\n\tworktree=.\n' > config; cat settings >> config");
    git(&shell, &["status"]);
    assert!(!canary.exists());
    assert!(!names(&shell).contains(&"refs".to_owned()), "{:?}", names(&shell));
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    let (canary, settings) = evil(&shell);
    shell.fixture.put("settings", &settings);
    git(&shell, &["init", "-q", "--bare", ".bare"]);
    shell.fixture.put(".git", "gitdir: ./.bare\n");
    for command in [
        "cat settings >> .bare/config",
        "mv .bare b && cp -r b .bare",
        "mkdir -p .bare/hooks && touch .bare/hooks/new",
        "echo 'gitdir: x' > .git",
    ] {
        shell.fails(command);
    }
    git(&shell, &["status"]);
    assert!(!canary.exists());
}

/// Step by step, each with a command of its own, in a folder without a repository, in one whose
/// repository is broken on the way, and in one that has some of the names already.
#[test]
fn a_workspace_does_not_become_a_repository_step_by_step_either() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    const CONFIG: &str = "printf '[core]\n\trepositoryformatversion=0\n\tbare=false\n\tworktree=%s\n' \
                          \"$PWD\" > config; cat settings >> config";
    for there in [&[][..], &[".git"], &["refs"], &[".git", "refs"], &["refs", "objects"]] {
        let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
        let (canary, settings) = evil(&shell);
        shell.fixture.put("settings", &settings);
        for name in there {
            match *name {
                ".git" => drop(git(&shell, &["init", "-q", "."])),
                name => std::fs::create_dir(shell.fixture.path(name)).unwrap(),
            }
        }
        for command in [
            "echo 'ref: refs/heads/main' > HEAD",
            "mkdir objects",
            CONFIG,
            "mkdir refs",
            "mkdir refs objects; echo 'ref: refs/heads/main' > HEAD; mv .git/HEAD .git/H",
            "mv refs r; mkdir refs; mkdir objects; echo 'ref: refs/heads/main' > HEAD",
        ] {
            shell.say(command);
            git(&shell, &["status"]);
            assert!(!canary.exists(), "{there:?}: {command}");
        }
        let complete = names(&shell);
        let parts = ["HEAD", "objects", "refs"];
        let all = parts.iter().all(|part| complete.iter().any(|name| name == part));
        assert!(!all, "{there:?}: {complete:?}");
    }
}

/// Who takes the names beforehand under which placeholders are made keeps none from being made.
#[test]
fn placeholders_are_made_whatever_names_are_taken() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    git(&shell, &["init", "-q", "."]);
    shell.say(
        "for it in $(seq 2 32768); do echo .git/posse-$it-2 .git/posse-$it-0; done | xargs touch",
    );
    shell.fails("echo ../evil > .git/commondir");
    shell.fails("echo x > .git/config.worktree");
}

#[test]
fn what_confines_is_taken_from_no_folder_that_others_write() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let fixture = Fixture::new();
    let canary = fixture.outside().join("ran");
    let planted = fixture.path("bin/bwrap");
    std::fs::create_dir(fixture.path("bin")).unwrap();
    let script = format!("#!/bin/sh\ntouch {}\nexec /usr/bin/bwrap \"$@\"\n", canary.display());
    fixture.put("bin/bwrap", &script);
    std::fs::set_permissions(&planted, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let path = format!("{}:/usr/bin:/bin", fixture.path("bin").display());
    let variables = [("PATH", path), ("HOME", "/nowhere".to_owned())];
    let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let launcher = Launcher::through(&crate::fixture::host())
        .with_environment(allowed_environment(variables.into_iter(), &[]));
    assert!(launcher.check(Backend::Bubblewrap).is_ok());
    let shell = Shell::of(fixture, launcher, Profile::WorkspaceWrite);
    assert_eq!(shell.say("echo confined"), "confined\n");
    assert!(!canary.exists());
}

#[test]
fn room_on_a_disk_is_not_taken_without_writing() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    shell.fails("fallocate -l 200M big");
    shell.fails("python3 -c 'import ctypes; c = ctypes.CDLL(None); exit(c.fallocate(open(\"f\", \"w\").fileno(), 0, 0, ctypes.c_long(1 << 20)))'");
}

#[test]
fn a_workspace_that_is_swapped_while_a_command_starts_is_not_another() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::sync::atomic::{AtomicBool, Ordering};
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let around = Fixture::new();
    let (sub, link, outside) = (around.path("sub"), around.path("link"), around.path("outside"));
    std::fs::create_dir(&sub).unwrap();
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, &link).unwrap();
    let fixture =
        Fixture { workspace: posse_tools::Workspace::open(&sub).unwrap(), ..Fixture::new() };
    let shell = Shell::of(
        fixture,
        launcher(&around.outside(), Backend::Bubblewrap),
        Profile::WorkspaceWrite,
    );
    let done = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &sub, CWD, &link, RenameFlags::EXCHANGE);
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let write = format!("echo x > {}/pwned; echo ran", sub.display());
        let ran = (0..60).filter(|_| shell.say(&write).contains("ran\n")).count();
        done.store(true, Ordering::Relaxed);
        ran
    });
    let found: Vec<_> = std::fs::read_dir(&outside).unwrap().flatten().collect();
    assert!(found.is_empty(), "{found:?}; {ran} of 60 ran");
}
