//! The same files at several mounts: what is hidden or protected at one is so at all.

use crate::world::{Exit, World, bash, started};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;
use std::path::Path;

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs `script` where it can mount folders. Returns what it prints after a line `mounted`. `None`, and the rest
/// of the test is skipped, if this machine does not let ordinary users mount.
async fn with_mounts(world: &World, script: &str) -> Option<(Exit, String)> {
    let is_root = rustix::process::geteuid().is_root();
    let mut command = tokio::process::Command::new("unshare");
    command.args([if is_root { "-m" } else { "-Urm" }, "sh", "-c", script]);
    let exit = started(world.set_up(command)).end().await;
    match exit.out.split_once("mounted\n").map(|(_, said)| said.to_owned()) {
        None => {
            assert!(!is_root, "root could not mount a folder: {exit:?}");
            posse_testkit::skipped("posse-cli: folders that are mounted twice");
            None
        }
        Some(said) => Some((exit, said)),
    }
}

/// What is mounted in two places is hidden in both.
#[tokio::test]
async fn a_home_folder_that_is_mounted_again_is_hidden_there_too() {
    let look = json!({"file_path": "again/.ssh/id", "offset": 1});
    let conversation = Conversation::when(When::any())
        .reply(bash("cat /mnt/plain /mnt/again/notes.txt again/.ssh/id /mnt/part/f; echo END"))
        .reply(Reply::tool_call("Read", look))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(conversation)).await;
    put(&world.home().join("notes.txt"), "a secret");
    put(&world.home().join(".ssh/id"), "a secret");
    put(&world.home().join("part/f"), "a secret");
    let (home, work, binary) = (world.home(), world.work(), env!("CARGO_BIN_EXE_posse"));
    let (home, work) = (home.display(), work.display());
    let script = format!(
        "mount -t tmpfs -o mode=755 tmpfs /mnt || exit 99
        mkdir /mnt/again /mnt/part {work}/again && echo plain > /mnt/plain
        mount --bind {home} /mnt/again && mount --bind {home} {work}/again || exit 99
        mount --bind {home}/part /mnt/part || exit 99
        echo mounted; cat /mnt/again/notes.txt {work}/again/.ssh/id
        {binary} run --mode bypass --stream-json go || exit 98
        cd /mnt/part && {binary} run --cwd /mnt/again --json again"
    );
    let Some((exit, said)) = with_mounts(&world, &script).await else { return };
    let said = said.strip_prefix("a secreta secret").unwrap();
    assert!(said.contains("END") && said.contains("plain"), "{exit:?}");
    assert!(!said.contains("a secret"), "{exit:?}");
    // The home folder is known by its path, however the user comes to it.
    let row = world.list().await.remove(0);
    assert_eq!(row["workspace"], world.home().canonicalize().unwrap().to_str().unwrap());
}

/// What git obeys is protected in the workspace if a folder of it is mounted in the home folder.
#[tokio::test]
async fn settings_of_the_home_folder_that_lie_in_the_workspace_too_are_only_read() {
    let write = "mkdir -p config/git; echo evil > config/git/config; echo evil > more/included; \
        echo evil > more/hooks/pre-commit; echo evil > more/hooks/new; echo fine > more/other; \
        echo fine > config/other";
    let settings = json!({"file_path": "config/git/config", "content": "evil"});
    let conversation = Conversation::when(When::any())
        .reply(bash(write))
        .reply(Reply::tool_call("Write", settings))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(conversation)).await;
    let home = world.home();
    put(
        &home.join(".gitconfig"),
        "[include]\npath = ~/.more/included\n[core]\nhooksPath = ~/.more/hooks\n",
    );
    for name in ["dots/config/x", "dots/more/included", "dots/more/hooks/pre-commit", ".more/x"] {
        put(&home.join(name), "");
    }
    let (home, binary) = (home.display(), env!("CARGO_BIN_EXE_posse"));
    let script = format!(
        "mkdir -p {home}/.config && cp -a {home}/.config/. {home}/dots/config
        mount --bind {home}/dots/config {home}/.config || exit 99
        mount --bind {home}/dots/more {home}/.more || exit 99
        cd {home}/dots && {binary} run --mode bypass go || exit 98
        echo mounted; cat {home}/.config/other {home}/.more/other
        cat {home}/.config/git/config {home}/.more/included {home}/.more/hooks/*; echo END"
    );
    let Some((exit, said)) = with_mounts(&world, &script).await else { return };
    assert!(said.starts_with("fine\nfine\n") && said.contains("END"), "{exit:?}");
    assert!(!said.contains("evil"), "{exit:?}");
}
