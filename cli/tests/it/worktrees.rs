//! Children with a worktree of their own: what they change, what is left after a crash.

use crate::world::{World, bash, mode, started};
use posse_testkit::{Conversation, Reply, Script, When};
use rustix::process::Signal;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) const AGENTS: &str =
    r#"{"fixer": {"description": "Fixes", "prompt": "Fix.", "isolation": "worktree"}}"#;

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with one commit, in which a lead hands `replies` to a fixer.
pub(crate) async fn repository(replies: impl IntoIterator<Item = Reply>) -> World {
    let task = json!({"description": "fix", "prompt": "mend it", "subagent_type": "fixer"});
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(Reply::tool_call("Task", task))
        .reply(Reply::text("{{last_tool_result}}"));
    let fixer = Conversation::when(When::any().first_user_contains("mend it"));
    let fixer = replies.into_iter().fold(fixer, Conversation::reply);
    let world = World::new(Script::new().conversation(lead).conversation(fixer)).await;
    git(&world.work(), &["init", "--quiet", "--initial-branch=main"]);
    world.write("a.txt", "one\n");
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "first"]);
    world
}

fn standing(world: &World) -> Vec<PathBuf> {
    let around = PathBuf::from(format!("{}-worktrees", world.database().display()));
    let entries = std::fs::read_dir(around).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

pub(crate) fn branches(world: &World) -> Vec<String> {
    let listed = git(&world.work(), &["branch", "--list", "posse/*", "--format=%(refname:short)"]);
    listed.lines().map(str::to_owned).collect()
}

fn edit() -> [Reply; 3] {
    let read = Reply::tool_call("Read", json!({"file_path": "a.txt"}));
    let change = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    [read, Reply::tool_call("Edit", change), Reply::text("mended")]
}

#[tokio::test]
async fn what_a_child_changes_comes_back_as_a_branch_and_a_difference() {
    let world = repository(edit()).await;
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    // An agent could have put a link in the place of a log.
    assert!(!world.work().join(".git/logs/refs/heads/posse").exists());
    assert_eq!(world.read("a.txt"), "one\n", "the main checkout is as it was");
    let branches = branches(&world);
    assert_eq!(branches.len(), 1, "{branches:?}");
    assert_eq!(git(&world.work(), &["show", &format!("{}:a.txt", branches[0])]), "two");
    for part in [&branches[0], "1 file, +1 -1", "-one\n+two", "git merge"] {
        assert!(exit.out.contains(part), "{part}: {}", exit.out);
    }
    assert!(standing(&world).is_empty(), "its folder is removed");
    assert_eq!(git(&world.work(), &["status", "--porcelain"]), "");
    git(&world.work(), &["merge", "--quiet", &branches[0]]);
    assert_eq!(world.read("a.txt"), "two\n");
}

#[tokio::test]
async fn a_worktree_in_which_nothing_was_changed_leaves_nothing() {
    let world = repository([bash("cat a.txt"), Reply::text("all is well")]).await;
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    assert!(exit.out.contains("all is well") && !exit.out.contains("branch"), "{}", exit.out);
    assert!(standing(&world).is_empty() && branches(&world).is_empty());
}

#[tokio::test]
async fn nobody_else_looks_into_the_folder_of_worktrees_not_even_into_one_from_before() {
    let world = repository(edit()).await;
    let around = PathBuf::from(format!("{}-worktrees", world.database().display()));
    std::fs::create_dir_all(&around).unwrap();
    std::fs::set_permissions(&around, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    assert_eq!(mode(&around), 0o700);
}

#[tokio::test]
async fn who_starts_a_run_with_a_worktree_is_told_where_its_changes_are() {
    let world = repository(edit()).await;
    let fixer = ["run", "--agents", AGENTS, "--agent", "fixer"];
    let exit = world.run(&[&fixer[..], &["mend it"]].concat()).await.expect(0);
    let branch = branches(&world).pop().expect("its changes are on a branch");
    let told = format!("1 file changed, +1 -1, on the branch {branch}: `git merge {branch}`");
    assert!(exit.err.contains(&told), "{}", exit.err);
    assert_eq!(exit.out, "mended\n");
    let run = branch.trim_start_matches("posse/");
    let shown = world.run(&["runs", "show", run]).await.expect(0).out;
    assert!(shown.contains(&format!("worktree    {told}")), "{shown}");
    let left = json!({"branch": branch, "files": 1, "added": 1, "removed": 1});
    assert_eq!(world.run(&["runs", "show", run, "--json"]).await.json()["worktree"], left);
    let again = world.run(&[&fixer[..], &["--json", "mend it again"]].concat()).await.expect(0);
    let again = again.json();
    let branch = format!("posse/{}", again["run"].as_str().unwrap());
    assert_eq!(again["worktree"]["branch"], json!(branch), "{again}");
}

#[tokio::test]
async fn who_starts_a_run_with_a_worktree_is_told_that_nothing_was_changed() {
    let world = repository([bash("cat a.txt"), Reply::text("all is well")]).await;
    let fixer = ["run", "--agents", AGENTS, "--agent", "fixer", "mend it"];
    let exit = world.run(&fixer).await.expect(0);
    assert!(exit.err.contains("nothing was changed in its worktree"), "{}", exit.err);
    let run = world.only_run().await;
    let shown = world.run(&["runs", "show", &run, "--json"]).await.expect(0).json();
    let left = json!({"branch": null, "files": 0, "added": 0, "removed": 0});
    assert_eq!(shown["worktree"], left, "{shown}");
}

#[tokio::test]
async fn the_shell_of_a_child_in_a_worktree_cannot_change_the_main_checkout() {
    let attack = "main=$(dirname $(git rev-parse --path-format=absolute --git-common-dir)); \
        cat $main/a.txt > seen; echo evil > $main/planted; echo evil >> $main/a.txt; \
        echo evil > $main/.git/hooks/pre-commit; git config core.pager evil; rm -f $main/a.txt; \
        echo mine > b.txt";
    let world = repository([bash(attack), Reply::text("tried")]).await;
    world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    assert_eq!(world.read("a.txt"), "one\n");
    assert!(!world.work().join("planted").exists());
    assert!(!world.work().join(".git/hooks/pre-commit").exists());
    assert!(!std::fs::read_to_string(world.work().join(".git/config")).unwrap().contains("evil"));
    let branch = branches(&world).pop().expect("its own files are on its branch");
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:b.txt")]), "mine");
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:seen")]), "one", "it can be read");
}

/// Whoever worked in the worktree may have said in its file `.git` that the repository is elsewhere,
/// in a place whose settings run programs.
#[tokio::test]
async fn a_child_in_a_worktree_reads_no_more_of_the_main_checkout_than_its_caller() {
    // The file `.git` of a worktree says where its checkout is.
    let look = "origin=$(sed 's/^gitdir: //; s,/.git/worktrees/.*,,' .git); echo at $origin; \
                cat a.txt $origin/b.txt $origin/secret.txt $origin/sec/s sec/s; true";
    let world = repository([bash(look), Reply::text("x")]).await;
    std::fs::create_dir(world.work().join("sec")).unwrap();
    world.write("sec/s", "the canary\n");
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "second"]);
    world.write("secret.txt", "the canary\n");
    world.write("b.txt", "plain\n");
    let absolute = format!("Read(/{}/sec/**)", world.work().canonicalize().unwrap().display());
    let deny = ["--deny", "Read(secret.txt)", "--deny", &absolute];
    let arguments = [&["run", "--agents", AGENTS][..], &deny, &["lead"]].concat();
    world.run(&arguments).await.expect(0);
    let told: Vec<String> =
        world.fake.requests().iter().flat_map(|request| request.tool_results()).collect();
    let told = told.join("\n");
    assert!(told.contains("one\n") && told.contains("plain\n"), "{told}");
    assert!(!told.contains("the canary"), "{told}");
}

