//! Claude Code's files: what they deny holds here, at once and without trust; what Posse does not use
//! is said.

use crate::daemon::Guard;
use crate::tmux::Terminal;
use crate::world::{World, bash, eventually, started};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;

const SETTINGS: &str = r#"{
  "permissions": {
    "allow": ["Bash(ls:*)"],
    "deny": ["Read(./.env)", "Read(./secrets/**)", "Bash(touch:*)", "WebFetch(domain:x.org)",
      "mcp__github", "Bash(git push*)"]
  },
  "hooks": {"PreToolUse": [{"hooks": []}]}
}"#;

fn put(world: &World, path: &str, text: &str) {
    let path = world.work().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(path: &str) -> Reply {
    Reply::tool_call("Read", json!({"file_path": path}))
}

/// All that the model was told.
fn sent(world: &World) -> String {
    world.fake.requests().iter().map(|it| it.body.to_string()).collect()
}

/// A world whose model wants what `SETTINGS` denies.
async fn curious() -> World {
    let world = World::new(Script::turns([
        read(".env"),
        read("secrets/key"),
        Reply::tool_call("Grep", json!({"pattern": "CANARY", "output_mode": "content"})),
        Reply::tool_call("Write", json!({"file_path": "secrets/new", "content": "x"})),
        bash("cat .env secrets/*"),
        bash("touch canary"),
        read("open.txt"),
        Reply::text("done"),
    ]))
    .await;
    put(&world, ".env", "KEY=CANARY-ENV\n");
    put(&world, "secrets/key", "CANARY-SECRET\n");
    put(&world, "open.txt", "CANARY-OPEN\n");
    world
}

fn assert_fenced(world: &World) {
    let sent = sent(world);
    assert!(sent.contains("CANARY-OPEN"), "it was asked, and could look");
    assert!(!sent.contains("CANARY-ENV") && !sent.contains("CANARY-SECRET"), "{sent}");
    assert!(!world.work().join("canary").exists());
    assert!(!world.work().join("secrets/new").exists());
}

#[tokio::test]
async fn without_the_file_nothing_is_denied() {
    // Otherwise the tests below could not fail.
    let world = curious().await;
    world.run(&["run", "go"]).await.expect(0);
    assert!(sent(&world).contains("CANARY-ENV"));
    assert!(world.work().join("canary").exists());
}

#[tokio::test]
async fn what_the_settings_of_a_project_deny_is_denied_without_trust() {
    for (name, mode) in [("settings.json", "accept-edits"), ("settings.local.json", "bypass")] {
        let world = curious().await;
        put(&world, &format!(".claude/{name}"), SETTINGS);
        world.run(&["run", "go", "--mode", mode]).await.expect(0);
        assert_fenced(&world);
    }
}

#[tokio::test]
async fn what_the_user_denies_in_claude_code_is_denied_everywhere() {
    let world = curious().await;
    std::fs::create_dir_all(world.home().join(".claude")).unwrap();
    std::fs::write(world.home().join(".claude/settings.json"), SETTINGS).unwrap();
    world.run(&["run", "go"]).await.expect(0);
    assert_fenced(&world);
}

#[tokio::test]
async fn a_denial_holds_below_the_folder_that_has_it_and_for_children() {
    let child = Conversation::when(When::any().first_user_contains("look for it"))
        .reply(read("secrets/key"))
        .reply(read("open.txt"))
        .reply(Reply::text("done"));
    let task = json!({"description": "d", "prompt": "look for it", "subagent_type": "explore"});
    let parent = Conversation::when(When::any())
        .reply(Reply::tool_call("Task", task))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(child).conversation(parent)).await;
    std::fs::create_dir_all(world.work().join(".git")).unwrap();
    put(&world, ".claude/settings.json", r#"{"permissions": {"deny": ["Read(sub/secrets/**)"]}}"#);
    put(&world, "sub/secrets/key", "CANARY-SECRET\n");
    put(&world, "sub/open.txt", "CANARY-OPEN\n");
    world.run(&["run", "go", "--cwd", "sub"]).await.expect(0);
    assert_fenced(&world);
}

#[tokio::test]
async fn a_denial_that_was_added_later_holds_for_a_run_that_goes_on() {
    let world = World::new(Script::turns([
        Reply::text("hello"),
        read(".env"),
        bash("cat .env"),
        Reply::text("done"),
        read(".env"),
        bash("cat .env"),
        Reply::text("done"),
    ]))
    .await;
    put(&world, ".env", "KEY=CANARY-ENV\n");
    world.run(&["run", "go"]).await.expect(0);
    let run = world.only_run().await;
    put(&world, ".claude/settings.json", SETTINGS);
    world.run(&["runs", "resume", &run, "go on"]).await.expect(0);
    assert!(!sent(&world).contains("CANARY-ENV"), "{}", sent(&world));
    // The same where another process executes it, which was started elsewhere.
    let guard = Guard::of(&world);
    world.run(&["daemon", "start"]).await.expect(0);
    let count = world.fake.count();
    world.run(&["runs", "send", &run, "again"]).await.expect(0);
    eventually("the daemon's work", async || world.fake.count() >= count + 3).await;
    assert!(!sent(&world).contains("CANARY-ENV"), "{}", sent(&world));
    drop(guard);
}

#[tokio::test]
async fn a_file_that_cannot_be_understood_stops_the_run_and_says_where() {
    let world = World::new(Script::turns([read(".env"), Reply::text("done")])).await;
    for (text, says) in [
        ("{\n  \"permissions\": {,", "settings.json:2:19: not valid JSON"),
        ("{\"permissions\": {\"deny\": \"Read\"}}", "must be a list of rules"),
        ("[]", "must be an object"),
        (
            "{\"permissions\": {\n \"deny\": [\"Bsh(x)\"]}}",
            "settings.json:2:11: `permissions.deny`: invalid rule `Bsh(x)`: there is no tool \
             `Bsh`; did you mean `Bash`?",
        ),
        ("{\"permissions\": {\"ask\": [\"Read({a,b})\"]}}", "braces"),
        (
            "{\"permissions\": {\"deny\": [\".env\"]}}",
            "`.env`: it does not begin with a tool's name; did you mean `Read(.env)`?",
        ),
        ("{\"permissions\": {\"deny\": [\"Read:./.env\"]}}", "did you mean `Read(./.env)`?"),
        ("{\"permissions\": {\"ask\": [\"Read[./.env]\"]}}", "did you mean `Read(./.env)`?"),
        ("{\"permissions\": {\"deny\": [\"Reading(./.env)\"]}}", "did you mean `Read(./.env)`?"),
        ("{\"permissions\": {\"deny\": [\"Read(x[[:alpha:]])\"]}}", "[:alpha:]"),
        ("{\"permissions\": {\"deny\": [\"Read(x[A-_])\"]}}", "write each range"),
        (
            "{\"permissions\": {\"deny\": [\"Read(./.env)\"],\n \"deny\": []}}",
            "the key `deny` is there twice",
        ),
        (
            "{\"permissions\": {\"deny\": [\"Read(./.env)\"]}, \"permissions\": {}}",
            "is there twice",
        ),
    ] {
        put(&world, ".claude/settings.json", text);
        let exit = world.run(&["run", "go"]).await.expect(2);
        assert!(exit.err.contains(says), "{says}: {}", exit.err);
        world.run(&["config"]).await.expect(2);
        let check = world.run(&["agents", "check"]).await.expect(2);
        assert!(check.out.contains("settings.json"), "{}", check.out);
        let doctor = world.run(&["doctor"]).await.expect(0).out;
        assert!(doctor.contains("NO RUN CAN START HERE"), "{doctor}");
    }
    assert_eq!(world.fake.count(), 0);
    // A file without rules, or with nothing in it, is none to stop at.
    for text in ["", "{}", "{\"permissions\": null}"] {
        put(&world, ".claude/settings.json", text);
        world.run(&["run", "go"]).await.expect(0);
    }
}

#[tokio::test]
async fn what_posse_does_not_use_is_said_once_and_again_when_it_changes() {
    let world = World::saying("x").await;
    put(&world, ".claude/settings.json", SETTINGS);
    put(&world, ".claude/commands/fix.md", "Fix it.");
    put(&world, ".claude/hooks/check.sh", "true");
    put(&world, "CLAUDE.md", "Be brief.");
    let exit = world.run(&["run", "go"]).await.expect(0);
    let line = exit.err.lines().find(|line| line.contains("does not use yet")).unwrap_or_default();
    let settings = ".claude/settings.json (permissions.allow, hooks)";
    assert!(line.contains(settings), "{}", exit.err);
    assert!(!line.contains("CLAUDE.md") && !line.contains("commands"), "{line}");
    let again = world.run(&["run", "go"]).await.expect(0);
    assert!(!again.err.contains("does not use yet"), "{}", again.err);
    put(&world, ".claude/output-styles/short.md", "Be brief.");
    let quiet = world.run(&["run", "go", "--quiet"]).await.expect(0);
    assert!(!quiet.err.contains("does not use"), "{}", quiet.err);
    let config = world.run(&["config"]).await.expect(0);
    assert!(
        config.err.contains("does not use yet") && config.err.contains(".claude/output-styles")
    );
    let denied = config.out.lines().find(|line| line.starts_with("permissions.deny")).unwrap();
    assert!(
        denied.contains("Read(./.env)") && denied.contains(".claude/settings.json"),
        "{denied}"
    );
    let check = world.run(&["agents", "check"]).await.expect(0).out;
    assert!(check.contains("and not yet: permissions.allow, hooks"), "{check}");
    let trust = world.run(&["trust"]).await.expect(2).out;
    assert!(trust.contains("Posse does not use these yet: .claude/hooks/check.sh"), "{trust}");
    assert!(trust.contains(".claude/settings.json: 7 rules in effect, trusted or not"), "{trust}");
}

#[tokio::test]
async fn a_rule_that_is_more_than_one_command_is_kept_more_strictly_and_said() {
    let world = World::new(Script::turns([
        bash("touch canary"),
        bash("echo fine > fine"),
        Reply::text("done"),
    ]))
    .await;
    let settings = r#"{"permissions": {"deny": ["Bash(touch * | bash)"]}}"#;
    put(&world, ".claude/settings.json", settings);
    let exit = world.run(&["run", "go"]).await.expect(0);
    assert!(exit.err.contains("asks before every command like `touch …`"), "{}", exit.err);
    assert!(!world.work().join("canary").exists() && world.work().join("fine").exists());
}

/// It only narrows, and whoever names a mode means it.
#[tokio::test]
async fn a_stricter_mode_is_kept_and_a_laxer_one_is_told() {
    let write = Reply::tool_call("Write", json!({"file_path": "canary", "content": "x"}));
    let world = World::new(Script::turns([write, Reply::text("done")])).await;
    let wrote = async |mode: &str, options: &[&str]| {
        let text = json!({"permissions": {"defaultMode": mode}}).to_string();
        put(&world, ".claude/settings.json", &text);
        let exit = world.run(&[&["run"], options, &["go"]].concat()).await.expect(0);
        (std::fs::remove_file(world.work().join("canary")).is_ok(), exit.err)
    };
    for mode in ["plan", "dontAsk", "default"] {
        let (wrote, said) = wrote(mode, &[]).await;
        assert!(!wrote && !said.contains("does not use yet"), "{mode}: {said}");
    }
    let shown = world.run(&["config", "--json"]).await.expect(0).json();
    assert_eq!(shown["settings"]["permissions.mode"]["value"], "ask", "{shown:#}");
    assert!(wrote("plan", &["--mode", "accept-edits"]).await.0);
    let (wrote, said) = wrote("bypassPermissions", &[]).await;
    assert!(wrote && said.contains("(permissions.defaultMode)"), "{said}");
}

#[tokio::test]
async fn an_agent_that_was_added_takes_no_trust_from_the_others() {
    let write = Reply::tool_call("Write", json!({"file_path": "canary", "content": "x"}));
    let world = World::new(Script::turns([write, Reply::text("done")])).await;
    let agent = |name: &str, text: &str| {
        let text = format!("---\nname: {name}\ndescription: d\ntools: Read, Write\n---\n{text}\n");
        put(&world, &format!(".posse/agents/{name}.md"), &text);
    };
    let wrote = async |name: &str| {
        let exit = world.run(&["run", "--agent", name, "x"]).await.expect(0);
        (std::fs::remove_file(world.work().join("canary")).is_ok(), exit.err)
    };
    agent("old", "Do it.");
    world.run(&["trust", "--yes"]).await.expect(0);
    agent("new", "Do it.");
    let (could, said) = wrote("old").await;
    assert!(could, "it is as it was trusted: {said}");
    let line =
        "changed since you trusted it: + .posse/agents/new.md (Write); `posse trust` trusts it";
    assert!(said.contains(line), "{said}");
    let (could, said) = wrote("new").await;
    assert!(!could, "nobody trusted it");
    assert!(said.contains(line) && !said.contains("is not trusted"), "{said}");
    let review = world.run(&["trust"]).await.expect(2).out;
    assert!(review.contains("changed since you trusted it (+ new, "), "{review}");
    assert!(review.contains("\n  + .posse/agents/new.md (Write)"), "{review}");
    agent("old", "Do something else.");
    assert!(!wrote("old").await.0, "it is another");
    world.run(&["trust", "--yes"]).await.expect(0);
    let (could, said) = wrote("new").await;
    assert!(could && !said.contains("changed since"), "{said}");
    // Settings say what the others may do: without them nothing is as it was trusted.
    put(&world, "posse.toml", "[limits]\nturns = 9\n");
    world.run(&["trust", "--yes"]).await.expect(0);
    assert!(wrote("old").await.0);
    std::fs::remove_file(world.work().join("posse.toml")).unwrap();
    let (could, said) = wrote("old").await;
    assert!(!could && said.contains("- posse.toml"), "{said}");
}

#[tokio::test]
async fn on_a_terminal_a_change_is_asked_about() {
    let world = World::saying("fine").await;
    let agent = |name: &str| {
        let text = format!("---\nname: {name}\ndescription: d\ntools: Read, Write\n---\nDo it.\n");
        put(&world, &format!(".posse/agents/{name}.md"), &text);
    };
    agent("old");
    world.run(&["trust", "--yes"]).await.expect(0);
    agent("new");
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run x; echo code $?").await;
    terminal.shows("+ .posse/agents/new.md (Write)").await;
    terminal.shows("Trust exactly this? [y/N]").await;
    terminal.enter("y").await;
    terminal.shows("code 0").await;
    let trusted = world.run(&["trust", "list"]).await.expect(0).out;
    assert!(!trusted.contains("changed"), "{trusted}");
}

#[tokio::test]
async fn a_star_or_nothing_in_parentheses_means_every_path() {
    for rule in ["Read(*)", "Read()", "Edit(*)", "Write(*)"] {
        let world = World::new(Script::turns([
            read("open.txt"),
            Reply::tool_call("Grep", json!({"pattern": "CANARY", "output_mode": "content"})),
            bash("cat open.txt deep/open.txt; echo changed > open.txt"),
            bash("echo changed > deep/open.txt"),
            Reply::tool_call("Write", json!({"file_path": "new.txt", "content": "x"})),
            Reply::text("done"),
        ]))
        .await;
        let settings = json!({"permissions": {"deny": [rule]}}).to_string();
        put(&world, ".claude/settings.json", &settings);
        put(&world, "open.txt", "CANARY\n");
        put(&world, "deep/open.txt", "CANARY\n");
        world.run(&["run", "go"]).await.expect(0);
        if rule.starts_with("Read") {
            assert!(!sent(&world).contains("CANARY\\n"), "{rule}: {}", sent(&world));
        }
        for name in ["open.txt", "deep/open.txt"] {
            let text = std::fs::read_to_string(world.work().join(name)).unwrap();
            assert_eq!(text, "CANARY\n", "{rule} {name}");
        }
        assert!(!world.work().join("new.txt").exists(), "{rule}");
    }
}

#[tokio::test]
async fn a_star_in_a_word_of_a_denied_command_spans_words() {
    for rule in [
        "Bash(*prod*)",
        "Bash(*--force*)",
        "Bash(sh*--force*)",
        "Bash(*do.sh*)",
        "Bash(sh do.sh push*--force)",
        "Bash(sh*prod)",
    ] {
        let world = World::new(Script::turns([
            bash("sh do.sh push --force --to prod"),
            bash("sh do.sh push --to prod --force"),
            bash("sh do.sh push --force prod"),
            bash("touch fine"),
            Reply::text("done"),
        ]))
        .await;
        let settings = json!({"permissions": {"deny": [rule]}}).to_string();
        put(&world, ".claude/settings.json", &settings);
        put(&world, "do.sh", "echo \"$@\" >> done\n");
        world.run(&["run", "go"]).await.expect(0);
        assert!(world.work().join("fine").exists(), "{rule}");
        let done = std::fs::read_to_string(world.work().join("done")).unwrap_or_default();
        let expected = match rule {
            "Bash(sh do.sh push*--force)" => "push --force --to prod\npush --force prod\n",
            "Bash(sh*prod)" => "push --to prod --force\n",
            _ => "",
        };
        assert_eq!(done, expected, "{rule}");
    }
}

#[tokio::test]
async fn a_key_or_rule_that_would_silently_do_nothing_stops_the_run() {
    let world = World::new(Script::turns([read(".env"), Reply::text("done")])).await;
    let rules = r#"["Read(./.env)"]"#;
    for (key, meant) in [
        ("permision", "permissions"),
        ("permisions", "permissions"),
        ("Permissions", "permissions"),
        ("permission", "permissions"),
    ] {
        let text = format!("{{\n \"{key}\": {{\"deny\": {rules}}}}}");
        put(&world, ".claude/settings.json", &text);
        let exit = world.run(&["run", "go"]).await.expect(2);
        let says =
            format!("settings.json:2:2: there is no setting `{key}`; did you mean `{meant}`?");
        assert!(exit.err.contains(&says), "{says}: {}", exit.err);
    }
    for (key, meant) in [
        ("Deny", "deny"),
        ("denied", "deny"),
        ("denies", "deny"),
        ("asks", "ask"),
        ("dney", "deny"),
    ] {
        let text = format!("{{\"permissions\": {{\n \"{key}\": {rules}}}}}");
        put(&world, ".claude/settings.json", &text);
        let exit = world.run(&["run", "go"]).await.expect(2);
        let says =
            format!("settings.json:2:2: there is no setting `{key}`; did you mean `{meant}`");
        assert!(exit.err.contains(&says), "{says}: {}", exit.err);
    }
    for key in ["deny", "ask"] {
        put(&world, ".claude/settings.json", &format!("{{\"{key}\": {rules}}}"));
        let exit = world.run(&["run", "go"]).await.expect(2);
        let says = format!("did you mean `permissions.{key}`?");
        assert!(exit.err.contains(&says), "{says}: {}", exit.err);
    }
    let two = r#"{"permissions": {"deny": ["Read(.env) Edit(x)"]}}"#;
    put(&world, ".claude/settings.json", two);
    let exit = world.run(&["run", "go"]).await.expect(2);
    assert!(exit.err.contains("more than one rule"), "{}", exit.err);
    let settings = world.work().join(".claude/settings.json");
    std::fs::remove_file(&settings).unwrap();
    std::os::unix::fs::symlink("../shared/settings.json", &settings).unwrap();
    let exit = world.run(&["run", "go"]).await.expect(2);
    assert!(exit.err.contains("it is a link to ../shared/settings.json"), "{}", exit.err);
    assert_eq!(world.fake.count(), 0);
    // Keys that only look a little alike are none of these.
    put(
        &world,
        "shared/settings.json",
        r#"{"env": {"A": "b"}, "permissions": {"allow": ["Read"]}}"#,
    );
    world.run(&["run", "go"]).await.expect(0);
}

#[tokio::test]
async fn a_path_in_quotes_is_that_path() {
    let world = curious().await;
    let settings = r#"{"permissions": {"deny":
        ["Read(\"./.env\")", "Read('secrets/**')", "Bash(touch:*)"]}}"#;
    put(&world, ".claude/settings.json", settings);
    world.run(&["run", "go"]).await.expect(0);
    assert_fenced(&world);
}

