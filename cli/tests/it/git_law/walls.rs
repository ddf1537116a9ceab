//! Walls around what git obeys: while commands run, when they or their host die, and side by side.

use super::{WORDS, calling, set_up, shell};
use crate::world::{World, bash, eventually, started};
use posse_testkit::{Conversation, Reply, Script, When};
use rustix::process::{Pid, Signal, kill_process};

/// A mount stays with the file that it covers. If the user replaces that file while a command runs, as
/// `git config` does, the command reaches the new one.
#[tokio::test]
async fn what_a_command_writes_where_the_user_took_a_wall_down_is_set_aside() {
    let waits = format!(
        "{WORDS}\necho > up; until [ -e go ]; do sleep 0.02; done\n\
         git config core.fsmonitor 'touch $HOME/canary; false'; script .git/hooks/post-commit; echo END"
    );
    let before = "mkdir -p .git/hooks; echo exit > .git/hooks/pre-push; git config alias.x log";
    let world = calling(vec![bash(&waits)], before).await;
    let running = world.start(&["run", "go"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    let user = "git config user.email new; git config alias.st status; mv .git/hooks .git/old; mkdir .git/hooks";
    assert!(shell(&world, &world.work(), user).status.success());
    world.write("go", "");
    let said = running.end().await.expect(0).out;
    let config = world.read(".git/config");
    assert!(config.contains("email = new") && !config.contains("fsmonitor"), "{config} {said}");
    assert!(config.contains("x = log"), "what was there before stays: {config}");
    assert!(!world.work().join(".git/hooks/post-commit").exists(), "{said}");
    assert!(said.contains("core.fsmonitor in .git/config"), "{said}");
    // Nobody knows who wrote this one; it is kept beside.
    assert!(world.read(".git/config.set-aside").contains("alias"), "{said}");
}

/// The file stays where it was covered: then nobody but the user can have changed it.
#[tokio::test]
async fn what_the_user_adds_behind_a_wall_while_a_command_runs_stays() {
    let waits = "echo > up; until [ -e go ]; do sleep 0.02; done";
    let world = calling(vec![bash(waits)], "mkdir -p .git/hooks").await;
    let running = world.start(&["run", "go"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    let user =
        "printf '[alias]\\nst = status\\n' >> .git/config; echo exit > .git/hooks/pre-commit";
    assert!(shell(&world, &world.work(), user).status.success());
    world.write("go", "");
    let said = running.end().await.expect(0).out;
    assert!(world.read(".git/config").contains("alias") && !said.contains("set aside"), "{said}");
    assert_eq!(world.read(".git/hooks/pre-commit"), "exit\n");
}

/// A command that is killed with its host leaves nothing either.
#[tokio::test]
async fn a_command_whose_host_dies_leaves_nothing_that_git_runs() {
    let command = format!(
        "{WORDS}\nmk s; git add s; git -C s config core.fsmonitor 'touch $HOME/canary; false'; \
         echo > up; exec sleep 600"
    );
    let world = calling(vec![bash(&command)], "").await;
    let running = world.start(&["run", "go"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    running.signal(rustix::process::Signal::KILL);
    running.end().await;
    let config = || world.read("s/.git/config");
    eventually("it is set aside", async || !config().is_empty() && !config().contains("fsmonitor"))
        .await;
    assert!(world.read("s/.git/config.set-aside").contains("fsmonitor"));
}

/// The process and all below it.
fn tree(top: Pid) -> Vec<Pid> {
    let mut tree = vec![top];
    let mut at = 0;
    while let Some(process) = tree.get(at) {
        let children = format!("/proc/{0}/task/{0}/children", process.as_raw_pid());
        let of_threads = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_pid()));
        let of_threads = of_threads.into_iter().flatten().flatten();
        let files = of_threads.map(|it| it.path().join("children")).chain([children.into()]);
        let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
        let text = texts.collect::<String>();
        let children = text.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?));
        let new: Vec<Pid> = children.filter(|id| !tree.contains(id)).collect();
        tree.extend(new);
        at += 1;
    }
    tree
}

/// Nobody is left to see to it but the next command.
#[tokio::test]
async fn what_a_command_left_when_all_of_posse_was_killed_is_set_aside_by_the_next_one() {
    let plant = format!(
        "{WORDS}\nmk s; git add s; git -C s config core.fsmonitor 'touch $HOME/canary; false'; \
         script s/.git/hooks/pre-commit; mk $TMPDIR/e; git -C $TMPDIR/e config core.pager evil; \
         ln -s $TMPDIR/e e; mkdir .githooks; script .githooks/pre-commit; echo > up; exec sleep 600"
    );
    let says = |word: &str, command: &str| {
        let conversation = Conversation::when(When::any().first_user_contains(word));
        conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
    };
    let script = Script::new().conversation(says("plant", &plant));
    let world = World::new(script.conversation(says("harmless", "echo END"))).await;
    set_up(&world, &world.work(), "git config core.hooksPath .githooks");
    let running = world.start(&["run", "plant"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    // First nobody notices that another dies.
    let all = tree(running.id());
    assert!(all.len() > 3, "there are a host, a guardian, a supervisor, and the command: {all:?}");
    for signal in [Signal::STOP, Signal::KILL] {
        all.iter().for_each(|process| {
            let _ = kill_process(*process, signal);
        });
    }
    running.end().await;
    let evil =
        ["s/.git/config", "s/.git/hooks/pre-commit", "e/.git/config", ".githooks/pre-commit"];
    let is_there = |name: &&&str| {
        let text = world.read(name);
        ["touch", "evil"].iter().any(|part| text.contains(part))
            || name.ends_with("pre-commit") && !text.is_empty()
    };
    assert_eq!(evil.iter().filter(is_there).count(), evil.len(), "the test means something");
    let said = world.run(&["run", "harmless"]).await.expect(0).out;
    assert_eq!(evil.iter().filter(is_there).collect::<Vec<_>>(), Vec::<&&str>::new(), "{said}");
    assert!(said.contains("END") && said.contains("core.fsmonitor in s/.git/config"), "{said}");
    // What comes from the user after that is the user's.
    let user =
        "mkdir -p s/.git/hooks; echo exit > s/.git/hooks/pre-push; git -C s config alias.x log";
    assert!(shell(&world, &world.work(), user).status.success());
    let said = world.run(&["run", "harmless"]).await.expect(0).out;
    assert!(said.contains("END") && !said.contains("set aside"), "{said}");
    assert!(world.work().join("s/.git/hooks/pre-push").exists());
}

/// What one command has put there does not count as the user's for another that begins later.
#[tokio::test]
async fn two_commands_at_the_same_time_do_not_vouch_for_each_other() {
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.02; done");
    let evil = "git -C s config core.fsmonitor 'touch $HOME/canary; false'";
    let first = format!("{WORDS}\nmk s; git add s; {evil}; echo > up-1; {}", wait("go-1"));
    let second = format!("{WORDS}\necho > up-2; {}; {evil}", wait("go-2"));
    let says = |word: &str, command: &str| {
        let conversation = Conversation::when(When::any().first_user_contains(word));
        conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
    };
    let script = Script::new();
    let script = script.conversation(says("first", &first)).conversation(says("second", &second));
    let world = World::new(script).await;
    set_up(&world, &world.work(), "");
    let is_clean = || !world.read("s/.git/config").contains("fsmonitor");
    let running = world.start(&["run", "first"]);
    eventually("the first runs", async || world.work().join("up-1").exists()).await;
    let other = world.start(&["run", "second"]);
    eventually("the second runs", async || world.work().join("up-2").exists()).await;
    world.write("go-1", "");
    let said = running.end().await.expect(0).out;
    assert!(is_clean() && said.contains("core.fsmonitor"), "{said}");
    world.write("go-2", "");
    let said = other.end().await.expect(0).out;
    assert!(is_clean() && said.contains("core.fsmonitor"), "{said}");
}

/// The same where one works in a folder around that of the other, or in another folder of the repository,
/// or in the home folder, which has Posse's own state in it.
#[tokio::test]
async fn commands_in_folders_with_something_in_common_do_not_vouch_for_each_other() {
    let evil = |at: &str| format!("printf '[core]\\nfsmonitor = evil\\n' >> {at}/.git/config");
    let link = "ln -sfn /nowhere ../.git/COMMIT_EDITMSG".to_owned();
    let config = |at: &str| format!("{at}/.git/config");
    let cases = [
        ("work/sub", evil("n"), "work", evil("sub/n"), config("work/sub/n")),
        ("work", evil("sub/n"), "work/sub", evil("n"), config("work/sub/n")),
        ("work/a", link.clone(), "work/b", link, "work/.git/COMMIT_EDITMSG".to_owned()),
        ("home", evil("n"), "home", evil("n"), config("home/n")),
        ("home/p", evil("n"), "home", evil("p/n"), config("home/p/n")),
    ];
    let wait =
        |name: &str| format!("echo > up-{name}; until [ -e go-{name} ]; do sleep 0.02; done");
    for (first, plants, second, plants_again, place) in cases {
        let says = |word: &str, command: String| {
            let conversation = Conversation::when(When::any().first_user_contains(word));
            conversation.reply(bash(&command)).reply(Reply::text("{{last_tool_result}}"))
        };
        let script = Script::new();
        let script = script.conversation(says("first", format!("{plants}; {}", wait("1"))));
        let script = script.conversation(says("second", format!("{}; {plants_again}", wait("2"))));
        let world = World::new(script).await;
        set_up(&world, &world.work(), "mkdir a b; mk sub/n; mk $HOME/n; mk $HOME/p/n");
        let top = world.folder.path().to_owned();
        let is_there = || match std::fs::read_link(top.join(&place)) {
            Ok(_) => true,
            Err(_) => std::fs::read_to_string(top.join(&place)).unwrap().contains("fsmonitor"),
        };
        let start = |word: &str, folder: &str| {
            let mut command = world.command(&["run", word]);
            command.current_dir(top.join(folder));
            started(command)
        };
        let running = start("first", first);
        eventually("the first runs", async || top.join(first).join("up-1").exists()).await;
        assert!(is_there(), "{first}: the test means something");
        let other = start("second", second);
        eventually("the second runs", async || top.join(second).join("up-2").exists()).await;
        std::fs::write(top.join(first).join("go-1"), "").unwrap();
        let said = running.end().await.expect(0).out;
        assert!(said.contains("set aside"), "{first} and {second}: {said}");
        std::fs::write(top.join(second).join("go-2"), "").unwrap();
        let said = other.end().await.expect(0).out;
        assert!(said.contains("set aside"), "{first} and {second}: {said}");
        let is_there = std::fs::read_to_string(top.join(&place));
        let is_there = is_there.is_ok_and(|text| text.contains("fsmonitor"));
        assert!(!is_there && !top.join(&place).is_symlink(), "{first} and {second}: {said}");
    }
}

/// What the user has there stays, whoever works in a folder around it at the same time.
#[tokio::test]
async fn commands_in_folders_with_something_in_common_leave_the_users_repositories_alone() {
    let wait = "echo > up-1; until [ -e go-1 ]; do sleep 0.02; done";
    let says = |word: &str, command: &str| {
        let conversation = Conversation::when(When::any().first_user_contains(word));
        conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
    };
    for (first, second) in [("", "sub"), ("sub", ""), ("sub/n", "")] {
        let script = Script::new().conversation(says("first", wait));
        let world = World::new(script.conversation(says("second", "echo END"))).await;
        let before =
            "mk up; mkdir sub; git -c protocol.file.allow=always submodule add -q ./up sub/m
            git worktree add -q sub/w; mk sub/n; git -C sub/n config core.fsmonitor kept
            git clone -q . $TMPDIR/e; git -C $TMPDIR/e worktree add -q $PWD/sub/v
            mkdir -p sub/n/.git/hooks; echo exit > sub/n/.git/hooks/pre-push; git commit -qm m";
        set_up(&world, &world.work(), before);
        let files = ["sub/m/.git", "sub/w/.git", "sub/v/.git", "sub/n/.git/config"];
        let kept = files.map(|name| world.read(name));
        let start = |word: &str, folder: &str| {
            let mut command = world.command(&["run", word]);
            command.current_dir(world.work().join(folder));
            started(command)
        };
        let running = start("first", first);
        let folder = world.work().join(first);
        eventually("the first runs", async || folder.join("up-1").exists()).await;
        let said = start("second", second).end().await.expect(0).out;
        assert!(said.contains("END") && !said.contains("set aside"), "{first}, {second}: {said}");
        std::fs::write(folder.join("go-1"), "").unwrap();
        let said = running.end().await.expect(0).out;
        assert!(!said.contains("set aside"), "{first}, {second}: {said}");
        assert_eq!(files.map(|name| world.read(name)), kept, "{first}, {second}");
    }
}