/// Git that Posse itself starts runs no program that a repository names, however it is named.
#[tokio::test]
async fn no_filter_of_the_repository_is_run() {
    for driver in ["odd", "a=b", "a b.c"] {
        for kind in ["smudge", "clean", "process"] {
            let world = repository(edit()).await;
            let ran = world.work().join(".git/ran");
            let script = world.work().join("filter.sh");
            std::fs::write(&script, format!("#!/bin/sh\necho x >> {}\ncat\n", ran.display()))
                .unwrap();
            std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
            let attributes = world.work().join(".git/info/attributes");
            std::fs::write(attributes, "* \"filter=a b.c\"\n* filter=a=b\n* filter=odd\n").unwrap();
            git(&world.work(), &["add", "."]);
            git(&world.work(), &["commit", "--quiet", "-m", "second"]);
            let settings = world.work().join(".git/config");
            let mut text = std::fs::read_to_string(&settings).unwrap();
            let script = script.display();
            text += &format!("[filter \"{driver}\"]\n\t{kind} = {script}\n\trequired = true\n");
            std::fs::write(&settings, text).unwrap();
            world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
            assert!(!ran.exists(), "{driver}: {kind}");
            assert_eq!(branches(&world).len(), 1, "{driver}: {kind}: its work is kept");
        }
    }
}