#[tokio::test]
async fn a_repository_within_another_cuts_off_no_denial() {
    let world = World::new(Script::turns([
        read("secrets/key"),
        bash("cat secrets/key"),
        read("open.txt"),
        Reply::text("done"),
    ]))
    .await;
    std::fs::create_dir_all(world.work().join(".git")).unwrap();
    std::fs::create_dir_all(world.work().join("sub/.git")).unwrap();
    put(&world, ".claude/settings.json", r#"{"permissions": {"deny": ["Read(sub/secrets/**)"]}}"#);
    put(&world, "sub/secrets/key", "CANARY-SECRET\n");
    put(&world, "sub/open.txt", "CANARY-OPEN\n");
    world.run(&["run", "go", "--cwd", "sub"]).await.expect(0);
    assert_fenced(&world);
}

#[tokio::test]
async fn a_command_changes_nothing_that_a_person_is_asked_about() {
    let world = World::new(Script::turns([
        bash("echo changed > src/main.rs; echo new > src/new.rs; echo fine > fine"),
        Reply::text("done"),
    ]))
    .await;
    put(&world, ".claude/settings.json", r#"{"permissions": {"ask": ["Edit(src/**)"]}}"#);
    put(&world, "src/main.rs", "as it was\n");
    put(&world, "lib/x.rs", "x\n");
    world.run(&["run", "go"]).await.expect(0);
    let main = std::fs::read_to_string(world.work().join("src/main.rs")).unwrap();
    assert_eq!(main, "as it was\n");
    assert!(!world.work().join("src/new.rs").exists());
    assert!(world.work().join("fine").exists());
}

#[tokio::test]
async fn what_a_denied_link_leads_to_is_denied_too() {
    for rules in [
        json!(["Read(./.env)", "Read(./vault/**)"]),
        json!(["Read(.env)", "Read(vault)"]),
        json!(["Read(**/.env)", "Read(**/vault/**)"]),
    ] {
        let world = World::new(Script::turns([
            read("conf/prod.env"),
            read("secrets/key"),
            Reply::tool_call("Grep", json!({"pattern": "CANARY", "output_mode": "content"})),
            bash("cat conf/prod.env"),
            bash("cat secrets/* conf/*"),
            bash("echo x > conf/prod.env"),
            bash("echo x > secrets/key; echo x > secrets/new"),
            Reply::tool_call("Write", json!({"file_path": "secrets/new", "content": "x"})),
            bash("echo fine > conf/fine; cat open.txt"),
            Reply::text("done"),
        ]))
        .await;
        let settings = json!({"permissions": {"deny": rules}}).to_string();
        put(&world, ".claude/settings.json", &settings);
        put(&world, "conf/prod.env", "KEY=CANARY-ENV\n");
        put(&world, "conf/other", "x\n");
        put(&world, "secrets/key", "CANARY-SECRET\n");
        put(&world, "open.txt", "CANARY-OPEN\n");
        std::os::unix::fs::symlink("conf/prod.env", world.work().join(".env")).unwrap();
        std::os::unix::fs::symlink("secrets", world.work().join("vault")).unwrap();
        world.run(&["run", "go"]).await.expect(0);
        assert_fenced(&world);
        let text = |name: &str| std::fs::read_to_string(world.work().join(name)).unwrap();
        assert_eq!(text("conf/prod.env"), "KEY=CANARY-ENV\n", "{settings}");
        assert_eq!(text("secrets/key"), "CANARY-SECRET\n", "{settings}");
        assert!(world.work().join("conf/fine").exists(), "{settings}");
    }
}

#[tokio::test]
async fn a_denied_path_through_a_link_is_the_one_behind_it() {
    let world = curious().await;
    let alias = world.home().join("alias");
    std::os::unix::fs::symlink(world.work(), &alias).unwrap();
    let rules = json!([
        format!("Read(/{}/.env)", alias.display()),
        format!("Read(/{}/secr*/**)", alias.display()),
        "Bash(touch:*)",
    ]);
    let settings = json!({"permissions": {"deny": rules}}).to_string();
    put(&world, ".claude/settings.json", &settings);
    world.run(&["run", "go"]).await.expect(0);
    assert_fenced(&world);
}

#[tokio::test]
async fn the_user_s_settings_are_where_claude_code_looks_for_them() {
    let world = curious().await;
    let folder = world.home().join("elsewhere");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), SETTINGS).unwrap();
    let mut command = world.command(&["run", "go"]);
    command.env("CLAUDE_CONFIG_DIR", &folder);
    started(command).end().await.expect(0);
    assert_fenced(&world);
}

