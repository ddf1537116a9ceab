//! Protected names at the top of a workspace that are links, or hold links: what programs of the user then obey
//! stays as it is, wherever in the workspace it lies.

use crate::world::{World, bash};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;
use std::os::unix::fs::symlink;

/// Makes `links`, each from a name to a target, and `file` with `text`, if there is one. Then tries to change what the
/// last link leads to: by a command, and by the file tools.
async fn check(links: &[(&str, &str)], file: &str, text: Option<&str>) {
    let link = links.last().unwrap().0;
    let top = file.split('/').next().unwrap();
    let command = format!(
        "echo fine > made; mkdir -p {top} && echo fine > {top}/other
        echo evil > {file}; rm -rf {file}; echo evil > {link}; mv {top} away; mkdir -p $(dirname {file})
        echo evil > {file}; rm {link}; mkdir -p $(dirname {link}); echo evil > {link}; true"
    );
    let write =
        |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "evil"}));
    let conversation = Conversation::when(When::any())
        .reply(write(file))
        .reply(write(link))
        .reply(bash(&command))
        .reply(write(file))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(conversation)).await;
    let work = world.work();
    for (link, target) in links {
        std::fs::create_dir_all(work.join(link).parent().unwrap()).unwrap();
        symlink(target, work.join(link)).unwrap();
    }
    if let Some(text) = text {
        std::fs::create_dir_all(work.join(file).parent().unwrap()).unwrap();
        std::fs::write(work.join(file), text).unwrap();
    }
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    let found = std::fs::read_to_string(work.join(file)).ok();
    assert_eq!(found.as_deref(), text, "{link}: {said}");
    assert!(work.join(link).is_symlink(), "{link}: {said}");
    // No command runs where a name at the top is a link.
    let is_at_top = links.iter().any(|(link, _)| link.starts_with('.') && !link.contains('/'));
    assert!(work.join("made").exists() != is_at_top, "{link}: {said}");
}

#[tokio::test]
async fn what_protected_names_lead_to_stays_as_it_is() {
    let (settings, tasks) = (".claude/settings.json", ".vscode/a/b/tasks.json");
    check(&[(settings, "../conf/deep/c.json")], "conf/deep/c.json", Some("{}")).await;
    check(&[(tasks, "../../../tools/tasks.json")], "tools/tasks.json", Some("x")).await;
    check(&[(".mise.toml", "conf/mise.toml")], "conf/mise.toml", Some("")).await;
    check(&[(".envrc", "envs/main")], "envs/main", None).await;
    // Links in a folder that a link leads to.
    let links = [("skills/x", "../pkg/x"), (".claude/skills", "../skills")];
    check(&links, "pkg/x/SKILL.md", Some("text")).await;
    // Links to links.
    let links = [("conf/two.json", "one.json"), (settings, "../conf/two.json")];
    check(&links, "conf/one.json", Some("{}")).await;
}

/// What packages bring is installed anew.
#[tokio::test]
async fn what_a_build_makes_can_be_made_though_a_link_leads_there() {
    let command = "mkdir -p node_modules/pkg/skill && echo fine > node_modules/pkg/skill/SKILL.md";
    let world = World::new(Script::turns([bash(command), Reply::text("done")])).await;
    std::fs::create_dir_all(world.work().join(".claude/skills")).unwrap();
    let link = world.work().join(".claude/skills/x");
    symlink("../../node_modules/pkg/skill", &link).unwrap();
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    assert_eq!(world.read(".claude/skills/x/SKILL.md"), "fine\n", "{said}");
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
