//! The file tools and commands together: what one writes, the other completes.

use super::{USER, WORDS, set_up, shell, write};
use crate::world::{World, bash};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;
use std::path::Path;

/// One thing that an agent does.
#[derive(Clone, Copy)]
enum Step {
    /// Writes a new file.
    Write(&'static str, &'static str),
    /// Reads a file, and replaces all of it.
    Change(&'static str, &'static str),
    Bash(&'static str),
    /// What follows is done by another run.
    NextRun,
}
use Step::{Bash, Change, NextRun, Write};

struct Plan {
    name: &'static str,
    /// What the user has done before.
    before: &'static str,
    steps: &'static [Step],
    /// What the user does then.
    user: &'static str,
}

/// Settings of a repository whose files are in `s`.
const EVIL: &str =
    "[core]\n\trepositoryformatversion = 0\n\tworktree = ../s\n\tfsmonitor = \"PAYLOAD; false\"\n";
const PLAIN: &str = "[core]\n\trepositoryformatversion = 0\n\tworktree = ../s\n";
/// Settings that some file includes.
const MORE: &str = "[core]\n\tfsmonitor = \"PAYLOAD; false\"\n";

/// Makes a repository of the folder `x`.
const COMPLETE: &str =
    "mkdir -p x/objects x/refs s; echo 'ref: refs/heads/m' > x/HEAD; echo 'gitdir: ../x' > s/.git
    git -C s -c core.fsmonitor= -c core.hooksPath=/dev/null commit -qm x --allow-empty; git add s";

const STATUS: &str = "git status";

/// A file tool writes what a command then makes a part of a repository.
const COMPLETED: &[Plan] = &[
    Plan { name: "settings", before: "", steps: &[Write("x/config", EVIL), Bash(COMPLETE)], user: STATUS },
    Plan {
        name: "settings, by two runs",
        before: "",
        steps: &[Write("x/config", EVIL), NextRun, Bash(COMPLETE)],
        user: STATUS,
    },
    Plan {
        name: "settings, step by step",
        before: "",
        steps: &[Write("x/config", EVIL), Bash("mkdir x/objects"), Bash("mkdir x/refs"), NextRun, Bash(COMPLETE)],
        user: STATUS,
    },
    Plan {
        name: "harmless settings of the user's",
        before: "mkdir x; printf '[core]\\nrepositoryformatversion = 0\\nworktree = ../s\\n' > x/config; git add x; git commit -qm x",
        steps: &[Change("x/config", EVIL), Bash(COMPLETE)],
        user: STATUS,
    },
    Plan {
        name: "settings in git's own folder",
        before: "",
        steps: &[
            Write(".git/e/config", "[core]\n\trepositoryformatversion = 0\n\tworktree = ../../s\n\tfsmonitor = \"PAYLOAD; false\"\n"),
            Bash("mkdir -p .git/e/objects .git/e/refs s; echo 'ref: refs/heads/m' > .git/e/HEAD; echo 'gitdir: ../.git/e' > s/.git
                git -C s -c core.fsmonitor= commit -qm x --allow-empty; git add s"),
        ],
        user: STATUS,
    },
    Plan {
        name: "a whole repository in git's own folder",
        before: "",
        steps: &[
            Write(".git/e/config", "[core]\n\trepositoryformatversion = 0\n\tworktree = ../../s\n\tfsmonitor = \"PAYLOAD; false\"\n"),
            Write(".git/e/objects/a", ""),
            Write(".git/e/refs/a.txt", ""),
            Write(".git/e/HEAD", "ref: refs/heads/m\n"),
            Bash("mkdir -p s; echo 'gitdir: ../.git/e' > s/.git; git -C s -c core.fsmonitor= commit -qm x --allow-empty; git add s"),
        ],
        user: STATUS,
    },
    Plan {
        name: "settings of one checkout",
        before: "",
        steps: &[
            Write("x/config", "[core]\n\trepositoryformatversion = 0\n\tworktree = ../s\n[extensions]\n\tworktreeConfig = true\n"),
            Write("x/config.worktree", MORE),
            Bash(COMPLETE),
        ],
        user: STATUS,
    },
    Plan {
        name: "settings that include a file",
        before: "",
        steps: &[
            Write("x/config", "[core]\n\trepositoryformatversion = 0\n\tworktree = ../s\n[include]\n\tpath = ../y\n"),
            Write("y", MORE),
            Bash(COMPLETE),
        ],
        user: STATUS,
    },
    Plan {
        name: "an address that is a program",
        before: "",
        steps: &[
            Write("x/config", "[core]\n\trepositoryformatversion = 0\n\tworktree = ../s\n[protocol \"ext\"]\n\tallow = always\n[remote \"origin\"]\n\turl = ext::PAYLOAD\n"),
            Bash(COMPLETE),
        ],
        user: "cd s; git fetch",
    },
    Plan {
        name: "a hook that becomes executable later",
        before: "",
        steps: &[
            Write("x/hooks/post-index-change", "#!/bin/sh\nPAYLOAD\n"),
            Bash("chmod +x x/hooks/post-index-change"),
            Write("x/objects/a", "1"),
            Write("x/config", PLAIN),
            Bash(COMPLETE),
            Bash("cd s; echo 1 > g; git -c core.hooksPath=/dev/null add g; touch -d 2001-01-01 g"),
        ],
        user: "cd s; git status; git add .",
    },
    Plan {
        name: "a part beside settings that a command left",
        before: "",
        steps: &[
            Bash("mkdir x; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\nworktree = ../s\\n' > x/config"),
            Write("x/objects/a", ""),
            Bash(COMPLETE),
        ],
        user: STATUS,
    },
    Plan {
        name: "settings beside a small head",
        before: "",
        steps: &[
            Bash("mkdir x; echo 'ref: refs/heads/m' > x/head"),
            Write("x/config", EVIL),
            Bash("mv x/head x/HEAD"),
            Bash(COMPLETE),
        ],
        user: STATUS,
    },
];

/// Makes a nested repository `s` that is in the index of the top, after these words, and commits all.
macro_rules! nested {
    ($($words:literal),+) => {
        concat!("mk s; mkdir tools; ", $($words, "; "),+, "git add .; git commit -qm s")
    };
}

/// The same for a real submodule.
macro_rules! submodule {
    ($words:literal) => {
        concat!(
            "git clone -q . ../other$$; git -c protocol.file.allow=always submodule add -q $PWD/../other$$ s; mkdir tools; ",
            $words, "; git add .; git commit -qm s"
        )
    };
}

/// Repositories below the workspace name files outside of their own folders.
const NAMED: &[Plan] = &[
    Plan {
        name: "an included file",
        before: nested!("git -C s config include.path ../../inc", "echo '[user]' > inc"),
        steps: &[Change("inc", MORE)],
        user: STATUS,
    },
    Plan {
        name: "a missing included file",
        before: nested!("git -C s config include.path ../../inc"),
        steps: &[Write("inc", MORE)],
        user: STATUS,
    },
    Plan {
        name: "a monitor",
        before: nested!("git -C s config core.fsmonitor ../tools/mon", "script tools/mon; echo exit > tools/mon"),
        steps: &[Change("tools/mon", "#!/bin/sh\nPAYLOAD\n")],
        user: STATUS,
    },
    Plan {
        name: "a script of a filter",
        before: nested!("git -C s config filter.z.clean 'sh ../tools/f'", "echo cat > tools/f", "echo '* filter=z' > s/.git/info/attributes", "echo two > s/f"),
        steps: &[Change("tools/f", "PAYLOAD; cat\n")],
        user: "touch s/f; git status",
    },
    Plan {
        name: "a folder of hooks",
        before: nested!("git -C s config core.hooksPath ../hk", "mkdir hk; script hk/pre-commit; echo exit > hk/pre-commit"),
        steps: &[Change("hk/pre-commit", "#!/bin/sh\nPAYLOAD\n")],
        user: "cd s; git commit -qm z --allow-empty",
    },
    Plan {
        name: "a script of a hook",
        before: nested!("script s/.git/hooks/pre-commit; printf '#!/bin/sh\\nsh ../tools/c\\n' > s/.git/hooks/pre-commit", "echo exit > tools/c"),
        steps: &[Change("tools/c", "PAYLOAD\n")],
        user: "cd s; git commit -qm z --allow-empty",
    },
    Plan {
        name: "a file that a submodule includes",
        before: submodule!("git -C s config include.path ../../../inc; echo '[user]' > inc"),
        steps: &[Change("inc", MORE)],
        user: STATUS,
    },
    Plan {
        name: "a script of a hook of a submodule",
        before: submodule!("mkdir -p .git/modules/s/hooks; script .git/modules/s/hooks/pre-commit
            printf '#!/bin/sh\\nsh ../tools/c\\n' > .git/modules/s/hooks/pre-commit; echo exit > tools/c"),
        steps: &[Change("tools/c", "PAYLOAD\n")],
        user: "cd s; git commit -qm z --allow-empty",
    },
    Plan {
        name: "a script of a hook, after a command has moved the repository",
        before: nested!("script s/.git/hooks/pre-commit; printf '#!/bin/sh\\nsh ../tools/c\\n' > s/.git/hooks/pre-commit", "mv s/.git data", "rm -r s"),
        steps: &[
            Write("notes", "so that a search is remembered"),
            Bash("mkdir -p a/b; echo 'gitdir: ../../data' > a/b/.git"),
            Write("a/tools/c", "PAYLOAD\n"),
        ],
        user: "cd a/b; git commit -qm z --allow-empty",
    },
];

fn write_as_user(folder: &Path, path: &str, content: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Whether the plan works for a user, and whether it does for an agent; and what was said.
async fn tried(plan: &Plan) -> (bool, bool, String) {
    let control = World::saying("x").await;
    let canary = control.folder.path().join("canary");
    let filled = |text: &str| text.replace("PAYLOAD", &format!("touch {}", canary.display()));
    let user = filled(&format!("{USER}{}", plan.user));
    set_up(&control, &control.work(), &filled(plan.before));
    let mut runs = vec![Vec::new()];
    for step in plan.steps {
        match step {
            Write(path, content) | Change(path, content) => {
                write_as_user(&control.work(), path, &filled(content));
                let last = runs.last_mut().unwrap();
                if matches!(step, Change(..)) {
                    last.push(Reply::tool_call("Read", json!({"file_path": path})));
                }
                last.push(write(path, &filled(content)));
            }
            Bash(script) => {
                let script = filled(&format!("{WORDS}\n{script}"));
                shell(&control, &control.work(), &script);
                runs.last_mut().unwrap().push(bash(&script));
            }
            NextRun => runs.push(Vec::new()),
        }
    }
    let _ = std::fs::remove_file(&canary);
    shell(&control, &control.work(), &user);
    let works = canary.exists();
    let script = runs.iter().cloned().enumerate().fold(Script::new(), |script, (number, calls)| {
        let when = When::any().first_user_contains(&format!("go-{number}"));
        let conversation = Conversation::when(when);
        let conversation = calls.into_iter().fold(conversation, Conversation::reply);
        script.conversation(conversation.reply(Reply::text("{{last_tool_result}}")))
    });
    let world = World::new(script).await;
    set_up(&world, &world.work(), &filled(plan.before));
    let _ = std::fs::remove_file(&canary);
    for number in 0..runs.len() {
        world.run(&["run", &format!("go-{number}")]).await.expect(0);
    }
    let early = canary.exists();
    let done = shell(&world, &world.work(), &user);
    let said: Vec<_> = world.fake.requests().iter().flat_map(|it| it.tool_results()).collect();
    (works, early || canary.exists(), format!("{said:?}\n{done:?}"))
}

async fn check(plans: &[Plan]) {
    let mut wrong = Vec::new();
    for plan in plans {
        let (works, got_through, said) = tried(plan).await;
        if !works {
            wrong.push(format!("{}: does not work for a user", plan.name));
        }
        if got_through {
            wrong.push(format!("{}: works for an agent:\n{said}", plan.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), plans.len(), wrong.join("\n"));
}

#[tokio::test]
async fn nothing_runs_that_a_file_tool_wrote_and_a_command_made_a_part_of_a_repository() {
    check(COMPLETED).await;
}

#[tokio::test]
async fn file_tools_change_nothing_that_repositories_below_the_workspace_name() {
    check(NAMED).await;
}

/// Projects have files with names that git uses, too, and settings of git among their test data.
#[tokio::test]
async fn ordinary_work_on_files_with_names_of_git_does_not_suffer() {
    let before = "mk s; git -C s config core.fsmonitor ../tools/mon; mkdir tools fix a; echo exit > tools/mon
        chmod +x tools/mon; printf '[core]\\nrepositoryformatversion = 0\\nfsmonitor = kept\\n' > fix/config
        echo x > a/HEAD; mkdir fix/hooks; echo exit > fix/hooks/pre-commit; git add .; git commit -qm s";
    let new = [
        "config/app.yml",
        "lib/config",
        "lib/objects/a.rs",
        "lib/refs/a.rs",
        "web/hooks/use.ts",
        "objects/a",
        "branches/b",
        "commondir",
        "fix/objects/a",
        "tools/other",
        "s/f2",
    ];
    let change = |path: &str| {
        [Reply::tool_call("Read", json!({"file_path": path})), write(path, "changed\n")]
    };
    let mut calls: Vec<Reply> = new.iter().map(|path| write(path, "new\n")).collect();
    calls.extend(["a/HEAD", "fix/hooks/pre-commit"].iter().flat_map(|path| change(path)));
    calls.push(bash("echo two > s/f; git status --short; echo END"));
    let world = super::calling(calls, before).await;
    let kept = world.read("fix/config");
    let said = world.run(&["run", "go"]).await.expect(0).out;
    let results: Vec<_> = world.fake.requests().iter().flat_map(|it| it.tool_results()).collect();
    for path in new {
        assert_eq!(world.read(path), "new\n", "{path}: {results:?}");
    }
    for path in ["a/HEAD", "fix/hooks/pre-commit"] {
        assert_eq!(world.read(path), "changed\n", "{path}: {results:?}");
    }
    assert!(said.contains("END") && !said.contains("set aside"), "{said}");
    assert_eq!(world.read("fix/config"), kept);
}