#[tokio::test]
async fn a_relative_folder_of_settings_counts_from_where_posse_is_started() {
    let world = curious().await;
    put(&world, "../elsewhere/settings.json", SETTINGS);
    let mut command = world.command(&["run", "go"]);
    command.env("CLAUDE_CONFIG_DIR", "../elsewhere");
    started(command).end().await.expect(0);
    assert_fenced(&world);
}

#[tokio::test]
async fn a_command_reads_nothing_that_a_person_is_asked_about() {
    for user in [false, true] {
        let world = World::new(Script::turns([
            read(".env"),
            bash("cat .env"),
            bash("cat deep/private/key"),
            bash("cat open.txt"),
            Reply::text("done"),
        ]))
        .await;
        let rules = r#"["Read(./.env)", "Read(**/private/*)"]"#;
        if user {
            let file = world.home().join("config/posse/config.toml");
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("[permissions]\nask = {rules}\n")).unwrap();
        } else {
            let text = format!("{{\"permissions\": {{\"ask\": {rules}}}}}");
            put(&world, ".claude/settings.json", &text);
        }
        put(&world, ".env", "KEY=CANARY-ENV\n");
        put(&world, "deep/private/key", "CANARY-SECRET\n");
        put(&world, "open.txt", "CANARY-OPEN\n");
        world.run(&["run", "go"]).await.expect(0);
        assert_fenced(&world);
    }
}