/// Settings that hold only on branches such as those that Posse makes.
#[tokio::test]
async fn no_filter_is_run_that_only_a_branch_of_a_worktree_brings_along() {
    let world = repository(edit()).await;
    std::fs::write(world.work().join(".gitattributes"), "* filter=x\n").unwrap();
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "second"]);
    let (evil, ran) = (world.work().join(".git/evil"), world.work().join(".git/ran"));
    git(&world.work(), &["config", "includeIf.onbranch:posse/**.path", "evil"]);
    let program = format!("\"id > {}; cat\"", ran.display());
    std::fs::write(evil, format!("[filter \"x\"]\n\tsmudge = {program}\n\tclean = {program}\n"))
        .unwrap();
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    assert!(!ran.exists(), "{}", exit.out);
    assert_eq!(branches(&world).len(), 1, "its work is kept: {}", exit.out);
    // A person's own git would have run it there.
    git(&world.work(), &["checkout", "--quiet", "-b", "posse/by-hand"]);
    std::fs::remove_file(world.work().join("a.txt")).unwrap();
    git(&world.work(), &["checkout", "--quiet", "--", "a.txt"]);
    assert!(ran.exists(), "the filter would work");
}

/// What git says is text for Posse; a name that is none would be lost on the way.
#[tokio::test]
async fn no_filter_is_run_whose_name_is_no_text() {
    let world = repository(edit()).await;
    std::fs::write(world.work().join(".gitattributes"), b"* filter=x\xff\n").unwrap();
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "second"]);
    let (settings, ran) = (world.work().join(".git/config"), world.work().join(".git/ran"));
    let mut text = std::fs::read(&settings).unwrap();
    text.extend(b"[filter \"x\xff\"]\n");
    let program = format!("\"id > {}; cat\"", ran.display());
    text.extend(format!("\tsmudge = {program}\n\tclean = {program}\n").bytes());
    std::fs::write(&settings, text).unwrap();
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    assert!(!ran.exists(), "{}", exit.out);
    assert!(exit.out.contains("the name of a filter is not UTF-8"), "{}", exit.out);
}

/// Git looks further up where a repository has no HEAD. What it finds there is not the caller's.
#[tokio::test]
async fn no_worktree_is_made_of_what_is_around_a_repository_that_is_not_whole() {
    let world = repository(edit()).await;
    let inner = world.work().join("lib");
    std::fs::create_dir(&inner).unwrap();
    world.write("lib/a.txt", "one\n");
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "second"]);
    git(&inner, &["init", "--quiet"]);
    std::fs::rename(inner.join(".git/HEAD"), inner.join("away")).unwrap();
    let mut command = world.command(&["run", "--agents", AGENTS, "lead"]);
    command.current_dir(&inner);
    let exit = started(command).end().await.expect(0);
    assert!(exit.out.contains("no task was started"), "{}", exit.out);
    assert!(standing(&world).is_empty() && branches(&world).is_empty());
    assert!(!world.work().join(".git/worktrees").exists());
}

/// What git says of where its data are is not believed: it would be let change them.
#[tokio::test]
async fn data_that_are_elsewhere_are_not_taken_for_the_repository_s() {
    let world = repository(edit()).await;
    let other = world.work().join("other");
    std::fs::create_dir(&other).unwrap();
    for name in ["config", "objects", "refs"] {
        let status = std::process::Command::new("cp")
            .arg("-r")
            .args([world.work().join(".git").join(name), other.join(name)])
            .status();
        assert!(status.unwrap().success());
    }
    std::fs::write(world.work().join(".git/commondir"), "../other\n").unwrap();
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    assert!(exit.out.contains("where they do not belong"), "{}", exit.out);
    assert!(standing(&world).is_empty());
}

#[tokio::test]
async fn what_a_child_writes_into_its_git_file_is_not_believed() {
    let attack = "evil=$POSSE_SCRATCH/evil; git init --quiet $evil; git -C $evil config \
        core.fsmonitor \"touch $PWD/../ran\"; rm -f .git; echo \"gitdir: $evil/.git\" > .git; \
        echo mine > b.txt";
    let world = repository([bash(attack), Reply::text("tried")]).await;
    world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    let branch = branches(&world).pop().expect("its own files are on its branch");
    let files = git(&world.work(), &["ls-tree", "-r", "--name-only", &branch]);
    assert!(files.contains("b.txt"), "{files}");
    assert!(standing(&world).is_empty(), "nothing was run, and nothing is left");
}

