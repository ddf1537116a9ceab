//! Commands of users (`.claude/commands`, `.posse/commands`), and skills that a person invokes.

use crate::world::World;
use posse_testkit::{Reply, Script};
use serde_json::json;

fn put(world: &World, path: &str, text: &str) {
    let path = world.folder.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_command_is_a_file_whose_text_follows_the_message() {
    let world = World::saying("done").await;
    let fix = "---\ndescription: Fixes an issue\nargument-hint: ISSUE\n---\nFix issue $1 in $2. See \
               @notes.md and !`ls`.";
    put(&world, "work/.claude/commands/fix.md", fix);
    put(&world, "work/.posse/commands/git/commit.md", "Commit all: $ARGUMENTS");
    put(&world, "home/config/posse/commands/fix.md", "Mine.");
    put(&world, "home/.claude/commands/plain.md", "Be plain.");
    put(&world, "work/notes.md", "x");
    let exit = world.run(&["run", "/fix 42 'the parser'"]).await.expect(0);
    assert!(exit.err.contains("◇ command fix: ") && exit.err.contains(".claude/commands/fix.md"));
    let asked = world.fake.last_request().last_user();
    assert!(asked.starts_with("/fix 42 'the parser'"), "{asked}");
    assert!(asked.contains("Fix issue 42 in the parser. See @notes.md and !`ls`."), "{asked}");
    assert!(asked.contains("[In the working folder: file notes.md]"), "{asked}");
    let list = world.list().await;
    assert_eq!(list[0]["title"], "/fix 42 'the parser'");
    for (prompt, part) in [
        ("/git:commit now", "Commit all: now"),
        ("/PLAIN", "Be plain."),
        ("/plain words", "Be plain.\n\nARGUMENTS: words"),
    ] {
        world.run(&["run", prompt]).await.expect(0);
        let asked = world.fake.last_request().last_user();
        assert!(asked.contains(part), "{prompt}: {asked}");
    }
    for prompt in ["/nothing here", "/etc/hosts is odd", "say /fix 1"] {
        world.run(&["run", prompt]).await.expect(0);
        assert_eq!(world.fake.last_request().last_user(), prompt);
    }
    let show = world.run(&["skills", "show", "git:commit", "a"]).await.expect(0).out;
    assert!(show.contains("a command: only people invoke it, with `/git:commit`"), "{show}");
    assert!(show.ends_with("\n\nCommit all: a\n"), "{show}");
}

#[tokio::test]
async fn no_model_is_offered_a_command_and_no_agent_s_words_invoke_one() {
    let task = json!({"description": "d", "prompt": "/fix it", "subagent_type": "general-purpose"});
    let world =
        World::new(Script::turns([Reply::tool_call("Task", task), Reply::text("done")])).await;
    put(&world, "work/.claude/commands/fix.md", "Fix it.");
    world.run(&["run", "go"]).await.expect(0);
    assert!(!world.fake.request(1).tools().contains(&"Skill".to_owned()));
    for request in world.fake.requests() {
        assert!(!request.texts().join("\n").contains("Fix it."), "{}", request.body);
    }
}

/// It grants nothing: what the agent may not do anyway stays forbidden.
#[tokio::test]
async fn the_tools_of_a_command_narrow_the_agent_until_the_next_message() {
    let write = |name: &str| Reply::tool_call("Write", json!({"file_path": name, "content": "x"}));
    let world = World::new(Script::turns([
        write("one"),
        Reply::text("done"),
        write("two"),
        Reply::text("done"),
    ]))
    .await;
    put(&world, "work/.claude/commands/look.md", "---\nallowed-tools: Read\n---\nLook.");
    let exit = world.feed(&["chat"], "/look around\nnow write\n").await.expect(0);
    assert!(!world.work().join("one").exists() && world.work().join("two").exists(), "{exit:?}");
    let asked = world.fake.request(1).last_user();
    assert!(asked.contains("you may call nothing but: Read. It grants none of them."), "{asked}");
    let fresh = World::new(Script::turns([write("one"), Reply::text("done")])).await;
    put(&fresh, "work/.claude/commands/look.md", "---\nallowed-tools: Read\n---\nLook.");
    fresh.run(&["run", "/look"]).await.expect(0);
    assert!(!fresh.work().join("one").exists());
}

#[tokio::test]
async fn a_chat_lists_commands_and_a_skill_for_people_only_can_be_invoked() {
    let world = World::saying("done").await;
    let skill = "---\ndescription: Greets people\ndisable-model-invocation: true\n---\nGreet $0.";
    put(&world, "work/.claude/skills/greet/SKILL.md", skill);
    let fix = "---\ndescription: Fixes an issue\nargument-hint: ISSUE\n---\nFix $1.";
    put(&world, "work/.claude/commands/fix-it.md", fix);
    let exit = world.feed(&["chat"], "/help\n/greet Ada\n/fix-it 7\n/nonsense\n").await.expect(0);
    for part in ["/fix-it ISSUE", "Fixes an issue", "/greet ", "there is no /nonsense"] {
        assert!(exit.err.contains(part), "{part}: {}", exit.err);
    }
    let said: Vec<String> =
        world.fake.requests().iter().map(|request| request.last_user()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("Greet Ada.") && said[1].contains("Fix 7."), "{said:?}");
}

#[tokio::test]
async fn an_unusable_command_is_reported_and_does_not_leave_the_project() {
    let world = World::saying("done").await;
    put(&world, "outside.md", "SECRET");
    put(&world, "work/.claude/commands/odd name.md", "x");
    put(&world, "work/.claude/commands/empty.md", "\n");
    std::os::unix::fs::symlink(
        world.folder.path().join("outside.md"),
        world.work().join(".claude/commands/link.md"),
    )
    .unwrap();
    let check = world.run(&["skills", "check"]).await.expect(2).out;
    for part in
        ["`odd name` is not the name of a command", "empty.md:", "a skill of a project lies in it"]
    {
        assert!(check.contains(part), "{part}: {check}");
    }
    world.run(&["run", "/link"]).await.expect(0);
    assert_eq!(world.fake.last_request().last_user(), "/link");
}