#[tokio::test]
async fn what_is_denied_by_the_name_of_a_linked_folder_is_denied_behind_it() {
    for pattern in ["**/private/*.pem", "./priv*/key.pem", "priv*/deep/*.pem", "**/private/**/x"] {
        let world = World::new(Script::turns([
            bash("cat private/key.pem private/deep/key.pem private/deep/x"),
            bash("cat data/key.pem data/deep/key.pem data/deep/x"),
            bash("cat inner/*; cat inner/deep/*"),
            read("data/key.pem"),
            read("data/deep/key.pem"),
            read("data/deep/x"),
            bash("for it in key.pem deep/key.pem deep/x; do echo gone > private/$it; done"),
            bash("cat data/open.txt; echo fine > private/fine"),
            Reply::text("done"),
        ]))
        .await;
        let rules = json!([format!("Read({pattern})"), "Bash(touch:*)"]);
        put(&world, ".claude/settings.json", &json!({"permissions": {"deny": rules}}).to_string());
        let denied = match pattern {
            "priv*/deep/*.pem" => "data/deep/key.pem",
            "**/private/**/x" => "data/deep/x",
            _ => "data/key.pem",
        };
        put(&world, "data/deep/free", "x\n");
        for name in ["data/key.pem", "data/deep/key.pem", "data/deep/x"] {
            let text = if name == denied { "CANARY-SECRET\n" } else { "x\n" };
            put(&world, name, text);
        }
        put(&world, "data/open.txt", "CANARY-OPEN\n");
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, world.work().join(name)).unwrap();
        };
        link("data", "private");
        link("private", "inner");
        // A circle is no way that never ends.
        link("..", "data/around");
        world.run(&["run", "go"]).await.expect(0);
        assert_fenced(&world);
        assert_eq!(world.read(denied), "CANARY-SECRET\n", "{pattern}");
        assert!(world.work().join("data/fine").exists(), "{pattern}");
    }
}

