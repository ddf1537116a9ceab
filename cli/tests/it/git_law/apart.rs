//! Repositories that a command takes apart.

use super::{WORDS, set_up};
use crate::world::{World, bash, eventually, started};
use posse_testkit::{Conversation, Reply, Script, When};

/// A repository is protected also while a command has taken it apart: another that runs meanwhile, or
/// comes after it, writes nothing that git obeys once it is whole again.
#[tokio::test]
async fn a_repository_that_a_command_takes_apart_is_protected_all_the_same() {
    let evil = "printf '[core]\nfsmonitor = touch $HOME/canary; false\n' >> .git/config; \
        mkdir -p .git/hooks; script .git/hooks/pre-commit; echo > done";
    for (apart, whole) in [
        ("mv .git/HEAD .git/away", "mv .git/away .git/HEAD"),
        ("mv .git/HEAD .git/away; mkdir .git/HEAD", "rmdir .git/HEAD; mv .git/away .git/HEAD"),
    ] {
        let wait = "until [ -e done ]; do sleep 0.02; done";
        let takes = format!("{apart}; echo > apart; {wait}; {whole}");
        let says = |word: &str, command: &str| {
            let command = format!("{WORDS}\n{command}");
            let conversation = Conversation::when(When::any().first_user_contains(word));
            conversation.reply(bash(&command)).reply(Reply::text("{{last_tool_result}}"))
        };
        let script = Script::new().conversation(says("takes", &takes));
        let world = World::new(script.conversation(says("writes", evil))).await;
        set_up(&world, &world.work(), "mkdir -p .git/hooks");
        let running = world.start(&["run", "takes"]);
        eventually("it is apart", async || world.work().join("apart").exists()).await;
        let said = world.run(&["run", "writes"]).await.expect(0).out;
        assert!(world.work().join("done").exists(), "{said}");
        running.end().await.expect(0);
        assert!(world.work().join(".git/HEAD").is_file(), "{apart}: it is whole again");
        assert!(!world.read(".git/config").contains("fsmonitor"), "{apart}: {said}");
        assert!(!world.work().join(".git/hooks/pre-commit").exists(), "{apart}: {said}");
    }
}

/// The same of repositories elsewhere: the workspace is one without files, or a folder of one, or has one
/// in it; and of scripts that their hooks run.
#[tokio::test]
async fn other_repositories_that_a_command_takes_apart_are_protected_all_the_same() {
    let before = "git clone -q --bare . bare.git; mkdir -p scripts sub/scripts
        mk n; mkdir n/scripts; echo 'exec scripts/check' > n/.git/hooks/pre-commit
        echo 'exec sub/scripts/check' > .git/hooks/pre-commit
        for i in n sub; do echo exit > $i/scripts/check; chmod +x $i/scripts/check; done
        chmod +x .git/hooks/pre-commit n/.git/hooks/pre-commit";
    let folder = |data: &str| {
        let apart = format!("mv {data}/HEAD $TMPDIR/H; mkdir {data}/HEAD");
        (apart, format!("rmdir {data}/HEAD; mv $TMPDIR/H {data}/HEAD"))
    };
    let all = |data: &str| {
        let parts = "HEAD config objects refs";
        let apart = format!("(cd {data}; mkdir $TMPDIR/x; mv {parts} $TMPDIR/x)");
        (apart, format!("mv $TMPDIR/x/* {data}"))
    };
    let bare = (
        "mv HEAD H; mkdir HEAD; mv objects o".to_owned(),
        "rm -rf objects HEAD; mv H HEAD; mv o objects".to_owned(),
    );
    // Where they work, what the first command does, and what the second wants to change.
    let cases = [
        ("bare.git", bare.clone(), "config"),
        ("bare.git", bare, "hooks/reference-transaction"),
        (".", folder("n/.git"), "n/.git/hooks/pre-commit"),
        (".", folder("n/.git"), "n/scripts/check"),
        (".", all("n/.git"), "n/.git/hooks/pre-commit"),
        (".", all("n/.git"), "n/scripts/check"),
        ("sub", folder("../.git"), "scripts/check"),
    ];
    for (at, (apart, whole), file) in cases {
        let takes = format!("{apart}; > apart; until [ -e done ]; do sleep 0.02; done; {whole}");
        let writes = format!("echo '# evil' >> {file}; echo > done");
        let says = |word: &str, command: &str| {
            let conversation = Conversation::when(When::any().first_user_contains(word));
            conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
        };
        let script = Script::new().conversation(says("takes", &takes));
        let world = World::new(script.conversation(says("writes", &writes))).await;
        set_up(&world, &world.work(), before);
        let folder = world.work().join(at);
        let start = |word: &str| {
            let mut command = world.command(&["run", word]);
            command.current_dir(&folder);
            started(command)
        };
        let running = start("takes");
        eventually("it is apart", async || folder.join("apart").exists()).await;
        let said = start("writes").end().await.expect(0).out;
        assert!(folder.join("done").exists(), "{said}");
        let other = running.end().await.expect(0).out;
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        assert!(!text.contains("evil"), "{at}, {apart}, {file}: {said} {other}");
    }
}

/// Git looks further up where a repository has no HEAD. What is around it does not become the agent's
/// because a command takes the repository of the workspace apart.
#[tokio::test]
async fn who_takes_a_repository_apart_does_not_get_the_one_around_it() {
    let reach = "cat ../notes.txt; echo evil > ../.git/made; git -C .. tag evil; echo END";
    for apart in ["mv .git/HEAD $TMPDIR/H", "mv .git/HEAD $TMPDIR/H; chmod 1555 .git"] {
        let reply = Reply::text("{{last_tool_result}}");
        let world = World::new(Script::turns([bash(apart), bash(reach), reply])).await;
        set_up(&world, &world.work(), "echo hunter2 > notes.txt; mk lib");
        let mut command = world.command(&["run", "go"]);
        command.current_dir(world.work().join("lib"));
        let said = started(command).end().await.expect(0).out;
        assert!(!world.work().join("lib/.git/HEAD").exists(), "{apart}: it means something");
        assert!(said.contains("END") && !said.contains("hunter2"), "{apart}: {said}");
        let data = world.work().join(".git");
        assert!(!data.join("made").exists(), "{apart}: {said}");
        assert!(!data.join("refs/tags/evil").exists(), "{apart}: {said}");
    }
}
