//! Settings of git and of Posse in unusual places, and folders that cannot be listed.

use super::{WORDS, calling, set_up, write};
use crate::git::for_nobody;
use crate::world::{World, bash, eventually, mode, started};
use posse_testkit::{Conversation, Reply, Script, When};
use std::os::unix::fs::PermissionsExt;

/// What holds the place of a name while commands run is not set aside when one of them ends: the others
/// still need it.
#[tokio::test]
async fn what_holds_the_place_of_a_name_that_settings_have_is_left_alone() {
    let waits = "echo > up; until [ -e go ]; do sleep 0.02; done; mkdir -p .husky; \
        echo 'touch canary' > .husky/pre-commit; chmod +x .husky/pre-commit; echo END";
    let says = |word: &str, command: &str| {
        let conversation = Conversation::when(When::any().first_user_contains(word));
        conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
    };
    let script = Script::new().conversation(says("waits", waits));
    let world = World::new(script.conversation(says("quick", "echo END"))).await;
    set_up(&world, &world.work(), "git config core.hooksPath .husky");
    let running = world.start(&["run", "waits"]);
    eventually("the first runs", async || world.work().join("up").exists()).await;
    let said = world.run(&["run", "quick"]).await.expect(0).out;
    assert!(said.contains("END") && !said.contains("set aside"), "{said}");
    world.write("go", "");
    let said = running.end().await.expect(0).out;
    assert!(said.contains("END") && !said.contains("set aside"), "{said}");
    let names = std::fs::read_dir(world.work()).unwrap().flatten().map(|it| it.file_name());
    let litter = names.filter(|name| name.to_string_lossy().contains("husky"));
    assert_eq!(litter.collect::<Vec<_>>(), Vec::<std::ffi::OsString>::new());
}

/// Who works in a part of the home folder finds the user's own settings there, or could make them.
#[tokio::test]
async fn settings_of_git_and_of_posse_in_a_part_of_the_home_folder_are_closed() {
    for (workspace, has_git) in [(".config", true), (".config", false), (".config/git", true)] {
        let git = if workspace.ends_with("git") { "config" } else { "git/config" };
        let evil = format!(
            "mkdir -p git posse; printf '[core]\\nfsmonitor = evil\\n' >> {git}; \
             echo 'model = \"x/y\"' >> posse/config.toml; mkdir other && echo END > other/f"
        );
        let calls = vec![bash(&evil), write(git, "[core]\n"), write("posse/config.toml", "x")];
        let world = calling(calls, "").await;
        let folder = world.home().join(workspace);
        std::fs::create_dir_all(&folder).unwrap();
        if has_git {
            set_up_settings(&world);
        }
        let mut command = world.command(&["run", "go"]);
        command.current_dir(&folder);
        let said = started(command).end().await.expect(0).out;
        let settings = world.home().join(".config/git/config");
        let text = std::fs::read_to_string(settings).unwrap_or_default();
        assert_eq!(text, if has_git { "[user]\n\tname = u\n" } else { "" }, "{workspace}: {said}");
        let own = world.home().join(workspace).join("posse/config.toml");
        let is_closed = !own.exists() || workspace.ends_with("git");
        assert!(is_closed, "{workspace}: {said}");
        assert!(world.home().join(workspace).join("other/f").exists(), "{workspace}: {said}");
    }
}

/// The same where the settings are a link into the workspace, as people keep them who have a repository
/// of their settings.
#[tokio::test]
async fn settings_that_are_links_into_the_workspace_are_closed() {
    let evil = "mkdir -p config/posse; echo 'model = \"x/y\"' >> config/posse/config.toml; \
        mkdir -p config/git; echo '[core]' >> config/git/config; echo END > other";
    let calls = vec![bash(evil), write("config/posse/config.toml", "model = \"x/y\"")];
    let world = calling(calls, "").await;
    let folder = world.home().join("dotfiles");
    std::fs::create_dir_all(folder.join("config/nvim")).unwrap();
    std::os::unix::fs::symlink("dotfiles/config", world.home().join(".config")).unwrap();
    let mut command = world.command(&["run", "go"]);
    command.current_dir(&folder);
    let said = started(command).end().await.expect(0).out;
    assert!(!folder.join("config/posse/config.toml").exists(), "{said}");
    assert!(!folder.join("config/git/config").exists(), "{said}");
    assert!(folder.join("other").exists(), "{said}");
}

fn set_up_settings(world: &World) {
    let folder = world.home().join(".config/git");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config"), "[user]\n\tname = u\n").unwrap();
}

/// An ordinary user cannot list every folder that git can enter.
#[tokio::test]
async fn a_folder_that_an_ordinary_user_cannot_list_is_looked_into() {
    if !crate::tmux::can_be_two_people("folders that an ordinary user cannot list") {
        return;
    }
    let command = format!(
        "{WORDS}\nmk s; git add s; git -C s config core.fsmonitor evil; mkdir s/d; mk s/d/e; \
         script s/d/e/.git/hooks/pre-commit; (for i in $(seq 40); do n=$(printf '%0200d' 0); \
         mkdir $n; cd $n; done); touch s/.git/config.set-aside; chmod 111 s s/.git s/d s/d/e/.git"
    );
    let world = calling(vec![bash(&command)], "").await;
    let mut command = for_nobody(&world);
    command.args(["run", "go"]);
    let said = started(command).end().await.expect(0).out;
    let config = world.read("s/.git/config");
    assert!(config.contains("[core]") && !config.contains("evil"), "{config} {said}");
    assert!(!world.work().join("s/d/e/.git/hooks").exists(), "{said}");
    assert_eq!(mode(&world.work().join("s/.git")), 0o111);
}

/// Nobody can list a folder of somebody else that all may write to. So no command writes there.
#[tokio::test]
async fn a_folder_of_somebody_else_that_cannot_be_listed_takes_nothing() {
    if !crate::tmux::can_be_two_people("folders of somebody else that cannot be listed") {
        return;
    }
    let command =
        format!("{WORDS}\nmk s; git -C s config core.fsmonitor evil; cp -r s/.git box/g; echo END");
    let world = calling(vec![bash(&command)], "").await;
    let mut command = for_nobody(&world);
    let closed = world.work().join("box");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o733)).unwrap();
    command.args(["run", "go"]);
    let said = started(command).end().await.expect(0).out;
    assert!(said.contains("END") && said.contains("core.fsmonitor in s/.git/config"), "{said}");
    assert!(!closed.join("g").exists() && !said.contains("NOT done"), "{said}");
}