#[tokio::test]
async fn a_name_that_is_no_text_is_in_nobody_s_way() {
    use std::os::unix::ffi::OsStrExt;
    for (rule, hidden) in [("Read(./.env)", false), ("Read(*.txt)", true), ("Edit(**)", false)] {
        let world = World::new(Script::turns([
            bash("cat caf*.txt; cat .env; echo fine > $TMPDIR/fine && echo could $((6 * 7))"),
            Reply::text("done"),
        ]))
        .await;
        let settings = json!({"permissions": {"deny": [rule]}}).to_string();
        put(&world, ".claude/settings.json", &settings);
        put(&world, "src/main.rs", "x\n");
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
        std::fs::write(world.work().join(name), "CANARY-TEXT\n").unwrap();
        world.run(&["run", "go"]).await.expect(0);
        let sent = sent(&world);
        assert!(sent.contains("could 42"), "{rule}: {sent}");
        assert_eq!(sent.contains("CANARY-TEXT"), !hidden, "{rule}: {sent}");
    }
}

#[tokio::test]
async fn inline_code_that_may_start_what_is_denied_is_refused_in_plain_words_until_it_is_allowed() {
    let world = || async {
        let world = World::new(Script::turns([
            bash("python3 -c 'open(\"made\", \"w\")'"),
            bash("sed -i s/foo/bar/ a.py"),
            Reply::text("done"),
        ]))
        .await;
        put(&world, ".claude/settings.json", r#"{"permissions": {"deny": ["Bash(curl:*)"]}}"#);
        put(&world, "a.py", "foo\n");
        world
    };
    let refused = world().await;
    refused.run(&["run", "go"]).await.expect(0);
    for part in [
        "could start `curl`, which the rule `Bash(curl:*)` of .claude/settings.json denies, and \
         no person can answer here",
        "--allow 'Bash(python3 -c:*)'",
    ] {
        assert!(sent(&refused).contains(part), "{part}: {}", sent(&refused));
    }
    assert!(!refused.work().join("made").exists());
    assert_eq!(refused.read("a.py"), "bar\n", "to write a file is not to run a program");
    let bare = world().await;
    bare.run(&["run", "go", "--allow", "Bash"]).await.expect(0);
    assert!(!bare.work().join("made").exists());
    let allowed = world().await;
    allowed.run(&["run", "go", "--allow", "Bash(python3 -c:*)"]).await.expect(0);
    assert!(allowed.work().join("made").exists(), "{}", sent(&allowed));
}