/// A repository that a child makes in its worktree is to git a folder like others: no program that it
/// names runs when Posse takes what was changed, and its files are kept.
#[tokio::test]
async fn a_repository_within_a_worktree_is_not_entered_and_its_files_are_kept() {
    let make = "data=$(git rev-parse --path-format=absolute --git-common-dir); git init -q s; cd s; \
        git config user.name n; git config user.email e; echo one > f; git add f; git commit -qm x; \
        echo two > f; echo '* filter=x' > .git/info/attributes; printf '[filter \"x\"]\n\tclean = \
        \"touch %s/ran %s/worktrees/ran; cat\"\n' $data $data >> .git/config; cd ..; \
        git init -q --separate-git-dir data t; echo mine > t/g; ln -s data u; mkdir v; \
        ln -s ../a.txt v/.git; echo mine > v/h";
    let world = repository([bash(make), Reply::text("made")]).await;
    // The filter is set aside after the command. Posse's own git must not depend on that.
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    for name in [".git/ran", ".git/worktrees/ran"] {
        assert!(!world.work().join(name).exists(), "{name}: {}", exit.out);
    }
    let branch = branches(&world).pop().expect("its own files are on its branch");
    let files = git(&world.work(), &["ls-tree", "-r", &branch]);
    assert!(!files.contains("160000") && files.contains("s/f"), "{files} {}", exit.out);
    assert!(files.contains("t/g") && files.contains("v/h") && files.contains("a.txt"), "{files}");
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:s/f")]), "two");
    assert!(standing(&world).is_empty());
}

/// The same where nobody has looked at it since: the process died with the command.
#[tokio::test]
async fn a_repository_within_a_worktree_that_a_crash_left_is_not_entered() {
    let world = repository(edit()).await;
    world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    let branch = branches(&world).pop().unwrap();
    let name = branch.trim_start_matches("posse/");
    let folder = format!("{}-worktrees/{name}", world.database().display());
    git(&world.work(), &["worktree", "add", "--quiet", &folder, &branch]);
    let (folder, nested) = (PathBuf::from(&folder), PathBuf::from(&folder).join("s"));
    git(&folder, &["init", "--quiet", "s"]);
    std::fs::write(nested.join("f"), "one\n").unwrap();
    git(&nested, &["add", "f"]);
    git(&nested, &["commit", "--quiet", "-m", "x"]);
    git(&folder, &["add", "s"]);
    git(&folder, &["commit", "--quiet", "-m", "a gitlink"]);
    std::fs::write(nested.join("f"), "two\n").unwrap();
    std::fs::write(folder.join("b.txt"), "mine\n").unwrap();
    std::fs::write(nested.join(".git/info/attributes"), "* filter=x\n").unwrap();
    let ran = world.work().join(".git/ran");
    git(&nested, &["config", "filter.x.clean", &format!("touch {}; cat", ran.display())]);
    let swept = world.run(&["runs", "clean", "--json"]).await.expect(0).json();
    assert!(!ran.exists(), "{swept}");
    assert_eq!(swept[0]["removed"], true, "{swept}");
}

/// Nor is a submodule, wherever its data are: Posse does not find them all.
#[tokio::test]
async fn a_submodule_of_a_worktree_whose_data_are_elsewhere_is_not_entered() {
    let world = repository(edit()).await;
    let apart = world.folder.path().join("apart");
    std::fs::create_dir(&apart).unwrap();
    git(&apart, &["init", "--quiet"]);
    std::fs::write(apart.join("f"), "one\n").unwrap();
    git(&apart, &["add", "f"]);
    git(&apart, &["commit", "--quiet", "-m", "x"]);
    let link = format!("160000,{},s", git(&apart, &["rev-parse", "HEAD"]));
    git(&world.work(), &["update-index", "--add", "--cacheinfo", &link]);
    git(&world.work(), &["commit", "--quiet", "-m", "a submodule"]);
    world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    let branch = branches(&world).pop().unwrap();
    let name = branch.trim_start_matches("posse/");
    let folder = PathBuf::from(format!("{}-worktrees/{name}", world.database().display()));
    git(&world.work(), &["worktree", "add", "--quiet", folder.to_str().unwrap(), &branch]);
    std::fs::write(folder.join("s/.git"), format!("gitdir: {}/.git\n", apart.display())).unwrap();
    std::fs::write(folder.join("s/f"), "two\n").unwrap();
    std::fs::write(folder.join("b.txt"), "mine\n").unwrap();
    std::fs::write(apart.join(".git/info/attributes"), "* filter=x\n").unwrap();
    let ran = world.work().join(".git/ran");
    git(&apart, &["config", "filter.x.clean", &format!("touch {}; cat", ran.display())]);
    let swept = world.run(&["runs", "clean", "--json"]).await.expect(0).json();
    assert!(!ran.exists(), "{swept}");
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:b.txt")]), "mine", "{swept}");
    git(&folder, &["add", "--all"]);
    assert!(ran.exists(), "the test means something");
}

