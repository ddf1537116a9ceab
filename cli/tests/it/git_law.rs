//! The law about git: nothing that an agent wrote runs when the user calls git afterwards.
//!
//! Each trick is tried twice with real git: by a plain shell, where it must work, so that the test
//! can fail; and by an agent, where it must come to nothing.

mod apart;
mod around;
mod files;
mod missing;
mod modes;
mod places;
mod together;
mod tricks;
mod walls;

use crate::world::{World, bash};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Output};
use tricks::{BELOW, GITLINKS, TOP};

/// One way to make the user's git run something. `PAYLOAD` stands for a command that leaves a trace
/// where no agent can write.
struct Trick {
    name: &'static str,
    /// What the user has done before, at the top of a repository with a commit.
    before: &'static str,
    /// What the agent's commands do there, each after a line `THEN`.
    agent: &'static str,
    /// What the user does then.
    user: &'static str,
}

const fn trick(name: &'static str, agent: &'static str, user: &'static str) -> Trick {
    Trick { name, before: "", agent, user }
}

const fn prepared(
    name: &'static str,
    before: &'static str,
    agent: &'static str,
    user: &'static str,
) -> Trick {
    Trick { name, before, agent, user }
}

/// For the agent, and for the plain shell in its place: `mk` makes a repository with a commit and a file;
/// `set` writes a setting, without git's help.
const WORDS: &str = r#"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
mk() { git init -q -b main "$1" && echo one > "$1/f" && git -C "$1" add f && git -C "$1" commit -qm x; }
script() { printf '#!/bin/sh\nPAYLOAD\n%s\n' "$2" > "$1"; chmod +x "$1"; }
"#;

/// For the user.
const USER: &str = "export GIT_EDITOR=true GIT_AUTHOR_NAME=u GIT_AUTHOR_EMAIL=u \
    GIT_COMMITTER_NAME=u GIT_COMMITTER_EMAIL=u\n";

/// Runs `script` as a plain shell would, in `folder`.
fn shell(world: &World, folder: &Path, script: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-c", script]).current_dir(folder).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", world.home());
    command.env("TMPDIR", world.folder.path().join("tmp")).env("GIT_CONFIG_NOSYSTEM", "1");
    command.stdin(std::process::Stdio::null()).output().unwrap()
}

/// A repository with a commit at `folder`, as the user has it.
fn set_up(world: &World, folder: &Path, before: &str) {
    std::fs::create_dir_all(world.folder.path().join("tmp")).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    let made = shell(
        world,
        folder,
        &format!(
            "{WORDS}\nset -e\ngit init -q -b main; git config user.name u; git config user.email u\n\
             echo one > a.txt; git add a.txt; git commit -qm first\n{before}"
        ),
    );
    assert!(made.status.success(), "{before}: {made:?}");
}

/// Whether the trick works with a plain shell, and whether it does with an agent; and what was said.
async fn tried(trick: &Trick) -> (bool, bool, String) {
    let Trick { before, agent, user, .. } = trick;
    let reply = Reply::text("{{last_tool_result}}");
    // The world must be there before the model knows what to say.
    let canary = |world: &World| world.folder.path().join("canary");
    let scripts = agent.split("\nTHEN\n").map(|part| format!("{WORDS}\n{part}"));
    let world = World::saying("x").await;
    let payload = |world: &World, text: &str| {
        text.replace("PAYLOAD", &format!("touch {}", canary(world).display()))
    };
    let control = world.folder.path().join("control");
    set_up(&world, &control, before);
    let scripts: Vec<String> = scripts.map(|script| payload(&world, &script)).collect();
    for script in &scripts {
        shell(&world, &control, script);
    }
    let _ = std::fs::remove_file(canary(&world));
    let user = payload(&world, &format!("{USER}{user}"));
    shell(&world, &control, &user);
    let works = canary(&world).exists();
    // The agent's script has to name the canary of its own world.
    let name = world.folder.path().join("canary");
    let turns = scripts.iter().map(|script| bash(script)).chain([reply]);
    let conversation = turns.fold(Conversation::when(When::any()), Conversation::reply);
    let other = World::new(Script::new().conversation(conversation)).await;
    set_up(&other, &other.work(), before);
    let _ = std::fs::remove_file(&name);
    let said = other.run(&["run", "go"]).await.expect(0).out;
    let early = name.exists();
    let done = shell(&other, &other.work(), &user);
    (works, early || name.exists(), format!("{said}\n{done:?}"))
}

async fn check(tricks: &[Trick]) {
    let mut wrong = Vec::new();
    for trick in tricks {
        let (works, got_through, said) = tried(trick).await;
        if !works {
            wrong.push(format!("{}: does not work with a plain shell", trick.name));
        }
        if got_through {
            wrong.push(format!("{}: works for an agent:\n{said}", trick.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), tricks.len(), wrong.join("\n"));
}

#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_a_repository_which_git_enters_by_itself() {
    check(GITLINKS).await;
}

#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_a_repository_which_the_user_enters() {
    check(BELOW).await;
}

