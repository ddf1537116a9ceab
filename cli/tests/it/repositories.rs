//! Runs in a checkout of a git repository, on any machine, and runs without files.

use crate::world::{Exit, World, bash, eventually, started};
use posse_testkit::postgres::{Database, Server};
use posse_testkit::{Conversation, Gate, Reply, Script, When};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::path::{Path, PathBuf};

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with one commit, beside the working folder of `world`.
fn origin(world: &World) -> PathBuf {
    let folder = world.folder.path().canonicalize().unwrap().join("origin");
    std::fs::create_dir(&folder).unwrap();
    git(&folder, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(folder.join("a.txt"), "one\n").unwrap();
    std::fs::write(folder.join(".gitignore"), "*.log\n").unwrap();
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "--quiet", "-m", "first"]);
    folder
}

fn url(origin: &Path) -> String {
    format!("file://{}", origin.display())
}

/// A call that writes a file.
fn write(name: &str, text: &str) -> Reply {
    Reply::tool_call("Write", json!({"file_path": name, "content": text}))
}

fn on(task: &str, replies: impl IntoIterator<Item = Reply>) -> Conversation {
    let when = Conversation::when(When::any().first_user_contains(task));
    replies.into_iter().fold(when, Conversation::reply)
}

/// The checkouts that are left on the machine of `world`, whatever its database is.
fn standing(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![world.home().join("data/posse")];
    while let Some(folder) = ahead.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with("-worktrees") {
                let inside = std::fs::read_dir(entry.path()).unwrap().flatten();
                let names = inside.map(|it| it.file_name().into_string().unwrap());
                found.extend(names.filter(|name| !name.ends_with(".owner")));
            } else if entry.path().is_dir()
                // Where commands see a `/tmp` of their own, it has the places of what is mounted in it.
                && !["-repositories", "-scratch"].iter().any(|end| name.ends_with(end))
            {
                ahead.push(entry.path());
            }
        }
    }
    found
}

async fn fetch(world: &World, folder: &Path, arguments: &[&str]) -> Exit {
    let mut command = world.command(arguments);
    command.current_dir(folder);
    started(command).end().await
}

