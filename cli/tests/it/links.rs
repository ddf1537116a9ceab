//! Protected names at the top of a workspace that are links, or hold links: what programs of the user then obey
//! stays as it is, wherever in the workspace it lies.

use crate::world::{World, bash};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;
use std::os::unix::fs::symlink;

/// Tries to change what `link`, which leads to `target`, stands for: by a command, and by the file tools.
async fn check(link: &str, target: &str, to: &str) {
    let top = to.split('/').next().unwrap();
    let command = format!(
        "echo fine > made; mkdir -p {top} && echo fine > {top}/other
        echo evil > {to}; rm -rf {to}; echo evil > {link}; mv {top} away; mkdir -p $(dirname {to}); echo evil > {to}
        rm {link}; mkdir -p $(dirname {link}); echo evil > {link}; true"
    );
    let write =
        |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "evil"}));
    let conversation = Conversation::when(When::any())
        .reply(write(to))
        .reply(write(link))
        .reply(bash(&command))
        .reply(write(to))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(conversation)).await;
    let (at, text) = (world.work().join(link), target.split_once('=').map(|(_, text)| text));
    let target = target.split('=').next().unwrap();
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    symlink(target, &at).unwrap();
    if let Some(text) = text {
        let file = world.work().join(to);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    let found = std::fs::read_to_string(world.work().join(to)).ok();
    assert_eq!(found.as_deref(), text, "{link}: {said}");
    assert!(at.is_symlink(), "{link}: {said}");
    // No command runs where a name at the top is a link.
    let (made, is_at_top) = (world.work().join("made").exists(), !link.contains('/'));
    assert!(made != is_at_top, "{link}: {said}");
}

#[tokio::test]
async fn what_protected_names_lead_to_stays_as_it_is() {
    check(".claude/settings.json", "../conf/deep/c.json={}", "conf/deep/c.json").await;
    check(".vscode/a/b/tasks.json", "../../../tools/tasks.json=x", "tools/tasks.json").await;
    check("posse.toml", "conf/posse.toml=", "conf/posse.toml").await;
    check(".envrc", "envs/main", "envs/main").await;
}

#[tokio::test]
async fn a_folder_that_a_protected_name_leads_to_stays_as_it_is() {
    let write =
        |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "evil"}));
    let conversation = Conversation::when(When::any())
        .reply(write(".agents/settings.json"))
        .reply(write(".agents/agents/evil.md"))
        .reply(write(".claude/agents/evil.md"))
        .reply(write("made"))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(conversation)).await;
    let folder = world.work().join(".agents");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), "{}").unwrap();
    symlink(".agents", world.work().join(".claude")).unwrap();
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{said}");
    assert_eq!(world.read(".claude/settings.json"), "{}", "{said}");
    assert_eq!(world.read("made"), "evil", "{said}");
}
