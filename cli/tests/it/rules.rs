//! Rules about calls, through the binary: a gullible model does what an attacker wants, and what
//! counts is what is on the disk afterwards.

use crate::tree::settings;
use crate::world::{Exit, World, bash, started};
use posse_testkit::{Reply, Script};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// The ways around rules: what each is called, the program of its rule, the command.
fn bypasses(world_of: &Path) -> Vec<(String, String, String)> {
    let text = include_str!("../../../runtime/tests/data/shell-bypasses.tsv");
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut cells = line.splitn(3, '\t');
        let mut next = || cells.next().unwrap().to_owned();
        let (name, program) = (next(), next());
        let command: String = serde_json::from_str(&next()).unwrap();
        let canary = world_of.join(format!("canary-{name}"));
        (name, program, command.replace("{C}", canary.to_str().unwrap()))
    });
    rows.collect()
}

/// A repository in which each way around a rule would leave a canary.
fn prepare(work: &Path) {
    let executable = |name: &str, text: &str| {
        let path = work.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let touch = |name: &str| format!("touch {}", work.join(name).display());
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(work).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    for (key, value) in [("user.name", "t"), ("user.email", "t@localhost")] {
        git(&["config", key, value]);
    }
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    std::fs::write(work.join("b.txt"), "two\n").unwrap();
    git(&["add", "a.txt", "b.txt"]);
    git(&["commit", "--quiet", "-m", "first"]);
    std::fs::write(work.join("a.txt"), "three\n").unwrap();
    git(&["commit", "--quiet", "-am", "second"]);
    executable("evil.sh", &format!("#!/bin/sh\n{}\n", touch("canary-script")));
    executable("ls", &format!("#!/bin/sh\n{}\n", touch("canary-ls")));
    executable(".git/hooks/pre-commit", &format!("#!/bin/sh\n{}\n", touch("canary-hook")));
    std::fs::write(work.join("evil.sed"), format!("1e {}\n", touch("canary-sed"))).unwrap();
    std::fs::write(work.join("evil.mk"), format!("all:\n\t{}\n", touch("canary-make"))).unwrap();
}

fn canaries(work: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(work).unwrap().map(|it| it.unwrap().file_name());
    let names = entries.map(|name| name.into_string().unwrap());
    names.filter(|name| name.starts_with("canary")).collect()
}

/// A run whose model calls every way around rules, one after the other.
async fn attacked(arguments: &[&str]) -> (World, Exit) {
    let world = World::saying("x").await;
    let calls = bypasses(&world.work()).into_iter().map(|(_, _, command)| {
        Reply::tool_call("Bash", json!({"command": command, "timeout": 20_000}))
    });
    let script = Script::turns(calls.chain([Reply::text("done")]));
    let fake = posse_testkit::FakeModel::start(script).await.unwrap();
    let world = World { fake, ..world };
    prepare(&world.work());
    let mut all = vec!["run", "go", "--json"];
    all.extend(arguments);
    let exit = world.run(&all).await.expect(0);
    (world, exit)
}

#[tokio::test]
async fn the_ways_around_rules_have_their_effect_where_nothing_is_in_the_way() {
    // Otherwise the tests below could not fail.
    let (world, _) = attacked(&["--mode", "bypass", "--sandbox", "full"]).await;
    let found = canaries(&world.work());
    assert!(found.len() >= 40, "{found:?}");
}

#[tokio::test]
async fn a18_to_a34_no_way_around_a_rule_runs_unapproved_under_the_rule_for_its_program() {
    let rules: Vec<String> = bypasses(Path::new("/"))
        .iter()
        .map(|(_, program, _)| format!("--allow=Bash({program}:*)"))
        .collect();
    let mut arguments = vec!["--mode", "ask"];
    arguments.extend(rules.iter().map(String::as_str));
    let (world, _) = attacked(&arguments).await;
    assert_eq!(canaries(&world.work()), Vec::<String>::new());
}

#[tokio::test]
async fn no_way_around_a_rule_has_an_effect_in_the_read_only_confinement() {
    let (world, _) = attacked(&["--mode", "accept-edits", "--sandbox", "read-only"]).await;
    assert_eq!(canaries(&world.work()), Vec::<String>::new());
    assert_eq!(world.read("a.txt"), "three\n");
}

#[tokio::test]
async fn ordinary_commands_run_under_ordinary_rules_where_everything_else_is_asked_about() {
    let world = World::new(Script::turns([
        bash("git status --short 2>&1 | head -5"),
        bash("touch made"),
        Reply::text("done"),
    ]))
    .await;
    prepare(&world.work());
    let arguments = ["run", "go", "--mode", "ask", "--allow", "Bash(git status:*)", "--allow"];
    let arguments: Vec<&str> = arguments.into_iter().chain(["Bash(head:*)", "--json"]).collect();
    world.run(&arguments).await.expect(0);
    let log = world.run(&["runs", "log", &world.only_run().await, "--json"]).await.expect(0).out;
    assert!(log.contains("the rule allow Bash(git status:*) and Bash(head:*)"), "{log}");
    assert!(log.contains("no person can answer here"), "{log}");
    assert!(!world.work().join("made").exists());
}

/// What the model was sent, in all.
fn sent(world: &World) -> String {
    world.fake.requests().iter().map(|request| request.body.to_string()).collect()
}

#[tokio::test]
async fn a37_what_is_denied_is_not_read_through_links_searches_or_other_spellings() {
    let read = |path: &str| Reply::tool_call("Read", json!({"file_path": path}));
    let grep = |input| Reply::tool_call("Grep", input);
    let world = World::new(Script::turns([
        read("secret/key"),
        read("link"),
        read("folder/key"),
        read("a/../secret/./key"),
        read("SECRET/key"),
        grep(json!({"pattern": "CANARY", "output_mode": "content"})),
        grep(json!({"pattern": "CANARY", "output_mode": "content", "path": "folder"})),
        grep(json!({"pattern": "CANARY", "output_mode": "content", "path": "secret"})),
        read("open.txt"),
        Reply::text("done"),
    ]))
    .await;
    settings(&world, "[permissions]\ndeny = [\"Read(secret/**)\"]\n");
    let work = world.work();
    std::fs::create_dir_all(work.join("secret")).unwrap();
    std::fs::create_dir_all(work.join("a")).unwrap();
    std::fs::write(work.join("secret/key"), "CANARY-IN-SECRET\n").unwrap();
    std::fs::write(work.join("open.txt"), "CANARY-IN-THE-OPEN\n").unwrap();
    symlink("secret/key", work.join("link")).unwrap();
    symlink("secret", work.join("folder")).unwrap();
    world.run(&["run", "go"]).await.expect(0);
    let sent = sent(&world);
    assert!(!sent.contains("CANARY-IN-SECRET"), "{sent}");
    assert!(sent.contains("CANARY-IN-THE-OPEN"));
}

#[tokio::test]
async fn a37_what_may_be_written_unasked_is_not_written_through_a_link() {
    let write =
        |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "CANARY"}));
    let world = World::new(Script::turns([
        Reply::tool_call("Read", json!({"file_path": "docs/link"})),
        write("docs/link"),
        write("docs/folder/new"),
        write("docs/../src/new"),
        write("docs/fine"),
        Reply::text("done"),
    ]))
    .await;
    let work = world.work();
    for folder in ["docs", "src"] {
        std::fs::create_dir_all(work.join(folder)).unwrap();
    }
    world.write("src/main", "mine");
    symlink("../src/main", work.join("docs/link")).unwrap();
    symlink("../src", work.join("docs/folder")).unwrap();
    let arguments = ["run", "go", "--mode", "dont-ask", "--allow", "Edit(docs/**)"];
    world.run(&arguments).await.expect(0);
    assert_eq!(world.read("src/main"), "mine");
    assert!(!work.join("src/new").exists());
    assert_eq!(world.read("docs/fine"), "CANARY");
}