#[tokio::test]
async fn a_run_in_a_repository_changes_a_branch_in_the_store_and_no_folder() {
    let replies = [write("b.txt", "new\n"), bash("echo two >> a.txt"), Reply::text("done")];
    let world = World::new(Script::new().conversation(on("mend", replies))).await;
    let origin = origin(&world);
    let asked = format!("{}@main", url(&origin));
    world.run(&["run", "--repo", &asked, "mend it"]).await.expect(0);
    world.fake.assert_nothing_refused();
    assert_eq!(std::fs::read_dir(world.work()).unwrap().count(), 0, "its folder is as it was");
    assert_eq!(git(&origin, &["status", "--porcelain"]), "");
    assert_eq!(git(&origin, &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(standing(&world), Vec::<String>::new(), "its checkout is removed");
    let run = world.only_run().await;
    let shown = world.run(&["runs", "show", &run]).await.expect(0);
    for part in [url(&origin), format!("posse runs fetch {run}"), "2 files changed".to_owned()] {
        assert!(shown.out.contains(&part), "{part}: {}", shown.out);
    }
    world.run(&["runs", "verify"]).await.expect(0);
    let fetched = fetch(&world, &origin, &["runs", "fetch", &run, "--branch", "fix"]).await;
    fetched.expect(0);
    assert_eq!(git(&origin, &["show", "fix:b.txt"]), "new");
    assert_eq!(git(&origin, &["show", "fix:a.txt"]), "one\ntwo");
    assert_eq!(git(&origin, &["rev-parse", "fix^"]), git(&origin, &["rev-parse", "main"]));
    let again = fetch(&world, &origin, &["runs", "fetch", &run, "--branch", "fix", "--json"]).await;
    assert_eq!(again.expect(0).json()["present"], true);
    // A branch of this name at another commit stays.
    let refused = fetch(&world, &origin, &["runs", "fetch", &run, "--branch", "main"]).await;
    assert!(refused.code != Some(0) && refused.err.contains("another commit"), "{refused:?}");
    for name in ["HEAD", "@", "@{-1}", "-b", "a b", "a..b", "refs/heads/", ""] {
        let exit =
            fetch(&world, &origin, &["runs", "fetch", &run, &format!("--branch={name}")]).await;
        let told = exit.err.contains("cannot be the name of a branch");
        assert!(exit.code == Some(2) && told, "{name}: {exit:?}");
    }
    let elsewhere = fetch(&world, &world.work(), &["runs", "fetch", &run]).await;
    assert!(elsewhere.code != Some(0), "{elsewhere:?}");
    // What the log does not name is not brought.
    crate::records::sql(&world, "UPDATE bundles SET run = run || 'x'").await;
    let other = fetch(&world, &origin, &["runs", "fetch", &run, "--branch", "other"]).await;
    assert!(other.code == Some(6) && other.err.contains("missing or another one"), "{other:?}");
    crate::records::sql(&world, "UPDATE bundles SET run = substr(run, 1, length(run) - 1)").await;
    // The log goes, and the bundle with it.
    world.run(&["runs", "prune", "--older-than", "0d", "--yes"]).await.expect(0);
    let gone = fetch(&world, &origin, &["runs", "fetch", &run, "--branch", "late"]).await;
    assert!(gone.err.contains("was removed"), "{gone:?}");
    world.run(&["runs", "verify"]).await.expect(0);
}

#[tokio::test]
async fn a_repository_that_cannot_be_used_starts_nothing() {
    let world = World::saying("no").await;
    let origin = origin(&world);
    for (asked, part) in [
        (format!("{}@nowhere", url(&origin)), "no branch and no tag"),
        (format!("file://{}/missing", world.work().display()), "cannot be fetched"),
        ("https://me:hunter2hunter2@example.org/x".to_owned(), "password"),
        ("ext::sh -c touch".to_owned(), "repository"),
    ] {
        let exit = world.run(&["run", "--repo", &asked, "mend it"]).await;
        assert!(exit.code != Some(0) && exit.err.contains(part), "{asked}: {exit:?}");
        assert!(!exit.err.contains("hunter2"), "{exit:?}");
    }
    assert_eq!(world.fake.count(), 0);
    assert!(world.list().await.is_empty());
}

#[tokio::test]
async fn no_program_of_the_repository_runs() {
    let world = World::new(Script::new().conversation(on("mend", [Reply::text("done")]))).await;
    let origin = origin(&world);
    std::fs::write(origin.join(".gitattributes"), "*.txt filter=evil diff=evil\n").unwrap();
    git(&origin, &["add", "."]);
    git(&origin, &["commit", "--quiet", "-m", "attributes"]);
    let mark = world.home().join("ran");
    // The user has such a filter, for other repositories.
    let touch = format!("sh -c 'touch {}; cat'", mark.display());
    let settings = format!("[filter \"evil\"]\n\tclean = {touch}\n\tsmudge = {touch}\n");
    std::fs::write(world.home().join(".gitconfig"), settings).unwrap();
    world.run(&["run", "--repo", &url(&origin), "mend it"]).await.expect(0);
    assert!(!mark.exists());
}

/// Where the database is in a workspace, an agent may write beside it. The copy of a repository there decides
/// nothing about what git executes.
#[tokio::test]
async fn settings_that_an_agent_wrote_into_a_copy_of_a_repository_do_not_count() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(Script::always(Reply::text("done"))).await;
    let origin = origin(&world);
    let asked = format!("{}@main", url(&origin));
    let run = || async { world.run(&["--db", "p.db", "run", "--repo", &asked, "x"]).await };
    run().await.expect(0);
    let copies = world.work().join("p.db-repositories");
    let copy = std::fs::read_dir(&copies).unwrap().next().unwrap().unwrap().path();
    let settings = std::fs::read_to_string(copy.join("config")).unwrap();
    let ran = world.folder.path().join("ran");
    let program = format!("touch {}; git-upload-pack", ran.display());
    let evil = format!("{settings}[remote \"{}\"]\n\tuploadpack = \"{program}\"\n", url(&origin));
    std::fs::write(copy.join("config"), &evil).unwrap();
    git(&origin, &["commit", "--quiet", "--allow-empty", "-m", "second"]);
    // The trick works where these settings count.
    git(&copy, &["fetch", "--quiet", &url(&origin), "main"]);
    std::fs::remove_file(&ran).unwrap();
    run().await.expect(0);
    assert!(!ran.exists());
    assert_eq!(std::fs::read_to_string(copy.join("config")).unwrap(), settings);
    std::fs::write(copy.join("config.worktree"), &evil).unwrap();
    let told = run().await.expect(1).err;
    assert!(told.contains("config.worktree that Posse did not make"), "{told}");
    std::fs::remove_file(copy.join("config.worktree")).unwrap();
    // Nobody opens what an agent closed, so that nobody looks into it.
    std::fs::set_permissions(&copies, PermissionsExt::from_mode(0o0)).unwrap();
    let told = run().await.expect(1).err;
    assert!(told.contains("is closed to you"), "{told}");
    std::fs::set_permissions(&copies, PermissionsExt::from_mode(0o700)).unwrap();
    assert!(!ran.exists());
}

#[tokio::test]
async fn what_git_ignores_is_told_and_stays_until_it_is_discarded() {
    let replies = [write("x.log", "noise\n"), write("b.txt", "new\n"), Reply::text("done")];
    let world = World::new(Script::new().conversation(on("mend", replies))).await;
    let origin = origin(&world);
    world.run(&["run", "--repo", &url(&origin), "mend it"]).await.expect(0);
    let run = world.only_run().await;
    let shown = world.run(&["runs", "show", &run]).await.expect(0);
    assert!(shown.out.contains("x.log"), "{}", shown.out);
    assert_eq!(standing(&world), std::slice::from_ref(&run));
    world.run(&["runs", "clean"]).await.expect(0);
    assert_eq!(standing(&world), [run]);
    world.run(&["runs", "clean", "--discard"]).await.expect(0);
    assert!(standing(&world).is_empty());
}

#[tokio::test]
async fn a_child_begins_with_what_its_parent_changed_and_its_changes_come_back() {
    let agents =
        r#"{"fixer": {"description": "Fixes", "prompt": "Fix.", "isolation": "worktree"}}"#;
    let task = json!({"description": "fix", "prompt": "mend it", "subagent_type": "fixer"});
    let lead = [
        write("lead.txt", "from the lead\n"),
        Reply::tool_call("Task", task),
        bash("cat child.txt > seen.txt"),
        Reply::text("all is done"),
    ];
    let child = [bash("cat lead.txt > child.txt"), Reply::text("mended")];
    let script = Script::new().conversation(on("lead", lead)).conversation(on("mend it", child));
    let world = World::new(script).await;
    let origin = origin(&world);
    let exit = world.run(&["run", "--agents", agents, "--repo", &url(&origin), "lead"]).await;
    exit.expect(0);
    let runs = world.run(&["runs", "list", "--json"]).await.expect(0).json();
    let lead = runs[0]["run"].as_str().unwrap().to_owned();
    fetch(&world, &origin, &["runs", "fetch", &lead, "--branch", "all"]).await.expect(0);
    assert_eq!(git(&origin, &["show", "all:seen.txt"]), "from the lead");
    assert_eq!(git(&origin, &["show", "all:child.txt"]), "from the lead");
    let told =
        world.fake.requests_where(&When::any().any_message_contains("in your working folder"));
    assert!(!told.is_empty(), "the lead learns of it");
    world.run(&["runs", "verify"]).await.expect(0);
}

#[tokio::test]
async fn a_run_without_files_has_no_tool_for_files_and_no_shell() {
    let script = Script::new().conversation(on("think", [Reply::text("thought")]));
    let world = World::new(script).await;
    let exit = world.run(&["run", "--no-files", "think"]).await.expect(0);
    assert_eq!(exit.out.trim(), "thought");
    let tools = world.fake.request(1).tools();
    for tool in ["Read", "Write", "Edit", "Glob", "Grep", "List", "Bash"] {
        assert!(!tools.contains(&tool.to_owned()), "{tools:?}");
    }
    let run = world.only_run().await;
    let shown = world.run(&["runs", "show", &run]).await.expect(0);
    assert!(shown.out.contains("no files"), "{}", shown.out);
    let both = world.run(&["run", "--no-files", "--repo", ".", "think"]).await;
    assert_eq!(both.code, Some(2), "{both:?}");
}

/// A world whose machine has this name.
async fn machine(host: &str, script: Script) -> World {
    let world = World::new(script).await;
    let settings = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, format!("host = \"{host}\"\n")).unwrap();
    world
}

