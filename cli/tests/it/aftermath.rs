//! What a command leaves is inspected to the end, however it tries to make that slow, and however the process ends:
//! nothing of it runs when the user calls git right afterwards.

use crate::worktrees::git;
use crate::world::{World, bash};
use posse_testkit::{Reply, Script};
use rustix::process::Signal;
use std::os::unix::fs::symlink;

/// A repository with a program that git runs at `git status` above it.
const EVIL: &str = r#"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
git init -q sub && git -C sub commit -q --allow-empty -m x
git -C sub config core.fsmonitor 'touch "$HOME/ran"; false'
git add sub && git commit -qm sub
"#;

async fn repository(command: &str) -> World {
    let world = World::new(Script::turns([bash(command), Reply::text("done")])).await;
    git(&world.work(), &["init", "-q"]);
    world
}

/// Calls git as the user does, and expects that nothing of the agent's runs.
#[track_caller]
fn check(world: &World) {
    let mut status = std::process::Command::new("git");
    status.args(["status", "--short"]).current_dir(world.work()).env("HOME", world.home());
    assert!(status.output().unwrap().status.success());
    assert!(!world.home().join("ran").exists(), "git ran what the agent wrote");
}

/// Each line names the folder with the files by half a million parts.
#[tokio::test]
async fn a_hundred_thousand_settings_do_not_hold_up_the_inspection() {
    let slow = "mkdir -p n/r/refs; echo x > n/r/HEAD
        (echo '[core]'; yes 'worktree=..' | head -c 1000000) > n/r/config
        (printf 'gitdir: '; yes ./ | tr -d '\\n' | head -c 500000; echo r) > n/.git";
    let world = repository(&format!("{EVIL}{slow}")).await;
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    check(&world);
}

/// More folders than can be open at once, each below the one before.
#[tokio::test]
async fn a_deep_tree_does_not_hold_up_the_inspection() {
    let slow = "python3 -c '
import os
for level in range(2000):
    for side in range(4): os.mkdir(str(side))
    os.mkdir(\"d\"); os.chdir(\"d\")
'";
    let world = repository(&format!("{EVIL}{slow}")).await;
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    check(&world);
    // Too deep for the test kit to remove.
    let remove =
        std::process::Command::new("rm").args(["-rf", "d"]).current_dir(world.work()).status();
    assert!(remove.unwrap().success());
}

#[tokio::test]
async fn the_process_does_not_leave_before_the_inspection() {
    for signals in [vec![Signal::INT], vec![Signal::TERM], vec![Signal::INT, Signal::INT]] {
        let stubborn = "trap '' TERM INT HUP\n";
        let world =
            repository(&format!("{stubborn}{EVIL}touch ready; while :; do sleep 5; done")).await;
        let running = world.start(&["run", "--mode", "bypass", "go"]);
        let ready = world.work().join("ready");
        crate::world::eventually("ready", async || ready.exists()).await;
        for signal in &signals {
            running.signal(*signal);
            if signals.len() > 1 {
                running.notes("interrupt").await;
            }
        }
        running.end().await;
        check(&world);
    }
}

/// A way that leaves a folder by `..` holds this folder, and all folders around what is protected.
#[tokio::test]
async fn no_folder_on_a_way_can_be_moved_away() {
    for (link, target, file, command) in [
        (
            ".claude/agents",
            "../ci/scripts/../../shared/agents",
            "ci/scripts/lint.sh",
            "mv ci c2; mkdir -p ci/scripts; echo evil > ci/scripts/lint.sh; true",
        ),
        (
            ".claude/settings.json",
            "../conf/../other/x",
            "other/x",
            "mv conf c2; mkdir -p sub/other sub/deep; ln -s sub/deep conf; echo evil > sub/other/x; true",
        ),
        (
            ".claude/settings.json",
            "../conf/v1/../v1/x",
            "conf/v1/x",
            "mv conf c2; mkdir -p conf/v1; echo evil > conf/v1/x; true",
        ),
    ] {
        let world = repository(command).await;
        let put = |name: &str, text: &str| {
            let path = world.work().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(".git/hooks/pre-commit", "#!/bin/sh\nsh ci/scripts/lint.sh\n");
        for name in ["ci/scripts/lint.sh", "shared/agents/a.md", "conf/v1/x", "other/x"] {
            put(name, "{}");
        }
        std::fs::create_dir_all(world.work().join(".claude")).unwrap();
        symlink(target, world.work().join(link)).unwrap();
        world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
        let said = world.fake.last_request().tool_results().join("\n");
        assert_eq!(world.read(file), "{}", "{link}: {said}");
        if link.ends_with("json") {
            assert_eq!(world.read(link), "{}", "{link}: {said}");
        }
    }
}

/// Where a package manager puts things, too.
#[tokio::test]
async fn a_protected_name_may_be_a_link_to_what_is_not_the_projects_own() {
    let world = repository("echo fine > old; echo evil > vendor/claude/settings.json; true").await;
    std::fs::create_dir_all(world.work().join("vendor/claude")).unwrap();
    std::fs::write(world.work().join("vendor/claude/settings.json"), "{}").unwrap();
    std::fs::write(world.work().join("old"), "").unwrap();
    symlink("vendor/claude", world.work().join(".claude")).unwrap();
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    assert_eq!(world.read("old"), "fine\n");
    assert_eq!(world.read(".claude/settings.json"), "{}");
}