#[tokio::test]
async fn a_definition_s_rules_hold_for_its_runs_and_their_children() {
    let world = World::new(Script::turns([
        bash("touch canary"),
        bash("git status && touch canary"),
        bash("git diff > canary"),
        Reply::tool_call("Write", json!({"file_path": "canary", "content": "x"})),
        Reply::tool_call("Write", json!({"file_path": "docs/a.md", "content": "x"})),
        Reply::tool_call("Write", json!({"file_path": "docs/a.rs", "content": "x"})),
        Reply::text("done"),
    ]))
    .await;
    prepare(&world.work());
    let agents = r#"{"clerk": {"description": "d", "prompt": "p",
        "tools": ["Bash(git diff:*)", "Bash(git status)", "Write(docs/*.md)", "Read"]}}"#;
    for mode in ["accept-edits", "bypass"] {
        let arguments = ["run", "go", "--agent", "clerk", "--agents", agents, "--mode", mode];
        let exit = world.run(&arguments).await.expect(0);
        assert!(!world.work().join("canary").exists(), "{mode}");
        assert!(!world.work().join("docs/a.rs").exists(), "{mode}");
        assert_eq!(world.read("docs/a.md"), "x", "{mode}: {}", exit.err);
    }
}

#[tokio::test]
async fn a14_a_file_cannot_say_that_nobody_is_asked() {
    let world = World::new(Script::turns([bash("touch canary"), Reply::text("done")])).await;
    let folder = world.home().join("config/posse/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let head = "---\nname: eager\ndescription: d\npermissionMode: bypassPermissions\n---\np\n";
    std::fs::write(folder.join("eager.md"), head).unwrap();
    settings(&world, "[permissions]\nmode = \"ask\"\n");
    let exit = world.run(&["run", "go", "--agent", "eager"]).await.expect(0);
    assert!(exit.err.contains("`bypassPermissions` has no effect"), "{}", exit.err);
    assert!(!world.work().join("canary").exists());
    settings(&world, "[permissions]\nmode = \"bypass\"\n");
    let refused = world.run(&["run", "go"]).await;
    assert!(refused.code != Some(0) && refused.err.contains("cannot be `bypass` in a file"));
    assert!(!world.work().join("canary").exists());
}

#[tokio::test]
async fn a_project_adds_denials_and_never_allows() {
    let world = World::new(Script::turns([bash("touch canary"), Reply::text("done")])).await;
    world.write("posse.toml", "[permissions]\ndeny = [\"Bash(touch:*)\"]\n");
    world.run(&["run", "go", "--mode", "bypass", "--sandbox", "full"]).await.expect(0);
    assert!(!world.work().join("canary").exists(), "a denial holds in every mode");
    let config = world.run(&["config"]).await.expect(0).out;
    let line = config.lines().find(|line| line.contains("permissions.deny")).unwrap();
    assert!(line.contains("Bash(touch:*)") && line.contains("posse.toml"), "{line}");
    world.write("posse.toml", "[permissions]\nallow = [\"Bash\"]\n");
    let refused = world.run(&["run", "go"]).await;
    assert!(refused.err.contains("may not set `permissions.allow`"), "{}", refused.err);
}

/// `posse -p --permission-mode default` has nobody to ask, and looks around all the same.
#[tokio::test]
async fn a_command_that_only_looks_needs_nobody_in_any_mode() {
    for mode in ["default", "dontAsk"] {
        let script = Script::turns([
            bash("echo here > a.txt"),
            bash("cat b.txt | head -1"),
            Reply::text("{{last_tool_result}}"),
        ]);
        let world = World::new(script).await;
        world.write("b.txt", "first\nsecond\n");
        let said = world.run(&["-p", "--permission-mode", mode, "x"]).await.expect(0).out;
        assert!(said.contains("first"), "{mode}: {said}");
        assert!(!world.work().join("a.txt").exists(), "{mode}");
    }
}

#[tokio::test]
async fn two_commands_in_one_rule_stop_the_run_and_the_error_says_what_to_write() {
    let world = World::saying("done").await;
    let refused = world.run(&["run", "--deny", "Bash(wget:*, curl:*)", "x"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("Bash(wget:*) and Bash(curl:*)"), "{}", refused.err);
    std::fs::create_dir(world.work().join(".claude")).unwrap();
    let settings = r#"{"permissions": {"deny": ["Bash(wget:*, curl:*)"]}}"#;
    world.write(".claude/settings.json", settings);
    let refused = world.run(&["run", "x"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("Bash(wget:*) and Bash(curl:*)"), "{}", refused.err);
    assert_eq!(world.fake.requests().len(), 0);
}

#[tokio::test]
async fn a_rule_about_all_of_etc_stops_no_command_and_one_that_does_is_named() {
    let mtab = "[ -L /etc/mtab ] && echo link; head -c1 /etc/hostname /etc/passwd; echo hi";
    let world = World::new(Script::turns([bash(mtab), Reply::text("done")])).await;
    world.run(&["run", "--deny", "Read(//etc/**)", "x"]).await.expect(0);
    let said = &world.fake.last_request().tool_results()[0];
    assert!(said.contains("hi\n") && !said.contains("not run"), "{said}");
    let world = World::new(Script::turns([bash("echo hi"), Reply::text("done")])).await;
    world.run(&["run", "--deny", "Read(//usr/**)", "x"]).await.expect(0);
    let said = &world.fake.last_request().tool_results()[0];
    assert!(said.contains("the rule `Read(//usr/**)` denies it"), "{said}");
    assert!(said.contains("tell the user to make the rule narrower"), "{said}");
}

/// A pattern for any folder means the folders of the checkout too, which commands see.
#[tokio::test]
async fn a_denial_for_any_folder_holds_in_the_checkout_around_a_subfolder() {
    let look = "cat ../.env ../other/.env ../notes own; true";
    let settings_file = |world: &World| {
        std::fs::create_dir(world.work().join(".claude")).unwrap();
        let text = json!({"permissions": {"deny": ["Read(.env)", "Read(./other/**)"]}});
        world.write(".claude/settings.json", &text.to_string());
    };
    for rules in [&["--deny", "Read(.env)"][..], &["--deny", "Read(**/.env)"], &[]] {
        let world = World::new(Script::turns([bash(look), Reply::text("done")])).await;
        let init = Command::new("git").args(["init", "-q"]).current_dir(world.work()).status();
        assert!(init.unwrap().success());
        for folder in ["sub", "other"] {
            std::fs::create_dir(world.work().join(folder)).unwrap();
        }
        for name in [".env", "other/.env"] {
            world.write(name, "the-canary");
        }
        world.write("notes", "plain");
        world.write("sub/own", "mine");
        if rules.is_empty() {
            settings_file(&world);
        }
        let mut command = world.command(&[&["run"], rules, &["go"]].concat());
        command.current_dir(world.work().join("sub"));
        started(command).end().await.expect(0);
        let told: String = world.fake.requests().iter().map(|it| it.body.to_string()).collect();
        assert!(told.contains("plain") && told.contains("mine"), "{rules:?}: {told}");
        assert!(!told.contains("the-canary"), "{rules:?}: {told}");
    }
}

/// Who denies `Edit` means every tool that changes files.
#[tokio::test]
async fn a_denial_of_edit_is_one_of_write_too() {
    for flag in ["--deny", "--disallowedTools"] {
        let write = json!({"file_path": "made.txt", "content": "x"});
        let turns = [Reply::tool_call("Write", write), Reply::text("{{last_tool_result}}")];
        let world = World::new(Script::turns(turns)).await;
        let exit = world.run(&["run", "go", flag, "Edit"]).await.expect(0);
        assert!(!world.work().join("made.txt").exists(), "{flag}: {}", exit.out);
        assert!(exit.out.contains("Edit"), "{flag}: {}", exit.out);
    }
}

/// The same where the name of the checkout has signs of patterns, and where commands have left what looks
/// like a placeholder.
#[tokio::test]
async fn denials_hold_in_a_checkout_with_an_odd_name_or_a_false_placeholder() {
    let look = "cat ../.env ../notes; true";
    for (name, is_marked) in [("project (copy) [1]", false), ("plain", true), ("wide{a,b}", true)] {
        let world = World::new(Script::turns([bash(look), Reply::text("done")])).await;
        let top = world.work().join(name);
        std::fs::create_dir_all(top.join("sub")).unwrap();
        let init = Command::new("git").args(["init", "-q"]).current_dir(&top).status();
        assert!(init.unwrap().success());
        std::fs::write(top.join(".env"), "the-canary").unwrap();
        std::fs::write(top.join("notes"), "plain").unwrap();
        std::fs::create_dir(top.join(".claude")).unwrap();
        let text = json!({"permissions": {"deny": ["Read(.env)"]}});
        std::fs::write(top.join(".claude/settings.json"), text.to_string()).unwrap();
        if is_marked {
            std::fs::create_dir(top.join("sub/.git")).unwrap();
            for marked in [".git", "sub/.git"] {
                let mode = std::fs::Permissions::from_mode(0o1555);
                std::fs::set_permissions(top.join(marked), mode).unwrap();
            }
        }
        let mut command = world.command(&["run", "go"]);
        command.current_dir(top.join("sub"));
        started(command).end().await.expect(0);
        let told: String = world.fake.requests().iter().map(|it| it.body.to_string()).collect();
        assert!(!told.contains("the-canary"), "{name}: {told}");
    }
}
