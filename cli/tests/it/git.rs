//! Git for agents that work in a folder of a repository, and what a folder shows while a command
//! runs in it.

use crate::world::{World, bash, eventually, started};
use posse_testkit::{Reply, Rule, Script, When};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const NOBODY: u32 = 65534;

/// Runs git outside of any confinement, in the world's folder.
fn git(world: &World, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e", "-c", "safe.directory=*"])
        .args(arguments)
        .current_dir(world.work())
        .env("HOME", world.home())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A world whose folder is a repository with a commit, and in it a folder `sub`. Its agent runs
/// `command` and says what came of it.
async fn repository(command: &str) -> World {
    repository_for(Script::turns([bash(command), Reply::text("{{last_tool_result}}")])).await
}

/// The same for another agent.
async fn repository_for(script: Script) -> World {
    let world = World::new(script).await;
    git(&world, &["init", "-q", "-b", "main"]);
    for (name, value) in [("user.name", "n"), ("user.email", "e")] {
        git(&world, &["config", name, value]);
    }
    std::fs::create_dir(world.work().join("sub")).unwrap();
    world.write("top.txt", "top\n");
    world.write("sub/a.txt", "one\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-qm", "first"]);
    world
}

/// What the agent says who was asked in `sub`.
async fn asked_in_sub(world: &World, arguments: &[&str]) -> String {
    let mut command = world.command(arguments);
    command.current_dir(world.work().join("sub"));
    started(command).end().await.expect(0).out
}

/// Looks, changes a file and commits it.
const WORK: &str = "git log --format=log:%s; echo two > a.txt; git diff --stat; \
    git status --short; git add a.txt && git commit -qm second; git status --short; \
    git log -1 --format=then:%s";

fn expect_work(world: &World, said: &str) {
    for part in ["log:first", "a.txt | 2 +-", " M a.txt", "then:second"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("top.txt"), "all of the working tree is there: {said}");
    assert_eq!(git(world, &["log", "--format=%s"]), "second\nfirst\n");
    assert_eq!(git(world, &["show", "HEAD:sub/a.txt"]), "two\n");
    assert_eq!(git(world, &["status", "--short"]), "");
}

#[tokio::test]
async fn git_works_in_a_folder_of_a_repository() {
    let world = repository(WORK).await;
    let said = asked_in_sub(&world, &["run", "go"]).await;
    expect_work(&world, &said);
}

#[tokio::test]
async fn git_works_in_a_folder_of_a_repository_for_an_ordinary_user() {
    if !crate::tmux::can_be_two_people("git for an ordinary user") {
        return;
    }
    let world = repository(WORK).await;
    let mut command = for_nobody(&world);
    command.args(["run", "go"]).current_dir(world.work().join("sub"));
    let said = started(command).end().await.expect(0).out;
    expect_work(&world, &said);
}

/// The program for an ordinary user, to whom all of the world is given.
pub fn for_nobody(world: &World) -> tokio::process::Command {
    // In a place where an ordinary user finds it.
    let copy = world.folder.path().join("posse");
    std::fs::copy(env!("CARGO_BIN_EXE_posse"), &copy).unwrap();
    give_away(world.folder.path());
    let nobody = NOBODY.to_string();
    let mut command = tokio::process::Command::new("setpriv");
    command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]).arg(&copy);
    world.set_up(command)
}

/// What agents ask git for most often names `HEAD`, which must not be taken for a file.
const ABOUT_HEAD: &str = "git log -1 --format=log:%s HEAD; echo two > a.txt; \
    git diff --stat HEAD; git show --format=show:%s HEAD; git status --short; git add -A; \
    git commit -qm second; git log --format=then:%s HEAD~1..HEAD";

fn expect_head(said: &str) {
    for part in ["log:first", "a.txt | 2 +-", "show:first", "M a.txt", "then:second"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("ambiguous") && !said.contains("refs"), "{said}");
}

/// Git itself says that all went well, though it could not change what lies outside.
#[tokio::test]
async fn an_agent_in_a_folder_is_told_that_another_branch_is_only_half_there() {
    let world = repository("git checkout -q feature; echo code $?").await;
    git(&world, &["checkout", "-q", "-b", "feature"]);
    world.write("top.txt", "better\n");
    git(&world, &["commit", "-qam", "better"]);
    git(&world, &["checkout", "-q", "main"]);
    let said = asked_in_sub(&world, &["run", "x"]).await;
    let expected = "git could not change ../top.txt: ";
    assert!(said.contains(expected) || said.contains("git could not change top.txt: "), "{said}");
    assert!(said.contains("`git commit -a` undoes what it has there"), "{said}");
}