/// What git ignores is on no branch: it is kept where it is, and everyone is told; but not what builds
/// make again.
#[tokio::test]
async fn what_a_child_makes_and_git_ignores_is_kept_and_told() {
    let write =
        |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "found\n"}));
    let make = "mkdir -p target/debug a/node_modules/x a/__pycache__; echo x > target/debug/x; \
        echo x > a/node_modules/x/y; echo x > a/__pycache__/m.pyc; ln -s /nowhere node_modules";
    let replies = || [write("out/report.md"), bash(make), Reply::text("made")];
    let world = repository(replies()).await;
    world.write(".gitignore", "out\ntarget\nnode_modules\n__pycache__\n*.log\n");
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "second"]);
    let fixer = ["run", "--agents", AGENTS, "--agent", "fixer"];
    let exit = world.run(&[&fixer[..], &["mend it"]].concat()).await.expect(0);
    let folder = standing(&world).pop().expect("its folder is kept");
    assert_eq!(std::fs::read_to_string(folder.join("out/report.md")).unwrap(), "found\n");
    let told = format!(
        "1 file is on no branch (ignored or refused by git, or in a submodule) and kept in {}: out/report.md",
        folder.canonicalize().unwrap().display()
    );
    assert!(exit.err.contains(&told) && !exit.err.contains("nothing was"), "{}", exit.err);
    let run = world.only_run().await;
    let shown = world.run(&["runs", "show", &run]).await.expect(0).out;
    assert!(shown.contains(&told), "{shown}");
    let shown = world.run(&["runs", "show", &run, "--json"]).await.expect(0).json();
    assert_eq!(shown["worktree"]["branch"], json!(null), "{shown}");
    assert_eq!(shown["worktree"]["kept"]["names"], json!(["out/report.md"]), "{shown}");
    let clean = world.run(&["runs", "clean"]).await.expect(0);
    assert!(clean.out.contains(&told) && clean.err.contains("--discard"), "{clean:?}");
    assert_eq!(clean.out.matches("posse.db-worktrees").count(), 1, "{clean:?}");
    assert_eq!(standing(&world).len(), 1, "it is not lost by the way");
    let clean = world.run(&["runs", "clean", "--discard"]).await.expect(0);
    assert!(clean.out.contains("removed"), "{clean:?}");
    assert!(standing(&world).is_empty() && branches(&world).is_empty());
}

#[tokio::test]
async fn a_caller_is_told_of_what_git_ignores_beside_what_is_on_the_branch() {
    let make = "mkdir -p logs target; for n in 1 2 3 4 5 6 7; do echo $n > logs/$n.log; done; \
        echo x > target/x; echo two > a.txt";
    let world = repository([bash(make), Reply::text("made")]).await;
    world.write(".gitignore", "target\n*.log\n");
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "second"]);
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    let branch = branches(&world).pop().expect("its changes are on a branch");
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:a.txt")]), "two");
    let folder = standing(&world).pop().expect("its folder is kept");
    let folder = folder.canonicalize().unwrap();
    let kept = format!(
        "7 files are on no branch (ignored or refused by git, or in a submodule) and kept in {}",
        folder.display()
    );
    for part in [&branch, "1 file, +1 -1", &kept, "logs/1.log\n", "logs/5.log\n"] {
        assert!(exit.out.contains(part), "{part}: {}", exit.out);
    }
    assert!(!exit.out.contains("logs/6.log"), "{}", exit.out);
    let run = branch.trim_start_matches("posse/");
    let shown = world.run(&["runs", "show", run]).await.expect(0).out;
    assert!(shown.contains("logs/5.log and 2 more"), "{shown}");
}

/// A name that some systems take for `.git` is no reason to lose the rest.
#[tokio::test]
async fn a_file_whose_name_git_refuses_is_kept_beside_the_branch() {
    let make = "mkdir -p .GIT/y a/.gIt 'git~1'; echo x > .GIT/x; echo x > .GIT/y/z; echo x > a/.gIt/x; \
        echo x > 'git~1/x'; echo new > b.txt; echo two >> a.txt";
    let world = repository([bash(make), Reply::text("made")]).await;
    let fixer = ["run", "--agents", AGENTS, "--agent", "fixer"];
    let exit = world.run(&[&fixer[..], &["mend it"]].concat()).await.expect(0);
    let branch = branches(&world).pop().expect("the rest is on a branch");
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:b.txt")]), "new");
    let files = git(&world.work(), &["ls-tree", "-r", "--name-only", &branch]);
    assert!(!files.to_lowercase().contains("git"), "{files}");
    let folder = standing(&world).pop().expect("its folder is kept");
    assert!(
        folder.join(".GIT/y/z").exists() && exit.err.contains("4 files are on no branch"),
        "{exit:?}"
    );
}

