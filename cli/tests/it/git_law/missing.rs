//! What git's settings and hooks name is missing, and tools for files make it.

use super::{USER, WORDS, calling, prepared, set_up, shell, write};
use crate::world::{World, bash};
use posse_testkit::Reply;
use serde_json::json;

/// One way to make what the user's git runs or obeys.
struct Missing {
    /// What the user has done before.
    before: String,
    /// What the agent's command does then, if it calls one.
    command: &'static str,
    /// What the agent writes then.
    path: &'static str,
    content: &'static str,
    /// What the user does in the end.
    user: &'static str,
}

const COMMIT: &str = "git commit -qm y --allow-empty";
const EVIL: &str = "[core]\n\tfsmonitor = \"PAYLOAD; false\"\n";

/// A hook of the user's with this line in it.
fn hook(line: &str) -> String {
    format!(
        "mkdir -p .git/hooks; cat > .git/hooks/pre-commit <<'END'\n#!/bin/sh\n{line}\nexit 0\nEND\n\
         chmod +x .git/hooks/pre-commit"
    )
}

async fn check(cases: &[Missing]) {
    let mut wrong = Vec::new();
    for Missing { before, command, path, content, user } in cases {
        let name = format!("{before}; {command}; {path}");
        let control = World::saying("x").await;
        let canary = control.folder.path().join("canary");
        let filled = |text: &str| text.replace("PAYLOAD", &format!("touch {}", canary.display()));
        let command = filled(&format!("{WORDS}\n{command}"));
        set_up(&control, &control.work(), before);
        shell(&control, &control.work(), &command);
        let file = control.work().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, filled(content)).unwrap();
        let _ = std::fs::remove_file(&canary);
        shell(&control, &control.work(), &format!("{USER}{user}"));
        if !canary.exists() {
            wrong.push(format!("{name}: does not work by hand"));
        }
        let calls = vec![bash(&command), write(path, &filled(content))];
        let world = calling(calls, before).await;
        let _ = std::fs::remove_file(&canary);
        world.run(&["run", "go"]).await.expect(0);
        let done = shell(&world, &world.work(), &format!("{USER}{user}"));
        if canary.exists() {
            let results = world.fake.last_request().tool_results();
            wrong.push(format!("{name}: works for an agent: {results:?} {done:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[tokio::test]
async fn file_tools_do_not_make_what_a_hook_or_a_setting_names() {
    let hooks = [
        ("[ -f s/local.sh ] && . s/local.sh", "s/local.sh"),
        ("test ! -f s/x || sh s/x", "s/x"),
        ("ROOT=$(git rev-parse --show-toplevel); bash \"$ROOT/scripts/x.sh\"", "scripts/x.sh"),
        ("[ -d s ] && cd s && . ./x", "s/x"),
        ("F=s/conf; [ ! -e $F ] || . \"$F\"", "s/conf"),
        ("[ ! -e s/conf ] || . \"${CONF:-s/conf}\"", "s/conf"),
    ];
    let hooks = hooks.map(|(line, path)| Missing {
        before: hook(line),
        command: "",
        path,
        content: "PAYLOAD\n",
        user: COMMIT,
    });
    let settings = [
        ("diff.x.textconv 'sh tools/t'; echo 'a.txt diff=x' > .gitattributes", "tools/t"),
        ("filter.x.clean 'sh tools/c.sh'; echo 'a.txt filter=x' > .gitattributes", "tools/c.sh"),
    ];
    let settings = settings.map(|(setting, path)| Missing {
        before: format!("git config {setting}; echo changed >> a.txt"),
        command: "",
        path,
        content: "PAYLOAD\n",
        user: "git diff",
    });
    check(&hooks.into_iter().chain(settings).collect::<Vec<_>>()).await;
}

/// A command leaves a link that leads nowhere, and `Write` makes what it leads to.
#[tokio::test]
async fn file_tools_do_not_make_what_links_lead_to_from_where_git_looks() {
    let optional = || hook("[ -e s/x ] && . ./s/x");
    let include = |path: &str| format!("git config include.path {path}");
    let evil = |before: String, command, path| Missing {
        before,
        command,
        path,
        content: EVIL,
        user: "git status",
    };
    let run = |before: String, command, path, user| Missing {
        before,
        command,
        path,
        content: "PAYLOAD\n",
        user,
    };
    check(&[
        evil(include("../gc"), "ln -s gc1 gc", "gc1"),
        evil(include("../gc"), "ln -s gc1 gc; ln -s z/gc2 gc1", "z/gc2"),
        evil(format!("{}; ln -s gc1 gc", include("../gc")), "", "gc1"),
        evil("rm -f ~/.gitconfig; ln -s $PWD/gitconfig ~/.gitconfig".to_owned(), "", "gitconfig"),
        run(format!("mkdir s; {}", optional()), "ln -s ../y s/x", "y", COMMIT),
        run(format!("mkdir s; ln -s ../y s/x; {}", optional()), "", "y", COMMIT),
        run(optional(), "ln -s sd s", "sd/x", COMMIT),
        run(format!("ln -s a/b s; {}", optional()), "", "a/b/x", COMMIT),
        run(
            "git config core.hooksPath .githooks".to_owned(),
            "mkdir ready; script ready/pre-commit; ln -s nodir/../ready .githooks",
            "nodir/x",
            COMMIT,
        ),
        run(
            hook("[ -x s/pc ] && s/pc"),
            "mkdir ready; script ready/pc; ln -s nodir/../ready s",
            "nodir/x",
            COMMIT,
        ),
        run(
            "git config core.fsmonitor ./tools/mon".to_owned(),
            "mkdir ready; script ready/mon; ln -s nodir/../ready tools",
            "nodir/x",
            "git status",
        ),
    ])
    .await;
}

/// A new link is set aside wherever it leads; those of the user stay.
#[tokio::test]
async fn links_that_lead_nowhere_are_set_aside_where_git_looks() {
    let before = format!(
        "{}; mkdir s; ln -s nowhere mine; git config --add include.path ../mine
        git config --add include.path ../gc",
        hook("[ -e s/x ] && . s/x; [ -e t/x ] && . t/x")
    );
    let command = "ln -s gc1 gc; ln -s ../y s/x; ln -s td t; ln -s nowhere other";
    let world = calling(vec![bash(command)], &before).await;
    let said = world.run(&["run", "go"]).await.expect(0).out;
    let is_there = |name: &str| world.work().join(name).symlink_metadata().is_ok();
    for name in ["gc", "s/x", "t"] {
        assert!(!is_there(name) && is_there(&format!("{name}.set-aside")), "{name}: {said}");
    }
    assert!(is_there("mine") && is_there("other"), "{said}");
}

/// A folder that a way leaves again by `..` decides where it leads on. Agents work in it as ever.
#[tokio::test]
async fn a_link_in_the_place_of_a_folder_on_the_way_is_set_aside_and_no_link_of_the_user_s() {
    let before = "mkdir a hooks; ln -s a/../hooks Hooks; git config core.hooksPath Hooks";
    let command =
        "echo x > a/f; mkdir -p b/c b/hooks; script b/hooks/pre-commit; mv a a2; ln -s b/c a";
    let world = calling(vec![bash(&format!("{WORDS}\n{command}"))], before).await;
    let said = world.run(&["run", "go"]).await.expect(0).out;
    let at = |name: &str| world.work().join(name);
    assert!(at("a.set-aside").is_symlink() && at("a").symlink_metadata().is_err(), "{said}");
    assert_eq!(at("Hooks").read_link().unwrap().to_str(), Some("a/../hooks"), "{said}");
    assert!(at("a2/f").exists(), "{said}");
}

/// A place outside may be a link into the workspace.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_where_a_link_outside_leads_from_a_hook() {
    let before = "mkdir -p bin ~/tools ~/gitstuff; echo exit > bin/mon; chmod +x bin/mon
        ln -sf $PWD/bin/mon ~/tools/mon; ln -sfn $PWD/bin ~/lib; printf '#!/bin/sh\\nLINE\\n' > ~/gitstuff/pre-commit
        chmod +x ~/gitstuff/pre-commit; git config core.hooksPath ~/gitstuff";
    let lines = ["~/tools/mon", "cd ~/lib; ./mon"];
    let tricks = lines.map(|line| {
        let before = before.replace("LINE", line);
        prepared(line, before.leak(), "script bin/mon", COMMIT)
    });
    super::check(&tricks).await;
}

/// What a hook only reads, builds or checks stays open to agents, there or not.
#[tokio::test]
async fn what_a_hook_names_as_data_can_be_changed() {
    let names = ["package.json", "src/main.rs", "Makefile", "VERSION", "notes.md", ".gitignore"];
    let before = format!(
        "mkdir src; for f in {}; do echo one > $f; done\n{}",
        names.join(" "),
        hook(
            "CHECK=$(git config x.check); V=$(cat VERSION); F=src/main.rs\n\
             for f in package.json notes.md new.json src/new.rs .gitignore; do sh \"$CHECK\" $f; done\n\
             grep -q x Makefile $F || eval \"$CHECK\""
        )
    );
    let change = format!("set -e; for f in {}; do echo two > $f; done; echo END", names.join(" "));
    let read = |path: &str| Reply::tool_call("Read", json!({"file_path": path}));
    let mut calls = vec![bash(&change)];
    calls.extend(names.iter().flat_map(|name| [read(name), write(name, "three\n")]));
    let new = ["new.json", "src/new.rs"];
    calls.extend(new.iter().map(|name| write(name, "three\n")));
    let world = calling(calls, &before).await;
    world.run(&["run", "go"]).await.expect(0);
    let requests = world.fake.requests();
    let results: Vec<String> = requests.iter().flat_map(|it| it.tool_results()).collect();
    assert!(results[0].contains("END") && !results[0].contains("set aside"), "{results:?}");
    for name in names.iter().chain(&new) {
        assert_eq!(world.read(name), "three\n", "{name}: {results:?}");
    }
}

/// Agents change source files that a hook searches, checks or adds, and switch between branches in which they differ.
#[tokio::test]
async fn source_files_that_a_hook_only_reads_can_be_changed_and_switched() {
    let before = format!(
        "mkdir src; printf '#!/usr/bin/env python3\\nx = 1\\n' > src/app.py; chmod +x src/app.py\n\
         echo 'x = 1' > src/b.py; git add -A; git commit -qm one; git switch -qc feat\n\
         echo 'y = 2' >> src/app.py; git commit -qam two; git switch -q -\n{}",
        hook(
            "if grep -n 'TODO|FIXME' src/app.py; then exit 1; fi\n\
             [ -f src/b.py ] && python3 -m py_compile src/app.py\n\
             V=$(sed -n 's/^x = //p' src/app.py); echo >&2 \"checked src/app.py\"\n\
             if command -v black; then black --check src/app.py src/b.py; fi\n\
             git add src/app.py src/b.py"
        )
    );
    let command = "git switch -q feat && echo 'z = 3' >> src/b.py && git commit -qam three \
                   && git diff HEAD~ --stat | cat && git switch -q - && echo END";
    let read = Reply::tool_call("Read", json!({"file_path": "src/b.py"}));
    let calls = vec![bash(command), read, write("src/b.py", "x = 4\n")];
    let world = calling(calls, &before).await;
    world.run(&["run", "go"]).await.expect(0);
    let requests = world.fake.requests();
    let results: Vec<String> = requests.iter().flat_map(|it| it.tool_results()).collect();
    assert!(results[0].contains("1 file changed") && results[0].contains("END"), "{results:?}");
    assert_eq!(world.read("src/b.py"), "x = 4\n", "{results:?}");
    let of_feat = shell(&world, &world.work(), &format!("{USER}git show feat:src/app.py"));
    assert!(String::from_utf8_lossy(&of_feat.stdout).contains("y = 2"), "{results:?}");
}

/// An agent that cannot change a file learns which hook or setting runs it.
#[tokio::test]
async fn an_agent_is_told_which_hook_or_setting_keeps_it_from_a_file() {
    let before = format!(
        "mkdir scripts tools; echo 'exit 0' > scripts/check.sh; echo cat > tools/t\n\
         git config diff.x.textconv 'sh tools/t'; git add -A; git commit -qm one\n{}",
        hook("sh scripts/check.sh")
    );
    let read = Reply::tool_call("Read", json!({"file_path": "scripts/check.sh"}));
    let calls = vec![
        bash("echo x >> scripts/check.sh"),
        bash("git mv scripts other"),
        bash("echo x > ./tools/t"),
        bash("echo x > .git/hooks/post-commit"),
        read,
        write("scripts/check.sh", "x\n"),
    ];
    let world = calling(calls, &before).await;
    world.run(&["run", "go"]).await.expect(0);
    let requests = world.fake.requests();
    let results: Vec<String> = requests.iter().flat_map(|it| it.tool_results()).collect();
    let hook = "the git hook .git/hooks/pre-commit runs it";
    let expected = [
        ("change scripts/check.sh: ", hook),
        ("change scripts/check.sh: ", hook),
        ("change tools/t: ", "the git setting diff.x.textconv names it"),
        ("change .git/hooks: ", "git obeys it"),
        ("", ""),
        ("scripts/check.sh", hook),
    ];
    for (result, (file, why)) in results.iter().zip(expected) {
        assert!(result.contains(file) && result.contains(why), "{file}{why}: {result}");
    }
}

/// Git's setting names husky's folder `_`. Husky runs the hooks in the folder around it.
#[tokio::test]
async fn hooks_of_husky_below_the_top_cannot_be_changed_or_made() {
    let before = "mkdir -p web/.husky/_; echo : > web/.husky/pre-commit
        for h in pre-commit commit-msg; do
            printf '#!/bin/sh\\nf=$(dirname \"$0\")/../%s; [ ! -f \"$f\" ] || sh -e \"$f\"\\n' $h \
                > web/.husky/_/$h; chmod +x web/.husky/_/$h
        done; git config core.hooksPath web/.husky/_";
    check(&[
        Missing {
            before: before.to_owned(),
            command: "echo PAYLOAD >> web/.husky/pre-commit",
            path: "x",
            content: "x",
            user: COMMIT,
        },
        Missing {
            before: before.to_owned(),
            command: "",
            path: "web/.husky/commit-msg",
            content: "PAYLOAD\n",
            user: COMMIT,
        },
    ])
    .await;
}

/// A hook that is a link looks for its scripts where the link leads. Hooks of other languages have lists, and
/// settings of hook managers are no shell.
#[tokio::test]
async fn scripts_of_linked_hooks_other_languages_and_settings_cannot_be_changed() {
    let linked = "mkdir -p s .git/hooks; cat > s/pre-commit <<'END'
#!/bin/sh
. \"$(dirname \"$(readlink -f \"$0\")\")/lib\"
END
        echo : > s/lib; chmod +x s/pre-commit; ln -s ../../s/pre-commit .git/hooks/pre-commit";
    let python = "mkdir -p s .git/hooks; printf '#!/bin/sh\\n' > s/x; chmod +x s/x
        cat > .git/hooks/pre-commit <<'END'
#!/usr/bin/env python3
import subprocess
subprocess.run([\"./s/x\"], check=True)
END
        chmod +x .git/hooks/pre-commit";
    let node = format!(
        "mkdir s; echo 'print(1)' > s/__main__.py\n{}",
        hook("if command -v python3 >/dev/null; then python3 s; fi")
    );
    let cases = [
        (linked.to_owned(), "echo PAYLOAD >> s/lib"),
        (python.to_owned(), "echo PAYLOAD >> s/x"),
        (node, "echo 'import os; os.system(\"PAYLOAD\")' >> s/__main__.py"),
    ];
    let cases = cases.map(|(before, command)| {
        let (path, content, user) = ("x", "x", COMMIT);
        Missing { before, command, path, content, user }
    });
    check(&cases).await;
}