/// Nor what no command may change. What the agent is told to do mends the branch.
#[tokio::test]
async fn a_protected_file_that_a_branch_changes_is_told_and_can_be_mended() {
    let command = "git checkout -q feature && echo two > sub/a.txt && git commit -qam second";
    let mend = "git restore --staged --source=HEAD~1 -- .vscode/settings.json && \
                git commit -q --amend --no-edit";
    let script = Script::turns([bash(command), bash(mend), Reply::text("mended")]);
    let world = repository_for(script).await;
    std::fs::create_dir(world.work().join(".vscode")).unwrap();
    world.write(".vscode/settings.json", "old\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-qm", "settings"]);
    git(&world, &["checkout", "-q", "-b", "feature"]);
    world.write(".vscode/settings.json", "new\n");
    git(&world, &["commit", "-qam", "better"]);
    git(&world, &["checkout", "-q", "main"]);
    world.run(&["run", "--trust", "x"]).await.expect(0);
    let results = world.fake.request(2).tool_results();
    assert!(results[0].contains("git could not change .vscode/settings.json: "), "{results:?}");
    assert!(!results[0].contains("they lie outside"), "it is one file, and inside: {results:?}");
    let results = world.fake.last_request().tool_results();
    assert!(!results[0].contains("exit code"), "{results:?}");
    assert_eq!(git(&world, &["show", "feature:.vscode/settings.json"]), "new\n");
    assert_eq!(git(&world, &["status", "--short"]), " M .vscode/settings.json\n");
    git(&world, &["restore", ".vscode/settings.json"]);
    assert_eq!(world.read(".vscode/settings.json"), "new\n");
}

#[tokio::test]
async fn head_is_no_file_in_a_folder_of_a_repository_nor_in_a_worktree() {
    let world = repository(ABOUT_HEAD).await;
    expect_head(&asked_in_sub(&world, &["run", "go"]).await);
    let world = repository(&format!("cd sub; {ABOUT_HEAD}")).await;
    let apart = world.folder.path().join("apart");
    git(&world, &["worktree", "add", "-q", apart.to_str().unwrap()]);
    let mut command = world.command(&["run", "--trust", "go"]);
    command.current_dir(&apart);
    let said = started(command).end().await.expect(0).out;
    assert!(said.contains("log:first") && said.contains("show:first"), "{said}");
    assert!(said.contains("a.txt | 2 +-") && !said.contains("both revision"), "{said}");
}

#[tokio::test]
async fn an_agent_in_a_worktree_is_told_why_it_cannot_commit() {
    let world = repository("echo two > top.txt; git commit -qam second; true").await;
    let apart = world.folder.path().join("apart");
    git(&world, &["worktree", "add", "-q", apart.to_str().unwrap()]);
    let mut command = world.command(&["run", "go"]);
    command.current_dir(&apart);
    let said = started(command).end().await.expect(0).out;
    assert!(said.contains("You need not commit"), "{said}");
    assert_eq!(std::fs::read_to_string(apart.join("top.txt")).unwrap(), "two\n");
}

/// Commits all there is, as an agent would.
const COMMITS_ALL: &str = "git diff --stat HEAD; cat ../secrets/key ../.env.example; echo two > a.txt; git status --short; \
    git diff HEAD; git stash -q && git stash pop -q; git add -A ..; git commit -qam all; \
    git log -1 --format=then:%s; git show --stat --format=";