fn with(world: &World, database: &Database, arguments: &[&str]) -> tokio::process::Command {
    let mut command = world.command(arguments);
    command.env("POSSE_DB", database.url());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn another_machine_goes_on_with_the_last_stored_state_when_a_worker_is_killed() {
    let gate = Gate::new();
    let first = [write("b.txt", "from near\n"), Reply::text("never").held_by(&gate)];
    let near = machine("near", Script::new().conversation(on("mend", first))).await;
    let second = [Reply::text("not asked"), bash("cat b.txt > c.txt"), Reply::text("done")];
    let far = machine("far", Script::new().conversation(on("mend", second))).await;
    let database = Server::shared().database();
    let origin = origin(&near);
    let posse = async |world: &World, arguments: &[&str]| {
        started(with(world, &database, arguments)).end().await
    };
    let begin = ["run", "--background", "--needs", "x", "--repo", &url(&origin), "mend", "--json"];
    let begun = posse(&near, &begin).await.expect(0).json();
    let run = begun["run"].as_str().unwrap().to_owned();
    let here = started(with(&near, &database, &["worker", "--label", "x"]));
    here.notes("executes runs").await;
    near.fake.wait_for_requests(2).await.unwrap();
    let shown = posse(&far, &["runs", "show", &run, "--json"]).await.expect(0).json();
    assert_eq!((&shown["machine"], &shown["needs"]), (&json!("near"), &json!("x")), "{shown}");
    assert_eq!(shown["repository"]["url"], url(&origin), "{shown}");
    let listed = posse(&far, &["runs", "list", "--json"]).await.expect(0).json();
    for field in ["repository", "machine"] {
        assert_eq!(listed[0][field], shown[field], "{listed}");
    }
    let log = posse(&far, &["runs", "log", &run]).await.expect(0);
    assert!(log.err.contains("the machine `near` executes it now"), "{}", log.err);
    kill_process(here.id(), Signal::KILL).unwrap();
    here.end().await;
    let there = started(with(&far, &database, &["worker", "--label", "x"]));
    there.notes("executes runs").await;
    posse(&far, &["runs", "watch", &run]).await.expect(0);
    gate.open();
    let told = far.fake.requests_where(&When::any().any_message_contains("in a new checkout"));
    assert!(!told.is_empty(), "the model learns that it moved");
    eventually("its checkout is removed", async || standing(&far).is_empty()).await;
    kill_process(there.id(), Signal::TERM).unwrap();
    there.end().await.expect(0);
    let clone = far.home().join("clone");
    git(&far.home(), &["clone", "--quiet", &url(&origin), "clone"]);
    let mut command = with(&far, &database, &["runs", "fetch", &run, "--branch", "fix"]);
    command.current_dir(&clone);
    started(command).end().await.expect(0);
    for name in ["b.txt", "c.txt"] {
        assert_eq!(git(&clone, &["show", &format!("fix:{name}")]), "from near", "{name}");
    }
    posse(&far, &["runs", "verify"]).await.expect(0);
    assert_eq!(standing(&near), std::slice::from_ref(&run), "what the killed worker left");
    posse(&near, &["runs", "clean"]).await.expect(0);
    assert!(standing(&near).is_empty());
    // The bundle moves along with its run, and is verified on arrival.
    let file = far.home().join("copy.db").display().to_string();
    posse(&far, &["db", "copy", &database.url(), &file]).await.expect(0);
    far.run(&["--db", &file, "runs", "verify"]).await.expect(0);
    let mut command = far.command(&["--db", &file, "runs", "fetch", &run, "--branch", "copied"]);
    command.current_dir(&clone);
    started(command).end().await.expect(0);
    assert_eq!(git(&clone, &["rev-parse", "copied"]), git(&clone, &["rev-parse", "fix"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_fetch_leaves_the_run_to_others_and_says_why() {
    let near = machine("near", Script::always(Reply::text("It is done."))).await;
    let far = machine("far", Script::always(Reply::text("It is done."))).await;
    let database = Server::shared().database();
    let origin = origin(&near);
    let posse = async |world: &World, arguments: &[&str]| {
        started(with(world, &database, arguments)).end().await
    };
    let commit = git(&origin, &["rev-parse", "HEAD"]);
    let hidden = near.home().join("hidden");
    let asked = format!("{}@{commit}", url(&origin));
    std::fs::rename(&origin, &hidden).unwrap();
    // The commit is known, so the start need not reach the repository.
    let begin = ["run", "--background", "--needs", "x", "--repo", &asked, "mend", "--json"];
    let begun = posse(&near, &begin).await.expect(0).json();
    let run = begun["run"].as_str().unwrap().to_owned();
    let told = posse(&near, &["runs", "show", &run]).await.expect(0);
    assert!(told.out.contains("waits for a worker with the label `x`"), "{}", told.out);
    let told = posse(&near, &["runs", "show", &run, "--json"]).await.expect(0).json();
    assert!(told["waits_for"].as_str().unwrap().contains("the label `x`"), "{told}");
    let there = started(with(&far, &database, &["worker", "--label", "x"]));
    there.notes("executes runs").await;
    let says_why = async || {
        let told = posse(&near, &["runs", "show", &run]).await.expect(0);
        told.out.contains("can fetch its repository") && told.out.contains("far: ")
    };
    eventually("the reason", says_why).await;
    // A worker that has tried and left a run still ends it.
    let other = posse(&near, &begin).await.expect(0).json();
    let other = other["run"].as_str().unwrap().to_owned();
    let has_tried = async || {
        let told = posse(&near, &["runs", "show", &other]).await.expect(0);
        told.out.contains("can fetch its repository")
    };
    eventually("the other is tried", has_tried).await;
    posse(&near, &["runs", "cancel", &other]).await.expect(0);
    std::fs::rename(&hidden, &origin).unwrap();
    let here = started(with(&near, &database, &["worker", "--label", "x"]));
    posse(&near, &["runs", "watch", &run]).await.expect(0);
    for worker in [here, there] {
        kill_process(worker.id(), Signal::TERM).unwrap();
        worker.end().await.expect(0);
    }
}

/// A call of the agent `fixer`.
fn fixes(task: &str) -> Reply {
    let input = json!({"description": "fix", "prompt": task, "subagent_type": "fixer"});
    Reply::tool_call("Task", input)
}

const FIXER: &str =
    r#"{"fixer": {"description": "Fixes", "prompt": "Fix.", "isolation": "worktree"}}"#;

/// A command that writes so many bytes that cannot be compressed.
fn noise(name: &str, bytes: usize) -> Reply {
    bash(&format!("head -c {bytes} /dev/urandom > {name}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_on_one_machine_keeps_what_was_too_large_to_store_with_each_step() {
    let gate = Gate::new();
    let first = [
        noise("one.bin", 5 << 20),
        noise("two.bin", 1 << 20),
        write("small.txt", "small\n"),
        bash("sha256sum one.bin two.bin small.txt > sums").held_by(&gate),
        Reply::text("done"),
    ];
    let world = World::new(Script::new().conversation(on("mend", first))).await;
    let origin = origin(&world);
    let running = started(world.command(&["run", "--repo", &url(&origin), "mend"]));
    world.fake.wait_for_requests(4).await.unwrap();
    kill_process(running.id(), Signal::KILL).unwrap();
    running.end().await;
    let run = world.only_run().await;
    gate.open();
    world.run(&["runs", "resume", &run]).await.expect(0);
    let moved = world.fake.requests_where(&When::any().any_message_contains("in a new checkout"));
    assert!(moved.is_empty(), "its checkout is as it was");
    fetch(&world, &origin, &["runs", "fetch", &run, "--branch", "fix"]).await.expect(0);
    git(&origin, &["checkout", "--quiet", "fix"]);
    let mut sums = std::process::Command::new("sha256sum");
    let sums = sums.args(["--check", "--quiet", "sums"]).current_dir(&origin);
    assert!(sums.status().unwrap().success());
    assert_eq!(standing(&world), Vec::<String>::new());
    world.run(&["runs", "verify"]).await.expect(0);
}

#[tokio::test]
async fn changes_that_do_not_fit_are_told_by_name_and_stay_on_their_branch() {
    let right = json!({"description": "x", "prompt": "mend right", "subagent_type": "fixer"});
    let both = fixes("mend left").and_tool_call("Task", right);
    // A file of which only the time has changed is no conflict.
    let lead = [bash("touch a.txt"), both, Reply::text("all is done")];
    let child = |side: &str| {
        let odd = format!("echo {side} > a.txt; echo {side} > \"$(printf 'b\\033[2Jc')\"");
        on(&format!("mend {side}"), [bash(&odd), Reply::text("mended")])
    };
    let script = Script::new().conversation(child("left")).conversation(child("right"));
    let world = World::new(script.conversation(on("lead", lead))).await;
    let origin = origin(&world);
    world.run(&["run", "--agents", FIXER, "--repo", &url(&origin), "lead"]).await.expect(0);
    let told = |text: &str| world.fake.requests_where(&When::any().any_message_contains(text));
    assert!(!told("are in your working folder now: 2 files").is_empty());
    assert!(!told("both changed `a.txt`, `b\\u{1b}[2Jc`").is_empty(), "the other does not fit");
    assert!(told("\u{1b}").is_empty());
    // Posse's copy of the repository keeps no branch of a run that has ended.
    let copies = world.home().join("data/posse");
    let copies = std::fs::read_dir(copies).unwrap().flatten().map(|it| it.path());
    let copies = copies.filter(|it| it.display().to_string().ends_with("-repositories"));
    for copy in copies.flat_map(|it| std::fs::read_dir(it).unwrap().flatten()) {
        assert_eq!(git(&copy.path(), &["for-each-ref", "refs/heads/"]), "");
    }
}

#[cfg(feature = "failpoints")]
#[tokio::test]
async fn a_bundle_that_cannot_be_read_stops_only_what_needs_it() {
    let lead = [fixes("mend it"), Reply::text("all is done")];
    let child = [write("b.txt", "new\n"), Reply::text("mended")];
    let script = Script::new().conversation(on("lead", lead)).conversation(on("mend it", child));
    let world = World::new(script).await;
    let origin = origin(&world);
    let asked = ["run", "--agents", FIXER, "--repo", &url(&origin), "lead"];
    // The process dies when the child has ended.
    let mut command = world.command(&asked);
    command.env("POSSE_FAILPOINT", "announcement.append.after");
    assert_ne!(started(command).end().await.code, Some(0));
    crate::records::sql(&world, "UPDATE bundles SET body = 'AAAA'").await;
    let runs = world.run(&["runs", "list", "--json"]).await.expect(0).json();
    let lead = runs.as_array().unwrap().iter().find(|it| it["parent"].is_null()).unwrap();
    let lead = lead["run"].as_str().unwrap().to_owned();
    world.run(&["runs", "resume", &lead]).await.expect(0);
    let told = world.fake.requests_where(&When::any().any_message_contains("cannot be read"));
    assert!(!told.is_empty(), "the lead learns of it, and goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_a_silent_server_ends_when_it_is_cancelled() {
    let world = World::saying("no").await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let asked = format!("https://127.0.0.1:{port}/x@{}", "a1".repeat(20));
    let running = started(world.command(&["run", "--repo", &asked, "mend"]));
    let _connection = silent.accept().unwrap();
    let run = world.only_run().await;
    world.run(&["runs", "cancel", &run]).await.expect(0);
    assert_ne!(running.end().await.code, Some(0));
    let shown = world.run(&["runs", "show", &run]).await.expect(0);
    assert!(shown.out.contains("cancelled"), "{}", shown.out);
    assert_eq!(world.fake.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_no_living_worker_takes_can_be_cancelled() {
    let world = machine("near", Script::always(Reply::text("It is done."))).await;
    let database = Server::shared().database();
    let origin = origin(&world);
    let posse = async |arguments: &[&str]| started(with(&world, &database, arguments)).end().await;
    let begin = async |more: &[&str]| {
        let begin = ["run", "--background", "--json", "--needs", "gpu", "mend"];
        let begun = posse(&[&begin[..], more].concat()).await.expect(0).json();
        begun["run"].as_str().unwrap().to_owned()
    };
    let url = url(&origin);
    let runs = [begin(&[]).await, begin(&["--repo", &url]).await];
    // From now on, this is another machine.
    let settings = world.home().join("config/posse/config.toml");
    std::fs::write(settings, "host = \"far\"\n").unwrap();
    for run in &runs {
        posse(&["runs", "cancel", run]).await.expect(0);
        let shown = posse(&["runs", "show", run, "--json"]).await.expect(0).json();
        assert_eq!(shown["outcome"], "cancelled", "{shown}");
    }
    assert_eq!(world.fake.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_with_what_the_store_lacks_stays_when_the_run_went_on_elsewhere() {
    let gate = Gate::new();
    let first =
        [noise("one.bin", 5 << 20), noise("two.bin", 1 << 20), Reply::text("never").held_by(&gate)];
    let near = machine("near", Script::new().conversation(on("mend", first))).await;
    let far = machine("far", Script::always(Reply::text("It is done."))).await;
    let database = Server::shared().database();
    let origin = origin(&near);
    let posse = async |world: &World, arguments: &[&str]| {
        started(with(world, &database, arguments)).end().await
    };
    let begin = ["run", "--background", "--repo", &url(&origin), "mend", "--json"];
    let begun = posse(&near, &begin).await.expect(0).json();
    let run = begun["run"].as_str().unwrap().to_owned();
    let here = started(with(&near, &database, &["worker"]));
    near.fake.wait_for_requests(3).await.unwrap();
    kill_process(here.id(), Signal::KILL).unwrap();
    here.end().await;
    gate.open();
    let there = started(with(&far, &database, &["worker"]));
    posse(&far, &["runs", "watch", &run]).await.expect(0);
    let lost = far.fake.requests_where(&When::any().any_message_contains("are LOST"));
    assert!(!lost.is_empty(), "the model learns of it");
    let shown = posse(&near, &["runs", "show", &run]).await.expect(0).out;
    let told = shown.lines().find(|line| line.starts_with("checkout"));
    assert!(told.is_some_and(|told| told.contains("are LOST")), "{shown}");
    kill_process(there.id(), Signal::TERM).unwrap();
    there.end().await.expect(0);
    let kept = posse(&near, &["runs", "clean"]).await;
    assert!(kept.out.contains("the store lacks"), "{kept:?}");
    assert_eq!(standing(&near), std::slice::from_ref(&run), "the only copy of two.bin");
    posse(&near, &["runs", "clean", "--discard"]).await.expect(0);
    assert_eq!(standing(&near), Vec::<String>::new());
}
