//! Guidance files (`AGENTS.md`, `CLAUDE.md`) in runs that the command starts.

use crate::world::World;
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;
use std::os::unix::fs::symlink;

fn put(world: &World, path: &str, text: &str) {
    let path = world.work().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn put_home(world: &World, path: &str, text: &str) {
    let path = world.home().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(path: &str) -> Reply {
    Reply::tool_call("Read", json!({"file_path": path}))
}

#[tokio::test]
async fn an_agent_gets_the_user_s_files_then_the_project_s_with_imports_in_its_system_prompt() {
    let world = World::saying("done").await;
    put_home(&world, "config/posse/AGENTS.md", "I like short answers.");
    put_home(&world, ".claude/CLAUDE.md", "My notes: @more.md");
    put_home(&world, ".claude/more.md", "More notes.");
    put(&world, "AGENTS.md", "Run the tests. @docs/style.md and @../../etc/passwd.");
    put(&world, "docs/style.md", "Four blanks.");
    put(&world, "CLAUDE.local.md", "Only here.");
    put(&world, "sub/CLAUDE.md", "Not yet.");
    world.run(&["run", "go"]).await.expect(0);
    let system = world.fake.last_request().system();
    let expected = [
        "I like short answers.",
        "My notes: @more.md",
        "More notes.",
        "Run the tests.",
        "Four blanks.",
        "Only here.",
        "Working folder: ",
    ];
    let places: Vec<usize> = expected.map(|part| system.find(part).expect(part)).to_vec();
    assert!(places.is_sorted(), "{system}");
    assert!(!system.contains("Not yet."), "{system}");
    let file = world.work().join("docs/style.md").display().to_string();
    assert!(
        system.contains(&format!("file=\"{file}\" of=\"project\">\nFour blanks.\n")),
        "{system}"
    );
    let run = world.only_run().await;
    let show = world.run(&["runs", "show", &run]).await.expect(0).out;
    let lines: Vec<&str> = show.lines().filter(|line| line.starts_with("guidance ")).collect();
    assert_eq!(lines.len(), 6, "{show}");
    assert!(lines[3].contains("AGENTS.md (") && lines[3].contains("was not imported"), "{show}");
    let json = world.run(&["runs", "show", "--json", &run]).await.expect(0).json();
    assert_eq!(json["guidance"][4]["path"], file, "{json}");
    assert_eq!(json["guidance"][4]["hash"].as_str().unwrap().len(), 64);
    let log = world.run(&["runs", "log", &run]).await.expect(0).out;
    assert!(log.lines().next().unwrap().ends_with(", 6 guidance files"), "{log}");
}

/// It is part of the log, so a change shows only in the next run.
#[tokio::test]
async fn a_conversation_keeps_the_guidance_it_began_with() {
    let world = World::saying("done").await;
    put(&world, "AGENTS.md", "The first.");
    world.run(&["run", "go"]).await.expect(0);
    put(&world, "AGENTS.md", "The second.");
    let run = world.only_run().await;
    world.run(&["runs", "resume", &run, "go on"]).await.expect(0);
    assert!(world.fake.last_request().system().contains("The first."));
    world.run(&["run", "go"]).await.expect(0);
    assert!(world.fake.last_request().system().contains("The second."));
}

#[tokio::test]
async fn files_of_a_subfolder_come_once_with_the_first_call_there() {
    let world = World::new(Script::turns([
        read("a.txt"),
        read("sub/deep/b.txt"),
        read("sub/deep/b.txt").and_tool_call("Read", json!({"file_path": "sub/c.txt"})),
        Reply::text("done"),
        Reply::tool_call("Write", json!({"file_path": "sub/deep/new", "content": "x"})),
        Reply::tool_call("Write", json!({"file_path": "other/new", "content": "x"})),
        Reply::text("done"),
    ]))
    .await;
    for path in ["a.txt", "sub/deep/b.txt", "sub/c.txt"] {
        put(&world, path, "text");
    }
    put(&world, "CLAUDE.md", "At the top.");
    put(&world, "sub/CLAUDE.md", "In sub. @more.md");
    put(&world, "sub/more.md", "Imported.");
    put(&world, "sub/deep/AGENTS.md", "Deep.");
    put(&world, "other/CLAUDE.md", "Other.");
    world.run(&["run", "go"]).await.expect(0);
    let given = |request: usize| {
        let results = world.fake.requests()[request].tool_results().join("\n");
        ["At the top.", "In sub.", "Imported.", "Deep.", "Other."]
            .into_iter()
            .filter(|part| results.contains(part))
            .collect::<Vec<_>>()
    };
    assert!(given(1).is_empty());
    assert_eq!(given(2), ["In sub.", "Imported.", "Deep."]);
    assert!(given(3).is_empty());
    // Another process has no memory but the log.
    let run = world.only_run().await;
    world.run(&["runs", "resume", &run, "write"]).await.expect(0);
    assert!(given(5).is_empty());
    assert_eq!(given(6), ["Other."]);
}

#[tokio::test]
async fn nothing_out_of_the_project_and_nothing_that_rules_deny_is_read() {
    let world = World::new(Script::turns([read("sub/a"), Reply::text("done")])).await;
    std::fs::write(world.folder.path().join("secret"), "SECRET").unwrap();
    put(&world, ".env", "SECRET=1");
    put(&world, "sub/a", "text");
    put(&world, "AGENTS.md", "@.env @../secret @link `@sub/a`");
    put(&world, "posse.toml", "[permissions]\ndeny = [\"Read(.env)\", \"Read(**/CLAUDE.md)\"]\n");
    put(&world, "CLAUDE.md", "SECRET rules");
    put(&world, "sub/CLAUDE.md", "SECRET rules");
    symlink(world.folder.path().join("secret"), world.work().join("link")).unwrap();
    symlink(world.folder.path().join("secret"), world.work().join("CLAUDE.local.md")).unwrap();
    symlink("../../secret", world.work().join("sub/AGENTS.md")).unwrap();
    world.run(&["run", "go"]).await.expect(0);
    for request in world.fake.requests() {
        assert!(!String::from_utf8_lossy(&request.raw).contains("SECRET"), "{}", request.body);
    }
    let show = world.run(&["runs", "show", &world.only_run().await]).await.expect(0).out;
    for part in [
        "@.env was not imported: the rule `Read(.env)` denies it",
        "@../secret was not imported: it leads out of the project",
        "@link was not imported: it leads out of the project",
        "CLAUDE.md (not read, 0 bytes; the rule `Read(**/CLAUDE.md)` denies it)",
        "CLAUDE.local.md (not read, 0 bytes; it leads out of the project)",
    ] {
        assert!(show.contains(part), "{part}: {show}");
    }
}

#[tokio::test]
async fn subagents_get_the_same_bytes_unless_their_definition_leaves_them_out() {
    let task = |agent: &str| json!({"description": "d", "prompt": agent, "subagent_type": agent});
    let both = Reply::tool_call("Task", task("worker")).and_tool_call("Task", task("plain"));
    let both = both.and_tool_call("Task", task("worker"));
    let root = Conversation::when(When::any().first_user_contains("go"));
    let world = World::new(
        Script::new()
            .conversation(root.reply(both).reply(Reply::text("done")))
            .conversation(Conversation::when(When::any()).reply(Reply::text("x"))),
    )
    .await;
    put(&world, "AGENTS.md", "Run the tests.");
    let agents = "home-agents.json";
    let worker = json!({"description": "d", "prompt": "You work.", "tools": ["Read"]});
    let plain = json!({"description": "d", "prompt": "You are plain.", "omitClaudeMd": true});
    put(&world, agents, &json!({"worker": worker, "plain": plain}).to_string());
    world.run(&["run", "--agents", agents, "go"]).await.expect(0);
    let systems: Vec<String> =
        world.fake.requests().iter().map(|request| request.system()).collect();
    let of = |begin: &str| -> Vec<&String> {
        systems.iter().filter(|system| system.starts_with(begin)).collect()
    };
    let (worker, plain) = (of("You work."), of("You are plain."));
    assert_eq!((worker.len(), plain.len()), (2, 1), "{systems:#?}");
    assert!(worker[0].contains("Run the tests.") && worker[0] == worker[1]);
    assert!(!plain[0].contains("Run the tests."));
    let check = world.run(&["agents", "check", agents]).await.expect(0);
    assert!(!check.out.contains("omitClaudeMd"), "{}", check.out);
}

#[tokio::test]
async fn a_setting_turns_them_off_and_a_project_only_lowers_it() {
    let world = World::new(Script::always(Reply::text("done"))).await;
    put_home(&world, ".claude/CLAUDE.md", "Mine.");
    put(&world, "CLAUDE.md", "Theirs.");
    let parts = async || {
        world.run(&["run", "go"]).await.expect(0);
        let system = world.fake.last_request().system();
        (system.contains("Mine."), system.contains("Theirs."))
    };
    assert_eq!(parts().await, (true, true));
    put_home(&world, "config/posse/config.toml", "guidance = \"user\"\n");
    assert_eq!(parts().await, (true, false));
    put(&world, "posse.toml", "guidance = \"all\"\n");
    assert_eq!(parts().await, (true, false));
    put(&world, "posse.toml", "guidance = \"off\"\n");
    assert_eq!(parts().await, (false, false));
    world.write("posse.toml", "guidance = \"none\"\n");
    let wrong = world.run(&["run", "go"]).await.expect(2);
    assert!(wrong.err.contains("posse.toml:1"), "{}", wrong.err);
}