#[tokio::test]
async fn a_denied_file_that_git_tracks_is_neither_committed_as_deleted_nor_in_the_way() {
    for folder in [".", "sub"] {
        let world = repository(&match folder {
            "." => format!("cd sub; {COMMITS_ALL}"),
            _ => COMMITS_ALL.to_owned(),
        })
        .await;
        for name in ["secrets/key", "secrets/deep/key", ".env.example", ".env.run", "notes/plan"] {
            let path = world.work().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            world.write(name, "hunter2\n");
            // Git looks into a file that is as old as its index.
            let then = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
            std::fs::File::open(&path).unwrap().set_modified(then).unwrap();
            if name == ".env.run" {
                std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            }
        }
        world.write(".gitignore", "notes\n");
        std::fs::create_dir(world.work().join(".claude")).unwrap();
        let denied = ["Read(./secrets/**)", "Read(./.env.*)", "Read(./notes/**)"];
        let settings = json!({"permissions": {"deny": denied}});
        world.write(".claude/settings.json", &settings.to_string());
        git(&world, &["add", "."]);
        git(&world, &["commit", "-qm", "secrets"]);
        let mut command = world.command(&["run", "go"]);
        command.current_dir(world.work().join(folder));
        let said = started(command).end().await.expect(0).out;
        assert!(said.contains("then:all") && !said.contains("hunter2"), "{folder}: {said}");
        assert!(!said.contains("key |") && !said.contains("fatal"), "{folder}: {said}");
        let changed = git(&world, &["show", "--name-status", "--format="]);
        assert_eq!(changed, "M\tsub/a.txt\n", "{folder}: {said}");
        assert_eq!(git(&world, &["status", "--short"]), "", "{folder}: {said}");
        for name in ["secrets/key", "secrets/deep/key", ".env.example", "notes/plan"] {
            assert_eq!(world.read(name), "hunter2\n", "{folder}: {said}");
        }
    }
}

/// Git reads a file that is as new as its index, and a mask cannot be read. Then the agent learns why.
#[tokio::test]
async fn an_agent_learns_that_a_rule_hides_what_git_cannot_read() {
    let world = repository("git add -A; git add top.txt && echo ADDED").await;
    world.write(".env.example", "hunter2\n");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    let file = std::fs::File::open(world.work().join(".env.example")).unwrap();
    file.set_modified(later).unwrap();
    std::fs::create_dir(world.work().join(".claude")).unwrap();
    world.write(".claude/settings.json", r#"{"permissions": {"deny": ["Read(./.env.*)"]}}"#);
    git(&world, &["add", "."]);
    git(&world, &["commit", "-qm", "example"]);
    let said = world.run(&["run", "go"]).await.expect(0).out;
    assert!(said.contains("[a rule hides .env.example from commands: they can"), "{said}");
    assert!(said.contains("ADDED") && !said.contains("hunter2"), "{said}");
}

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().flatten().for_each(|entry| give_away(&entry.path()));
    }
}

#[tokio::test]
async fn an_agent_that_only_looks_sees_the_repository_and_changes_nothing_of_it() {
    let world = repository("git log --format=log:%s; git status --short; git tag x; true").await;
    let looker =
        r#"{"looker": {"description": "looks", "prompt": "Look.", "tools": ["Read", "Bash"]}}"#;
    let said = asked_in_sub(&world, &["run", "--agents", looker, "--agent", "looker", "go"]).await;
    assert!(said.contains("log:first") && said.contains("Read-only"), "{said}");
    assert_eq!(git(&world, &["tag"]), "");
}

#[tokio::test]
async fn what_git_obeys_cannot_be_changed_from_a_folder_of_a_repository() {
    let attack = [
        "git config core.fsmonitor /bin/false",
        "git config core.hooksPath sub",
        "echo x >> ../.git/config",
        "mv ../.git/config ../.git/c",
        "mv ../.git ../g",
        "mkdir -p ../.git/hooks; echo x > ../.git/hooks/pre-commit",
        "mkdir -p ../.git/worktrees/x ../.git/modules/x",
        "echo ../evil > ../.git/commondir",
        "echo x > ../.git/config.worktree",
        "git init -q .; mkdir .git; echo 'gitdir: ../../evil' > .git",
        "git init -q --bare .; echo 'ref: refs/heads/main' > HEAD",
        "echo x > ../top.txt; echo x > ../new.txt; rm ../top.txt",
    ]
    .join("; ");
    let world = repository(&format!("rm -rf ../.git/hooks/x; {attack}; echo END")).await;
    let config = world.read(".git/config");
    let hooks = names_in(&world.work().join(".git/hooks"));
    let said = asked_in_sub(&world, &["run", "go"]).await;
    assert!(said.contains("END"), "{said}");
    assert_eq!(world.read(".git/config"), config);
    assert_eq!(names_in(&world.work().join(".git/hooks")), hooks);
    for name in [".git/modules", ".git/worktrees", ".git/commondir", ".git/config.worktree"] {
        assert!(!world.work().join(name).exists(), "{name}: {said}");
    }
    for name in ["sub/.git", "sub/refs", "new.txt", "g"] {
        assert!(!world.work().join(name).exists(), "{name}: {said}");
    }
    assert_eq!(world.read("top.txt"), "top\n");
}