#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_the_repository_of_the_workspace() {
    check(TOP).await;
}

/// However a hook of the user's names a script of the workspace, an agent cannot change it.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_a_script_which_a_hook_names() {
    let lines = [
        "sh scripts/x",
        ". scripts/x",
        "\"$ROOT/scripts/x\"",
        "${ROOT}/scripts/x",
        "\"$(dirname \"$0\")/../../scripts/x\"",
        "cd scripts && ./x",
        "cd \"$ROOT/scripts\" && sh x",
        "exec TOP/scripts/x",
        "DIR=scripts; cd $DIR; . ./x",
        "cd \"$(git rev-parse --show-toplevel 2>/dev/null || pwd)/scripts\" && ./x",
        "D=\"$(git rev-parse --path-format=absolute --show-toplevel 2>/dev/null)/scripts\"; cd \"$D\"; ./x",
        "F=scripts/x; . \"$F\"",
        "sh \"$(pwd)/scripts/x\"",
        "sh \"${PWD}/scripts/x\"",
        ". \"${X:-scripts/x}\"",
        ". \"${X:=scripts/x}\"",
        "S=sh; $S scripts/x",
        "f() { . \"$1\"; }; f scripts/x",
        "cat scripts/x | sh -s",
    ];
    let tricks = lines.map(|line| {
        let hook = format!(
            "mkdir -p scripts .git/hooks; echo exit > scripts/x; chmod +x scripts/x\n\
             printf '#!/bin/sh\\nROOT=$PWD\\n%s\\n' '{line}' | sed \"s,TOP,$PWD,\" > .git/hooks/pre-commit\n\
             chmod +x .git/hooks/pre-commit"
        );
        // Without the permission, it is run because the hook says so.
        let (hook, agent) = match ["sh ", ". ", "$S "].iter().any(|it| line.contains(it)) {
            true => (format!("{hook}; chmod -x scripts/x"), "echo PAYLOAD > scripts/x"),
            false => (hook, "script scripts/x"),
        };
        prepared(line, hook.leak(), agent, "git commit -qm y --allow-empty")
    });
    check(&tricks).await;
}

/// The kernel runs what the first line of a hook names, in whatever language that is.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_what_the_first_line_of_a_hook_names() {
    let lines = [
        "#!scripts/x",
        "#! scripts/x -a",
        "#!TOP/scripts/x",
        "#!/usr/bin/env scripts/x",
        "#!/usr/bin/env -S scripts/x -a",
        "#!/bin/sh scripts/x",
    ];
    let tricks = lines.map(|line| {
        let hook = format!(
            "mkdir -p scripts .git/hooks; printf '#!/bin/sh\nexit\n' > scripts/x; chmod +x scripts/x\n\
             printf '%s\ntext of no language\n' '{line}' | sed \"s,TOP,$PWD,\" > .git/hooks/pre-commit\n\
             chmod +x .git/hooks/pre-commit"
        );
        prepared(line, hook.leak(), "script scripts/x", "git commit -qm y --allow-empty")
    });
    check(&tricks).await;
}