/// Settings about what `git status` shows do not decide what is kept.
#[tokio::test]
async fn what_a_child_makes_is_on_its_branch_where_git_does_not_show_new_files() {
    let world = repository([bash("echo mine > b.txt"), Reply::text("made")]).await;
    git(&world.work(), &["config", "status.showUntrackedFiles", "no"]);
    world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    let branch = branches(&world).pop().expect("its changes are on a branch");
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:b.txt")]), "mine");
}

/// Git keeps the name of a commit in the place of a repository. What is in there is on the branch, or
/// it is kept.
#[tokio::test]
async fn what_is_in_repositories_and_submodules_of_a_worktree_is_not_lost() {
    let make = "data=$(git rev-parse --path-format=absolute --git-common-dir); mkdir nest; cd nest; \
        git init -q; echo work > w.txt; git add .; git -c user.name=a -c user.email=b commit -qm x; \
        cd ..; mkdir -p sm out; echo s > sm/in-submodule.txt; mkdir out/n; echo o > out/n/o.txt; \
        cd out/n; git init -q; cd ../..; mkdir led; echo \"gitdir: $data\" > led/.git; \
        echo l > led/l.txt";
    let world = repository([bash(make), Reply::text("made")]).await;
    let commit = git(&world.work(), &["rev-parse", "HEAD"]);
    let link = format!("160000,{commit},sm");
    git(&world.work(), &["update-index", "--add", "--cacheinfo", &link]);
    world.write(".gitignore", "out\n");
    git(&world.work(), &["add", ".gitignore"]);
    git(&world.work(), &["commit", "--quiet", "-m", "a submodule"]);
    let fixer = ["run", "--agents", AGENTS, "--agent", "fixer", "mend it"];
    let exit = world.run(&fixer).await.expect(0);
    let branch = branches(&world).pop().expect("its own files are on its branch");
    let files = git(&world.work(), &["ls-tree", "-r", &branch]);
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:nest/w.txt")]), "work");
    assert_eq!(files.matches("160000").count(), 1, "only the submodule: {files}");
    let folder = standing(&world).pop().expect("its folder is kept");
    for name in ["sm/in-submodule.txt", "out/n/o.txt", "led/l.txt"] {
        let is_on_branch = files.contains(name);
        assert!(is_on_branch || exit.err.contains(name), "{name}: {files} {}", exit.err);
        assert!(is_on_branch || folder.join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn a_folder_without_a_repository_is_said_to_be_none_and_nothing_starts() {
    let world = repository(edit()).await;
    std::fs::remove_dir_all(world.work().join(".git")).unwrap();
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    assert!(exit.out.contains("is not in a git repository"), "{}", exit.out);
    assert_eq!(world.list().await.len(), 1);
    assert!(standing(&world).is_empty());
}

#[tokio::test]
async fn what_a_crash_leaves_is_found_and_removed_and_what_was_changed_is_kept() {
    let world = repository(edit()).await;
    world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    // What stands when the process dies between the end of the run and the removal.
    let branch = branches(&world).pop().unwrap();
    let name = branch.trim_start_matches("posse/");
    let folder = format!("{}-worktrees/{name}", world.database().display());
    git(&world.work(), &["worktree", "add", "--quiet", &folder, &branch]);
    assert_eq!(standing(&world).len(), 1);
    let look = world.run(&["runs", "clean", "--dry-run"]).await.expect(0);
    assert!(look.out.contains("left of run"), "{look:?}");
    assert_eq!(standing(&world).len(), 1, "looking removes nothing");
    // An earlier removal may have been cut short.
    std::fs::create_dir_all(format!("{folder}.removed/deep")).unwrap();
    let swept = world.run(&["runs", "clean", "--json"]).await.expect(0).json();
    assert_eq!(swept[0]["removed"], true, "{swept}");
    assert!(standing(&world).is_empty());
    let branches = branches(&world);
    assert_eq!(git(&world.work(), &["show", &format!("{}:a.txt", branches[0])]), "two");
    // What stands when the process dies in the middle of the removal.
    let half = std::path::PathBuf::from(format!("{folder}.removed"));
    std::fs::create_dir_all(half.join("closed")).unwrap();
    std::fs::write(half.join("a.txt"), "left").unwrap();
    let tip = git(&world.work(), &["rev-parse", &branches[0]]);
    let none = world.run(&["runs", "clean"]).await.expect(0);
    assert!(none.err.contains("nothing is left"), "{none:?}");
    assert!(!half.exists(), "nobody needs it any more");
    assert_eq!(git(&world.work(), &["rev-parse", &branches[0]]), tip);
}

/// Those that Posse's own git does not see are not gone.
#[tokio::test]
async fn the_users_own_worktrees_stay_what_they_are() {
    let world = repository(edit()).await;
    let apart = world.folder.path().join("apart");
    git(&world.work(), &["worktree", "add", "--quiet", "-b", "mine", apart.to_str().unwrap()]);
    std::fs::write(apart.join("new.txt"), "x").unwrap();
    git(&apart, &["add", "new.txt"]);
    world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    world.run(&["runs", "clean"]).await.expect(0);
    assert_eq!(git(&apart, &["status", "--short"]).trim(), "A  new.txt");
    let listed = git(&world.work(), &["worktree", "list", "--porcelain"]);
    assert_eq!(listed.matches("worktree ").count(), 2, "and only they: {listed}");
}

/// What is gone because Posse removes the folder was not removed by the run.
#[tokio::test]
async fn a_removal_that_is_cut_short_changes_nothing_on_the_branch() {
    let world = repository(edit()).await;
    for number in 0..300 {
        world.write(&format!("many-{number}"), "x");
    }
    git(&world.work(), &["add", "."]);
    git(&world.work(), &["commit", "--quiet", "-m", "many"]);
    let running = world.start(&["run", "--agents", AGENTS, "lead"]);
    // From the moment on in which its name is gone, or it is gone altogether.
    crate::world::eventually("the branch", async || {
        // While the worktree is made, the branch is there before its folder.
        let is_kept = branches(&world).pop().is_some_and(|branch| {
            git(&world.work(), &["diff", "--name-only", "HEAD", &branch]).trim() == "a.txt"
        });
        is_kept && standing(&world).iter().all(|it| it.extension().is_some())
    })
    .await;
    running.signal(Signal::KILL);
    running.end().await;
    let resumed = world.run(&["runs", "resume", "--all"]).await.expect(0);
    let cleaned = world.run(&["runs", "clean"]).await.expect(0);
    let (left, listed) = (standing(&world), world.list().await);
    assert!(left.is_empty(), "{left:?}: {resumed:?} {cleaned:?} {listed:?}");
    let branch = branches(&world).pop().unwrap();
    let changed = git(&world.work(), &["diff", "--name-only", "HEAD", &branch]);
    assert_eq!(changed.trim(), "a.txt");
}

#[tokio::test]
async fn a_child_that_was_killed_goes_on_in_its_worktree() {
    let long = "echo mine > b.txt; touch began; exec sleep 600";
    let world = repository([bash(long), Reply::text("after all")]).await;
    let running = world.start(&["run", "--agents", AGENTS, "lead"]);
    crate::world::eventually("the command", async || {
        standing(&world).iter().any(|folder| folder.join("began").exists())
    })
    .await;
    running.signal(Signal::KILL);
    assert_eq!(running.end().await.code, None);
    let clean = world.run(&["runs", "clean"]).await.expect(0);
    assert!(clean.err.contains("nothing is left"), "its run is not over: {clean:?}");
    world.run(&["runs", "resume", "--all"]).await.expect(0);
    let branch = branches(&world).pop().expect("what it had written is on its branch");
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:b.txt")]), "mine");
    assert!(standing(&world).is_empty());
}

/// Git refuses that, too: the files there would not be those of the branch any more.
#[tokio::test]
async fn a_branch_that_the_user_has_checked_out_is_not_moved() {
    let more = [bash("echo more > b.txt"), Reply::text("more")];
    let world = repository(edit().into_iter().chain(more)).await;
    let fixer = ["run", "--agents", AGENTS, "--agent", "fixer", "mend it"];
    world.run(&fixer).await.expect(0);
    let branch = branches(&world).pop().expect("its changes are on a branch");
    let run = branch.trim_start_matches("posse/");
    git(&world.work(), &["checkout", "--quiet", &branch]);
    let commit = git(&world.work(), &["rev-parse", &branch]);
    let exit = world.run(&["runs", "resume", run, "go on"]).await.expect(1);
    let says = format!("its branch {branch} is checked out in ");
    assert!(exit.err.contains(&says), "{}", exit.err);
    assert_eq!(git(&world.work(), &["rev-parse", &branch]), commit);
    assert_eq!(git(&world.work(), &["status", "--porcelain"]), "");
    git(&world.work(), &["checkout", "--quiet", "main"]);
    world.run(&["runs", "resume", run, "go on"]).await.expect(0);
    assert_eq!(git(&world.work(), &["show", &format!("{branch}:b.txt")]), "more");
}

#[tokio::test]
async fn a_run_in_a_worktree_belongs_to_the_folder_that_it_was_started_in() {
    let long = "touch began; main=$(dirname $(git rev-parse --path-format=absolute \
        --git-common-dir)); [ -e $main/go ] || exec sleep 600";
    let world = repository([bash(long), Reply::text("after all")]).await;
    let running = world.start(&["run", "--agents", AGENTS, "--agent", "fixer", "mend it"]);
    crate::world::eventually("the command", async || {
        standing(&world).iter().any(|folder| folder.join("began").exists())
    })
    .await;
    running.signal(Signal::KILL);
    running.end().await;
    let listed = world.run(&["runs", "list", "--cwd", ".", "--json"]).await.expect(0).json();
    let run = listed[0]["run"].as_str().expect("it is listed").to_owned();
    world.write("go", "");
    let exit = world.run(&["run", "--agents", AGENTS, "lead"]).await.expect(0);
    assert!(exit.err.contains("continuing unfinished run"), "{}", exit.err);
    world.run(&["runs", "resume", "--all"]).await.expect(0);
    let shown = world.run(&["runs", "show", &run, "--json"]).await.expect(0).json();
    assert_eq!(shown["outcome"], "completed", "{shown}");
    let folder = world.work().canonicalize().unwrap();
    assert_eq!(shown["workspace"], json!(folder.display().to_string()));
    world.run(&["runs", "verify"]).await.expect(0);
}

#[tokio::test]
async fn what_is_denied_in_the_checkout_is_denied_in_its_copy() {
    // PROJECT is the checkout, WORLD the folder around the home folder, ABOVE the one around that.
    for (rule, user) in [
        ("Read(./.env)", false),
        ("Read(.e*)", false),
        ("Read(~/w/.env)", false),
        ("Read(~/w/.env)", true),
        ("Read(~/*/.env)", true),
        ("Read(/PROJECT/.env)", true),
        ("Read(/ABOVE/*/home/w/.env)", true),
        ("Read(/WORLD/**/w/.env)", true),
        ("Read(/PROJECT/lnk/.env)", true),
    ] {
        let world = World::new(Script::turns([
            Reply::tool_call("Read", json!({"file_path": "../.env"})),
            bash("cat ../.env"),
            bash("cat ../lnk/.env"),
            bash("cat x"),
            Reply::text("done"),
        ]))
        .await;
        let around = world.home().parent().unwrap().canonicalize().unwrap();
        let project = around.join("home/w");
        let rule = rule
            .replace("PROJECT", &project.display().to_string())
            .replace("WORLD", &around.display().to_string())
            .replace("ABOVE", &around.parent().unwrap().display().to_string());
        std::fs::create_dir_all(project.join("sub")).unwrap();
        git(&project, &["init", "--quiet", "--initial-branch=main"]);
        std::fs::write(project.join(".env"), "CANARY-ENV\n").unwrap();
        std::fs::write(project.join("sub/x"), "CANARY-OPEN\n").unwrap();
        std::os::unix::fs::symlink(".", project.join("lnk")).unwrap();
        git(&project, &["add", "."]);
        git(&project, &["commit", "--quiet", "-m", "first"]);
        let folder = if user { world.home() } else { project.clone() };
        std::fs::create_dir_all(folder.join(".claude")).unwrap();
        let settings = json!({"permissions": {"deny": [rule]}}).to_string();
        std::fs::write(folder.join(".claude/settings.json"), settings).unwrap();
        let sub = project.join("sub").display().to_string();
        let fixer = ["run", "--agents", AGENTS, "--agent", "fixer", "--cwd", &sub, "mend it"];
        world.run(&fixer).await.expect(0);
        let sent: String = world.fake.requests().iter().map(|it| it.body.to_string()).collect();
        assert!(sent.contains("CANARY-OPEN"), "{rule}: {sent}");
        assert!(!sent.contains("CANARY-ENV"), "{rule}: {sent}");
    }
}

/// An agent may write to folders of PATH, such as those of an activated environment. Posse's own git is
/// the system's.
#[tokio::test]
async fn a_git_in_the_workspace_is_not_posse_s() {
    let world = repository(edit()).await;
    let (folder, ran) = (world.work().join(".venv/bin"), world.home().join("ran"));
    std::fs::create_dir_all(&folder).unwrap();
    let fake = format!("#!/bin/sh\necho x >> {}\nexec /usr/bin/git \"$@\"\n", ran.display());
    std::fs::write(folder.join("git"), fake).unwrap();
    std::fs::set_permissions(folder.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = world.command(&["run", "--agents", AGENTS, "lead"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let exit = started(command).end().await.expect(0);
    assert!(exit.out.contains("git merge"), "{}", exit.out);
    assert!(!ran.exists(), "the git of the workspace ran");
}