#[tokio::test]
async fn a_repository_around_the_home_folder_or_of_somebody_else_is_left_alone() {
    let world = repository("git log --format=log:%s; cat ../top.txt; true").await;
    // Somebody else may have put it there, in a folder for everybody.
    std::fs::set_permissions(world.work(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let said = asked_in_sub(&world, &["run", "go"]).await;
    assert!(!said.contains("log:first") && !said.contains("top\n"), "{said}");
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_agent_is_told_which_names_in_a_listing_are_not_in_the_folder() {
    let said = "{{last_tool_result}}";
    let world = World::new(Script::turns([bash("ls -a"), Reply::text(said)])).await;
    world.write("mine", "");
    std::fs::create_dir(world.work().join(".idea")).unwrap();
    let out = world.run(&["run", "go"]).await.expect(0).out;
    let note = out.split("[not in the folder: ").nth(1).expect(&out);
    assert!(note.contains(".envrc") && note.contains(".vscode"), "{out}");
    assert!(!note.contains(".idea") && !note.contains("mine"), "they are there: {out}");
    for plain in ["ls", "for name in *; do echo $name; done"] {
        let world = World::new(Script::turns([bash(plain), Reply::text(said)])).await;
        world.write("mine", "");
        let out = world.run(&["run", "go"]).await.expect(0).out;
        let note = out.split("[not in the folder: ").nth(1).expect(&out);
        assert!(note.contains("posse.toml") && !note.contains(".envrc"), "{plain}: {out}");
    }
}

#[tokio::test]
async fn what_holds_names_while_a_command_runs_is_empty_marked_and_gone_afterwards() {
    let waits = "echo > up; until [ -e go ]; do sleep 0.02; done";
    let slow = Rule::when(When::any().first_user_contains("slow").turn(0)).reply(bash(waits));
    let lists = Rule::when(When::any().first_user_contains("look").turn(0));
    let lists = lists.reply(Reply::tool_call("List", json!({"path": "."})));
    let ends = Rule::when(When::any()).reply(Reply::text("{{last_tool_result}}"));
    let world = World::new(Script::new().rule(slow).rule(lists).rule(ends)).await;
    let running = world.start(&["run", "slow"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    let during = names_in(&world.work());
    for name in during.iter().filter(|name| *name != "up") {
        let path = world.work().join(name);
        let mode = path.metadata().unwrap().permissions().mode();
        assert!([0o1555, 0o1444].contains(&(mode & 0o7777)), "{name} is marked as a placeholder");
        assert!(names_in(&path).is_empty(), "{name}");
    }
    let listed = world.run(&["run", "look"]).await.expect(0).out;
    world.write("go", "");
    running.end().await.expect(0);
    assert_eq!(listed.trim(), "up", "an agent's own list has no placeholders");
    assert_eq!(names_in(&world.work()), ["go", "up"]);
}

/// What Posse reads of a repository itself may be anything: a command put it there.
#[tokio::test]
async fn no_file_of_git_that_is_a_pipe_or_endless_holds_up_the_next_command() {
    let break_it = [
        "rm .git/index; mkfifo .git/index",
        "rm .git/index; truncate -s 4G .git/index",
        "mkfifo data/gitdir data/commondir",
    ];
    for command in break_it {
        let script = Script::turns([bash(command), bash("echo goes on"), Reply::text("done")]);
        let world = repository_for(script).await;
        if command.contains("data") {
            git(&world, &["init", "-q", "--separate-git-dir", "data"]);
        }
        std::fs::create_dir(world.work().join(".claude")).unwrap();
        let settings = r#"{"permissions": {"deny": ["Read(./top.txt)"]}}"#;
        world.write(".claude/settings.json", settings);
        world.run(&["run", "--trust", "x"]).await.expect(0);
        let results = world.fake.last_request().tool_results();
        assert_eq!(results, ["goes on\n"], "{command}");
    }
}

/// A file with this bit would pass for one that Posse put up.
#[tokio::test]
async fn no_command_sets_the_mode_bit_of_placeholders() {
    let command = "echo x > a; chmod 1444 a; mkdir -m 1777 b; (umask 222; mkdir -m 1777 c); \
                   mkdir d; chmod +t d; chmod 700 d; ls";
    let world = repository(command).await;
    world.run(&["run", "--trust", "x"]).await.expect(0);
    for name in ["a", "b", "c", "d"] {
        let path = world.work().join(name);
        let mode = path.metadata().map_or(0, |found| found.permissions().mode());
        assert_eq!(mode & 0o1000, 0, "{name}: {mode:o}");
    }
    assert_eq!(world.work().join("d").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

/// Whoever started such a program would do what an agent wrote in the name of the user.
#[tokio::test]
async fn no_command_makes_a_program_that_runs_as_its_owner() {
    let command = "cp /bin/true a; chmod 4755 a; install -m 2755 /bin/true b; cp /bin/true c; \
                   chmod 6755 c; chmod 755 c; ls";
    let world = repository(command).await;
    world.run(&["run", "--trust", "x"]).await.expect(0);
    for name in ["a", "b", "c"] {
        let path = world.work().join(name);
        let mode = path.metadata().map_or(0, |found| found.permissions().mode());
        assert_eq!(mode & 0o6000, 0, "{name}: {mode:o}");
    }
    assert_eq!(world.work().join("c").metadata().unwrap().permissions().mode() & 0o777, 0o755);
}

/// A folder that its owner has closed can be opened by a command.
#[tokio::test]
async fn no_protected_name_appears_in_a_folder_that_was_closed() {
    let open =
        "chmod 755 .; echo x > .envrc; mkdir .vscode && echo x > .vscode/tasks.json; echo ok > a";
    let world = World::new(Script::turns([bash(open), Reply::text("done")])).await;
    let mut command = match rustix::process::geteuid().is_root() {
        true => for_nobody(&world),
        false => world.set_up(tokio::process::Command::new(env!("CARGO_BIN_EXE_posse"))),
    };
    let closed = PermissionsExt::from_mode(0o555);
    std::fs::set_permissions(world.work(), closed).unwrap();
    command.args(["run", "go"]).current_dir(world.work());
    started(command).end().await.expect(0);
    assert_eq!(names_in(&world.work()), ["a"]);
}

/// Where somebody works in their home folder, their own programs go on.
#[tokio::test]
async fn what_holds_names_in_a_home_folder_disturbs_no_git_and_no_shell() {
    let waits = "echo > up; until [ -e go ]; do sleep 0.02; done";
    let world = World::new(Script::turns([bash(waits), Reply::text("done")])).await;
    let mut command = world.command(&["run", "--trust", "go"]);
    command.env("HOME", world.work());
    let running = started(command);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    let outside = tempfile::tempdir().unwrap();
    for (program, arguments) in [("git", ["init", "-q"]), ("bash", ["-lic", "true"])] {
        let mut command = Command::new(program);
        let command = command.args(arguments).env("HOME", world.work());
        let done = command.current_dir(outside.path()).output().unwrap();
        assert!(done.status.success(), "{program}: {done:?}");
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(!told.contains("irectory"), "{program}: {told}");
    }
    world.write("go", "");
    running.end().await.expect(0);
    let mut left = names_in(&world.work());
    // Posse's own.
    left.retain(|name| name != ".local");
    assert_eq!(left, ["go", "up"]);
}

/// What git stashes by itself before a rebase or a merge is not lost when that fails at a file that no
/// command may change.
#[tokio::test]
async fn what_git_stashed_by_itself_is_kept_where_it_cannot_be_brought_back() {
    for command in ["git rebase --autostash feat", "git merge --autostash feat"] {
        let script = Script::turns([bash(command), Reply::text("{{last_tool_result}}")]);
        let world = World::new(script).await;
        let run = |arguments: &[&str]| git(&world, arguments);
        run(&["init", "--quiet", "--initial-branch=main"]);
        for folder in ["a", "b"] {
            std::fs::create_dir(world.work().join(folder)).unwrap();
            world.write(&format!("{folder}/f"), "one\n");
        }
        run(&["add", "."]);
        run(&["commit", "--quiet", "-m", "first"]);
        run(&["checkout", "--quiet", "-b", "feat"]);
        world.write("a/g", "two\n");
        run(&["add", "."]);
        run(&["commit", "--quiet", "-m", "feat"]);
        run(&["checkout", "--quiet", "main"]);
        world.write("a/x", "x\n");
        run(&["add", "."]);
        run(&["commit", "--quiet", "-m", "x"]);
        world.write("a/f", "one\nmine in a\n");
        world.write("b/f", "one\nmine in b\n");
        let mut posse = world.command(&["run", "go"]);
        posse.current_dir(world.work().join("a"));
        let said = started(posse).end().await.expect(0).out;
        assert!(said.contains("It is in the stash now"), "{command}: {said}");
        let kept = git(&world, &["stash", "show", "-p", "stash@{0}"]);
        assert!(kept.contains("+mine in a") && kept.contains("+mine in b"), "{command}: {kept}");
    }
    let script =
        Script::turns([bash("git config rebase.autoStash"), Reply::text("{{last_tool_result}}")]);
    let world = World::new(script).await;
    std::fs::write(world.home().join(".gitconfig"), "[rebase]\n\tautoStash = true\n").unwrap();
    let said = world.run(&["run", "go"]).await.expect(0).out;
    assert!(said.starts_with("false"), "{said}");
}

/// Nor does the user's own git, in another terminal.
#[tokio::test]
async fn placeholders_are_in_no_commit_that_the_user_makes_meanwhile() {
    let wait = "echo > up; until [ -e go ]; do sleep 0.02; done";
    let world = repository(wait).await;
    let running = world.start(&["run", "--trust", "go"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    git(&world, &["add", "-A"]);
    let staged = git(&world, &["diff", "--cached", "--name-only"]);
    world.write("go", "");
    running.end().await.expect(0);
    let held: Vec<&str> = staged.lines().filter(|name| name.starts_with('.')).collect();
    assert!(held.iter().all(|name| !name.contains("vim") && *name != ".mise"), "{staged}");
}

/// They clear away what git does not track, and the placeholders cannot be cleared away.
#[tokio::test]
async fn a_stash_and_a_cleaning_come_to_their_end() {
    let command = "echo two > sub/a.txt; echo new > new.txt; git stash -u && test ! -e new.txt && \
                   git stash pop -q && cat sub/a.txt new.txt && git clean -fd && git status --short";
    for folder in ["", "sub"] {
        let world = repository(&format!("cd $(git rev-parse --show-toplevel); {command}")).await;
        let mut run = world.command(&["run", "--trust", "go"]);
        let work = world.work().join(folder);
        run.current_dir(&work);
        let said = started(run).end().await.expect(0).out;
        if folder.is_empty() {
            assert!(said.contains("two\nnew\n") && said.contains("M sub/a.txt"), "{said}");
            assert!(!said.contains("exit code"), "{said}");
            assert_eq!(world.read("sub/a.txt"), "two\n");
        }
        let stashes = git(&world, &["stash", "list"]);
        assert_eq!(stashes, "", "{said}");
        let exclude = world.read(".git/info/exclude");
        assert!(!exclude.contains(".envrc"), "the user's own stays as it is: {exclude}");
    }
}

/// A repository beside it, which has what is in the world's.
fn with_origin(world: &World) {
    let origin = world.work().join("origin.git").display().to_string();
    git(world, &["init", "-q", "--bare", "-b", "main", &origin]);
    git(world, &["remote", "add", "origin", &origin]);
    git(world, &["push", "-q", "-u", "origin", "main"]);
    git(world, &["push", "-q", "origin", "main:other"]);
    git(world, &["fetch", "-q"]);
    world.write(".git/info/exclude", "origin.git\n");
}

#[tokio::test]
async fn git_fetches_without_a_word_about_submodules_where_there_are_none() {
    let command = "git fetch 2>&1; git pull 2>&1; git submodule status 2>&1; git add -A; \
                   git status --short; cat posse.toml; true";
    let script = Script::turns([
        bash(command),
        bash("echo x > .gitmodules"),
        bash("git submodule status; cat .gitmodules"),
        Reply::text("done"),
    ]);
    let world = repository_for(script).await;
    with_origin(&world);
    world.run(&["run", "--trust", "x"]).await.expect(0);
    let said = &world.fake.request(2).tool_results()[0];
    assert!(said.contains("Already up to date.") && !said.contains(".gitmodules"), "{said}");
    // Who only reads a name that is held is told that it is not there.
    assert!(!said.contains("can make or change"), "{said}");
    assert!(said.contains("[not in the folder: posse.toml."), "{said}");
    let said = &world.fake.request(3).tool_results()[0];
    assert!(said.contains("can make or change .gitmodules"), "{said}");
    let said = &world.fake.request(4).tool_results()[0];
    assert_eq!(said, "[no output]\n");
    assert_eq!(git(&world, &["status", "--short"]), "");
    assert!(!world.work().join(".gitmodules").exists());
}

#[tokio::test]
async fn an_agent_is_told_that_a_branch_has_no_upstream_though_git_says_so() {
    let script = Script::turns([
        bash("git switch other 2>&1"),
        bash("git config user.signingkey x"),
        bash("git branch -vv; git config user.name"),
        Reply::text("done"),
    ]);
    let world = repository_for(script).await;
    with_origin(&world);
    world.run(&["run", "--trust", "x"]).await.expect(0);
    let said = &world.fake.request(2).tool_results()[0];
    assert!(said.contains("has no upstream, whatever git says"), "{said}");
    assert!(said.contains("Tell the user to run `git branch -u origin/other other`"), "{said}");
    let said = &world.fake.request(3).tool_results()[0];
    assert!(said.contains("The setting was not stored"), "{said}");
    let said = &world.fake.request(4).tool_results()[0];
    assert!(!said.contains("no command can change"), "{said}");
    git(&world, &["branch", "-u", "origin/other", "other"]);
}

#[tokio::test]
async fn an_agent_is_told_that_a_hidden_file_only_seems_to_be_changed() {
    let script = Script::turns([
        bash("git status"),
        bash("git status --short"),
        bash("git describe --always --dirty"),
        Reply::text("done"),
    ]);
    let world = repository_for(script).await;
    for folder in [".claude", "secrets"] {
        std::fs::create_dir(world.work().join(folder)).unwrap();
    }
    world.write(".claude/settings.json", r#"{"permissions": {"deny": ["Read(./secrets/**)"]}}"#);
    world.write("secrets/key", "hunter2\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-qm", "key"]);
    // Git looks into a file that is as old as its index or newer.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    let key = std::fs::File::open(world.work().join("secrets/key")).unwrap();
    key.set_modified(later).unwrap();
    git(&world, &["status"]);
    world.run(&["run", "--trust", "x"]).await.expect(0);
    for turn in 2..=4 {
        let said = &world.fake.request(turn).tool_results()[0];
        assert!(said.contains("git may call it changed when it is not"), "{turn}: {said}");
    }
}

/// Git removes its locks when it is told to end, and not when it is killed.
#[tokio::test]
async fn a_cancelled_commit_leaves_no_lock_behind() {
    let script = Script::turns([bash("echo two > sub/a.txt; git commit -qam two")]);
    let world = repository_for(script).await;
    let hook = world.write(".git/hooks/pre-commit", "#!/bin/sh\ntouch began\nsleep 60\n");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    let running = world.start(&["run", "--trust", "x"]);
    eventually("git commits", async || world.work().join("began").exists()).await;
    assert!(world.work().join(".git/index.lock").exists(), "git holds its lock");
    let run = world.only_run().await;
    world.run(&["runs", "cancel", &run]).await.expect(0);
    running.end().await;
    assert!(!world.work().join(".git/index.lock").exists());
    git(&world, &["-c", "core.hooksPath=/dev/null", "commit", "-qam", "mine"]);
}

#[tokio::test]
async fn an_agent_is_told_of_a_lock_that_git_left_when_it_was_killed() {
    let stuck = "trap '' TERM; touch .git/index.lock; sleep 60";
    let call = Reply::tool_call("Bash", json!({"command": stuck, "timeout": 300}));
    let world = repository_for(Script::turns([call, Reply::text("done")])).await;
    world.run(&["run", "--trust", "x"]).await.expect(0);
    let said = &world.fake.last_request().tool_results()[0];
    assert!(said.contains("killed before it could remove .git/index.lock"), "{said}");
}