/// However the words of a hook are written, and whatever the first lines of its scripts name.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_what_a_hook_reaches_in_other_words() {
    const COMMIT: &str = "git commit -qm y --allow-empty";
    const SCRIPT: &str = "script scripts/x.sh";
    const MODULE: &str = "echo 'import os; os.system(\"PAYLOAD\")' > scripts/x.py";
    let tricks = [
        ("echo '#!scripts/x.sh' > scripts/y.sh", "#!scripts/y.sh", SCRIPT),
        (
            "echo '#!/usr/bin/env -S sh scripts/x.sh' > scripts/y.sh",
            "#!/bin/sh\n./scripts/y.sh",
            SCRIPT,
        ),
        ("echo \"#!$PWD/scripts/x.sh\" > ../run; chmod +x ../run", "#!UP/run", SCRIPT),
        ("echo \"#!$PWD/scripts/x.sh\" > ../run; chmod +x ../run", "#!/bin/sh\nUP/run", SCRIPT),
        ("", "#!/usr/bin/env -S sh\\_scripts/x.sh", SCRIPT),
        ("", "#!/usr/bin/env -iSsh scripts/x.sh", SCRIPT),
        ("", "#!/usr/bin/env -S ENV=scripts/x.sh sh -i", SCRIPT),
        ("", "#!/bin/sh\nENV=scripts/x.sh sh -i", SCRIPT),
        ("", "#!/usr/bin/env -S git -c alias.z=!scripts/x.sh z", SCRIPT),
        ("", "#!/bin/sh\nsh scri\\\npts/x.sh", SCRIPT),
        ("", "#!/bin/bash\nsh $'scripts\\x2fx.sh'", SCRIPT),
        ("", "#!/bin/bash\nsh scripts/{x,}.sh", SCRIPT),
        ("", "#!/bin/sh\nsh scripts/?.sh", SCRIPT),
        ("", "#!/bin/sh\nsh scripts/[x].sh", SCRIPT),
        ("", "#!/bin/sh\nPYTHONPATH=scripts python3 -m x", MODULE),
        ("", "#!/bin/sh\npython3 -c 'from scripts import x'", MODULE),
        ("", "#!/usr/bin/env python3\nimport sys\nsys.path.insert(0, 'scripts')\nimport x", MODULE),
        (
            "echo > scripts/x.mk",
            "#!/usr/bin/make -f\n-include scripts/*.mk\nall:;@:",
            "echo '$(shell PAYLOAD)' > scripts/x.mk",
        ),
    ];
    let tricks = tricks.map(|(before, hook, agent)| {
        let before = format!(
            "mkdir -p scripts .git/hooks; echo > scripts/x.py\n\
             printf '#!/bin/sh\nexit\n' > scripts/x.sh; chmod +x scripts/x.sh\n{before}\n\
             if [ -e scripts/y.sh ]; then chmod +x scripts/y.sh; fi\n\
             sed \"s,UP,${{PWD%/*}},\" > .git/hooks/pre-commit <<'E'\n{hook}\nE\n\
             chmod +x .git/hooks/pre-commit"
        );
        prepared(hook, before.leak(), agent, COMMIT)
    });
    check(&tricks).await;
}

/// Settings of the user's that lead to a script of the workspace by a detour.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_what_a_setting_leads_to() {
    check(&[
        prepared(
            "the first line of an editor",
            "mkdir scripts; printf '#!/bin/sh\nexit\n' > scripts/x.sh; echo '#!scripts/x.sh' > scripts/y.sh
             chmod +x scripts/?.sh; git config core.editor scripts/y.sh",
            "script scripts/x.sh",
            "unset GIT_EDITOR; git commit --allow-empty",
        ),
        prepared(
            "an alias that gives git a folder of hooks",
            "mkdir -p scripts/h; git config alias.ci '-c core.hooksPath=scripts/h commit'",
            "script scripts/h/pre-commit",
            "git ci -qm y --allow-empty",
        ),
        prepared(
            "an address with a program",
            "mkdir scripts; echo exit > scripts/x.sh; git config protocol.ext.allow always
             git config remote.o.url 'ext::sh scripts/x.sh'",
            "script scripts/x.sh",
            "git fetch o",
        ),
        prepared(
            "an address with a program in place of another",
            "mkdir scripts; echo exit > scripts/x.sh; git config protocol.ext.allow always
             git config 'url.ext::sh scripts/x.sh.insteadOf' o:",
            "script scripts/x.sh",
            "git fetch o:",
        ),
        prepared(
            "modules of Python",
            "mkdir scripts; echo > scripts/x.py; echo '*.txt filter=z' > .gitattributes
             git config filter.z.clean 'PYTHONPATH=scripts python3 -m x'",
            "echo 'import os; os.system(\"PAYLOAD\")' > scripts/x.py",
            "echo two > a.txt; git add a.txt",
        ),
    ])
    .await;
}

/// A world in which an agent makes these calls in a repository with a commit.
async fn calling(calls: Vec<Reply>, before: &str) -> World {
    let conversation = calls.into_iter().fold(Conversation::when(When::any()), Conversation::reply);
    let conversation = conversation.reply(Reply::text("{{last_tool_result}}"));
    let world = World::new(Script::new().conversation(conversation)).await;
    set_up(&world, &world.work(), before);
    world
}

fn write(path: &str, content: &str) -> Reply {
    Reply::tool_call("Write", json!({"file_path": path, "content": content}))
}

#[tokio::test]
async fn the_agent_learns_what_was_set_aside_and_nothing_is_lost() {
    let command = format!(
        "{WORDS}\nmk s; git -C s config core.fsmonitor evil; git -C s config user.name kept; \
         script s/.git/hooks/pre-commit; ln -s /etc/passwd .git/FETCH_HEAD"
    );
    let world = calling(vec![bash(&command)], "").await;
    let exit = world.run(&["run", "go"]).await.expect(0);
    for part in ["core.fsmonitor in s/.git/config", "s/.git/hooks", "the link .git/FETCH_HEAD"] {
        assert!(exit.out.contains("[set aside: ") && exit.out.contains(part), "{part}: {exit:?}");
        assert!(exit.err.contains("  set aside: ") && exit.err.contains(part), "{part}: {exit:?}");
    }
    let config = world.read("s/.git/config");
    assert!(config.contains("name = kept") && !config.contains("evil"), "{config}");
    assert!(world.read("s/.git/config.set-aside").contains("evil"));
    assert!(world.work().join("s/.git/hooks.set-aside/pre-commit").exists());
    assert!(world.work().join(".git/FETCH_HEAD").symlink_metadata().is_err());
}

