//! What the tools for files may write where git looks.

use super::{USER, WORDS, calling, shell, write};
use crate::world::{World, bash};
use posse_testkit::Reply;
use serde_json::json;

/// What the tools for files write, they do not write where git runs or obeys it.
#[tokio::test]
async fn file_tools_write_nothing_that_git_runs_or_obeys() {
    let before = "mkdir -p s/objects s/refs .githooks t h; echo 'ref: refs/heads/x' > s/HEAD
        cp s/HEAD h/HEAD; echo > h/config
        mk n; mkdir n/.myhooks; git -C n config core.hooksPath .myhooks
        git config core.hooksPath .githooks; git config include.path ../conf/missing";
    let refused = [
        "s/config",
        "s/hooks/pre-commit",
        "s/commondir",
        "h/commondir",
        "h/refs/heads/x.txt",
        "h/objects/info/x",
        "n/.git/config",
        "n/.git/hooks/pre-commit",
        "n/.git/info/attributes",
        "n/.myhooks/pre-commit",
        "new/.git/config",
        "new/.GIT/config",
        "new/.git",
        "t/HEAD",
        ".githooks/pre-commit",
        "conf/missing",
        ".git/config",
        ".git/hooks/pre-commit",
        // As Vim reads it where the user has set `exrc`.
        "_vimrc",
        "_gvimrc",
    ];
    let allowed = ["t/config", "t/head.txt", "n/file", "conf/other", "hooks/a", "t/objects/a"];
    let calls = refused.iter().chain(&allowed).map(|path| write(path, "x\n")).collect();
    let world = calling(calls, before).await;
    world.run(&["run", "go"]).await.expect(0);
    let requests = world.fake.requests();
    let results: Vec<String> = requests.iter().flat_map(|it| it.tool_results()).collect();
    for (path, result) in refused.iter().zip(&results) {
        assert!(result.contains("run or obeyed outside"), "{path}: {result}");
        assert_ne!(world.read(path), "x\n", "{path}");
    }
    for (path, result) in allowed.iter().zip(&results[refused.len()..]) {
        assert_eq!(world.read(path), "x\n", "{path}: {result}");
    }
}

/// One tool prepares what the other uses: a command leaves links, and `Write` follows them.
#[tokio::test]
async fn what_commands_and_file_tools_do_together_comes_to_nothing() {
    let canary = "[core]\nfsmonitor = \"touch CANARY; false\"\n";
    // What the command does, and what is written then.
    let tricks = [
        ("mk s; git add s; mv s/.git d; ln -s ../d s/.git", "d/config"),
        ("mk s; git add s; mv s/.git/config c; ln -s ../../c s/.git/config", "c"),
        ("mk s; git add s; mv s/.git/config c; ln c s/.git/config", "c"),
        (
            "mk s; git add s; mkdir c; mv s/.git/objects s/.git/refs s/.git/config c; \
             echo ../../c > s/.git/commondir",
            "c/config",
        ),
        ("mk s; git add s; git -C s config include.path ../../c; touch c", "c"),
    ];
    for (command, path) in tricks {
        let world = World::saying("x").await;
        let trace = world.folder.path().join("canary");
        let content = canary.replace("CANARY", &trace.display().to_string());
        let read = Reply::tool_call("Read", json!({"file_path": path}));
        let command = bash(&format!("{WORDS}\n{command}"));
        let world = calling(vec![command, read, write(path, &content)], "").await;
        world.run(&["run", "go"]).await.expect(0);
        let done = shell(&world, &world.work(), &format!("{USER}git status; cd s; git status"));
        assert!(!trace.exists(), "{path}: {:?} {done:?}", world.fake.last_request().tool_results());
    }
}

/// The data of a submodule and of a worktree are not where the files are, which their hooks run.
#[tokio::test]
async fn file_tools_change_no_script_that_a_hook_of_a_submodule_or_a_worktree_runs() {
    let before = "mkdir scripts; printf '#!/bin/sh\n' > scripts/check; chmod +x scripts/check
        git add .; git commit -qm scripts; git clone -q . ../other
        git -c protocol.file.allow=always submodule add -q $PWD/../other m; git commit -qm m
        git worktree add -q .worktrees/w; mkdir -p .git/hooks .git/modules/m/hooks
        echo 'exec scripts/check' | tee .git/hooks/pre-commit > .git/modules/m/hooks/pre-commit
        git clone -q ../other l; mv l/.git l-data; ln -s ../l-data l/.git
        echo 'exec scripts/check' > l-data/hooks/pre-commit";
    let refused = ["m/scripts/check", ".worktrees/w/scripts/check", "l/scripts/check"];
    let allowed = ["m/scripts/other", ".worktrees/w/a.txt", "l/a.txt"];
    let read = |path: &str| Reply::tool_call("Read", json!({"file_path": path}));
    let paths = || refused.iter().chain(&allowed);
    let reads = paths().filter(|path| !path.ends_with("other")).map(|path| read(path));
    let calls = reads.chain(paths().map(|path| write(path, "evil\n"))).collect();
    let world = calling(calls, before).await;
    world.run(&["run", "go"]).await.expect(0);
    let requests = world.fake.requests();
    let results: Vec<String> = requests.iter().flat_map(|it| it.tool_results()).collect();
    for path in refused {
        assert_eq!(world.read(path), "#!/bin/sh\n", "{path}: {results:?}");
    }
    for path in allowed {
        assert_eq!(world.read(path), "evil\n", "{path}: {results:?}");
    }
}

/// A command leaves a repository but for the folders that make it one, and `Write` adds these.
#[tokio::test]
async fn what_a_command_has_begun_no_file_tool_makes_a_repository() {
    let traces = World::saying("x").await;
    for setting in ["fsmonitor = \\\"touch CANARY; false\\\"", "hooksPath = ../h"] {
        let trace = traces.folder.path().join("canary");
        let begun = format!(
            "{WORDS}\nmkdir -p b s h; cp .git/HEAD b/HEAD; echo 'gitdir: ../b' > s/.git\n\
             printf \"[core]\nrepositoryformatversion = 0\nbare = false\n{setting}\n\" > b/config\n\
             script h/post-index-change; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s"
        );
        let begun = begun.replace("CANARY", &trace.display().to_string());
        let begun = begun.replace("PAYLOAD", &format!("touch {}", trace.display()));
        let calls =
            vec![bash(&begun), write("b/refs/heads/x.txt", "x"), write("b/objects/info/x", "x")];
        let world = calling(calls, "").await;
        world.run(&["run", "go"]).await.expect(0);
        assert!(world.work().join("b/HEAD").exists(), "it means something");
        let done = shell(&world, &world.work(), &format!("{USER}git status; cd s; git add ."));
        assert!(
            !trace.exists(),
            "{setting}: {:?} {done:?}",
            world.fake.last_request().tool_results()
        );
        assert!(!world.work().join("b/refs").exists() && !world.work().join("b/objects").exists());
    }
}