/// What people and agents do every day goes on as before.
#[tokio::test]
async fn ordinary_work_in_repositories_below_the_workspace_does_not_suffer() {
    let before = "git clone -q . ../other
        mk n; git -C n config core.fsmonitor false; git -C n config alias.st status
        git -C n config diff.x.textconv cat; printf '#!/bin/sh\\ntouch ran\\n' > n/.git/hooks/post-commit
        chmod +x n/.git/hooks/post-commit; echo n >> .git/info/exclude
        git -c protocol.file.allow=always submodule add -q $PWD/../other m; git commit -qm m
        git worktree add -q ../apart; mkdir -p fixture/objects fixture/refs
        echo x > fixture/HEAD; printf '[core]\\nfsmonitor = kept\\n' > fixture/config";
    let work = "set -e
        git init -q -b main new; cd new; git config user.name n; git config user.email e
        git remote add origin https://example.org/x.git; echo a > f; git add f; git commit -qm first
        git config commit.gpgsign false; git config core.hooksPath /dev/null; git checkout -qb b; cd ..
        git clone -q . copy; git clone -q --bare . bare.git; git -C copy log --format=copy:%s
        git -C copy config user.name n; git -C copy config user.email e
        git -C copy commit -qm inner --allow-empty; git -C copy push -q ../bare.git HEAD:refs/heads/x
        mk u; mk v; git -C v -c protocol.file.allow=always submodule add -q $PWD/u m
        git -C v commit -qm m; git -C v worktree add -q ../v-apart; git -C v/m status
        git -c protocol.file.allow=always clone -q --recurse-submodules v v-copy
        git clone -q u /tmp/c; git -C /tmp/c worktree add -q /tmp/c-apart; git -C /tmp/c-apart status
        git submodule status; git status --short; echo two > m/a.txt; git -C m diff --stat
        echo three > n/f; git -C n commit -qam changed; git -C n st --short
        echo two > a.txt; git commit -qam second; git log -1 --format=then:%s; echo END";
    let world = calling(vec![bash(&format!("{WORDS}\n{work}"))], before).await;
    let names = ["n/.git/config", "n/.git/hooks/post-commit", "m/.git", "fixture/config"];
    let kept: Vec<String> = names.iter().map(|name| world.read(name)).collect();
    let said = world.run(&["run", "go"]).await.expect(0).out;
    for part in ["copy:first", "a.txt | 2 +-", "then:second", "END"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("set aside"), "{said}");
    for (name, before) in names.iter().zip(kept) {
        assert_eq!(world.read(name), before, "{name}");
    }
    assert!(world.work().join("n/ran").exists(), "a hook of the user's runs in the sandbox");
    let user =
        "set -e; git status --short; git -C new log --format=new:%s; git -C new config user.name
        git -C copy status; git -C bare.git log -1 --format=bare:%s x; git submodule update
        git -C m checkout -q a.txt; git -c protocol.file.allow=always submodule update --remote
        git -C n st; git -C ../apart status; git -C v/m status; git -C v-apart status
        git -C v-copy submodule status; git -C new remote -v; echo END";
    let done = shell(&world, &world.work(), &format!("{USER}{user}"));
    let out = String::from_utf8_lossy(&done.stdout);
    for part in ["new:first", "bare:inner", "example.org/x.git", "END"] {
        assert!(out.contains(part), "{part}: {done:?}");
    }
    assert!(world.read("new/.git/config").contains("hooksPath = /dev/null"));
}

/// git converts files by attributes that an agent may write.
#[tokio::test]
async fn attributes_of_a_child_convert_no_protected_file() {
    use crate::worktrees::{AGENTS, branches, git, repository};
    let convert = "echo '* working-tree-encoding=ISO-8859-1' > .gitattributes; echo ä > new.txt";
    let world = repository([bash(convert), Reply::text("done")]).await;
    std::fs::create_dir(world.work().join(".vscode")).unwrap();
    for name in [".vscode/tasks.json", "plain.json"] {
        world.write(name, "{\"label\": \"prüfen\"}\n");
    }
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "second"]);
    let exit = world.run(&["run", "--agents", AGENTS, "--allow", "Bash", "lead"]).await.expect(0);
    let branch = branches(&world).pop().unwrap();
    let changed = git(&world.work(), &["diff", "--name-only", "main", &branch]);
    assert!(changed.contains("plain.json"), "the trick works: {changed}: {}", exit.out);
    assert!(!changed.contains(".vscode"), "{changed}");
}
